"""One batch of pages into the database: look up, decide, insert, under the collection's lock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.bits import to_bigint
from pgsimhash.matching import MatchSettings
from pgsimhash.records import PageRecord
from pgsimhash.sketch import to_halves
from pgsimhash.statements import query
from pgsimhash.store.arrays import as_columns
from pgsimhash.store.candidates import ALL_PAGES, ask, known_now, urls_of
from pgsimhash.store.collection import Collection, check_writable, lock_collections
from pgsimhash.store.decisions import decide
from pgsimhash.store.memory import NO_MEMORY, Memory
from pgsimhash.store.policies import StalePoliciesError
from pgsimhash.store.runs import Run
from pgsimhash.store.search_scope import arrived_since, newest_pages, search_scope
from pgsimhash.store.verdicts import Decision, count_verdicts, without_row

_KEPT: Final = (
    "url",
    "fetched_at",
    "title",
    "canonical_url",
    "language",
    "features",
    "tokens",
    "html_bytes",
    "html_digest",
)
"""What ``add_pages`` takes of a record as it is."""

_kept_of = attrgetter(*_KEPT)

_COLUMNS: Final = (
    "page_id",
    "run_id",
    "duplicate_of",
    "distance",
    "markdown",
    "simhash",
    "text_digest",
    "structure",
    "sketch_high",
    "sketch_low",
    *_KEPT,
)
"""What it takes of each page, in the order of the rows."""


def write_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    run: Run,
    memory: Memory = NO_MEMORY,
    *,
    by_policies: bool,
) -> list[Decision]:
    """Decide and store ``records`` in the connection's present transaction.

    Near-copies are looked up first; then, under a lock on the collections compared with that is
    held until the transaction ends, only against the pages that other writers added meanwhile.
    So of several writers with near-copies only one sees them as new, and they wait for one
    another's inserts, not for their lookups.

    Args:
        connection: where to write.
        collection: where they belong.
        records: the batch, in order.
        settings: what makes each a duplicate.
        run: what they are added by.
        memory: what is remembered of the collection.
        by_policies: whether policies were asked for the settings.

    Raises:
        ArgumentError: a layout does not answer the distance.
        StalePoliciesError: they were not, and there are some.
        MovedCollectionError: the collection's name is another one's now.
        StoreError: the transaction's isolation level is not READ COMMITTED.
    """
    if not records:
        return []
    now = datetime.now(UTC)
    reach = search_scope(connection, collection, settings)
    newest = newest_pages(connection, reach)
    nearest, asked = ask(connection, reach, records, settings, now, memory)
    if asked.policies and not by_policies:
        raise StalePoliciesError
    lock_collections(connection, reach.compared)
    check_writable(connection, collection)
    with connection.cursor(row_factory=scalar_row) as cursor:
        page_ids = cursor.execute(query("page_ids", connection), {"count": len(records)}).fetchall()
    arrived = arrived_since(connection, reach, newest)
    known = known_now(connection, collection, urls_of(records, settings), asked, arrived)
    if any(known.versions.get(one.url) != asked.versions.get(one.url) for one in records):
        # Which originals count goes by the version before; nothing comes in between now.
        newest = newest_pages(connection, reach)
        nearest, known = ask(connection, reach, records, settings, now, memory)
        arrived = arrived_since(connection, reach, newest)
    decisions = decide(records, page_ids, settings, nearest, known, arrived, now)
    stored = [made for made in decisions if made.page_id is not None]
    insert_pages(connection, collection, stored, [run.run_id] * len(stored))
    seen = [(made.seen, made.record.fetched_at) for made in decisions if made.seen is not None]
    see_pages(connection, collection, seen)
    _count(connection, collection, decisions, stored, run)
    return decisions


def judge_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    memory: Memory = NO_MEMORY,
    *,
    by_policies: bool,
) -> list[Decision]:
    """Return the decisions that :func:`write_batch` would make now, and write nothing.

    Raises:
        ArgumentError: a layout does not answer the distance.
        StalePoliciesError: they were not, and there are some.
    """
    if not records:
        return []
    now = datetime.now(UTC)
    reach = search_scope(connection, collection, settings)
    nearest, known = ask(connection, reach, records, settings, now, memory)
    if known.policies and not by_policies:
        raise StalePoliciesError
    page_ids = range(ALL_PAGES, ALL_PAGES + len(records))
    decisions = decide(records, page_ids, settings, nearest, known, [], now)
    return [made if made.seen is not None else without_row(made) for made in decisions]


def insert_pages(
    connection: psycopg.Connection[Any],
    collection: Collection,
    decisions: Sequence[Decision],
    run_ids: Sequence[int | None],
) -> None:
    """Store what decisions say, each page with the run that brought it."""
    if not decisions:
        return
    rows = [
        (
            made.page_id,
            run_id,
            made.duplicate_of,
            # Of another version it is how far it moved, which is between two rows.
            None if made.verdict.verdict == "updated" else made.verdict.distance,
            made.record.markdown if collection.keep_markdown else None,
            to_bigint(made.record.simhash),
            None if made.record.text_digest is None else to_bigint(made.record.text_digest),
            None if made.record.structure is None else to_bigint(made.record.structure),
            *to_halves(made.record.sketch),
            *_kept_of(made.record),
        )
        for made, run_id in zip(decisions, run_ids, strict=True)
    ]
    connection.execute(
        query("add_pages", connection),
        {
            "collection_id": collection.collection_id,
            "first_page": decisions[0].page_id,
            **as_columns(_COLUMNS, rows),
        },
    )


def see_pages(
    connection: psycopg.Connection[Any],
    collection: Collection,
    seen: Sequence[tuple[int, datetime | None]],
) -> None:
    """Note when stored versions were met again, by id; None is now, and the latest time counts."""
    if seen:
        connection.execute(
            query("see_pages", connection),
            {
                "collection_id": collection.collection_id,
                **as_columns(("page_ids", "seen_at"), seen),
            },
        )


def _count(
    connection: psycopg.Connection[Any],
    collection: Collection,
    decisions: Sequence[Decision],
    stored: Sequence[Decision],
    run: Run,
) -> None:
    with connection.cursor(row_factory=scalar_row) as cursor:
        counted = cursor.execute(
            query("count_batch", connection),
            {
                "run_id": run.run_id,
                "what": run.what,
                "collection_id": collection.collection_id,
                "pages": len(decisions),
                **count_verdicts(decisions),
                "first_page": stored[0].page_id if stored else None,
                "last_page": stored[-1].page_id if stored else None,
            },
        ).fetchone()
    run.pages = int(counted or 0)
