"""Group near-duplicates into clusters, and choose the canonical page of each.

``single`` linkage takes the connected components of the graph of pairs. There a chain of small
changes can join pages with little in common. ``complete`` linkage keeps all members of a cluster
within the distance of each other (Sørensen 1948; Manning, Raghavan, Schütze, "Introduction to
Information Retrieval", 2008, section 17.2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.bits import NEAR_MAX, format_simhash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pgsimhash.search.pairs import Pairs

Linkage = Literal["single", "complete"]

LINKAGES: Final[tuple[Linkage, ...]] = ("single", "complete")


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """The current version of a page, as a member of a cluster.

    ``tokens`` are the words of its main content. ``canonical_distance`` are the bits to the page
    that its ``rel=canonical`` names, if that is another stored one. ``noindex`` and ``alternates``
    are as for ``PageFields``. ``links`` counts the pages of the cluster that name it as canonical.
    """

    page_id: int
    url: str
    simhash: int
    fetched_at: datetime
    title: str | None
    features: int | None
    canonical_url: str | None = None
    tokens: int | None = None
    canonical_distance: int | None = None
    noindex: bool = False
    alternates: str | None = None
    signature: int | None = None
    links: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Near-duplicate pages, in the order of their ids.

    ``cluster_id`` is the ``page_id`` of the first page; ``canonical`` is one of ``pages``.
    """

    cluster_id: int
    canonical: ClusterPage
    pages: tuple[ClusterPage, ...]

    def __repr__(self) -> str:
        return f"<cluster {self.cluster_id}: {len(self.pages):,} pages like {self.canonical.url}>"

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, simhashes as 16 hex digits."""
        return {
            "cluster": self.cluster_id,
            "canonical": self.canonical.url,
            "pages": [
                {
                    "url": page.url,
                    "simhash": format_simhash(page.simhash),
                    "title": page.title,
                    "canonical_url": page.canonical_url,
                }
                for page in self.pages
            ],
        }


# The page with the largest score is the canonical one; among equals the one stored first.
Score = Callable[[ClusterPage], Any]

# Addresses of copies: parameters, sessions, versions for printers and telephones.
_COPY: Final = re.compile(
    r"[?;]|//(?:amp|m|mobile|print)\.|/(?:amp|print|printable|printer)(?:[./]|$)", re.IGNORECASE
)

RULES: Final[dict[str, Score]] = {
    "linked": lambda page: page.links,
    "indexed": lambda page: not page.noindex,
    "earliest": lambda page: -page.page_id,
    "newest": lambda page: page.page_id,
    "shortest-url": lambda page: -len(page.url.replace("://www.", "://", 1)),
    "https": lambda page: page.url.startswith("https://"),
    "plain-url": lambda page: _COPY.search(page.url) is None,
    "longest": lambda page: page.features or 0,
}
"""The rules for the canonical page, by name.

``linked`` takes the page that most canonical links of the cluster name, ``indexed`` one without
noindex, ``shortest-url`` does not count ``www.``, ``plain-url`` takes one without parameters and
not for printers, ``longest`` the page with most features.
"""

CANONICAL: Final = ("linked", "indexed", "https", "plain-url", "shortest-url")
"""The default rules."""


def scorer(rule: str | Score | Sequence[str]) -> Score:
    """Return the score by a rule, by several that each break the ties of those before, or yours."""
    if callable(rule):
        return rule
    names = list(rule) if isinstance(rule, Sequence) and not isinstance(rule, str) else [rule]
    unknown = [name for name in names if not isinstance(name, str) or name not in RULES]
    if unknown or not names:
        raise invalid_argument(
            f"there is no rule {unknown[0] if unknown else ''!r} for the canonical page; "
            f"there are: {', '.join(RULES)}"
        )
    scores = [RULES[name] for name in names]
    return lambda page: tuple(score(page) for score in scores)


def check_linkage(linkage: str) -> None:
    """Raise if the linkage is unknown."""
    if not isinstance(linkage, str) or linkage not in LINKAGES:
        raise invalid_argument(f"a linkage is one of {', '.join(LINKAGES)}, not {linkage!r}")


def make_cluster(pages: Sequence[ClusterPage], score: Score) -> Cluster:
    """Return the cluster of ``pages``, given in the order of their ids."""
    links = Counter(page.canonical_url for page in pages)
    counted = [
        replace(page, links=links[page.url]) if page.url in links else page for page in pages
    ]
    canonical = max(counted, key=lambda page: (score(page), -page.page_id))
    return Cluster(pages[0].page_id, canonical, tuple(counted))


def cluster_simhashes(
    simhashes: NDArray[np.uint64],
    pairs: Iterable[Pairs],
    linkage: Linkage = "single",
    distance: int = NEAR_MAX,
) -> NDArray[np.uint64]:
    """Return for each of the ascending, distinct simhashes the smallest of its cluster.

    Memory is linear in the number of simhashes; ``complete`` linkage also keeps all pairs.
    """
    check_linkage(linkage)
    if linkage == "single":
        return simhashes[_components(simhashes, pairs)]
    return simhashes[_complete(simhashes, pairs, distance)]


def _components(simhashes: NDArray[np.uint64], pairs: Iterable[Pairs]) -> NDArray[np.int64]:
    """Union-find on arrays: hook the larger root to the smaller, then halve all paths."""
    import numpy as np

    parent = np.arange(len(simhashes), dtype=np.int64)
    for chunk in pairs:
        left = np.searchsorted(simhashes, chunk.low)
        right = np.searchsorted(simhashes, chunk.high)
        while len(left):
            left, right = _roots(parent, left), _roots(parent, right)
            apart = left != right
            left, right = left[apart], right[apart]
            np.minimum.at(parent, np.maximum(left, right), np.minimum(left, right))
    return _roots(parent, np.arange(len(simhashes), dtype=np.int64))


def _roots(parent: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    roots = parent[nodes]
    while ((above := parent[roots]) != roots).any():
        roots = above
    parent[nodes] = roots
    return roots


def _complete(
    simhashes: NDArray[np.uint64], pairs: Iterable[Pairs], distance: int
) -> NDArray[np.int64]:
    """Join the nearest clusters first, if all their members are within ``distance``."""
    import numpy as np

    chunks = list(pairs)
    roots = np.arange(len(simhashes), dtype=np.int64)
    if not chunks:
        return roots
    low, high, distances = (np.concatenate(part) for part in zip(*chunks, strict=True))
    order = np.lexsort((high, low, distances))
    lower = np.searchsorted(simhashes, low[order]).tolist()
    higher = np.searchsorted(simhashes, high[order]).tolist()
    members: dict[int, NDArray[np.int64]] = {}
    for a, b in zip(lower, higher, strict=True):
        left, right = int(roots[a]), int(roots[b])
        if left == right:
            continue
        first = members.get(left, np.array([left]))
        second = members.get(right, np.array([right]))
        between = np.bitwise_count(simhashes[first][:, np.newaxis] ^ simhashes[second])
        if between.max() > distance:
            continue
        root, gone = min(left, right), max(left, right)
        members[root] = np.concatenate([first, second])
        members.pop(gone, None)
        roots[members[root]] = root
    return roots
