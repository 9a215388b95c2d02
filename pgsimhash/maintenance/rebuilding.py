"""Rebuilds a collection: with another layout, by another scheme, or by other settings.

A second collection is built from the first, while lookups and writers go on in that: its pages in
the order in which they came, under the same ids, in batches that are a transaction each. How far
it has come is a row of ``pgsimhash.rebuilds``. At the end, under the lock of both, the second one
catches up with all that was added and deleted meanwhile, and the two exchange their names.
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
from pgsimhash.maintenance.dropping import delete_collection
from pgsimhash.maintenance.rebuild_pages import Progress, catch_up, copy_simhashes, take_pages
from pgsimhash.maintenance.rebuild_work import Asked, Work, begin, copy_tables
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
    """Build the collection again in a second one, and exchange the names of the two.

    All versions are copied with their ids, times, verdicts and runs, together with marks, policies
    and simhashes without a page. With another scheme, ``reevaluate`` or any option, each version
    gets a new verdict, as if all came again in the same order. Lookups stay exact and writers go
    on; they wait while the second collection catches up at the end, a few seconds for each million
    pages. Stores that have the collection open then use the new one, unless its scheme is another:
    they have to be opened again.

    After an interruption, call it again with the same arguments. To give up, delete the collection
    ``into``.

    Args:
        store: whose collection it is, over a connection with ``autocommit`` such as its own.
            Afterwards it has the new collection open.
        into: the name of the second collection, by default the first one's and ``-2``. The old
            collection has that name at the end.
        layout: its layout; by default the present one.
        scheme: its scheme, which votes over the Markdown that is kept, and so has to read pages as
            the present one does: the same with other tokens, weights or hashes. Versions without
            Markdown fail (``no_markdown``); they are left out, and so are versions that are too
            short for the scheme and simhashes without a page.
        reevaluate: whether verdicts are given again by the present settings too. Policies hold as
            they are then, except ``min_tokens`` if the scheme stays, which is about pages to come.
        keep_markdown: whether it keeps the Markdown; by default as the present one.
        replace: whether to delete the old collection at the end.
        verdicts: called with each new verdict.
        progress: called with the steps ``pages``, ``simhashes`` and ``index``.
        options: settings for the verdicts; ``distance`` becomes the new collection's default.

    Returns:
        The new collection.

    Raises:
        ArgumentError: there is no such layout or scheme, the scheme reads pages in another way, or
            the present scheme is not registered; the layout does not answer the distance of the
            collection or of a policy; or an option is invalid.
        CollectionError: ``into`` exists and was not begun by such a call; or the scheme is another
            one and the collection keeps no Markdown.
        StoreError: the connection is in a transaction, or the database does not answer.
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
        # Most of it without keeping writers out.
        told = catch_up(connection, work, tried)
    for verdict in told + _finish(work, tried):
        verdicts(verdict)
    with work.session.read() as connection:
        work.session.collection = made = open_collection(connection, work.source.name, create=False)
        if replace:
            # On its own: nobody who writes to the new one waits for it.
            delete_collection(connection, work.target.name)
    return made


def _vacuum(connection: psycopg.Connection[Any], collection: Collection) -> None:
    table = sql.Identifier(schema_of(connection), get_layout(collection.layout).table)
    execute_alone(connection, sql.SQL("VACUUM (ANALYZE) {}").format(table))


def _finish(work: Work, tried: set[int]) -> list[Verdict]:
    """Catch up while nobody writes, and exchange the names."""
    with work.session.transaction() as connection:
        lock_collections(connection, [work.source, work.target], loaders=True)
        present = follow(connection, work.source)
        if present.collection_id != work.source.collection_id:
            raise CollectionError(
                "renamed",
                f"the name {work.source.name!r} went to another collection meanwhile; give up the "
                f"one that is being made: pgsimhash collection delete {work.target.name}",
            )
        verdicts = catch_up(connection, work, tried)
        copy_tables(connection, work)
        connection.execute(query("end_rebuild", connection), work.scope)
        names = {"old": work.source.name, "new": work.target.name, "swap": True}
        connection.execute(query("rename_collection", connection), names)
    return verdicts
