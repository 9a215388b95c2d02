"""Makes a collection anew: with another layout, by another scheme, or by other settings.

A second collection is made from the first, while lookups and writers go on in that: its pages in
the order in which they came, under the same ids, in batches that are a transaction each. How far
it has come is a row of ``pgsimhash.rebuilds``. While that row is there, who locks the first
collection locks the second one too, and whatever is deleted, seen again or added without a page
is so in both (``sql/write.sql``, ``sql/delete.sql``), so that only pages that came meanwhile are
left to be taken. At the end, under the lock, the last of them are, and the names are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Unpack

import psycopg
from psycopg import sql

from pgsimhash.errors import ArgumentError, CollectionError
from pgsimhash.layout import get_layout
from pgsimhash.maintenance.dropping import delete_collection
from pgsimhash.maintenance.rebuild_pages import Progress, copy_simhashes, take_pages, take_rest
from pgsimhash.maintenance.rebuild_work import Asked, Work, begin, copy_tables
from pgsimhash.matching import MatchOptions
from pgsimhash.pinned import execute_alone
from pgsimhash.progress import unheard
from pgsimhash.records import Verdict
from pgsimhash.schema_names import schema_of
from pgsimhash.schemes import Scheme
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.collection import (
    Collection,
    follow,
    lock_collections,
    open_collection,
)
from pgsimhash.store.layouts import build_indexes

Then = Literal["swap", "replace", "separate", "follow"]


def rebuild(
    store: Store,
    into: str | None = None,
    *,
    layout: str | None = None,
    scheme: str | Scheme | None = None,
    rejudge: bool = False,
    keep_markdown: bool | None = None,
    approximate: bool = False,
    then: Then = "swap",
    verdicts: Callable[[Verdict], None] = unheard,
    progress: Progress = unheard,
    **options: Unpack[MatchOptions],
) -> Collection:
    """Make the collection anew in another one, and let the two exchange their names.

    All versions go along with their ids, times, verdicts and runs; so do marks, policies and
    simhashes without a page. With another scheme, ``rejudge`` or any option, each version gets a
    verdict anew, as if all came again in the same order. Lookups are exact and writers go on
    throughout; at the exchange, stores that have the collection open follow it, but for another
    scheme, where they say that they have to be opened again. It takes as much room again until one
    of the two is deleted.

    Interrupted, the same call goes on where it stopped. To give it up, delete the collection
    ``into``.

    Args:
        store: whose collection it is, over a connection with ``autocommit`` such as its own. With
            ``swap`` and ``replace`` it has the new collection open afterwards.
        into: the name of the second collection, by default the first one's and ``-2``.
        layout: its layout; by default the present one. ``pgsimhash collection plan`` compares them.
        scheme: its scheme, which votes over the Markdown that is kept, and so has to read pages as
            the present one does: the same with other tokens, weights or hashes. Versions without
            Markdown fail (``no_markdown``), and what is too short for it is left out; so are
            simhashes without a page.
        rejudge: whether verdicts are given anew by the present settings too. Policies hold as they
            are then, but for ``min_tokens`` where the scheme stays, which is about pages to come.
        keep_markdown: whether it keeps the Markdown; by default as the present one.
        approximate: whether to go on where the scheme reads pages in another way, with simhashes
            of the text that the present one made of them.
        then: what to do when it is complete: ``swap`` the names, so that the old collection stays
            under the name ``into``; ``replace``, which deletes the old one; ``separate``, so that
            each has its own name and ways; or ``follow``: what is deleted and seen again goes
            on to be so in both, nobody else writes there, and the next call takes what came since.
        verdicts: told each verdict that is given anew.
        progress: told of the steps ``pages``, ``simhashes`` and ``index``.
        options: by what settings verdicts are given; ``distance`` becomes the new collection's own.

    Returns:
        The new collection.

    Raises:
        ArgumentError: there is no such layout; there is no such scheme, it reads pages in another
            way, or this collection's is not registered; the layout does not answer the distance; a
            policy asks for a distance that the layout does not answer; there is no such scope or
            ``then``, or a number is below 1; ``max_age`` is none.
        CollectionError: ``into`` is there and was not begun by such a call; or the collection keeps
            no Markdown, and the scheme is another.
        StoreError: the connection is in a transaction, or the database does not answer.
    """
    if then not in ("swap", "replace", "separate", "follow"):
        raise ArgumentError(
            "unknown_rule", f"then is swap, replace, separate or follow, not {then!r}"
        )
    work = begin(
        store,
        into or f"{store.collection}-2",
        Asked(layout, scheme, rejudge, keep_markdown, approximate, options),
    )
    take_pages(work, progress, verdicts)
    copy_simhashes(work, progress)
    progress("index", 0, 1)
    with work.session.read() as connection:
        build_indexes(connection, get_layout(work.target.layout))
        _vacuum(connection, work.target)
    progress("index", 1, 1)
    take_pages(work, unheard, verdicts)
    for verdict in _finish(work, then):
        verdicts(verdict)
    swapped = then in ("swap", "replace")
    with work.session.read() as connection:
        name = work.source.name if swapped else work.target.name
        made = open_collection(connection, name, create=False)
    if swapped:
        work.session.collection = made
    if then == "replace":
        # On its own: nobody who writes to the new one waits for it.
        with work.session.read() as connection:
            delete_collection(connection, work.target.name)
    return made


def _vacuum(connection: psycopg.Connection[Any], collection: Collection) -> None:
    table = sql.Identifier(schema_of(connection), get_layout(collection.layout).table)
    execute_alone(connection, sql.SQL("VACUUM (ANALYZE) {}").format(table))


def _finish(work: Work, then: Then) -> list[Verdict]:
    """Take the last pages and do what is to be done at the end, under the lock."""
    verdicts: list[Verdict] = []
    with work.session.transaction() as connection:
        lock_collections(connection, [work.source, work.target], loaders=True)
        present = follow(connection, work.source)
        if present.collection_id != work.source.collection_id:
            raise CollectionError(
                "renamed",
                f"the name {work.source.name!r} went to another collection meanwhile; give up the "
                f"one that is being made: pgsimhash collection delete {work.target.name}",
            )
        while (taken := take_rest(connection, work)) is not None:
            verdicts += taken[1]
        copy_tables(connection, work)
        if then != "follow":
            connection.execute(query("end_rebuild", connection), work.scope)
        if then in ("swap", "replace"):
            names = {"old": work.source.name, "new": work.target.name, "swap": True}
            connection.execute(query("rename_collection", connection), names)
    return verdicts
