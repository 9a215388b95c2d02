"""Copy the pages and simhashes of one collection into the one built from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row

from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import query
from pgsimhash.maintenance.rebuild_work import Work, read_row, under_lock
from pgsimhash.maintenance.stored import StoredRecord, count_pages_after, stored_records
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.records import PageFailure, PageRecord, Verdict
from pgsimhash.search.layout import COLLECTION_SHIFT, get_layout
from pgsimhash.store.batches import BATCH_PAGES, Batch, sorted_out
from pgsimhash.store.collection import sibling_collections
from pgsimhash.store.memory import Memory
from pgsimhash.store.near import nearby
from pgsimhash.store.policies import rules_of, settings_for
from pgsimhash.store.writer import decide, page_columns

Progress = Callable[[str, int, int], None]
"""Receives the step, the number of finished items, and the total."""

_COPIED: Final = 2_000
"""Pages per transaction if they are copied unchanged."""

_SLICE: Final = 20_000
"""Approximate standalone simhashes per transaction."""


def take_pages(work: Work, progress: Progress, verdicts: Callable[[Verdict], None]) -> None:
    """Process the pages after the last processed one, batch by batch."""
    with work.session.read() as connection:
        row = read_row(connection, work)
        total = 0 if row is None else count_pages_after(connection, work.source, row.last_page)
    done = 0
    progress("pages", done, total)
    while True:
        with work.session.transaction() as connection:
            count, told = take_next(connection, work)
        if not count:
            return
        done += count
        progress("pages", done, max(done, total))
        for verdict in told:
            verdicts(verdict)


def take_next(connection: psycopg.Connection[Any], work: Work) -> tuple[int, list[Verdict]]:
    """Process the next pages; return their number, and their new verdicts."""
    after = {"after_page": under_lock(connection, work).last_page}
    batch = {"batch": BATCH_PAGES if work.evaluated else _COPIED}
    page_ids = _page_ids(connection, "next_pages", {**work.scope, **after, **batch})
    if not page_ids:
        return 0, []
    rest, verdicts = _take(connection, work, page_ids)
    count = len(page_ids) - len(rest)
    last_page = {"last_page": page_ids[count - 1]}
    connection.execute(query("move_rebuild", connection), {**work.scope, **last_page})
    return count, verdicts


def _take_missing(
    connection: psycopg.Connection[Any], work: Work, tried: set[int]
) -> list[Verdict]:
    """Process pages with low ids that were committed late; try those without a place only once."""
    told: list[Verdict] = []
    page_ids = sorted({*_page_ids(connection, "missing_pages", work.scope)} - tried)
    tried.update(page_ids)
    while page_ids:
        batch = page_ids[: BATCH_PAGES if work.evaluated else _COPIED]
        rest, verdicts = _take(connection, work, batch)
        told += [verdict for verdict in verdicts if verdict.verdict not in ("failed", "too_short")]
        page_ids = rest + page_ids[len(batch) :]
    return told


def _page_ids(
    connection: psycopg.Connection[Any], statement: str, scope: Mapping[str, int]
) -> list[int]:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query(statement, connection), scope).fetchall()


def _take(
    connection: psycopg.Connection[Any], work: Work, page_ids: list[int]
) -> tuple[list[int], list[Verdict]]:
    """Process pages; return those left for another batch, and the new verdicts."""
    if work.evaluated:
        markdown = work.reread is not None or work.target.keep_markdown
        pages = stored_records(connection, work.source, page_ids, markdown=markdown)
        return _judge_pages(connection, work, pages)
    values = {"keep_markdown": work.target.keep_markdown, "page_ids": page_ids}
    connection.execute(query("copy_pages", connection), {**work.scope, **values})
    return [], []


def _items(work: Work, pages: Sequence[StoredRecord]) -> list[PageRecord | PageFailure]:
    """Return the records of the new scheme."""
    if work.reread is None:
        return [page.record for page in pages]
    return [work.reread.reread(page.record) for page in pages]


def _judge_pages(
    connection: psycopg.Connection[Any], work: Work, pages: Sequence[StoredRecord]
) -> tuple[list[int], list[Verdict]]:
    """Evaluate pages as if they arrived now, and store them under their ids."""
    if not pages:
        return [], []
    rules = rules_of(work.target, work.options)
    urls = [page.record.url for page in pages]
    settings = settings_for(connection, work.target, rules, urls)
    everywhere = any(setting.scope == "global" for setting in settings)
    count = _before_others(connection, work, pages) if everywhere else len(pages)
    batch = _batch(work, _items(work, pages[:count]), settings[:count])
    evaluated = [
        page
        for page, item in zip(pages[:count], batch.items, strict=True)
        if isinstance(item, PageRecord)
    ]
    verdicts = _decide(connection, work, evaluated, batch, work.session.memory)
    return [page.page_id for page in pages[count:]], batch.verdicts(verdicts)


def _before_others(
    connection: psycopg.Connection[Any], work: Work, pages: Sequence[StoredRecord]
) -> int:
    """Return how many pages to evaluate together: up to the next page of another collection."""
    others = [
        sibling.collection_id
        for sibling in sibling_collections(connection, work.target)
        if sibling.collection_id != work.target.collection_id
    ]
    if not others:
        return len(pages)
    with connection.cursor(row_factory=scalar_row) as cursor:
        scope = {"collection_ids": others, "after_page": pages[0].page_id}
        beyond = cursor.execute(query("next_page", connection), scope).fetchone()
    return sum(beyond is None or page.page_id < beyond for page in pages)


def _batch(
    work: Work, items: Sequence[PageRecord | PageFailure], settings: Sequence[MatchSettings]
) -> Batch:
    pairs = zip(items, settings, strict=True)
    evaluated = [(item, setting) for item, setting in pairs if isinstance(item, PageRecord)]
    records, of_records = [item for item, _ in evaluated], [setting for _, setting in evaluated]
    if work.reread is not None:
        return sorted_out(items, of_records)
    return Batch(list(items), records, of_records)


def _decide(
    connection: psycopg.Connection[Any],
    work: Work,
    pages: Sequence[StoredRecord],
    batch: Batch,
    memory: Memory,
) -> list[Verdict]:
    """Decide about pages against earlier ones, and store them; each gets its own row."""
    if not pages:
        return []
    page_ids = [page.page_id for page in pages]
    verdicts, _ = decide(
        connection,
        work.target,
        batch.records,
        page_columns(work.target, batch.records, batch.settings),
        nearby(connection, work.target, batch.records, batch.settings, memory),
        memory,
        page_ids=page_ids,
        run_ids=[page.run_id for page in pages],
    )
    return [
        # Equal to the previous version: only versions that are not copied lay between them.
        _as_version(verdict, page_id) if verdict.verdict == "unchanged" else verdict
        for page_id, verdict in zip(page_ids, verdicts, strict=True)
    ]


def _as_version(verdict: Verdict, page_id: int) -> Verdict:
    return dataclasses.replace(verdict, verdict="updated", reason="same_text", page_id=page_id)


def copy_simhashes(work: Work, progress: Progress) -> None:
    """Copy the standalone simhashes, slice by slice."""
    if work.reread is not None:
        return
    values = {"collection": work.source.name, "rows": _SLICE}
    with work.session.read() as connection, connection.cursor(row_factory=scalar_row) as cursor:
        slices = int(cursor.execute(query("check_slices", connection), values).fetchone() or 1)
    for number in range(slices):
        with work.session.transaction() as connection:
            under_lock(connection, work)
            _of_slice(connection, work, "copy_standalone_simhashes", number, slices)
        progress("simhashes", number + 1, slices)


def catch_up(connection: psycopg.Connection[Any], work: Work, tried: set[int]) -> list[Verdict]:
    """Apply the changes that the first collection received meanwhile; return new verdicts.

    ``tried`` are pages without a place in the new collection; more are added to it.
    """
    verdicts: list[Verdict] = []
    while (step := take_next(connection, work))[0]:
        verdicts += step[1]
    verdicts += _take_missing(connection, work, tried)
    for statement in ("drop_deleted_pages", "copy_last_seen"):
        connection.execute(query(statement, connection), work.scope)
    if work.reread is None:
        for statement in ("copy_standalone_simhashes", "drop_standalone_simhashes"):
            _of_slice(connection, work, statement)
    return verdicts


def _of_slice(
    connection: psycopg.Connection[Any],
    work: Work,
    statement: str,
    number: int = 0,
    slices: int = 1,
) -> None:
    """Copy the standalone simhashes of a slice of the first collection, or delete the new one's.

    All together are one slice, of which only missing ones are copied.
    """
    walked, other = work.source, work.target
    if statement == "drop_standalone_simhashes":
        walked, other = other, walked
    schema, layout, other_layout = (
        schema_of(connection),
        get_layout(walked.layout),
        get_layout(other.layout),
    )
    width = layout.permutations[0].width
    first, beyond = (
        (walked.collection_id << COLLECTION_SHIFT) + (at << width) // slices
        for at in (number, number + 1)
    )
    connection.execute(
        sql.SQL(query(statement, connection)).format(
            walked=sql.Identifier(schema, layout.table),
            other=sql.Identifier(schema, other_layout.table),
            prefix=sql.Identifier(schema, f"prefix{other_layout.suffix}"),
        ),
        {**work.scope, "first": first, "beyond": beyond, "all": slices > 1},
    )
