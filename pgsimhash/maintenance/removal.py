"""Delete runs and collections."""

from __future__ import annotations

from typing import Any

import psycopg

from pgsimhash.db.schema_names import bound_to_schema
from pgsimhash.db.statements import fetch, fetch_records, is_idle, transaction
from pgsimhash.errors import CollectionError, NotFoundError
from pgsimhash.pages.records import Deletion, RunRecord
from pgsimhash.runtime.progress import no_progress
from pgsimhash.store import Store, deleting
from pgsimhash.store.collection import (
    NO_BOUNDS,
    follow,
    lock_collections,
    lock_to_write,
    open_collection,
)
from pgsimhash.store.deleting import Deleted
from pgsimhash.store.session import LOCK_TIMEOUT


def runs(store: Store) -> list[RunRecord]:
    """Return the runs that added pages, the last one first."""
    with store.session.reading() as (connection, collection):
        scope = {"collection_id": collection.collection_id}
        return fetch_records(connection, "runs", scope, RunRecord)


def delete_run(store: Store, run_id: int, *, progress: Deleted = no_progress) -> Deletion:
    """Delete the versions that a run added.

    URLs revert to their previous versions. Versions that the run only saw again stay, and so do
    pages that its writer adds later.

    Raises:
        NotFoundError: the collection has no such run.
    """
    known = [run.run_id for run in runs(store)]
    if run_id not in known:
        raise NotFoundError(
            "unknown_run",
            f"collection {store.collection!r} has no run {run_id}; "
            f"pgsimhash run list --collection {store.collection} lists them",
        )
    # First, so that an interrupted deletion leaves no file marked as stored.
    _forget(store, run_id)
    deleted = deleting.delete(store.session, progress, run_id=run_id)
    # Again, because the run's writer may have stored pages of other files meanwhile.
    _forget(store, run_id)
    return deleted


def _forget(store: Store, run_id: int) -> None:
    with store.session.writing() as (connection, collection):
        lock_to_write(connection, collection)
        scope = {"collection_id": collection.collection_id, "run_id": run_id}
        fetch(connection, "forget_run", scope)


def undo(store: Store, *, progress: Deleted = no_progress) -> tuple[RunRecord, Deletion]:
    """Delete the versions that the last run added; return the run and the deletion.

    Raises:
        NotFoundError: there is no run.
    """
    known = runs(store)
    if not known:
        raise NotFoundError(
            "unknown_run",
            f"collection {store.collection!r} has no run to undo: nothing was "
            "added, or all of it was undone; pgsimhash status lists the collections",
        )
    return known[0], delete_run(store, known[0].run_id, progress=progress)


def delete_collection(connection: psycopg.Connection[Any], name: str) -> int:
    """Delete a collection and all its rows; return the number of versions of pages.

    It is one transaction: until it ends, readers see everything. Writers wait, and then fail
    because the collection is gone.

    The schema is that of a store over the connection, else PGSIMHASH_SCHEMA, else ``pgsimhash``.

    Raises:
        CollectionError: the collection does not exist.
    """
    alone = is_idle(connection)
    with bound_to_schema(connection), transaction(connection):
        # In the caller's transaction, other statements keep the caller's timeout.
        bounds = {**NO_BOUNDS, "otherwise": LOCK_TIMEOUT if alone else "0"}
        fetch(connection, "bound", bounds)
        doomed = open_collection(connection, name, create=False)
        lock_collections(connection, [doomed], loaders=True)
        if follow(connection, doomed).collection_id != doomed.collection_id:
            raise CollectionError(
                "unknown", f"collection {name!r} was renamed during the call; try again"
            )
        scope = {"collection_id": doomed.collection_id}
        return int(fetch(connection, "delete_collection", scope)[0][0])
