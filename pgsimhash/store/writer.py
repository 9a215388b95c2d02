"""One batch of pages into the database: look up, decide, insert, under the collection's lock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.rows import scalar_row

from pgsimhash.bits import to_bigint
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, check_writable, lock_collections
from pgsimhash.store.decisions import decide
from pgsimhash.store.judging import ALL_PAGES, ask, known_pages, split_sketches, urls_of
from pgsimhash.store.policies import StalePoliciesError
from pgsimhash.store.reach import arrived_since, newest_pages, reach_of
from pgsimhash.store.runs import Run
from pgsimhash.store.verdicts import Decision, count_verdicts
from pgsimhash.terms import Terms

_BATCH: Final = 10_000


def write_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    terms: Sequence[Terms],
    run: Run,
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
        terms: what makes each a duplicate.
        run: what they are added by.
        by_policies: whether policies were asked for the terms.

    Raises:
        ArgumentError: a layout does not answer the distance.
        StalePoliciesError: they were not, and there are some.
        MovedCollectionError: the collection's name is another one's now.
        StoreError: the transaction's isolation level is not READ COMMITTED.
    """
    if not records:
        return []
    now = datetime.now(UTC)
    reach = reach_of(connection, collection, terms)
    newest = newest_pages(connection, reach)
    nearest, asked = ask(connection, reach, records, terms, now)
    if asked.policies and not by_policies:
        raise StalePoliciesError
    lock_collections(connection, reach.compared)
    check_writable(connection, collection)
    with connection.cursor(row_factory=scalar_row) as cursor:
        page_ids = cursor.execute(query("page_ids", connection), {"count": len(records)}).fetchall()
    arrived = arrived_since(connection, reach, newest)
    # Known before the lock already, but versions may have come or gone since.
    known = known_pages(connection, collection, urls_of(records, terms))
    decisions = decide(records, page_ids, terms, nearest, known, arrived, now)
    stored = [made for made in decisions if made.page_id is not None]
    insert_pages(connection, collection, stored, [run.run_id] * len(stored))
    seen = [(made.seen, made.record.fetched_at) for made in decisions if made.seen is not None]
    see_pages(connection, collection, seen)
    _count(connection, collection, decisions, run)
    return decisions


def judge_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    terms: Sequence[Terms],
    *,
    by_policies: bool,
) -> list[Verdict]:
    """Return the verdicts that :func:`write_batch` would give now, and write nothing.

    Raises:
        ArgumentError: a layout does not answer the distance.
        StalePoliciesError: they were not, and there are some.
    """
    if not records:
        return []
    now = datetime.now(UTC)
    reach = reach_of(connection, collection, terms)
    nearest, known = ask(connection, reach, records, terms, now)
    if known.policies and not by_policies:
        raise StalePoliciesError
    page_ids = range(ALL_PAGES, ALL_PAGES + len(records))
    decisions = decide(records, page_ids, terms, nearest, known, [], now)
    return [made.verdict for made in decisions]


def add_simhashes(
    connection: psycopg.Connection[Any], collection: Collection, simhashes: NDArray[np.uint64]
) -> int:
    """Add bare simhashes, in statements of a bounded size; return how many were new."""
    added = 0
    with connection.cursor(row_factory=scalar_row) as cursor:
        for start in range(0, len(simhashes), _BATCH):
            batch = simhashes[start : start + _BATCH].view(np.int64).tolist()
            parameters = {"collection": collection.name, "simhashes": batch}
            added += cursor.execute(query("add_simhashes", connection), parameters).fetchone() or 0
    return added


def insert_pages(
    connection: psycopg.Connection[Any],
    collection: Collection,
    decisions: Sequence[Decision],
    run_ids: Sequence[int | None],
) -> None:
    """Store what decisions say, each page with the run that brought it."""
    if not decisions:
        return
    records = [made.record for made in decisions]
    simhashes = [to_bigint(record.simhash) for record in records]
    sketch_high, sketch_low = split_sketches(record.sketch for record in records)
    connection.execute(
        query("add_simhashes_of_pages", connection),
        {"collection_id": collection.collection_id, "simhashes": simhashes},
    )
    connection.execute(
        query("add_pages", connection),
        {
            "collection_id": collection.collection_id,
            "run_id": list(run_ids),
            "first_page": decisions[0].page_id,
            "page_id": [made.page_id for made in decisions],
            "url": [record.url for record in records],
            "simhash": simhashes,
            "fetched_at": [record.fetched_at for record in records],
            "title": [record.title for record in records],
            "canonical_url": [record.canonical_url for record in records],
            "language": [record.language for record in records],
            "features": [record.features for record in records],
            "words": [record.words for record in records],
            "html_bytes": [record.html_bytes for record in records],
            "html_digest": [record.html_digest for record in records],
            "structure": [
                None if record.structure is None else to_bigint(record.structure)
                for record in records
            ],
            "sketch_high": sketch_high,
            "sketch_low": sketch_low,
            "markdown": [
                record.markdown if collection.keep_markdown else None for record in records
            ],
            "duplicate_of": [made.duplicate_of for made in decisions],
            "distance": [made.verdict.distance for made in decisions],
        },
    )


def see_pages(
    connection: psycopg.Connection[Any],
    collection: Collection,
    seen: Sequence[tuple[int, datetime | None]],
) -> None:
    """Note when stored versions were met again, by id; None is now, and the latest time counts."""
    if seen:
        page_ids, times = zip(*seen, strict=True)
        connection.execute(
            query("see_pages", connection),
            {
                "collection_id": collection.collection_id,
                "page_ids": list(page_ids),
                "seen_at": list(times),
            },
        )


def _count(
    connection: psycopg.Connection[Any],
    collection: Collection,
    decisions: Sequence[Decision],
    run: Run,
) -> None:
    new, duplicates, unchanged = count_verdicts(decisions)
    stored = [made.page_id for made in decisions if made.page_id is not None]
    connection.execute(
        query("count_batch", connection),
        {
            "run_id": run.run_id,
            "what": run.what,
            "collection_id": collection.collection_id,
            "pages": len(decisions),
            "new": new,
            "duplicates": duplicates,
            "unchanged": unchanged,
            "first_page": stored[0] if stored else None,
            "last_page": stored[-1] if stored else None,
        },
    )
