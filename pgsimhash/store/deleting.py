"""Delete pages in bounded batches, so that writers can continue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from pgsimhash.db.statements import fetch
from pgsimhash.pages.records import Deletion
from pgsimhash.store.session import Session

BATCH: Final = 1000
"""Pages per transaction: each blocks other writers for some tens of milliseconds."""

Deleted = Callable[[int], None]
"""Receives the number of pages deleted so far."""


def expire(session: Session, older_than: timedelta | None, progress: Deleted) -> Deletion:
    """Delete versions last seen longer ago than an age, or as policies define."""
    return _in_all(_batches(session, "expire_batch", {"older_than": older_than}), progress)


def delete(session: Session, progress: Deleted, **pages: Any) -> Deletion:
    """Delete the pages of a ``url``, of a ``host`` or of the run with a ``run_id``."""
    which = {"url": None, "host": None, "run_id": None, **pages}
    return _in_all(_batches(session, "delete_batch", which), progress)


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


def _batches(session: Session, function: str, which: dict[str, Any]) -> Iterator[Deletion]:
    after_page: int | None = 0
    while after_page is not None:
        with session.writing() as (connection, collection):
            batch = {"collection": collection.name, "after_page": after_page, "batch": BATCH}
            ((after_page, *deleted),) = fetch(connection, function, which | batch)
        if deleted[0] is not None:
            yield Deletion(*deleted)
