"""Gives the pages of one collection simhashes of another scheme, in another collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.connection import server_words
from pgsimhash.errors import ArgumentError, CollectionError
from pgsimhash.maintenance.stored import StoredRecord, count_pages_after, stored_records
from pgsimhash.maintenance.tasks import Progress, Task, as_json
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.rereading import Rereading
from pgsimhash.statements import query
from pgsimhash.store.batches import BATCH_PAGES, sorted_out
from pgsimhash.store.collection import (
    Collection,
    check_names,
    create_collection,
    find_collection,
    lock_collections,
    open_collection,
)
from pgsimhash.store.policies import StalePoliciesError, read_policies, rules_of
from pgsimhash.store.reach import Reach, newest_pages
from pgsimhash.store.runs import Run, draw_run
from pgsimhash.store.session import Session
from pgsimhash.store.verdicts import Decision
from pgsimhash.store.writer import see_pages, write_batch
from pgsimhash.terms import Options

_SIGHTINGS: Final = 1000


def open_target(
    connection: psycopg.Connection[Any],
    source: Collection,
    into: str,
    rereading: Rereading,
    *,
    layout: str | None,
    distance: int | None,
    keep_markdown: bool,
) -> Collection:
    """Return the collection ``into``, created where it is missing.

    Raises:
        CollectionError: it is ``source``, or has another scheme or layout; or ``source`` keeps
            no Markdown.
        ArgumentError: there is no such layout.
        ArgumentError: the layout does not answer ``distance``.
    """
    scheme = rereading.scheme.name
    if into == source.name:
        raise CollectionError(
            "same_collection",
            f"simhashes of another scheme go into another collection than {into!r}; when it is "
            f"done, pgsimhash collection rename NAME {into} --swap exchanges their names",
        )
    if not source.keep_markdown:
        raise CollectionError(
            "no_markdown",
            f"collection {source.name!r} keeps no Markdown, and without that another scheme needs "
            f"the pages: pgsimhash ingest --collection {into} --scheme {scheme} PATH",
        )
    found = find_collection(connection, into)
    if found is None:
        return create_collection(
            connection,
            into,
            scheme=rereading.scheme,
            layout=layout,
            distance=distance,
            keep_markdown=keep_markdown,
        )
    if found.scheme != scheme:
        raise CollectionError(
            "other_scheme",
            f"collection {into!r} holds simhashes of scheme {found.scheme!r}, which cannot be "
            f"compared with {scheme!r}; name another collection with into= (--into)",
        )
    return open_collection(connection, into, create=False, layout=layout)


def begin(
    connection: psycopg.Connection[Any], source: Collection, target: Collection, options: Options
) -> Task:
    """Return the task to go on with, with the source's marks and policies in the target.

    Raises:
        CollectionError: the target has pages from elsewhere, or was filled on other terms; or one
            of the two was renamed since it was opened.
        ArgumentError: marks in the target say the contrary.
        ArgumentError: a policy asks for a distance that the target's layout does not answer.
    """
    check_names(connection, [source])
    # First of all: whoever renames the target has this lock when it waits for our row of the task.
    lock_collections(connection, [target])
    asked = as_json(options, source=source.collection_id)
    asked.setdefault("distance", target.default_distance)
    task = Task(target, "refingerprint", asked)
    found, last_page, begun = task.begin(connection)
    has_pages = newest_pages(connection, Reach(target, (target,))) != [0]
    if begun and has_pages:
        raise CollectionError(
            "other_pages",
            f"collection {target.name!r} has pages already that do not come from "
            f"{source.name!r}; name a new collection with into= (--into)",
        )
    differing = sorted(key for key in {*asked, *found} if found.get(key) != asked.get(key))
    if has_pages and differing:
        raise CollectionError(
            "other_terms",
            f"collection {target.name!r} was filled with another {' and '.join(differing)}; "
            "ask for the same, or name a new collection with into= (--into)",
        )
    if not has_pages and (last_page or differing):
        # Nothing was taken yet, or all of it was forgotten.
        task.move(connection, 0)
    _copy_marks_and_policies(connection, source, target)
    return task


def _copy_marks_and_policies(
    connection: psycopg.Connection[Any], source: Collection, target: Collection
) -> None:
    """Let what people said about the source's pages, and set for them, hold in the target."""
    policies = {
        "source_id": source.collection_id,
        "collection_id": target.collection_id,
    }
    try:
        connection.execute(query("copy_policies"), policies)
    except psycopg.errors.CheckViolation as error:
        raise ArgumentError("invalid_policy", server_words(error)) from error
    try:
        connection.execute(query("copy_marks"), {"source": source.name, "collection": target.name})
    except psycopg.errors.IntegrityConstraintViolation as error:
        raise ArgumentError("contrary_mark", server_words(error)) from error


def refingerprint(
    session: Session,
    source: Collection,
    task: Task,
    rereading: Rereading,
    options: Options,
    progress: Progress,
) -> Iterator[Verdict]:
    """Yield a verdict for each version that was not taken yet; a transaction each batch."""
    target = task.collection
    with session.transaction() as connection:
        run = draw_run(connection, f"refingerprint of {source.name}")
        total = count_pages_after(connection, source, task.lock(connection) or 0)
    done = 0
    progress(done, total)
    while True:
        try:
            with session.transaction() as connection:
                # Voted on under the task's lock only: other writers to the target go on.
                last_page = task.lock(connection)
                if last_page is None:
                    return
                kept = stored_records(connection, source, last_page, BATCH_PAGES, markdown=True)
                if not kept:
                    break
                verdicts = _take(connection, target, kept, rereading, options, run)
                task.move(connection, kept[-1].page_id)
        except StalePoliciesError:
            continue
        done += len(kept)
        progress(done, max(done, total))
        yield from verdicts
    _see_again(session, source, target)


def _take(
    connection: psycopg.Connection[Any],
    target: Collection,
    kept: Sequence[StoredRecord],
    rereading: Rereading,
    options: Options,
    run: Run,
) -> list[Verdict]:
    """Vote on a batch, store it, and see its pages when they had been seen.

    Raises:
        StalePoliciesError: policies were changed meanwhile, and nothing was stored.
    """
    rules = rules_of(target, read_policies(connection, target), options)
    batch = sorted_out([rereading.reread(page.record) for page in kept], rules)
    decisions = write_batch(connection, target, batch.records, batch.terms, rules.version, run)
    taken = [
        page for page, item in zip(kept, batch.items, strict=True) if isinstance(item, PageRecord)
    ]
    seen = [
        (_row_of(made), page.seen_at)
        for made, page in zip(decisions, taken, strict=True)
        if page.seen_at is not None
    ]
    see_pages(connection, target, seen)
    return batch.verdicts(made.verdict for made in decisions)


def _row_of(made: Decision) -> int:
    row = made.page_id if made.seen is None else made.seen
    assert row is not None
    return row


def _see_again(session: Session, source: Collection, target: Collection) -> None:
    """Let pages of the target be seen that the source saw since they were taken."""
    scope = {
        "source_id": source.collection_id,
        "collection_id": target.collection_id,
        "batch": _SIGHTINGS,
    }
    after_page = 0
    while True:
        with session.transaction() as connection:
            lock_collections(connection, [target])
            with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
                parameters = {**scope, "after_page": after_page}
                rows = cursor.execute(query("seen_again"), parameters).fetchall()
            if not rows:
                return
            seen = [(page_id, time) for _, page_id, time in rows if page_id is not None]
            see_pages(connection, target, seen)
        after_page = rows[-1][0]
