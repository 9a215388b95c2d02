"""Delete pages in bounded batches, so that writers can continue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from psycopg.rows import scalar_row

from pgsimhash.db.statements import fetch
from pgsimhash.pages.records import Deletion
from pgsimhash.store.session import Session

BATCH: Final = 1000
"""Pages per transaction: each blocks other writers for some tens of milliseconds."""

Deleted = Callable[[int], None]
"""Receives the number of pages deleted so far."""


def expire(session: Session, older_than: timedelta | None, progress: Deleted) -> Deletion:
    """Delete versions last seen longer ago than an age, or as policies define."""
    return _in_all(_expire_batches(session, older_than), progress)


def delete(
    session: Session, statement: str, parameters: dict[str, Any], progress: Deleted
) -> Deletion:
    """Delete the pages that a statement selects."""
    return _in_all(_delete_batches(session, statement, parameters), progress)


def _in_all(batches: Iterable[Deletion], progress: Deleted) -> Deletion:
    versions = 0
    gone: dict[str, None] = {}
    reverted: dict[str, None] = {}
    promoted: dict[str, None] = {}
    for batch in batches:
        versions += batch.versions
        gone.update(dict.fromkeys(batch.gone))
        reverted.update(dict.fromkeys(batch.reverted))
        promoted.update(dict.fromkeys(batch.promoted))
        progress(versions)
    # A page that one batch reverted or promoted may be deleted by a later batch.
    remaining = ([url for url in urls if url not in gone] for urls in (reverted, promoted))
    return Deletion(versions, list(gone), *remaining)


def _expire_batches(session: Session, older_than: timedelta | None) -> Iterator[Deletion]:
    after_page: int | None = 0
    while after_page is not None:
        parameters = {"older_than": older_than, "after_page": after_page, "batch": BATCH}
        with session.writing() as (connection, collection):
            scope = {"collection": collection.name, **parameters}
            ((after_page, *went),) = fetch(connection, "expire_batch", scope)
        yield Deletion(*went)


def _delete_batches(
    session: Session, statement: str, parameters: dict[str, Any]
) -> Iterator[Deletion]:
    after_page = 0
    while True:
        scope = {**parameters, "after_page": after_page, "batch": BATCH}
        with session.writing() as (connection, collection):
            scope["collection_id"] = collection.collection_id
            page_ids = fetch(connection, statement, scope, scalar_row)
            if not page_ids:
                return
            after_page = page_ids[-1]
            doomed = {
                "collection": collection.name,
                "page_ids": page_ids,
                "seen_befores": None,
            }
            (went,) = fetch(connection, "delete_pages", doomed)
        yield Deletion(*went)
