"""A collection at a glance: a bounded number of statements, each with a bounded answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.analysis.reports import (
    HostFigures,
    Limits,
    PageHistory,
    Report,
    biggest,
    shown_texts,
    with_differences,
)
from pgsimhash.clusters import Linkage, Score
from pgsimhash.recrawl import recrawl_hint
from pgsimhash.statements import query
from pgsimhash.store import groups
from pgsimhash.store.collection import Collection, present_rows
from pgsimhash.store.histories import newest_versions
from pgsimhash.store.status import read_status

_CHARS: Final = 20_000
"""How much of a text is compared."""


def read_report(
    connection: psycopg.Connection[Any],
    collection: Collection,
    distance: int,
    linkage: Linkage,
    score: Score,
    limits: Limits,
) -> Report:
    """Return the report on a collection; ``connection`` is in a transaction.

    What is written meanwhile may be in some figures and not in others.
    """
    (present,) = present_rows(connection, [collection])
    (status,) = read_status(connection, present.name)
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(row_factory=tuple_row) as cursor:
        distances = cursor.execute(query("report_distances"), scope).fetchall()
        hosts = cursor.execute(
            query("report_hosts"), {**scope, "limit": max(limits.hosts, 1)}
        ).fetchall()
        changed = cursor.execute(
            query("report_changed"), {**scope, "limit": max(limits.urls, 1)}
        ).fetchall()
        found = biggest(groups.clusters(connection, collection, distance, linkage, score), limits)
        wanted = {**scope, "page_ids": shown_texts(found.views, limits), "chars": _CHARS}
        texts: dict[int, str] = dict(cursor.execute(query("report_texts"), wanted).fetchall())
    return Report(
        status=status,
        made_at=datetime.now(UTC),
        distance=distance,
        linkage=linkage,
        distances=dict(distances),
        hosts=[HostFigures(*row[:-1]) for row in hosts[: limits.hosts]],
        all_hosts=hosts[0][-1] if hosts else 0,
        clusters=[with_differences(view, texts) for view in found.views],
        all_clusters=found.clusters,
        clustered_pages=found.pages,
        histories=list(_histories(connection, collection, changed[: limits.urls], limits)),
        all_changed=changed[0][-1] if changed else 0,
        limits=limits,
    )


def _histories(
    connection: psycopg.Connection[Any],
    collection: Collection,
    changed: list[tuple[str, int, int, int]],
    limits: Limits,
) -> Iterator[PageHistory]:
    for url, moved, count, _ in changed:
        versions = newest_versions(connection, collection, url, max(limits.versions, 1))
        if versions:
            yield PageHistory(url, count, moved, tuple(versions), recrawl_hint(versions))
