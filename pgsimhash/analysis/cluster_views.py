"""Show the biggest clusters of a collection and their differences, within limits."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pgsimhash.analysis.differences import Difference, side_by_side
from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.search.clusters import Cluster, ClusterPage


@dataclass(frozen=True, slots=True)
class Member:
    """A page of a cluster, and its difference from the canonical page."""

    page: ClusterPage
    distance: int
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster of ``size`` pages: the canonical page, and the pages farthest from it."""

    size: int
    canonical: ClusterPage
    members: tuple[Member, ...]


class Biggest(NamedTuple):
    """The biggest clusters, and the numbers of all clusters and of their pages."""

    views: list[ClusterView]
    clusters: int
    pages: int


def biggest(clusters: Iterable[Cluster], count: int, members: int) -> Biggest:
    """Return the ``count`` biggest clusters, the biggest first, with ``members`` pages of each.

    Besides the result, one cluster is in memory at a time.
    """
    heap: list[tuple[int, int, ClusterView]] = []
    number = pages = 0
    for cluster in clusters:
        number += 1
        pages += len(cluster.pages)
        rank = (len(cluster.pages), -cluster.cluster_id)
        if len(heap) < count:
            heapq.heappush(heap, (*rank, _view(cluster, members)))
        elif heap and rank > heap[0][:2]:
            heapq.heapreplace(heap, (*rank, _view(cluster, members)))
    return Biggest([view for *_, view in sorted(heap, reverse=True)], number, pages)


def shown_texts(views: Iterable[ClusterView], members: int) -> list[int]:
    """Return the ids of the pages whose texts :func:`with_differences` compares.

    They are the canonical page and the first ``members`` of each cluster.
    """
    if not members:
        return []
    return [
        page_id
        for view in views
        for page_id in (
            view.canonical.page_id,
            *(member.page.page_id for member in view.members[:members]),
        )
    ]


def with_differences(view: ClusterView, texts: Mapping[int, str], *, rows: int = 60) -> ClusterView:
    """Return the cluster with the differences of the members whose text is in ``texts``.

    Args:
        view: the cluster.
        texts: Markdown by page id.
        rows: the maximum number of rows of a difference.
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


def _view(cluster: Cluster, count: int) -> ClusterView:
    canonical = cluster.canonical
    others = (
        Member(page, hamming_distance(page.simhash, canonical.simhash))
        for page in cluster.pages
        if page is not canonical
    )
    members = heapq.nlargest(
        count, others, key=lambda member: (member.distance, -member.page.page_id)
    )
    return ClusterView(len(cluster.pages), canonical, tuple(members))
