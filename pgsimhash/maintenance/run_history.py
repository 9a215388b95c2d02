"""List, delete and undo runs."""

from __future__ import annotations

from psycopg.rows import class_row

from pgsimhash.db.statements import query
from pgsimhash.errors import NotFoundError
from pgsimhash.pages.records import Deletion, RunRecord
from pgsimhash.runtime.progress import no_progress
from pgsimhash.store import Store, deleting
from pgsimhash.store.collection import lock_collections
from pgsimhash.store.deleting import Deleted


def runs(store: Store) -> list[RunRecord]:
    """Return the runs that added pages, the last one first."""
    with (
        store.session.reading() as (connection, collection),
        connection.cursor(row_factory=class_row(RunRecord), binary=True) as cursor,
    ):
        scope = {"collection_id": collection.collection_id}
        return cursor.execute(query("runs", connection), scope).fetchall()


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
    scope = {"run_id": run_id}
    # First, so that an interrupted deletion leaves no file marked as stored.
    with store.session.writing() as (connection, collection):
        lock_collections(connection, [collection])
        own = {"collection_id": collection.collection_id}
        connection.execute(query("forget_archives", connection), own)
    deleted = deleting.delete(store.session, "pages_of_run", scope, progress)
    with store.session.writing() as (connection, collection):
        lock_collections(connection, [collection])
        connection.execute(
            query("delete_run", connection), {**scope, "collection_id": collection.collection_id}
        )
    return deleted


def undo(store: Store, *, progress: Deleted = no_progress) -> tuple[RunRecord, Deletion]:
    """Delete the versions that the last run added; return the run and the deletion.

    Raises:
        NotFoundError: there is no run.
    """
    known = runs(store)
    if not known:
        raise NotFoundError(
            "no_run",
            f"collection {store.collection!r} has no run to undo: nothing was "
            "added, or all of it was undone; pgsimhash status lists the collections",
        )
    return known[0], delete_run(store, known[0].run_id, progress=progress)
