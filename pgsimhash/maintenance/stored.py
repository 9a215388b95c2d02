"""The pages of a collection as the records that they came as, in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.bits import from_bigint
from pgsimhash.records import PageRecord
from pgsimhash.sketch import from_halves
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A version of a page, the id of its row, and the run that brought it."""

    page_id: int
    record: PageRecord
    run_id: int | None


def stored_records(
    connection: psycopg.Connection[Any],
    collection: Collection,
    after_page: int,
    batch: int,
    *,
    markdown: bool,
) -> list[StoredRecord]:
    """Return the next ``batch`` versions after the page ``after_page``, by their ids.

    Ids are drawn under the collection's lock, so none below the last one comes later.
    """
    parameters = {
        "collection_id": collection.collection_id,
        "after_page": after_page,
        "batch": batch,
        "markdown": markdown,
    }
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        rows = cursor.execute(query("stored_pages", connection), parameters).fetchall()
    return [_stored(*row) for row in rows]


def count_pages_after(
    connection: psycopg.Connection[Any], collection: Collection, after_page: int
) -> int:
    """Return how many versions came after the page ``after_page``."""
    parameters = {"collection_id": collection.collection_id, "after_page": after_page}
    with connection.cursor(row_factory=scalar_row) as cursor:
        return int(
            cursor.execute(query("count_pages_after", connection), parameters).fetchone() or 0
        )


def _stored(
    page_id: int,
    url: str,
    simhash: int,
    fetched_at: datetime,
    title: str | None,
    canonical_url: str | None,
    language: str | None,
    features: int | None,
    html_bytes: int | None,
    structure: int | None,
    sketch_high: int | None,
    sketch_low: int | None,
    markdown: str | None,
    tokens: int | None,
    html_digest: bytes | None,
    text_digest: int | None,
    run_id: int | None,
) -> StoredRecord:
    record = PageRecord(
        url=url,
        simhash=from_bigint(simhash),
        fetched_at=fetched_at,
        title=title,
        canonical_url=canonical_url,
        language=language,
        features=features,
        html_bytes=html_bytes,
        structure=None if structure is None else from_bigint(structure),
        sketch=from_halves(sketch_high, sketch_low),
        markdown=markdown,
        tokens=tokens,
        html_digest=html_digest,
        text_digest=None if text_digest is None else from_bigint(text_digest),
    )
    return StoredRecord(page_id, record, run_id)
