"""The statistics of a database, for all its collections."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import class_row

from pgsimhash.db.statements import query
from pgsimhash.pages.records import CollectionStatus


def read_status(
    connection: psycopg.Connection[Any], collection: str | None = None
) -> list[CollectionStatus]:
    """Return the statistics of every collection, by name, or of one."""
    with connection.cursor(row_factory=class_row(CollectionStatus), binary=True) as cursor:
        return cursor.execute(query("status", connection), {"collection": collection}).fetchall()
