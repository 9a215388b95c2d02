"""Apply people's marks on pairs of pages, which override simhashes.

A mark is about two URLs, so it applies to all past and future versions of their pages. ``same`` is
a must-link, ``different`` a cannot-link.

Verdicts: a page marked ``same`` as a known page is its duplicate, at any distance. A page marked
``different`` from others is compared neither with them nor with their duplicates. Setting or
removing a mark decides the two pages again.

Clusters: a ``same`` mark joins the clusters of its two pages, with ``complete`` linkage too. Then
``different`` marks split clusters. Each marked page, in the order of page ids, goes to the nearest
part without a page that it differs from, or begins a part. Every other page follows the nearest
marked page; among equals the one stored first. Pages that ``same`` marks join within the cluster
stay together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.search.clusters import ClusterPage, cluster_simhashes
from pgsimhash.search.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on the pages at two URLs."""

    a: str
    b: str
    same: bool
    marked_at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "a": self.a,
            "b": self.b,
            "mark": "same" if self.same else "different",
            "marked_at": self.marked_at.isoformat(),
        }


def join_marked(
    simhashes: NDArray[np.uint64], roots: NDArray[np.uint64], joined: Iterable[tuple[int, int]]
) -> NDArray[np.uint64]:
    """Return the smallest simhash of each simhash's cluster, after joining the clusters of pairs.

    Args:
        simhashes: distinct and ascending; shape (n,), dtype uint64.
        roots: the smallest simhash of each one's cluster before (shape (n,), dtype uint64).
        joined: pairs of these simhashes.
    """
    pairs = np.array(list(joined), dtype=np.uint64).reshape(-1, 2)
    if not len(pairs):
        return roots
    ends = roots[np.searchsorted(simhashes, pairs)]
    links = Pairs(ends[:, 0], ends[:, 1], np.zeros(len(ends), dtype=np.uint8))
    new_roots = cluster_simhashes(simhashes, [links])
    return new_roots[np.searchsorted(simhashes, roots)]


def split_marked(pages: Sequence[ClusterPage], marks: Iterable[Mark]) -> list[list[ClusterPage]]:
    """Return the parts into which marks split a cluster, each in the order of page ids.

    Args:
        pages: a cluster, in the order of page ids.
        marks: all marks; those on other pages are ignored.
    """
    urls = {page.url for page in pages}
    inside = [mark for mark in marks if mark.a in urls and mark.b in urls]
    units = _units(inside)
    apart: dict[str, set[str]] = {}
    for mark in inside:
        if not mark.same:
            a, b = units.get(mark.a, mark.a), units.get(mark.b, mark.b)
            apart.setdefault(a, set()).add(b)
            apart.setdefault(b, set()).add(a)
    if not apart:
        return [list(pages)]
    parts: list[list[ClusterPage]] = []
    place: dict[str, int] = {}
    for page in pages:
        unit = units.get(page.url, page.url)
        if unit in apart and unit not in place:
            allowed = [
                number
                for number in range(len(parts))
                if all(place.get(other) != number for other in apart[unit])
            ]
            nearest = _nearest(page, parts, allowed)
            if nearest is None:
                nearest = len(parts)
                parts.append([])
            place[unit] = nearest
        if unit in apart:
            parts[place[unit]].append(page)
    seeds = [list(part) for part in parts]
    for page in pages:
        unit = units.get(page.url, page.url)
        if unit not in apart:
            nearest = place.setdefault(unit, _nearest(page, seeds, range(len(seeds))) or 0)
            parts[nearest].append(page)
    return [sorted(part, key=lambda page: page.page_id) for part in parts]


def _units(marks: Iterable[Mark]) -> dict[str, str]:
    """Return the least URL of the group of each URL with a ``same`` mark."""
    groups: dict[str, set[str]] = {}
    for mark in marks:
        if mark.same:
            group = groups.get(mark.a, {mark.a}) | groups.get(mark.b, {mark.b})
            groups.update(dict.fromkeys(group, group))
    return {url: min(group) for url, group in groups.items()}


def _nearest(
    page: ClusterPage, parts: Sequence[Sequence[ClusterPage]], numbers: Iterable[int]
) -> int | None:
    """Return the part with the page nearest to ``page``; among equals the lowest page id."""
    distances = [
        (hamming_distance(page.simhash, other.simhash), other.page_id, number)
        for number in numbers
        for other in parts[number]
    ]
    return min(distances)[2] if distances else None
