"""Deletes pages in bounded batches, while writers go on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.connection import server_words
from pgsimhash.errors import ArgumentError
from pgsimhash.statements import query
from pgsimhash.store.session import Session

BATCH: Final = 1000
"""How many pages go in one transaction: writers wait for each some tens of milliseconds."""

Deleted = Callable[[int], None]
"""Told how many pages are gone so far."""


def expire(session: Session, older_than: timedelta | None, progress: Deleted) -> int:
    """Delete the versions not seen for so long, or as policies say; return how many there were.

    Raises:
        ArgumentError: no age is given, and no policy gives one.
        CollectionError: no collection of the scheme has the name any more.
    """
    deleted = 0
    after_page: int | None = 0
    while after_page is not None:
        after_page, pages = _expire_batch(session, older_than, after_page)
        deleted += pages
        progress(deleted)
    return deleted


def _expire_batch(
    session: Session, older_than: timedelta | None, after_page: int
) -> tuple[int | None, int]:
    """Return the page to go on after, None at the end, and how many went."""
    parameters = {"older_than": older_than, "after_page": after_page, "batch": BATCH}
    try:
        with (
            session.writing() as (connection, collection),
            connection.cursor(row_factory=tuple_row) as cursor,
        ):
            scope = {"collection": collection.name, **parameters}
            return cursor.execute(query("expire_batch", connection), scope).fetchone() or (None, 0)
    except psycopg.errors.InvalidParameterValue as error:
        raise ArgumentError("no_expiry", server_words(error)) from error


def delete(
    session: Session,
    statement: str,
    parameters: dict[str, Any],
    progress: Deleted,
) -> int:
    """Delete the pages that ``sql/queries/<statement>.sql`` finds; return how many there were.

    Raises:
        CollectionError: no collection of the scheme has the name any more.
    """
    deleted = 0
    after_page: int | None = 0
    while after_page is not None:
        scope = {**parameters, "after_page": after_page}
        after_page, pages = _delete_batch(session, statement, scope)
        deleted += pages
        progress(deleted)
    return deleted


def _delete_batch(
    session: Session, statement: str, parameters: dict[str, Any]
) -> tuple[int | None, int]:
    """Return the page to go on after, None at the end, and how many went."""
    with (
        session.writing() as (connection, collection),
        connection.cursor(row_factory=scalar_row) as cursor,
    ):
        scope = {**parameters, "collection_id": collection.collection_id, "batch": BATCH}
        page_ids = cursor.execute(query(statement, connection), scope).fetchall()
        if not page_ids:
            return None, 0
        doomed = {"collection": collection.name, "page_ids": page_ids}
        return page_ids[-1], cursor.execute(
            query("delete_pages", connection), doomed
        ).fetchone() or 0
