"""Delete a collection with all its rows."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgsimhash.db.pinned import pinned
from pgsimhash.db.schema_names import bound_to_schema, schema_of
from pgsimhash.db.statements import query
from pgsimhash.errors import CollectionError
from pgsimhash.search.layout import COLLECTION_SHIFT, get_layout
from pgsimhash.store.collection import follow, lock_collections, open_collection
from pgsimhash.store.session import LOCK_TIMEOUT

_TABLES: Final = (
    "last_seen",
    "pages",
    "runs",
    "sources",
    "marks",
    "policies",
    "rebuilds",
    "collections",
)
"""The tables with rows of a collection, besides its simhashes, in the order of deletion."""


def delete_collection(connection: psycopg.Connection[Any], name: str) -> int:
    """Delete a collection and all its rows; return the number of versions of pages.

    It is one transaction: until it ends, readers see everything. Writers wait, and then fail
    because the collection is gone. A collection that is being built from it remains on its own.

    The schema is that of a store over the connection, else PGSIMHASH_SCHEMA, else ``pgsimhash``.

    Raises:
        CollectionError: the collection does not exist.
    """
    connection = pinned(connection)
    alone = connection.info.transaction_status == TransactionStatus.IDLE
    with bound_to_schema(connection), connection.transaction():
        # In the caller's transaction, other statements keep the caller's timeout.
        bounds = {"lock_timeout": None, "otherwise": LOCK_TIMEOUT if alone else "0"}
        connection.execute(query("bound_waits", connection), bounds)
        doomed = open_collection(connection, name, create=False)
        lock_collections(connection, [doomed], loaders=True)
        if follow(connection, doomed).collection_id != doomed.collection_id:
            raise CollectionError(
                "renamed", f"collection {name!r} was renamed during the call; try again"
            )
        scope = {"collection_id": doomed.collection_id}
        connection.execute(query("free_collections", connection), scope)
        borders = {
            "first": doomed.collection_id << COLLECTION_SHIFT,
            "beyond": doomed.collection_id + 1 << COLLECTION_SHIFT,
        }
        table = sql.Identifier(schema_of(connection), get_layout(doomed.layout).table)
        connection.execute(
            sql.SQL(query("delete_simhashes", connection)).format(table=table), borders
        )
        deleted = {}
        for name in _TABLES:
            statement = sql.SQL(query("delete_rows", connection)).format(
                table=sql.Identifier(schema_of(connection), name)
            )
            deleted[name] = connection.execute(statement, scope).rowcount
        return deleted["pages"]
