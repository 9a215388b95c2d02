"""What people said about pairs of pages, over what their simhashes say.

A mark is about two URLs, so it holds for all versions of their pages, past and to come.

For verdicts: a page marked ``same`` as one that was known before it is its duplicate, at whatever
distance. A page marked ``different`` from others is compared neither with them nor with what was
found to duplicate them.

For clusters: a ``same`` mark joins the clusters of its two pages as a whole, with ``complete``
linkage too. Then ``different`` marks divide clusters, so a chain that leads from one such page to
another is cut: the marked pages, in the order in which they came, each go to the nearest part
that holds none they differ from, or begin a part of their own; every other page follows the
marked page that is nearest to it, the one that came first among equals. Pages that ``same`` marks
join within the cluster stay together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import hamming_distance
from pgsimhash.clusters import ClusterPage, cluster_simhashes
from pgsimhash.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Mark:
    """What was said about the pages at two URLs."""

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


@dataclass(frozen=True, slots=True)
class MarksOf:
    """The URLs that one URL was marked the same as, and different from, in their order."""

    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()


UNMARKED = MarksOf()


def join_marked(
    simhashes: NDArray[np.uint64],
    roots: NDArray[np.uint64],
    joined: Iterable[tuple[int, int]],
) -> NDArray[np.uint64]:
    """Return the smallest simhash of each one's cluster once the clusters of pairs are joined.

    Args:
        simhashes: distinct and ascending; shape (n,), dtype uint64.
        roots: for each the smallest simhash of its cluster, so far.
        joined: pairs of these simhashes.
    """
    pairs = np.array(list(joined), dtype=np.uint64).reshape(-1, 2)
    if not len(pairs):
        return roots
    ends = roots[np.searchsorted(simhashes, pairs)]
    block = Pairs(ends[:, 0], ends[:, 1], np.zeros(len(ends), dtype=np.uint8))
    above = cluster_simhashes(simhashes, [block])
    return above[np.searchsorted(simhashes, roots)]


def split_marked(pages: Sequence[ClusterPage], marks: Iterable[Mark]) -> list[list[ClusterPage]]:
    """Return the parts into which marks divide a cluster, each in the order of its pages.

    Args:
        pages: a cluster, in the order in which they came.
        marks: all marks; those about other pages do not matter.
    """
    urls = {page.url for page in pages}
    inside = [mark for mark in marks if mark.a in urls and mark.b in urls]
    units = _units(inside)
    apart: dict[str, set[str]] = {}
    for mark in inside:
        if not mark.same:
            one, other = units.get(mark.a, mark.a), units.get(mark.b, mark.b)
            apart.setdefault(one, set()).add(other)
            apart.setdefault(other, set()).add(one)
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
    """Return for each URL that a mark joins to another the least one of its group."""
    groups: dict[str, set[str]] = {}
    for mark in marks:
        if mark.same:
            group = groups.get(mark.a, {mark.a}) | groups.get(mark.b, {mark.b})
            groups.update(dict.fromkeys(group, group))
    return {url: min(group) for url, group in groups.items()}


def _nearest(
    page: ClusterPage, parts: Sequence[Sequence[ClusterPage]], numbers: Iterable[int]
) -> int | None:
    """Return the part with the page nearest to ``page``; among equals the first page's."""
    distances = [
        (hamming_distance(page.simhash, other.simhash), other.page_id, number)
        for number in numbers
        for other in parts[number]
    ]
    return min(distances)[2] if distances else None
