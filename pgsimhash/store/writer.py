"""One batch of pages into the database: look up, decide, insert, under the collection's lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.bits import from_bigint, to_bigint
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.sketch import SAME_BITS_MAX, TRUSTED_DISTANCE, from_bigints, to_bigints
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, lock_collection
from pgsimhash.store.decisions import ArrivedPage, Decision, KnownMatch, Look, decide

_BATCH: Final = 10_000


def write_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    distance: int,
    *,
    verify: bool = True,
) -> list[Verdict]:
    """Decide and store ``records`` in the connection's present transaction.

    Near-copies are looked up first; then, under a lock on the collection that is held until the
    transaction ends, only against the pages that other writers added meanwhile. So of several
    writers with near-copies only one sees them as new, and they wait for one another's inserts,
    not for their lookups.

    Raises:
        StoreError: the transaction's isolation level is not READ COMMITTED.
    """
    if not records:
        return []
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(row_factory=scalar_row) as cursor:
        newest = cursor.execute(query("newest_page"), scope).fetchone()
        nearest = _nearest(connection, collection, records, distance, verify=verify)
        lock_collection(connection, collection)
        page_ids = cursor.execute(query("page_ids"), {"count": len(records)}).fetchall()
    arrived = _arrived(connection, {**scope, "newest_page": newest})
    present = _present_versions(connection, scope, records)
    decisions = decide(records, page_ids, present, nearest, arrived, distance, verify=verify)
    _insert(connection, collection, [made for made in decisions if made.page_id is not None])
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
            added += cursor.execute(query("add_simhashes"), parameters).fetchone() or 0
    return added


def delete_page(connection: psycopg.Connection[Any], collection: Collection, url: str) -> int:
    """Delete all versions of a page, and the simhashes only it had; return their number."""
    scope = {"collection_id": collection.collection_id}
    lock_collection(connection, collection)
    with connection.cursor(row_factory=scalar_row) as cursor:
        simhashes = cursor.execute(query("delete_pages"), {**scope, "url": url}).fetchall()
        cursor.execute(
            query("forget_simhashes"), {"collection": collection.name, "simhashes": simhashes}
        )
    return len(simhashes)


def _arrived(connection: psycopg.Connection[Any], since: dict[str, Any]) -> list[ArrivedPage]:
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("arrived_pages"), since).fetchall()
    return [
        ArrivedPage(page_id, url, from_bigint(simhash), _sketch(*halves))
        for page_id, url, simhash, *halves in rows
    ]


def _sketch(high: int | None, low: int | None) -> int | None:
    return None if high is None or low is None else from_bigints(high, low)


def _halves(sketches: Iterable[int | None]) -> tuple[list[int | None], list[int | None]]:
    """Return the two numbers of each sketch, for PostgreSQL, as two columns."""
    pairs = [(None, None) if sketch is None else to_bigints(sketch) for sketch in sketches]
    return [high for high, _ in pairs], [low for _, low in pairs]


def _present_versions(
    connection: psycopg.Connection[Any], scope: dict[str, int], records: Sequence[PageRecord]
) -> dict[str, int]:
    urls = list({record.url for record in records})
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("present_versions"), {**scope, "urls": urls}).fetchall()
    return {url: from_bigint(simhash) for url, simhash in rows}


def _nearest(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    distance: int,
    *,
    verify: bool,
) -> dict[Look, KnownMatch]:
    looks: list[Look] = list(dict.fromkeys((record.simhash, record.sketch) for record in records))
    high, low = _halves(sketch if verify else None for _, sketch in looks)
    parameters = {
        "collection_id": collection.collection_id,
        "collection": collection.name,
        "simhashes": [to_bigint(simhash) for simhash, _ in looks],
        "sketch_high": high,
        "sketch_low": low,
        "distance": distance,
        "trusted_distance": TRUSTED_DISTANCE,
        "sketch_distance": SAME_BITS_MAX,
    }
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("nearest"), parameters).fetchall()
    return {
        looks[number - 1]: KnownMatch(bits, page_id, url) for number, bits, page_id, url in rows
    }


def _insert(
    connection: psycopg.Connection[Any], collection: Collection, decisions: Sequence[Decision]
) -> None:
    if not decisions:
        return
    records = [made.record for made in decisions]
    simhashes = [to_bigint(record.simhash) for record in records]
    sketch_high, sketch_low = _halves(record.sketch for record in records)
    connection.execute(
        query("add_simhashes"), {"collection": collection.name, "simhashes": simhashes}
    )
    connection.execute(
        query("add_pages"),
        {
            "collection_id": collection.collection_id,
            "page_id": [made.page_id for made in decisions],
            "url": [record.url for record in records],
            "simhash": simhashes,
            "fetched_at": [record.fetched_at for record in records],
            "title": [record.title for record in records],
            "canonical_url": [record.canonical_url for record in records],
            "language": [record.language for record in records],
            "features": [record.features for record in records],
            "html_bytes": [record.html_bytes for record in records],
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
