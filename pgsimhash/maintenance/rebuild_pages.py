"""Takes the pages and simhashes of one collection into the one that is made from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.maintenance.rebuild_work import Row, Work, move_on, read_row, under_lock
from pgsimhash.maintenance.stored import StoredRecord, count_pages_after, stored_records
from pgsimhash.matching import MatchSettings
from pgsimhash.records import PageFailure, PageRecord, Verdict
from pgsimhash.statements import query
from pgsimhash.store.batches import BATCH_PAGES, Batch, sorted_out
from pgsimhash.store.candidates import ask
from pgsimhash.store.decisions import decide
from pgsimhash.store.memory import Memory
from pgsimhash.store.policies import rules_of, settings_for
from pgsimhash.store.search_scope import SearchScope, search_scope
from pgsimhash.store.verdicts import Decision
from pgsimhash.store.writer import insert_pages

Progress = Callable[[str, int, int], None]
"""Told the step, and how much of how much of it is done."""

_COPIED: Final = 2_000
"""How many pages are copied as they are in a transaction: writers wait a tenth of a second."""

Taken = tuple[int, list[Verdict]]
"""How many pages were taken, and the verdicts that were given anew."""


def take_pages(work: Work, progress: Progress, verdicts: Callable[[Verdict], None]) -> None:
    """Take all pages that are there, batch by batch."""
    with work.session.read() as connection:
        row = read_row(connection, work)
        total = 0 if row is None else count_pages_after(connection, work.source, row.last_page)
    done = 0
    progress("pages", done, total)
    while (taken := _judge_next(work) if work.judged else _copy_next(work)) is not None:
        count, told = taken
        done += count
        progress("pages", done, max(done, total))
        for verdict in told:
            verdicts(verdict)


def _copy_next(work: Work) -> Taken | None:
    with work.session.transaction() as connection:
        return _copy_pages(connection, work, under_lock(connection, work))


def _copy_pages(connection: psycopg.Connection[Any], work: Work, row: Row) -> Taken | None:
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
    connection.execute(query("copy_last_seen", connection), batch)
    move_on(connection, work, last_page, row.last_slice)
    return copied, []


def _judge_next(work: Work) -> Taken | None:
    # Voted on without the lock: writers go on.
    with work.session.read() as connection:
        row = read_row(connection, work)
        pages = [] if row is None else _read_pages(connection, work, row.last_page)
    items = _items(work, pages)
    with work.session.transaction() as connection:
        present = under_lock(connection, work)
        if not pages:
            return None
        if row is None or present.last_page != row.last_page:
            # Someone else took them.
            return 0, []
        return _judge_pages(connection, work, present, pages, items)


def take_rest(connection: psycopg.Connection[Any], work: Work) -> Taken | None:
    """Take the next pages, under the lock."""
    row = under_lock(connection, work)
    if not work.judged:
        return _copy_pages(connection, work, row)
    pages = _read_pages(connection, work, row.last_page)
    return _judge_pages(connection, work, row, pages, _items(work, pages)) if pages else None


def _read_pages(
    connection: psycopg.Connection[Any], work: Work, after_page: int
) -> list[StoredRecord]:
    markdown = work.reread is not None or work.target.keep_markdown
    return stored_records(connection, work.source, after_page, BATCH_PAGES, markdown=markdown)


def _items(work: Work, pages: Sequence[StoredRecord]) -> list[PageRecord | PageFailure]:
    """Return what the scheme makes of pages."""
    if work.reread is None:
        return [page.record for page in pages]
    return [work.reread.reread(page.record) for page in pages]


def _judge_pages(
    connection: psycopg.Connection[Any],
    work: Work,
    row: Row,
    pages: Sequence[StoredRecord],
    items: Sequence[PageRecord | PageFailure],
) -> Taken:
    """Give pages verdicts as if they came now, and store them under their ids."""
    rules = rules_of(work.target, work.options)
    urls = [page.record.url for page in pages]
    settings = settings_for(connection, work.target, rules, urls)
    reach = search_scope(connection, work.target, settings)
    some = _before_others(connection, reach, pages)
    last_page = pages[some - 1].page_id
    there = _present(connection, work, pages)
    kept = [at for at in range(some) if pages[at].page_id in there]
    batch = _batch(work, [items[at] for at in kept], [settings[at] for at in kept])
    judged = [
        pages[at]
        for at, item in zip(kept, batch.items, strict=True)
        if isinstance(item, PageRecord)
    ]
    decisions = _decide(connection, reach, judged, batch, work.session.memory)
    insert_pages(connection, work.target, decisions, [page.run_id for page in judged])
    last_seen = {**work.scope, "after_page": row.last_page, "last_page": last_page}
    connection.execute(query("copy_last_seen", connection), last_seen)
    move_on(connection, work, last_page, row.last_slice)
    return some, batch.verdicts(decisions)


def _before_others(
    connection: psycopg.Connection[Any], reach: SearchScope, pages: Sequence[StoredRecord]
) -> int:
    """Return how many pages to judge together: no page of another collection came in between."""
    others = [
        one.collection_id
        for one in reach.compared
        if one.collection_id != reach.collection.collection_id
    ]
    if not others:
        return len(pages)
    with connection.cursor(row_factory=scalar_row) as cursor:
        scope = {"collection_ids": others, "after_page": pages[0].page_id}
        beyond = cursor.execute(query("next_page", connection), scope).fetchone()
    return sum(beyond is None or page.page_id < beyond for page in pages)


def _present(
    connection: psycopg.Connection[Any], work: Work, pages: Sequence[StoredRecord]
) -> set[int]:
    """Return the ids of those of the pages that nobody deleted since they were read."""
    scope = {
        "collection_id": work.source.collection_id,
        "page_ids": [page.page_id for page in pages],
    }
    with connection.cursor(row_factory=scalar_row) as cursor:
        return set(cursor.execute(query("present_pages", connection), scope))


def _batch(
    work: Work, items: Sequence[PageRecord | PageFailure], settings: Sequence[MatchSettings]
) -> Batch:
    pairs = zip(items, settings, strict=True)
    judged = [(item, wanted) for item, wanted in pairs if isinstance(item, PageRecord)]
    records, of_records = [item for item, _ in judged], [wanted for _, wanted in judged]
    if work.reread is not None:
        return sorted_out(items, of_records)
    return Batch(list(items), records, of_records)


def _decide(
    connection: psycopg.Connection[Any],
    reach: SearchScope,
    pages: Sequence[StoredRecord],
    batch: Batch,
    memory: Memory,
) -> list[Decision]:
    """Decide about pages against those before them; each has a row of its own."""
    if not pages:
        return []
    now = datetime.now(UTC)
    page_ids = [page.page_id for page in pages]
    nearest, known = ask(connection, reach, batch.records, batch.settings, now, memory, page_ids[0])
    decisions = decide(batch.records, page_ids, batch.settings, nearest, known, [], now)
    return [
        # A version that is as the one before it, which only others between them told apart.
        made._replace(page_id=page_id, verdict=_as_version(made.verdict, page_id))
        if made.page_id is None
        else made
        for page_id, made in zip(page_ids, decisions, strict=True)
    ]


def _as_version(verdict: Verdict, page_id: int) -> Verdict:
    return dataclasses.replace(verdict, verdict="updated", reason="same_text", page_id=page_id)


def copy_simhashes(work: Work, progress: Progress) -> None:
    """Copy the simhashes that were added without a page, slice by slice."""
    if work.reread is not None:
        return
    while True:
        with work.session.transaction() as connection:
            row = under_lock(connection, work)
            if row.last_slice < row.slices:
                scope = {**work.scope, "slices": row.slices, "number": row.last_slice}
                connection.execute(query("copy_bare_simhashes", connection), scope)
                move_on(connection, work, row.last_page, row.last_slice + 1)
        if row.last_slice == row.slices:
            return
        progress("simhashes", row.last_slice + 1, row.slices)
