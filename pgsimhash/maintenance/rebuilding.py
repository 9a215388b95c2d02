"""Makes a collection anew: with another layout, by another scheme, or by other settings.

A second collection is made from the first, while lookups and writers go on in that: its pages in
the order in which they came, under the same ids, in batches that are a transaction each. How far
it has come is a row of ``pgsimhash.rebuilds``. While that row is there, who locks the first
collection locks the second one too, and whatever is deleted, seen again or added without a page
is so in both (``sql/write.sql``, ``sql/delete.sql``), so that only pages that came meanwhile are
left to be taken. At the end, under the lock, the last of them are, and the names are exchanged.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, Unpack

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, scalar_row, tuple_row
from psycopg.types.json import Jsonb

from pgsimhash.errors import ArgumentError, CollectionError, StoreError
from pgsimhash.layout import get_layout
from pgsimhash.maintenance.dropping import delete_collection
from pgsimhash.maintenance.stored import StoredRecord, count_pages_after, stored_records
from pgsimhash.matching import MatchOptions, MatchSettings
from pgsimhash.records import PageFailure, PageRecord, Verdict
from pgsimhash.rereading import Rereading, rereading
from pgsimhash.schema_names import schema_of
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.batches import BATCH_PAGES, Batch, sorted_out
from pgsimhash.store.candidates import ask
from pgsimhash.store.collection import (
    Collection,
    create_collection,
    find_collection,
    follow,
    lock_collections,
    open_collection,
)
from pgsimhash.store.decisions import decide
from pgsimhash.store.layouts import build_indexes
from pgsimhash.store.policies import rules_of, settings_for
from pgsimhash.store.search_scope import search_scope
from pgsimhash.store.session import Session
from pgsimhash.store.verdicts import Decision
from pgsimhash.store.writer import insert_pages

Progress = Callable[[str, int, int], None]
"""Told the step, and how much of how much of it is done."""

Then = Literal["swap", "replace", "separate", "follow"]

_COPIED: Final = 2_000
"""How many pages are copied as they are in a transaction: writers wait a tenth of a second."""

_SLICE: Final = 20_000
"""How many simhashes without a page are copied in a transaction, about."""

_TABLES: Final = ("policies", "marks", "runs")
"""What is copied whole: what people set and said, and the runs."""


def unheard(step: str, done: int, total: int) -> None:
    """Be told of progress, and do nothing."""


def unread(verdict: Verdict) -> None:
    """Be told of a verdict, and do nothing."""


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
    verdicts: Callable[[Verdict], None] = unread,
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
    work = _begin(
        store,
        into or f"{store.collection}-2",
        _Asked(layout, scheme, rejudge, keep_markdown, approximate, options),
    )
    _pages(work, progress, verdicts)
    _simhashes(work, progress)
    progress("index", 0, 1)
    with work.session.read() as connection:
        build_indexes(connection, get_layout(work.target.layout))
        _vacuum(connection, work.target)
    progress("index", 1, 1)
    _pages(work, unheard, verdicts)
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a caller asks for."""

    layout: str | None
    scheme: str | Scheme | None
    rejudge: bool
    keep_markdown: bool | None
    approximate: bool
    options: MatchOptions

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values, the same for the same; None is not asked for."""
        scheme = None if self.scheme is None else get_scheme(self.scheme).name
        asked = {**dataclasses.asdict(self), **self.options, "scheme": scheme}
        del asked["options"]
        if self.layout is not None:
            asked["layout"] = get_layout(self.layout).name
        given = {name: value for name, value in asked.items() if value is not None}
        values: dict[str, Any] = json.loads(json.dumps(given, default=str))
        return values


@dataclass(frozen=True, slots=True)
class _Work:
    """One rebuild: ``reread`` is how the scheme votes, None where simhashes stay.

    ``judged`` says whether verdicts are given anew.
    """

    session: Session
    source: Collection
    target: Collection
    reread: Rereading | None
    judged: bool
    options: MatchOptions

    @property
    def scope(self) -> dict[str, int]:
        return {
            "collection_id": self.target.collection_id,
            "source_id": self.source.collection_id,
        }


@dataclass(frozen=True, slots=True)
class _Row:
    """How far a rebuild has come."""

    source_id: int
    asked: Mapping[str, Any]
    last_page: int
    last_slice: int
    slices: int


def _begin(store: Store, into: str, asked: _Asked) -> _Work:
    session = store.session
    with session.read() as connection:
        _check_connection(connection)
        source = follow(connection, store.opened)
        if source.source_id is not None:
            raise CollectionError(
                "being_made",
                f"collection {source.name!r} is being made from another one; finish that first",
            )
        reread = _rereading(source, into, asked)
    judged = (
        asked.rejudge
        or reread is not None
        or any(value is not None for value in asked.options.values())
    )
    with session.transaction() as connection:
        target = find_collection(connection, into)
        if target is None:
            # Who adds simhashes at this moment does not know of it.
            lock_collections(connection, [source], loaders=True)
            target = _create(connection, source, into, asked, reread, indexed=judged)
        rules_of(target, asked.options)
        work = _Work(session, source, target, reread, judged, asked.options)
        lock_collections(connection, [target])
        _check_asked(_row(connection, work), work, asked)
        _copy_tables(connection, work)
    return work


def _check_connection(connection: psycopg.Connection[Any]) -> None:
    if not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE:
        raise StoreError(
            "needs_autocommit",
            "a rebuild takes many transactions; use a connection with autocommit=True that is in "
            "none",
        )


def _rereading(source: Collection, into: str, asked: _Asked) -> Rereading | None:
    """Return how another scheme is to vote, None where simhashes stay."""
    scheme = get_scheme(source.scheme if asked.scheme is None else asked.scheme)
    if scheme.name == source.scheme:
        return None
    reread = rereading(source.scheme, scheme, approximate=asked.approximate)
    if not source.keep_markdown:
        raise CollectionError(
            "no_markdown",
            f"collection {source.name!r} keeps no Markdown, and without that another scheme needs "
            f"the pages: pgsimhash ingest --collection {into} --scheme {scheme.name} PATH",
        )
    return reread


def _create(
    connection: psycopg.Connection[Any],
    source: Collection,
    into: str,
    asked: _Asked,
    reread: Rereading | None,
    *,
    indexed: bool,
) -> Collection:
    layout = get_layout(asked.layout or source.layout)
    distance = asked.options.get("distance")
    if distance is None and reread is None:
        distance = source.default_distance
        if distance not in layout.distances:
            raise CollectionError(
                "layout_distance",
                f"layout {layout.name!r} answers distances up to {layout.distances[-1]}, and the "
                f"collection's is {distance}; give a smaller one with --distance",
            )
    keep_markdown = source.keep_markdown if asked.keep_markdown is None else asked.keep_markdown
    target = create_collection(
        connection,
        into,
        scheme=get_scheme(source.scheme) if reread is None else reread.scheme,
        layout=layout.name,
        distance=distance,
        keep_markdown=keep_markdown,
        indexed=indexed,
    )
    values = {
        "collection_id": target.collection_id,
        "source_id": source.collection_id,
        "asked": Jsonb(asked.as_json()),
        "table": f"{schema_of(connection)}.{get_layout(source.layout).table}",
        "slice": _SLICE,
    }
    connection.execute(query("begin_rebuild", connection), values)
    return dataclasses.replace(target, source_id=source.collection_id)


def _check_asked(row: _Row | None, work: _Work, asked: _Asked) -> None:
    into = work.target.name
    if row is None or row.source_id != work.source.collection_id:
        raise CollectionError(
            "taken",
            f"collection {into!r} is there already, and not being made from "
            f"{work.source.name!r}; name another with into= (--into)",
        )
    wanted = asked.as_json()
    differing = sorted(
        key for key in {*wanted, *row.asked} if wanted.get(key) != row.asked.get(key)
    )
    if differing:
        raise CollectionError(
            "other_settings",
            f"collection {into!r} was begun with another {' and '.join(differing)}; ask for the "
            f"same, or give it up: pgsimhash collection delete {into}",
        )


def _row(connection: psycopg.Connection[Any], work: _Work) -> _Row | None:
    with connection.cursor(row_factory=class_row(_Row)) as cursor:
        return cursor.execute(query("rebuild", connection), work.scope).fetchone()


def _under_lock(connection: psycopg.Connection[Any], work: _Work) -> _Row:
    """Let nobody write to the two collections until the commit; return how far it has come."""
    lock_collections(connection, [work.target])
    row = _row(connection, work)
    if row is None:
        raise CollectionError(
            "not_being_made",
            f"collection {work.target.name!r} is not being made any more: someone else finished it "
            "or deleted it",
        )
    return row


def _move(
    connection: psycopg.Connection[Any], work: _Work, last_page: int, last_slice: int
) -> None:
    done = {"last_page": last_page, "last_slice": last_slice}
    connection.execute(query("move_rebuild", connection), {**work.scope, **done})


def _copy_tables(connection: psycopg.Connection[Any], work: _Work) -> None:
    """Let policies, marks and runs of the new collection be those of the old one."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        beyond = cursor.execute(query("policies_beyond", connection), work.scope).fetchone()
    if beyond is not None:
        pattern, distance, layout, largest = beyond
        raise ArgumentError(
            "invalid_policy",
            f"layout {layout!r} answers distances up to {largest}, and the policy for {pattern} "
            f"asks for {distance}; set another: pgsimhash policy set '{pattern}' "
            f"--distance {largest}",
        )
    for table in _TABLES:
        statement = sql.SQL(query("delete_rows", connection)).format(
            table=sql.Identifier(schema_of(connection), table)
        )
        connection.execute(statement, work.scope)
        connection.execute(query(f"copy_{table}", connection), work.scope)


def _pages(work: _Work, progress: Progress, verdicts: Callable[[Verdict], None]) -> None:
    """Take all pages that are there, batch by batch."""
    with work.session.read() as connection:
        row = _row(connection, work)
        total = 0 if row is None else count_pages_after(connection, work.source, row.last_page)
    done = 0
    progress("pages", done, total)
    while (taken := _judge_next(work) if work.judged else _copy_next(work)) is not None:
        count, told = taken
        done += count
        progress("pages", done, max(done, total))
        for verdict in told:
            verdicts(verdict)


_Taken = tuple[int, list[Verdict]]
"""How many pages were taken, and the verdicts that were given anew."""


def _copy_next(work: _Work) -> _Taken | None:
    with work.session.transaction() as connection:
        return _copy_pages(connection, work, _under_lock(connection, work))


def _copy_pages(connection: psycopg.Connection[Any], work: _Work, row: _Row) -> _Taken | None:
    """Copy the next pages as they are, None where there are none."""
    after = {"after_page": row.last_page}
    scope = {"collection_id": work.source.collection_id, "batch": _COPIED}
    with connection.cursor(row_factory=scalar_row) as cursor:
        last_page = cursor.execute(query("next_pages", connection), {**scope, **after}).fetchone()
    if last_page is None:
        return None
    batch = {**work.scope, **after, "last_page": last_page}
    keep = {"keep_markdown": work.target.keep_markdown}
    copied = connection.execute(query("copy_pages", connection), {**batch, **keep}).rowcount
    connection.execute(query("copied_simhashes", connection), batch)
    connection.execute(query("copy_last_seen", connection), batch)
    _move(connection, work, last_page, row.last_slice)
    return copied, []


def _judge_next(work: _Work) -> _Taken | None:
    # Voted on without the lock: writers go on.
    with work.session.read() as connection:
        row = _row(connection, work)
        pages = [] if row is None else _read_pages(connection, work, row.last_page)
    items = _items(work, pages)
    with work.session.transaction() as connection:
        present = _under_lock(connection, work)
        if not pages:
            return None
        if row is None or present.last_page != row.last_page:
            # Someone else took them.
            return 0, []
        return _judge_pages(connection, work, present, pages, items)


def _read_pages(
    connection: psycopg.Connection[Any], work: _Work, after_page: int
) -> list[StoredRecord]:
    markdown = work.reread is not None or work.target.keep_markdown
    return stored_records(connection, work.source, after_page, BATCH_PAGES, markdown=markdown)


def _items(work: _Work, pages: Sequence[StoredRecord]) -> list[PageRecord | PageFailure]:
    """Return what the scheme makes of pages."""
    if work.reread is None:
        return [page.record for page in pages]
    return [work.reread.reread(page.record) for page in pages]


def _judge_pages(
    connection: psycopg.Connection[Any],
    work: _Work,
    row: _Row,
    pages: Sequence[StoredRecord],
    items: Sequence[PageRecord | PageFailure],
) -> _Taken:
    """Give pages verdicts as if they came now, and store them under their ids."""
    rules = rules_of(work.target, work.options)
    urls = [page.record.url for page in pages]
    settings = settings_for(connection, work.target, rules, urls)
    some = _before_others(connection, work, pages, settings)
    last_page = pages[some - 1].page_id
    there = _present(connection, work, pages)
    kept = [at for at in range(some) if pages[at].page_id in there]
    batch = _batch(work, [items[at] for at in kept], [settings[at] for at in kept])
    judged = [
        pages[at]
        for at, item in zip(kept, batch.items, strict=True)
        if isinstance(item, PageRecord)
    ]
    decisions = _decide(connection, work, judged, batch)
    insert_pages(connection, work.target, decisions, [page.run_id for page in judged])
    last_seen = {**work.scope, "after_page": row.last_page, "last_page": last_page}
    connection.execute(query("copy_last_seen", connection), last_seen)
    _move(connection, work, last_page, row.last_slice)
    return some, batch.verdicts(decisions)


def _before_others(
    connection: psycopg.Connection[Any],
    work: _Work,
    pages: Sequence[StoredRecord],
    settings: Sequence[MatchSettings],
) -> int:
    """Return how many pages to judge together: no page of another collection came in between."""
    others = [
        one.collection_id
        for one in search_scope(connection, work.target, settings).compared
        if one.collection_id != work.target.collection_id
    ]
    if not others:
        return len(pages)
    with connection.cursor(row_factory=scalar_row) as cursor:
        scope = {"collection_ids": others, "after_page": pages[0].page_id}
        beyond = cursor.execute(query("next_page", connection), scope).fetchone()
    return sum(beyond is None or page.page_id < beyond for page in pages)


def _present(
    connection: psycopg.Connection[Any], work: _Work, pages: Sequence[StoredRecord]
) -> set[int]:
    """Return the ids of those of the pages that nobody deleted since they were read."""
    scope = {
        "collection_id": work.source.collection_id,
        "page_ids": [page.page_id for page in pages],
    }
    with connection.cursor(row_factory=scalar_row) as cursor:
        return set(cursor.execute(query("present_pages", connection), scope))


def _batch(
    work: _Work, items: Sequence[PageRecord | PageFailure], settings: Sequence[MatchSettings]
) -> Batch:
    pairs = zip(items, settings, strict=True)
    judged = [(item, wanted) for item, wanted in pairs if isinstance(item, PageRecord)]
    records, of_records = [item for item, _ in judged], [wanted for _, wanted in judged]
    if work.reread is not None:
        return sorted_out(items, of_records)
    return Batch(list(items), records, of_records)


def _decide(
    connection: psycopg.Connection[Any], work: _Work, pages: Sequence[StoredRecord], batch: Batch
) -> list[Decision]:
    """Decide about pages against those before them; each has a row of its own."""
    if not pages:
        return []
    now = datetime.now(UTC)
    page_ids = [page.page_id for page in pages]
    reach = search_scope(connection, work.target, batch.settings)
    nearest, known = ask(connection, reach, batch.records, batch.settings, now, page_ids[0])
    decisions = decide(batch.records, page_ids, batch.settings, nearest, known, [], now)
    return [
        # A version that is as the one before it, which only others between them told apart.
        dataclasses.replace(made, page_id=page_id, duplicate_of=made.seen)
        if made.page_id is None
        else made
        for page_id, made in zip(page_ids, decisions, strict=True)
    ]


def _simhashes(work: _Work, progress: Progress) -> None:
    """Copy the simhashes that were added without a page, slice by slice."""
    if work.reread is not None:
        return
    while True:
        with work.session.transaction() as connection:
            row = _under_lock(connection, work)
            if row.last_slice < row.slices:
                scope = {**work.scope, "slices": row.slices, "number": row.last_slice}
                connection.execute(query("copy_bare_simhashes", connection), scope)
                _move(connection, work, row.last_page, row.last_slice + 1)
        if row.last_slice == row.slices:
            return
        progress("simhashes", row.last_slice + 1, row.slices)


def _vacuum(connection: psycopg.Connection[Any], collection: Collection) -> None:
    table = sql.Identifier(schema_of(connection), get_layout(collection.layout).table)
    connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))


def _finish(work: _Work, then: Then) -> list[Verdict]:
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
        while (taken := _rest(connection, work)) is not None:
            verdicts += taken[1]
        _copy_tables(connection, work)
        if then != "follow":
            connection.execute(query("end_rebuild", connection), work.scope)
        if then in ("swap", "replace"):
            names = {"old": work.source.name, "new": work.target.name, "swap": True}
            connection.execute(query("rename_collection", connection), names)
    return verdicts


def _rest(connection: psycopg.Connection[Any], work: _Work) -> _Taken | None:
    """Take the next pages, under the lock."""
    row = _under_lock(connection, work)
    if not work.judged:
        return _copy_pages(connection, work, row)
    pages = _read_pages(connection, work, row.last_page)
    return _judge_pages(connection, work, row, pages, _items(work, pages)) if pages else None
