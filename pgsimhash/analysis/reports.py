"""Summarize a collection by statistics and examples.

The number of statements and the size of each result are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.analysis.cluster_views import ClusterView, biggest, shown_texts, with_differences
from pgsimhash.analysis.history import Version, newest_versions
from pgsimhash.analysis.limits import Limits
from pgsimhash.db.statements import query
from pgsimhash.pages.records import CollectionStatus
from pgsimhash.pages.recrawl import RecrawlHint, recrawl_hint
from pgsimhash.search.clusters import Linkage, Score, check_linkage, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.store import Store, groups
from pgsimhash.store.collection import Collection, checked_distance
from pgsimhash.store.lookups import read_status

_CHARS: Final = 20_000
"""How many characters of a text are compared."""


class HostFigures(NamedTuple):
    """The numbers of pages and duplicates of a host, which is empty for URLs without a host."""

    host: str
    pages: int
    duplicates: int
    duplicate_bytes: int


@dataclass(frozen=True, slots=True)
class PageHistory:
    """A page with ``count`` versions, whose content changed by ``moved`` bits in total."""

    url: str
    count: int
    moved: int
    versions: tuple[Version, ...]
    hint: RecrawlHint


@dataclass(frozen=True, slots=True)
class Report:
    """The summary of a collection.

    ``distances`` maps the distance of duplicates from their originals, when they were added, to
    numbers of pages. Clusters are those of the current versions at ``distance`` and ``linkage``.
    The ``all_`` fields are the lengths of the full lists.
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
        """The number of duplicates in clusters: all pages except the canonical ones."""
        return self.clustered_pages - self.all_clusters

    def as_json(self) -> dict[str, Any]:
        """Return the counters of the collection as JSON values, and the other figures as "report".

        These are clusters, distances of duplicates, hosts and changed pages, without texts.
        """
        return {**self.status.as_json(), "report": self._figures()}

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
    """Return the summary of a collection: savings, clusters, distances, hosts, changes.

    :func:`pgsimhash.html_reports.report_page` renders it as an HTML page. It needs the memory of
    ``Store.clusters`` and of the biggest cluster; ``limits`` bound the report itself. Pages that
    are written meanwhile may be in some figures and not in others.

    Args:
        store: the store of the collection.
        distance: the largest distance of pairs in a cluster; by default the collection's.
        linkage: as for ``Store.clusters``.
        canonical: as for ``Store.clusters``.
        limits: how many clusters, pages, texts, hosts, URLs and versions to show.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, or the rule or linkage is unknown.
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
        largest = biggest(clusters, limits.clusters, limits.members)
        page_ids = shown_texts(largest.views, limits.texts)
        texts: dict[int, str] = dict(
            cursor.execute(
                query("report_texts", connection), {**scope, "page_ids": page_ids, "chars": _CHARS}
            ).fetchall()
        )
    return Report(
        status=status,
        made_at=datetime.now(UTC),
        distance=distance,
        linkage=linkage,
        distances=dict(distances),
        hosts=[HostFigures(*row[:-1]) for row in hosts[: limits.hosts]],
        all_hosts=hosts[0][-1] if hosts else 0,
        clusters=[with_differences(view, texts) for view in largest.views],
        all_clusters=largest.clusters,
        clustered_pages=largest.pages,
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
