"""Decide about and store one batch of pages in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final

import psycopg

from pgsimhash.db.statements import fetch
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.pages.times import back
from pgsimhash.pages.urls import same_site
from pgsimhash.store.arrays import as_columns
from pgsimhash.store.collection import Collection
from pgsimhash.store.memory import NO_MEMORY, Memory
from pgsimhash.store.near import Near, locked, nearby
from pgsimhash.store.policies import StalePoliciesError
from pgsimhash.store.runs import Run

_FEW: Final = 16
"""The largest batch that is looked up, locked and stored by one statement; larger ones by three."""

_KEPT: Final = (
    "url",
    "fetched_at",
    "html_digest",
    "title",
    "canonical_url",
    "language",
    "features",
    "tokens",
    "html_bytes",
)
"""Fields of a record that become columns unchanged."""

_kept_of = attrgetter(*_KEPT)

_COLUMNS: Final = (
    "simhash",
    "signature_high",
    "signature_low",
    "text_digest",
    "structure",
    "markdown",
    "canonical",
    "distance",
    "verify",
    "scope",
    "window_size",
    "since",
    "max_copies",
    *_KEPT,
)
"""All columns of a page, in order."""


def write_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    run: Run | None,
    memory: Memory = NO_MEMORY,
    *,
    by_policies: bool,
    remember: bool = True,
) -> list[Verdict]:
    """Decide about ``records``, and store them in the connection's present transaction.

    It first looks up near simhashes. Then it locks the compared collections until the transaction
    ends, and compares only the pages that other writers added meanwhile. So of several writers with
    near-duplicates only one gets the verdict ``new``, and writers wait for each other's inserts,
    not for lookups.

    Args:
        connection: the connection.
        collection: the collection of the records.
        records: the batch, in order.
        settings: the match settings of each record.
        run: the run of the records, if any.
        memory: the cache of the collection.
        by_policies: whether the settings include policies.
        remember: whether to store the records; if not, nothing is locked.

    Raises:
        StalePoliciesError: the settings do not include policies, and the collection has some.
    """
    if not records:
        return []
    columns = page_columns(collection, records, settings)
    near = nearby(connection, collection, records, settings, memory)
    if remember and len(records) > _FEW:
        near = locked(connection, collection, records, settings, memory, near)
    verdicts, run_pages = decide(
        connection,
        collection,
        records,
        columns,
        near,
        memory,
        remember=remember,
        run_ids=[] if run is None else [run.run_id] * len(records),
        label=None if run is None else run.label,
        by_policies=by_policies,
    )
    if run is not None:
        run.pages = run_pages or 0
    return verdicts


def decide(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    columns: dict[str, Any],
    near: Near,
    memory: Memory,
    *,
    remember: bool = True,
    by_policies: bool = True,
    page_ids: Sequence[int] | None = None,
    run_ids: Sequence[int | None] = (),
    label: str | None = None,
) -> tuple[list[Verdict], int | None]:
    """Return the verdicts of ``_add_batch`` in sql/decide.sql, and the number of pages of the run.

    ``columns`` are those of :func:`page_columns`. With ``page_ids``, pages are decided as if they
    had arrived with these ids.
    """
    parameters = {
        "collection": collection.name,
        "collection_id": collection.collection_id,
        "remember": remember,
        "by_policies": by_policies,
        "page_ids": None if page_ids is None else list(page_ids),
        "run_ids": list(run_ids) or None,
        "label": label,
        **near._asdict(),
        **columns,
    }
    rows = fetch(connection, "add_batch", parameters)
    if not rows:
        raise StalePoliciesError
    *_, run_pages, seconds = rows[0]
    if near.near_to is None and len(records) > 1:
        memory.spent(collection, seconds)
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
        for verdict, reason, distance, duplicate_of, original_page_id, keep, page_id, *_ in [row]
    ]
    return verdicts, run_pages


def page_columns(
    collection: Collection, records: Sequence[PageRecord], settings: Sequence[MatchSettings]
) -> dict[str, Any]:
    """Return the columns of the pages as arrays; build them before anything is locked."""
    now = datetime.now(UTC)
    rows = [
        (
            to_bigint(record.simhash),
            *to_halves(record.signature),
            None if record.text_digest is None else to_bigint(record.text_digest),
            None if record.structure is None else to_bigint(record.structure),
            record.markdown if collection.keep_markdown else None,
            _canonical(record, setting),
            setting.distance,
            setting.verify,
            setting.scope,
            setting.window_size,
            None if setting.max_age is None else back(record.fetched_at or now, setting.max_age),
            setting.max_copies,
            *_kept_of(record),
        )
        for record, setting in zip(records, settings, strict=True)
    ]
    return as_columns(_COLUMNS, rows)


def _canonical(record: PageRecord, setting: MatchSettings) -> str | None:
    """Return the canonical URL of a page, if its settings trust it."""
    url = record.canonical_url
    believed = setting.canonical_link and url is not None and same_site(url, record.url)
    return url if believed else None
