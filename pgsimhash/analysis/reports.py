"""What a report on a collection holds: figures, and a bounded number of examples."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from pgsimhash.analysis.differences import Difference, side_by_side
from pgsimhash.analysis.history import Version
from pgsimhash.bits import hamming_distance
from pgsimhash.clusters import Cluster, ClusterPage, Linkage
from pgsimhash.errors import UnknownRuleError
from pgsimhash.records import CollectionStatus
from pgsimhash.recrawl import RecrawlHint


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a collection a report shows, so that it stays small whatever the collection.

    The biggest ``clusters``, of each the ``members`` farthest from its canonical page, of these
    the first ``texts`` with their difference; the ``hosts`` with the most duplicates; the ``urls``
    that changed most, with their newest ``versions``.

    Raises:
        UnknownRuleError: one is below 0.
    """

    clusters: int = 20
    members: int = 10
    texts: int = 3
    hosts: int = 30
    urls: int = 10
    versions: int = 200

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 0:
                raise UnknownRuleError(f"the limit {limit.name!r} is 0 or more")

    def figures_only(self) -> Limits:
        """Return the same limits without what :meth:`Report.as_json` does not show.

        Members of clusters, texts and single versions are then not read.
        """
        return replace(self, members=0, texts=0, versions=1)


class HostFigures(NamedTuple):
    """The pages of a host (empty for URLs without one), and which duplicated known ones."""

    host: str
    pages: int
    duplicates: int
    duplicate_bytes: int


@dataclass(frozen=True, slots=True)
class Member:
    """A page of a cluster, and how it differs from the canonical one."""

    page: ClusterPage
    distance: int
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster of ``size`` pages: the canonical one, and those farthest from it."""

    size: int
    canonical: ClusterPage
    members: tuple[Member, ...]


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
        """How many pages could go if each cluster kept only its canonical one."""
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


class Biggest(NamedTuple):
    """The biggest clusters of all, and how many there were of how many pages."""

    views: list[ClusterView]
    clusters: int
    pages: int


def biggest(clusters: Iterable[Cluster], limits: Limits) -> Biggest:
    """Return the biggest clusters, the biggest first; one cluster at a time is in memory."""
    heap: list[tuple[int, int, ClusterView]] = []
    count = pages = 0
    for cluster in clusters:
        count += 1
        pages += len(cluster.pages)
        rank = (len(cluster.pages), -cluster.cluster_id)
        if len(heap) < limits.clusters:
            heapq.heappush(heap, (*rank, _view(cluster, limits)))
        elif heap and rank > heap[0][:2]:
            heapq.heapreplace(heap, (*rank, _view(cluster, limits)))
    return Biggest([view for *_, view in sorted(heap, reverse=True)], count, pages)


def shown_texts(views: Iterable[ClusterView], limits: Limits) -> list[int]:
    """Return the ids of the pages whose texts :func:`with_differences` compares."""
    if not limits.texts:
        return []
    return [
        page_id
        for view in views
        for page_id in (
            view.canonical.page_id,
            *(member.page.page_id for member in view.members[: limits.texts]),
        )
    ]


def with_differences(view: ClusterView, texts: Mapping[int, str], *, rows: int = 60) -> ClusterView:
    """Return the cluster with the differences of the members whose text is in ``texts``.

    Args:
        view: the cluster.
        texts: page id to Markdown.
        rows: how many rows each difference has at most.
    """
    original = texts.get(view.canonical.page_id)
    if original is None:
        return view
    members = [
        member
        if (text := texts.get(member.page.page_id)) is None
        else Member(member.page, member.distance, side_by_side(original, text, rows=rows))
        for member in view.members
    ]
    return ClusterView(view.size, view.canonical, tuple(members))


def _view(cluster: Cluster, limits: Limits) -> ClusterView:
    canonical = cluster.canonical
    others = (
        Member(page, hamming_distance(page.simhash, canonical.simhash))
        for page in cluster.pages
        if page is not canonical
    )
    members = heapq.nlargest(
        limits.members, others, key=lambda member: (member.distance, -member.page.page_id)
    )
    return ClusterView(len(cluster.pages), canonical, tuple(members))
