"""Deletes a collection with all that belongs to it."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row

from pgsimhash.errors import StoreError
from pgsimhash.layout import COLLECTION_SHIFT, get_layout
from pgsimhash.statements import SCHEMA, query
from pgsimhash.store.collection import Collection, lock_collections, open_collection, present_rows

_TABLES: Final = ("sightings", "pages", "runs", "marks", "policies", "tasks", "collections")
"""What has rows of a collection beside its simhashes, in the order in which they can go."""


def delete_collection(connection: psycopg.Connection[Any], name: str) -> int:
    """Delete a collection and all in it; return how many versions of pages there were.

    It is one transaction: until it ends readers find everything, and writers wait, who are then
    told that the collection is gone.

    Raises:
        CollectionError: there is no such collection, or it was renamed at this moment.
        StoreError: its layout is being changed, or the database does not answer.
    """
    with connection.transaction():
        doomed = open_collection(connection, name, create=False)
        lock_collections(connection, [doomed])
        _hold_layout(connection, doomed)
        # Only now does nobody move it to another layout.
        for collection in present_rows(connection, [doomed]):
            _delete_simhashes(connection, collection)
        scope = {"collection_id": doomed.collection_id}
        deleted = {}
        for table in _TABLES:
            statement = sql.SQL(query("delete_rows")).format(table=sql.Identifier(SCHEMA, table))
            deleted[table] = connection.execute(statement, scope).rowcount
    return deleted["pages"]


def _hold_layout(connection: psycopg.Connection[Any], collection: Collection) -> None:
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(row_factory=scalar_row) as cursor:
        if not cursor.execute(query("relayout_hold"), scope).fetchone():
            raise StoreError(
                "layout_in_use",
                f"the layout of collection {collection.name!r} is being changed by someone else; "
                "stop that first",
            )


def _delete_simhashes(connection: psycopg.Connection[Any], collection: Collection) -> None:
    """Delete the collection's rows from the table of its layout, and of the one it moves to."""
    borders = {
        "first": collection.collection_id << COLLECTION_SHIFT,
        "beyond": collection.collection_id + 1 << COLLECTION_SHIFT,
    }
    for layout in (collection.layout, collection.next_layout):
        if layout is not None:
            table = sql.Identifier(SCHEMA, get_layout(layout).table)
            statement = sql.SQL(query("delete_slice")).format(present=table)
            connection.execute(statement, borders)
