"""Deletes pages in bounded batches, while writers go on, and gives their space back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.connection import server_words
from pgsimhash.errors import PolicyError, StoreError
from pgsimhash.layout import get_layout
from pgsimhash.statements import SCHEMA, query
from pgsimhash.store.collection import Collection, check_names
from pgsimhash.store.session import Session

BATCH: Final = 1000
"""How many pages go in one transaction: writers wait for each some tens of milliseconds."""

Forgotten = Callable[[int], None]
"""Told how many pages are gone so far."""

_Batch = Callable[[Collection, int], tuple[int | None, int]]
"""Deletes some pages after one; returns the page to go on after, None at the end, and how many."""


def _batch_by_batch(collections: Sequence[Collection], batch: _Batch, progress: Forgotten) -> int:
    """Let ``batch`` go through each collection; return how many pages went."""
    forgotten = 0
    for collection in collections:
        after_page: int | None = 0
        while after_page is not None:
            after_page, pages = batch(collection, after_page)
            forgotten += pages
            progress(forgotten)
    return forgotten


def expire(
    session: Session,
    collections: Sequence[Collection],
    older_than: timedelta | None,
    progress: Forgotten,
) -> int:
    """Delete the versions not seen for so long, or as policies say; return how many there were.

    Raises:
        PolicyError: no age is given, and no policy gives one.
        CollectionError: a collection was renamed since it was opened.
    """
    return _batch_by_batch(
        collections,
        lambda collection, after_page: _expire_batch(session, collection, older_than, after_page),
        progress,
    )


def _expire_batch(
    session: Session, collection: Collection, older_than: timedelta | None, after_page: int
) -> tuple[int | None, int]:
    """Return the page to go on after, None at the end, and how many went."""
    parameters = {
        "collection": collection.name,
        "older_than": older_than,
        "after_page": after_page,
        "batch": BATCH,
    }
    try:
        with (
            session.transaction() as connection,
            connection.cursor(row_factory=tuple_row) as cursor,
        ):
            done = cursor.execute(query("expire_batch"), parameters).fetchone()
            check_names(connection, [collection])
            return done or (None, 0)
    except psycopg.errors.InvalidParameterValue as error:
        raise PolicyError(server_words(error)) from error


def forget(
    session: Session,
    collections: Sequence[Collection],
    statement: str,
    parameters: dict[str, Any],
    progress: Forgotten,
) -> int:
    """Delete the pages that ``sql/queries/<statement>.sql`` finds; return how many there were.

    Raises:
        CollectionError: the collection was renamed since it was opened.
    """
    return _batch_by_batch(
        collections,
        lambda collection, after_page: _forget_batch(
            session, collection, statement, {**parameters, "after_page": after_page}
        ),
        progress,
    )


def _forget_batch(
    session: Session, collection: Collection, statement: str, parameters: dict[str, Any]
) -> tuple[int | None, int]:
    """Return the page to go on after, None at the end, and how many went."""
    scope = {**parameters, "collection_id": collection.collection_id, "batch": BATCH}
    with (
        session.transaction() as connection,
        connection.cursor(row_factory=scalar_row) as cursor,
    ):
        page_ids = cursor.execute(query(statement), scope).fetchall()
        if not page_ids:
            return None, 0
        doomed = {"collection": collection.name, "page_ids": page_ids}
        forgotten = cursor.execute(query("forget_pages"), doomed).fetchone() or 0
        # Only now: under the lock that was just taken nobody renames it.
        check_names(connection, [collection])
    return page_ids[-1], forgotten


def reclaim(
    connection: psycopg.Connection[Any], collections: Sequence[Collection], *, rebuild: bool
) -> None:
    """Let new rows use the space of deleted ones, and with ``rebuild`` shrink the indexes.

    Raises:
        StoreError: the connection is in a transaction, in which neither is possible.
    """
    if not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE:
        raise StoreError(
            "space is reclaimed outside of transactions; use a connection with autocommit=True "
            "that is in none, or leave it to autovacuum with reclaim=None"
        )
    simhashes = (get_layout(collection.layout).table for collection in collections)
    for name in dict.fromkeys(["pages", "sightings", *simhashes]):
        table = sql.Identifier(SCHEMA, name)
        connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))
        if rebuild:
            connection.execute(sql.SQL("REINDEX TABLE CONCURRENTLY {}").format(table))
