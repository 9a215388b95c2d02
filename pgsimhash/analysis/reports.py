"""Summarize a collection by statistics and examples.

The number of statements and the size of each result are bounded.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pgsimhash.analysis.canonical_links import PROBLEMS, canonical_problems
from pgsimhash.analysis.changes import Difference, side_by_side
from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.pages.records import CollectionStatus, json_values
from pgsimhash.search.clusters import CANONICAL, Cluster, ClusterPage, Linkage, Score, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.store import Store
from pgsimhash.store.clusters import clusters as clusters_of
from pgsimhash.store.lookups import Calls, read_status

_EXAMPLES: Final = 5  # clusters with a problem of canonical links that are shown
_TEXTS: Final = 3  # of a cluster that are compared with the canonical page
_CHARS: Final = 20_000  # of a text that are compared
_MANY: Final = 10  # with fewer duplicates, their titles say little about a host
_ROWS: Final = 60  # of a difference that are shown


class HostFigures(NamedTuple):
    """The numbers of pages and duplicates of a host, which is empty for URLs without a host.

    ``duplicate_titles`` counts the titles of its duplicates that their originals do not have.
    """

    host: str
    pages: int
    duplicates: int
    duplicate_titles: int
    duplicate_bytes: int

    @property
    def template_decides(self) -> bool:
        """Whether most duplicates have titles of their own, so they may match by their template."""
        return self.duplicates >= _MANY and self.duplicate_titles > 0.5 * self.duplicates


class ChangedPage(NamedTuple):
    """A page with several versions, whose content changed by ``bits_moved`` in total."""

    url: str
    bits_moved: int
    versions: int


class Member(NamedTuple):
    """A page of a cluster, and its difference from the canonical page."""

    page: ClusterPage
    distance: int
    difference: Difference | None = None


class ClusterView(NamedTuple):
    """A cluster of ``size`` pages: the canonical page, and the pages farthest from it."""

    size: int
    canonical: ClusterPage
    members: tuple[Member, ...]


class LinkingPage(NamedTuple):
    """A page, and the URL that it names as canonical, if any."""

    url: str
    canonical_url: str | None


class CanonicalFigures(NamedTuple):
    """The number of pages with each of the :data:`PROBLEMS`, and the first of them."""

    pages: dict[str, int]
    examples: dict[str, list[LinkingPage]]
    chained: set[int]

    def add(self, cluster: Cluster, distance: int) -> None:
        """Count the pages of a cluster; those with other content are counted by the database."""
        problems = canonical_problems(cluster, distance)
        others = {page.page_id for page in problems.pop("other_content", ())}
        for problem, pages in problems.items():
            self.pages[problem] += len(pages)
            room = _EXAMPLES - len(self.examples[problem])
            self.examples[problem] += [LinkingPage(p.url, p.canonical_url) for p in pages[:room]]
        # These name a page of their cluster, but a far one: a chain joins them.
        self.chained.update(
            page.page_id
            for page in cluster.pages
            if (page.canonical_distance or 0) > distance and page.page_id not in others
        )

    def add_others(self, calls: Calls, distance: int) -> None:
        """Count the pages that name a page of other content, in a cluster or not."""
        most = _EXAMPLES + len(self.chained)
        rows = calls.fetch("canonical_elsewhere", distance=distance, most=most)
        if rows:
            self.pages["other_content"] = rows[0][-1] - len(self.chained)
        found = [LinkingPage(*row[1:3]) for row in rows if row[0] not in self.chained]
        self.examples["other_content"] = found[:_EXAMPLES]


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
    canonical_links: CanonicalFigures
    changed: Sequence[ChangedPage]
    all_changed: int

    def __repr__(self) -> str:
        duplicates = f"{self.clustered_duplicates:,} duplicates in {self.all_clusters:,} clusters"
        return f"<{self.status.name}: {self.status.pages:,} pages, {duplicates}>"

    @property
    def clustered_duplicates(self) -> int:
        """The number of duplicates in clusters: all pages except the canonical ones."""
        return self.clustered_pages - self.all_clusters

    def as_json(self) -> dict[str, Any]:
        """Return the collection's counters as JSON values, and the other figures as "report"."""
        figures = {
            **json_values(self, "made_at", "distance", "linkage"),
            "distances": {str(bits): pages for bits, pages in self.distances.items()},
            "hosts": [
                {**host._asdict(), "template_decides": host.template_decides} for host in self.hosts
            ],
            "all_hosts": self.all_hosts,
            "clusters": [
                {"pages": view.size, "canonical": view.canonical.url} for view in self.clusters
            ],
            "all_clusters": self.all_clusters,
            "clustered_pages": self.clustered_pages,
            "clustered_duplicates": self.clustered_duplicates,
            "canonical_links": self.canonical_links.pages,
            "changed": [page._asdict() for page in self.changed],
            "all_changed": self.all_changed,
        }
        return {**self.status.as_json(), "report": figures}


def report(
    store: Store,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = CANONICAL,
    clusters: int = 20,
    members: int = 10,
    hosts: int = 30,
    urls: int = 10,
) -> Report:
    """Return the summary of a collection: savings, clusters, distances, hosts, changes.

    :func:`pgsimhash.html_reports.report_page` renders it as an HTML page. It needs the memory of
    ``Store.clusters`` and of the biggest cluster. Pages that are written meanwhile may be in some
    figures and not in others.

    ``distance``, ``linkage`` and ``canonical`` are as for ``Store.clusters``. Shown are the biggest
    ``clusters``, each with the ``members`` farthest from its canonical page, of which the first
    three are compared with it; the ``hosts`` with the most duplicates; and the ``urls`` that
    changed most.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, or the rule or linkage is unknown.
    """
    score = scorer(canonical)
    with store._session.calls_to_read(one_transaction=True) as calls:
        limit = calls.collection.checked_distance(distance, DISTANCE_MAX)
        (status,) = read_status(calls.connection, calls.collection.name)
        # One row more than none says how many there are.
        ((distances, *tables),) = calls.fetch("report", hosts=max(hosts, 1), urls=max(urls, 1))
        by_host, changed = ([tuple(row.values()) for row in table] for table in tables)
        counts = dict.fromkeys(PROBLEMS, 0)
        links = CanonicalFigures(counts, {problem: [] for problem in PROBLEMS}, set())
        all_clusters = clusters_of(calls, limit, linkage, score)
        views, number, pages = _biggest(all_clusters, limit, clusters, members, links)
        links.add_others(calls, limit)
        if members:
            # One cluster after the other, to hold few whole texts at a time.
            views = [_with_differences(calls, view) for view in views]
    return Report(
        status=status,
        made_at=datetime.now(UTC),
        distance=limit,
        linkage=linkage,
        distances={row["distance"]: row["pages"] for row in distances},
        hosts=[HostFigures(*row[:-1]) for row in by_host[:hosts]],
        all_hosts=by_host[0][-1] if by_host else 0,
        clusters=views,
        all_clusters=number,
        clustered_pages=pages,
        canonical_links=links,
        changed=[ChangedPage(*row[:-1]) for row in changed[:urls]],
        all_changed=changed[0][-1] if changed else 0,
    )


def _biggest(
    clusters: Iterable[Cluster], distance: int, count: int, members: int, links: CanonicalFigures
) -> tuple[list[ClusterView], int, int]:
    """Return the biggest clusters and the numbers of clusters and pages; count all in ``links``."""
    heap: list[tuple[int, int, ClusterView]] = []
    number = pages = 0
    for cluster in clusters:
        links.add(cluster, distance)
        number += 1
        pages += len(cluster.pages)
        rank = (len(cluster.pages), -cluster.cluster_id)
        if len(heap) < count:
            heapq.heappush(heap, (*rank, _view(cluster, members)))
        elif heap and rank > heap[0][:2]:
            heapq.heapreplace(heap, (*rank, _view(cluster, members)))
    return [view for *_, view in sorted(heap, reverse=True)], number, pages


def _view(cluster: Cluster, count: int) -> ClusterView:
    canonical = cluster.canonical
    others = (
        Member(page, hamming_distance(page.simhash, canonical.simhash))
        for page in cluster.pages
        if page is not canonical
    )
    farthest = heapq.nlargest(count, others, key=lambda one: (one.distance, -one.page.page_id))
    return ClusterView(len(cluster.pages), canonical, tuple(farthest))


def _with_differences(calls: Calls, view: ClusterView) -> ClusterView:
    """Return the cluster with the differences of the first members, if Markdown is kept."""
    urls = [view.canonical.url, *(member.page.url for member in view.members[:_TEXTS])]
    pages = calls.stored_pages(urls, ("url", "markdown"))
    kept = {page["url"]: page["markdown"] for page in pages if page["markdown"] is not None}
    original = kept.get(view.canonical.url)
    members = list(view.members)
    for place, member in enumerate(members):
        text = kept.get(member.page.url)
        if original is not None and text is not None:
            difference = side_by_side(original[:_CHARS], text[:_CHARS], rows=_ROWS)
            members[place] = member._replace(difference=difference)
    return view._replace(members=tuple(members))
