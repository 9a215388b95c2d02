"""Gives the stored pages verdicts anew, as if they came again in the order in which they came.

Each is compared with the pages before it only, by the simhashes that are stored, and decided as
when it came, so that on the terms of that time the verdicts are those of that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.maintenance.stored import StoredRecord, count_pages_after, stored_records
from pgsimhash.maintenance.tasks import Progress, Task, as_json
from pgsimhash.policies import Rules
from pgsimhash.records import Verdict
from pgsimhash.statements import query
from pgsimhash.store.batches import BATCH_PAGES
from pgsimhash.store.collection import Collection, lock_collections
from pgsimhash.store.decisions import decide
from pgsimhash.store.judging import ask
from pgsimhash.store.policies import read_policies, terms_for
from pgsimhash.store.reach import reach_of
from pgsimhash.store.session import Session
from pgsimhash.store.verdicts import Decision
from pgsimhash.terms import Options, Terms


def begin(connection: psycopg.Connection[Any], collection: Collection, options: Options) -> Task:
    """Return the task to go on with, from the beginning where it was on other terms."""
    policies = [policy.as_json() for policy in read_policies(connection, collection)]
    asked = as_json(options, policies=policies)
    task = Task(collection, "rejudge", {"distance": collection.default_distance, **asked})
    found, _, _ = task.begin(connection)
    if found != task.terms:
        task.move(connection, 0)
    return task


def rejudge(
    session: Session, collection: Collection, rules: Rules, progress: Progress
) -> Iterator[Verdict]:
    """Yield the verdict of each stored version, in the order in which they came."""
    with session.read() as connection:
        total = count_pages_after(connection, collection, 0)
    progress(0, total)
    last_page = done = 0
    while True:
        with session.read() as connection:
            pages, terms = _next_batch(connection, collection, last_page, rules)
            decisions = _judge(connection, collection, pages, terms)
        if not pages:
            return
        last_page = pages[-1].page_id
        done += len(pages)
        progress(done, max(done, total))
        yield from (made.verdict for made in decisions)


def rejudge_and_save(
    session: Session, task: Task, rules: Rules, progress: Progress
) -> Iterator[Verdict]:
    """Do the same from where the task was left, and store each batch in a transaction."""
    collection = task.collection
    with session.transaction() as connection:
        total = count_pages_after(connection, collection, task.lock(connection) or 0)
    progress(0, total)
    done = 0
    while True:
        with session.transaction() as connection:
            last_page = task.lock(connection)
            if last_page is None:
                return
            pages, terms = _next_batch(connection, collection, last_page, rules)
            if not pages:
                task.end(connection)
                return
            decisions = _judge(connection, collection, pages, terms)
            _save(connection, collection, pages, decisions)
            task.move(connection, pages[-1].page_id)
        done += len(pages)
        progress(done, max(done, total))
        yield from (made.verdict for made in decisions)


def _next_batch(
    connection: psycopg.Connection[Any], collection: Collection, last_page: int, rules: Rules
) -> tuple[list[StoredRecord], list[Terms]]:
    """Return the pages to judge together, and on what terms.

    No page of another collection came between them.
    """
    pages = stored_records(connection, collection, last_page, BATCH_PAGES, markdown=False)
    terms = terms_for(connection, collection, rules, [page.record.url for page in pages])
    others = [
        one.collection_id
        for one in reach_of(connection, collection, terms).compared
        if one.collection_id != collection.collection_id
    ]
    if not others:
        return pages, terms
    with connection.cursor(row_factory=scalar_row) as cursor:
        parameters = {"collection_ids": others, "after_page": pages[0].page_id}
        beyond = cursor.execute(query("next_page"), parameters).fetchone()
    some = [page for page in pages if beyond is None or page.page_id < beyond]
    return some, terms[: len(some)]


def _judge(
    connection: psycopg.Connection[Any],
    collection: Collection,
    pages: Sequence[StoredRecord],
    terms: Sequence[Terms],
) -> list[Decision]:
    if not pages:
        return []
    now = datetime.now(UTC)
    records = [page.record for page in pages]
    reach = reach_of(connection, collection, terms)
    nearest, known = ask(connection, reach, records, terms, now, pages[0].page_id)
    page_ids = [page.page_id for page in pages]
    return decide(records, page_ids, terms, nearest, known, [], now)


def _save(
    connection: psycopg.Connection[Any],
    collection: Collection,
    pages: Sequence[StoredRecord],
    decisions: Sequence[Decision],
) -> None:
    lock_collections(connection, [collection])
    connection.execute(
        query("save_verdicts"),
        {
            "collection_id": collection.collection_id,
            "page_id": [page.page_id for page in pages],
            # A version that is as the one before it, which only others between them told apart.
            "duplicate_of": [
                made.duplicate_of if made.seen is None else made.seen for made in decisions
            ],
            "distance": [made.verdict.distance for made in decisions],
        },
    )
