"""Read stored pages as records, in the order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row, scalar_row

from pgsimhash.db.statements import query
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.hashing.signature import from_halves
from pgsimhash.pages.records import PageRecord
from pgsimhash.store.collection import Collection


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A version of a page, its id, and its run."""

    page_id: int
    record: PageRecord
    run_id: int | None


def stored_records(
    connection: psycopg.Connection[Any],
    collection: Collection,
    page_ids: Sequence[int],
    *,
    markdown: bool,
) -> list[StoredRecord]:
    """Return the versions with these ids, in order."""
    parameters = {
        "collection_id": collection.collection_id,
        "page_ids": list(page_ids),
        "markdown": markdown,
    }
    with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        rows = cursor.execute(query("stored_pages", connection), parameters).fetchall()
    return [_stored(row) for row in rows]


def count_pages_after(
    connection: psycopg.Connection[Any], collection: Collection, after_page: int
) -> int:
    """Return how many versions arrived after ``after_page``."""
    parameters = {"collection_id": collection.collection_id, "after_page": after_page}
    with connection.cursor(row_factory=scalar_row) as cursor:
        return int(
            cursor.execute(query("count_pages_after", connection), parameters).fetchone() or 0
        )


def _stored(row: dict[str, Any]) -> StoredRecord:
    page_id, run_id = row.pop("page_id"), row.pop("run_id")
    row["signature"] = from_halves(row.pop("signature_high"), row.pop("signature_low"))
    for name in ("simhash", "structure", "text_digest"):
        row[name] = None if row[name] is None else from_bigint(row[name])
    return StoredRecord(page_id, PageRecord(**row), run_id)
