"""Find clusters whose canonical links are missing or do not agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from pgsimhash.search.clusters import Cluster, ClusterPage

PROBLEMS: Final = {
    "missing": "no page names a canonical URL",
    "conflicting": "pages name different canonical URLs",
    "outside": "a page names a canonical URL that is not in the cluster",
    "variants": "URLs differ only in their parameters, http, www or a slash at the end",
}
"""The problems of a cluster, and what they mean."""


def canonical_problems(cluster: Cluster) -> dict[str, list[ClusterPage]]:
    """Return the problems of a cluster, and the pages that have them."""
    linked = [page for page in cluster.pages if page.canonical_url]
    urls = {page.url for page in cluster.pages}
    spelled = defaultdict[tuple[str, str], list[ClusterPage]](list)
    for page in cluster.pages:
        spelled[_spelling(page.url)].append(page)
    found = {
        "missing": [] if linked else list(cluster.pages),
        "conflicting": linked if len({page.canonical_url for page in linked}) > 1 else [],
        "outside": [page for page in linked if page.canonical_url not in urls],
        "variants": [page for pages in spelled.values() if len(pages) > 1 for page in pages],
    }
    return {problem: pages for problem, pages in found.items() if pages}


def _spelling(url: str) -> tuple[str, str]:
    """Return what is left of a URL without what does not change the page on most sites."""
    try:
        parts = urlsplit(url)
    except ValueError:  # it is no URL
        return "", url
    return parts.netloc.lower().removeprefix("www."), parts.path.rstrip("/")


@dataclass(frozen=True, slots=True)
class CanonicalFigures:
    """How many clusters have a problem with canonical links, and pages of the first of them.

    Attributes:
        clusters: for each problem in :data:`PROBLEMS` the number of clusters.
        examples: for each problem the pages of a few clusters.
    """

    clusters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROBLEMS, 0))
    examples: dict[str, list[list[ClusterPage]]] = field(
        default_factory=lambda: {problem: [] for problem in PROBLEMS}
    )

    def rows(self) -> Iterator[tuple[int, str, list[list[ClusterPage]]]]:
        """Yield the number of clusters, the meaning and the examples of each problem."""
        for problem, meaning in PROBLEMS.items():
            yield self.clusters[problem], meaning, self.examples[problem]

    def watch(self, clusters: Iterable[Cluster], examples: int, members: int) -> Iterator[Cluster]:
        """Yield the clusters, and count their problems."""
        for cluster in clusters:
            for problem, pages in canonical_problems(cluster).items():
                self.clusters[problem] += 1
                if len(self.examples[problem]) < examples:
                    self.examples[problem].append(pages[:members])
            yield cluster
