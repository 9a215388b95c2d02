"""Rebuild a collection with another layout, scheme or settings.

A second collection is built from the first, while lookups and writers continue to use the first.
Pages are processed in order of arrival and keep their ids; each batch is a transaction.
``pgsimhash.rebuilds`` records the progress. At the end both collections are locked, the second one
receives the remaining additions and deletions, and the two swap their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import psycopg
from psycopg import sql

from pgsimhash.db.pinned import execute_alone
from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import query
from pgsimhash.errors import CollectionError
from pgsimhash.maintenance.rebuild_pages import Progress, catch_up, copy_simhashes, take_pages
from pgsimhash.maintenance.rebuild_work import Asked, Work, begin, copy_tables
from pgsimhash.maintenance.removal import delete_collection
from pgsimhash.pages.match_settings import MatchOptions
from pgsimhash.pages.records import Verdict
from pgsimhash.runtime.progress import no_progress
from pgsimhash.schemes import Scheme
from pgsimhash.search.layout import get_layout
from pgsimhash.store import Store
from pgsimhash.store.collection import (
    Collection,
    follow,
    lock_collections,
    open_collection,
)
from pgsimhash.store.layouts import build_indexes


def rebuild(
    store: Store,
    into: str | None = None,
    *,
    layout: str | None = None,
    scheme: str | Scheme | None = None,
    reevaluate: bool = False,
    keep_markdown: bool | None = None,
    replace: bool = False,
    verdicts: Callable[[Verdict], None] = no_progress,
    progress: Progress = no_progress,
    **options: Unpack[MatchOptions],
) -> Collection:
    """Rebuild the collection in a second one, and swap their names.

    All versions are copied with their ids, times, verdicts and runs, together with marks, policies
    and standalone simhashes. With another scheme, ``reevaluate`` or any option, each version gets a
    new verdict, as if all arrived again in the same order. Lookups stay exact and writers continue.
    At the end writers wait while the second collection catches up, a few seconds per million pages.
    Open stores then use the new collection. If its scheme is different, they must be reopened.

    After an interruption, call it again with the same arguments. To give up, delete the collection
    ``into``.

    Args:
        store: the store of the collection, over a connection with ``autocommit`` or one of its own.
            Afterwards it uses the new collection.
        into: the name of the second collection, by default the first one's with ``-2``. The old
            collection has that name at the end.
        layout: its layout; by default the present one.
        scheme: its scheme. It fingerprints the stored Markdown, so it must read pages like the
            present scheme: only tokens, weights or hashes may differ. Versions without Markdown
            fail (``no_markdown``). They are omitted, as are versions that are too short for the
            scheme, and standalone simhashes.
        reevaluate: whether to repeat verdicts with the present settings. If the scheme stays,
            ``min_tokens`` of policies is ignored, because it only concerns new pages.
        keep_markdown: whether to store Markdown; by default like the present one.
        replace: whether to delete the old collection at the end.
        verdicts: receives each new verdict.
        progress: receives the steps ``pages``, ``simhashes`` and ``index``.
        options: settings for the verdicts; ``distance`` becomes the new collection's default.

    Returns:
        The new collection.

    Raises:
        ArgumentError: the layout, scheme or an option is invalid; the scheme reads pages
            differently; the present scheme is not registered; or the layout does not support the
            distance of the collection or of a policy.
        CollectionError: ``into`` exists and was not started by such a call; or the scheme differs
            and the collection does not store Markdown.
        StoreError: the connection is in a transaction.
    """
    work = begin(
        store,
        into or f"{store.collection}-2",
        Asked(layout, scheme, reevaluate, keep_markdown, options),
    )
    take_pages(work, progress, verdicts)
    copy_simhashes(work, progress)
    progress("index", 0, 1)
    with work.session.read() as connection:
        build_indexes(connection, get_layout(work.target.layout))
        _vacuum(connection, work.target)
    progress("index", 1, 1)
    take_pages(work, no_progress, verdicts)
    tried: set[int] = set()
    with work.session.transaction() as connection:
        # Do most of it before writers are locked out.
        told = catch_up(connection, work, tried)
    for verdict in told + _finish(work, tried):
        verdicts(verdict)
    with work.session.read() as connection:
        work.session.collection = rebuilt = open_collection(
            connection, work.source.name, create=False
        )
        if replace:
            # In a separate transaction, so that writers to the new collection need not wait.
            delete_collection(connection, work.target.name)
    return rebuilt


def _vacuum(connection: psycopg.Connection[Any], collection: Collection) -> None:
    table = sql.Identifier(schema_of(connection), get_layout(collection.layout).table)
    execute_alone(connection, sql.SQL("VACUUM (ANALYZE) {}").format(table))


def _finish(work: Work, tried: set[int]) -> list[Verdict]:
    """Catch up under the lock, and swap the names."""
    with work.session.transaction() as connection:
        lock_collections(connection, [work.source, work.target], loaders=True)
        present = follow(connection, work.source)
        if present.collection_id != work.source.collection_id:
            raise CollectionError(
                "renamed",
                f"the name {work.source.name!r} now belongs to another collection; give up the "
                f"rebuild: pgsimhash collection delete {work.target.name}",
            )
        verdicts = catch_up(connection, work, tried)
        copy_tables(connection, work)
        connection.execute(query("end_rebuild", connection), work.scope)
        names = {"old": work.source.name, "new": work.target.name, "swap": True}
        connection.execute(query("rename_collection", connection), names)
    return verdicts
