"""Decide about and store one batch of pages in one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psycopg

from pgsimhash.db.statements import fetch
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.policies import MatchSettings
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.pages.urls import same_site
from pgsimhash.pages.values import back
from pgsimhash.store.collection import Collection
from pgsimhash.store.policies import StalePoliciesError
from pgsimhash.store.runs import Run

_UNCHANGED: Final = (
    "url",
    "title",
    "canonical_url",
    "language",
    "features",
    "tokens",
    "html_bytes",
)
"""Fields of a record that are sent unchanged."""


def write_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    run: Run | None,
    *,
    by_policies: bool,
    remember: bool = True,
) -> list[Verdict]:
    """Decide about ``records``, and store them in the connection's present transaction.

    See ``_add_batch`` in sql/decide.sql. It first looks up near simhashes. Then it locks the
    compared collections until the transaction ends, and compares only the pages that other writers
    added meanwhile. So of several writers with near-duplicates only one gets the verdict ``new``,
    and writers wait for each other's inserts, not for lookups.

    Args:
        connection: the connection.
        collection: the collection of the records.
        records: the batch, in order.
        settings: the match settings of each record.
        run: the run of the records, if any.
        by_policies: whether the settings include policies.
        remember: whether to store the records; if not, nothing is locked.

    Raises:
        StalePoliciesError: the settings do not include policies, and the collection has some.
    """
    if not records:
        return []
    verdicts, run_pages = decide(
        connection,
        collection,
        records,
        pages_of(collection, records, settings),
        remember=remember,
        run=run,
        by_policies=by_policies,
    )
    if run is not None:
        run.pages = run_pages or 0
    return verdicts


def decide(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    pages: Sequence[dict[str, Any]],
    *,
    remember: bool = True,
    by_policies: bool = True,
    run: Run | None = None,
) -> tuple[list[Verdict], int | None]:
    """Return the verdicts of ``_add_batch`` in sql/decide.sql, and the number of pages of the run.

    ``pages`` are those of :func:`pages_of`. With ``page_id``, they are decided as if they had
    arrived with these ids.
    """
    parameters = {
        "collection": collection.name,
        "own_id": collection.collection_id,
        "pages": json.dumps(pages, ensure_ascii=False),
        "remember": remember,
        "by_policies": by_policies,
        "run_id": None if run is None else run.run_id,
        "label": None if run is None else run.label,
    }
    rows = fetch(connection, "add_batch", parameters)
    if not rows:
        raise StalePoliciesError
    verdicts = [
        Verdict(
            record.url,
            verdict,
            reason,
            simhash=record.simhash,
            distance=distance,
            duplicate_of=duplicate_of,
            html_bytes=record.html_bytes,
            keep=keep,
            page_id=page_id,
            original_page_id=original_page_id,
            title=record.title,
            markdown=record.markdown,
        )
        for record, row in zip(records, rows, strict=True)
        for verdict, reason, distance, duplicate_of, original_page_id, keep, page_id, _ in [row]
    ]
    return verdicts, rows[0][-1]


def pages_of(
    collection: Collection, records: Sequence[PageRecord], settings: Sequence[MatchSettings]
) -> list[dict[str, Any]]:
    """Return the pages with their settings, as ``_add_batch`` reads them; None is omitted."""
    now = datetime.now(UTC)
    pages = []
    for record, setting in zip(records, settings, strict=True):
        high, low = to_halves(record.signature)
        age, moment, digest = setting.max_age, record.fetched_at, record.html_digest
        page = {name: getattr(record, name) for name in _UNCHANGED} | {
            "simhash": to_bigint(record.simhash),
            "fetched_at": None if moment is None else moment.isoformat(),
            "signature_high": high,
            "signature_low": low,
            "text_digest": None if record.text_digest is None else to_bigint(record.text_digest),
            "structure": None if record.structure is None else to_bigint(record.structure),
            "html_digest": None if digest is None else f"\\x{digest.hex()}",
            "markdown": record.markdown if collection.keep_markdown else None,
            "canonical": _canonical(record, setting),
            "max_distance": setting.distance,
            "verify": setting.verify,
            "scope": setting.scope,
            "window_size": setting.window_size,
            "since": _since(moment or now, age),
            "max_copies": setting.max_copies,
        }
        pages.append({name: value for name, value in page.items() if value is not None})
    return pages


def _since(moment: datetime, age: timedelta | None) -> str | None:
    oldest = None if age is None else back(moment, age)
    return None if oldest is None else oldest.isoformat()


def _canonical(record: PageRecord, setting: MatchSettings) -> str | None:
    """Return the canonical URL of a page, if its settings trust it."""
    url = record.canonical_url
    believed = setting.canonical_link and url is not None and same_site(url, record.url)
    return url if believed else None
