"""A collection at a glance: figures, and a bounded number of examples.

A bounded number of statements, each with a bounded answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.analysis.cluster_views import (
    ClusterView,
    biggest,
    shown_texts,
    with_differences,
)
from pgsimhash.analysis.history import Version, newest_versions
from pgsimhash.analysis.limits import Limits
from pgsimhash.clusters import Linkage, Score, check_linkage, scorer
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.records import CollectionStatus
from pgsimhash.recrawl import RecrawlHint, recrawl_hint
from pgsimhash.statements import query
from pgsimhash.store import Store, groups
from pgsimhash.store.collection import Collection, checked_distance
from pgsimhash.store.status import read_status

_CHARS: Final = 20_000
"""How much of a text is compared."""


class HostFigures(NamedTuple):
    """The pages of a host (empty for URLs without one), and which duplicated known ones."""

    host: str
    pages: int
    duplicates: int
    duplicate_bytes: int


@dataclass(frozen=True, slots=True)
class PageHistory:
    """A page with ``count`` versions, whose content moved by ``moved`` bits altogether."""

    url: str
    count: int
    moved: int
    versions: tuple[Version, ...]
    hint: RecrawlHint


@dataclass(frozen=True, slots=True)
class Report:
    """A collection at a glance.

    ``distances`` maps the bits between duplicates and their originals to numbers of pages, as
    they came in; clusters are those of the present versions at ``distance`` and ``linkage``. The
    ``all_`` fields count what the lists show the first of.
    """

    status: CollectionStatus
    made_at: datetime
    distance: int
    linkage: Linkage
    distances: Mapping[int, int]
    hosts: Sequence[HostFigures]
    all_hosts: int
    clusters: Sequence[ClusterView]
    all_clusters: int
    clustered_pages: int
    histories: Sequence[PageHistory]
    all_changed: int
    limits: Limits = field(default_factory=Limits)

    @property
    def spare_pages(self) -> int:
        """How many duplicates there are in clusters: all pages but the canonical ones."""
        return self.clustered_pages - self.all_clusters

    def as_json(self) -> dict[str, Any]:
        """Return the counters of the collection as JSON values, and under "report" the rest.

        The rest are clusters, distances of duplicates, hosts and pages that changed; no texts.
        """
        return {**asdict(self.status), "report": self._figures()}

    def _figures(self) -> dict[str, Any]:
        return {
            "made_at": self.made_at.isoformat(),
            "distance": self.distance,
            "linkage": self.linkage,
            "distances": {str(bits): pages for bits, pages in self.distances.items()},
            "hosts": [host._asdict() for host in self.hosts],
            "all_hosts": self.all_hosts,
            "clusters": [
                {"pages": cluster.size, "canonical": cluster.canonical.url}
                for cluster in self.clusters
            ],
            "all_clusters": self.all_clusters,
            "clustered_pages": self.clustered_pages,
            "spare_pages": self.spare_pages,
            "changed": [
                {"url": page.url, "versions": page.count, "bits_moved": page.moved}
                for page in self.histories
            ],
            "all_changed": self.all_changed,
        }


def report(
    store: Store,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = "earliest",
    limits: Limits | None = None,
) -> Report:
    """Return the collection at a glance: savings, clusters, distances, hosts, changes.

    :func:`pgsimhash.html_reports.report_page` makes an HTML page of it. Memory is that of
    ``Store.clusters`` and of the biggest cluster; what the report holds is bounded by ``limits``.
    What is written meanwhile may be in some figures and not in others.

    Args:
        store: whose collection it is.
        distance: the largest distance of pairs in a cluster; by default the collection's.
        linkage: as for ``Store.clusters``.
        canonical: as for ``Store.clusters``.
        limits: how many clusters, pages, texts, hosts, URLs and versions to show.

    Raises:
        ArgumentError: ``distance`` is not in 0..12; or there is no such rule or linkage.
        StoreError: the database does not answer.
    """
    check_linkage(linkage)
    with store.session.reading(together=True) as (connection, collection):
        return _read(
            connection,
            collection,
            checked_distance(collection, distance, DISTANCE_MAX),
            linkage,
            scorer(canonical),
            limits or Limits(),
        )


def _read(
    connection: psycopg.Connection[Any],
    collection: Collection,
    distance: int,
    linkage: Linkage,
    score: Score,
    limits: Limits,
) -> Report:
    (status,) = read_status(connection, collection.name)
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(row_factory=tuple_row) as cursor:
        distances = cursor.execute(query("report_distances", connection), scope).fetchall()
        hosts = cursor.execute(
            query("report_hosts", connection), {**scope, "limit": max(limits.hosts, 1)}
        ).fetchall()
        changed = cursor.execute(
            query("report_changed", connection), {**scope, "limit": max(limits.urls, 1)}
        ).fetchall()
        clusters = groups.clusters(connection, collection, distance, linkage, score)
        found = biggest(clusters, limits.clusters, limits.members)
        wanted = {**scope, "page_ids": shown_texts(found.views, limits.texts), "chars": _CHARS}
        texts: dict[int, str] = dict(
            cursor.execute(query("report_texts", connection), wanted).fetchall()
        )
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
