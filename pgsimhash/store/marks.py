"""The marks of a collection."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import class_row

from pgsimhash.db.statements import query
from pgsimhash.pages.marks import Mark
from pgsimhash.store.collection import Collection


def all_marks(connection: psycopg.Connection[Any], collection: Collection) -> list[Mark]:
    """Return the marks of a collection, in their order."""
    with connection.cursor(row_factory=class_row(Mark), binary=True) as cursor:
        scope = {"collection_id": collection.collection_id}
        return cursor.execute(query("marks", connection), scope).fetchall()
