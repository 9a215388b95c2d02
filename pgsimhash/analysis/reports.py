"""Summarize a collection by statistics and examples.

The number of statements and the size of each result are bounded.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pgsimhash.analysis.changes import Difference, side_by_side
from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.pages.records import CollectionStatus, json_values
from pgsimhash.search.clusters import Cluster, ClusterPage, Linkage, Score, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.store import Store
from pgsimhash.store.clusters import clusters as clusters_of
from pgsimhash.store.lookups import Calls, read_status

PROBLEMS: Final = {
    "missing": "no page names a canonical URL",
    "conflicting": "pages name different canonical URLs",
    "outside": "a page names a canonical URL that is not in the cluster",
    "variants": "URLs differ only in their parameters, http, www or a slash at the end",
}
"""The problems of a cluster's canonical links, and what they mean."""

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


class CanonicalFigures(NamedTuple):
    """The number of clusters with each of the :data:`PROBLEMS`, and pages of the first of them."""

    clusters: dict[str, int]
    examples: dict[str, list[list[ClusterPage]]]


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
            "canonical_links": self.canonical_links.clusters,
            "changed": [page._asdict() for page in self.changed],
            "all_changed": self.all_changed,
        }
        return {**self.status.as_json(), "report": figures}


def report(
    store: Store,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = "earliest",
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
        links = CanonicalFigures(dict.fromkeys(PROBLEMS, 0), {problem: [] for problem in PROBLEMS})
        all_clusters = clusters_of(calls, limit, linkage, score)
        views, number, pages = _biggest(all_clusters, clusters, members, links)
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


def cluster_rows(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield JSON values for each page: its own, the cluster's and its canonical link's problems."""
    values = cluster.as_json()
    problems = {
        problem: {page.page_id for page in pages}
        for problem, pages in _canonical_problems(cluster).items()
    }
    for page, row in zip(cluster.pages, values["pages"], strict=True):
        named = [problem for problem, pages in problems.items() if page.page_id in pages]
        yield {**values, **row, "canonical_problems": " ".join(named) or None}


def _canonical_problems(cluster: Cluster) -> dict[str, list[ClusterPage]]:
    """Return the problems of a cluster, and the pages that have them."""
    linked = [page for page in cluster.pages if page.canonical_url]
    urls = {page.url for page in cluster.pages}
    spelled = defaultdict[tuple[str, str], list[ClusterPage]](list)
    for page in cluster.pages:
        spelled[_spelling(page.url)].append(page)
    problems = {
        "missing": [] if linked else list(cluster.pages),
        "conflicting": linked if len({page.canonical_url for page in linked}) > 1 else [],
        "outside": [page for page in linked if page.canonical_url not in urls],
        "variants": [page for pages in spelled.values() if len(pages) > 1 for page in pages],
    }
    return {problem: pages for problem, pages in problems.items() if pages}


def _spelling(url: str) -> tuple[str, str]:
    """Return what is left of a URL without what does not change the page on most sites."""
    try:
        parts = urlsplit(url)
    except ValueError:  # it is no URL
        return "", url
    return parts.netloc.lower().removeprefix("www."), parts.path.rstrip("/")


def _biggest(
    clusters: Iterable[Cluster], count: int, members: int, links: CanonicalFigures
) -> tuple[list[ClusterView], int, int]:
    """Return the biggest clusters and the numbers of clusters and pages; count all in ``links``."""
    heap: list[tuple[int, int, ClusterView]] = []
    number = pages = 0
    for cluster in clusters:
        for problem, examples in _canonical_problems(cluster).items():
            links.clusters[problem] += 1
            if len(links.examples[problem]) < _EXAMPLES:
                links.examples[problem].append(examples[:members])
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
