"""Simhashes in memory, found by the prefixes of a layout, as a table's indexes find them.

What PostgreSQL does for one lookup numpy does for hundreds together: the probes of all of them are
one array, and so are their candidates. (Manku, Jain, Das Sarma, WWW 2007, section 3; the batch
queries of section 4 have the file of known simhashes where this has the queries.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import BITS, check_distance, check_simhashes, hamming_distances, near_pairs
from pgsimhash.layout import DEFAULT_LAYOUT, LAYOUTS, Layout
from pgsimhash.permutation import Permutation

__all__ = ["BlockIndex"]

_FRESH: Final = 1024
"""So many simhashes are compared one by one before they are sorted."""

_FEW: Final = 1 << 14
_SOME: Final = 1 << 19
_SHARE: Final = 8
"""What is merged into all others is at least one in so many of them."""

_ROOM: Final = 1 << 16
"""How many candidates are compared at once, unless one query has more."""

_SMALL_LAYOUT: Final = LAYOUTS["16+16+16+16"]

_Numbers = NDArray[np.intp]
_Simhashes = NDArray[np.uint64]


class Near(NamedTuple):
    """The pairs of queries and known simhashes that are near: shape (n,) each.

    ``queries`` holds the index of the query (intp), ``simhashes`` the known simhash (uint64). Each
    pair is there once, in the order of the queries.
    """

    queries: _Numbers
    simhashes: _Simhashes


class BlockIndex:
    """Known simhashes, for lookups of any distance up to 12 bits; more can be added.

    It takes 8 bytes a simhash for each of three permutations, of four where there are few, and at
    most 96 MB beside them.

    Args:
        simhashes: what is known, shape (n,), dtype uint64, in any order.

    Raises:
        ArgumentError: the array has another shape or dtype.
    """

    def __init__(self, simhashes: _Simhashes) -> None:
        check_simhashes(simhashes)
        self._fresh = np.empty(0, dtype=np.uint64)
        # The largest first. Merging all for every few that come would cost more than looking up.
        self._levels = [_level(_distinct(simhashes)), *map(_level, [self._fresh] * 2)]

    def __len__(self) -> int:
        """Return how many simhashes it holds; what came twice may count twice."""
        return len(self._fresh) + sum(len(level.simhashes) for level in self._levels)

    def add(self, simhashes: _Simhashes) -> None:
        """Add simhashes: shape (n,), dtype uint64; some may be there already.

        Raises:
            ArgumentError: the array has another shape or dtype.
        """
        check_simhashes(simhashes)
        self._fresh = np.concatenate([self._fresh, simhashes])
        if len(self._fresh) <= _FRESH:
            return
        merged, self._fresh = self._fresh, self._fresh[:0]
        most = (None, max(_SOME, len(self._levels[0].simhashes) // _SHARE), _FEW)
        for at in (2, 1, 0):
            merged = _distinct(np.concatenate([self._levels[at].simhashes, merged]))
            limit = most[at]
            fits = limit is None or len(merged) <= limit
            self._levels[at] = _level(merged if fits else merged[:0])
            if fits:
                return

    def near(self, queries: _Simhashes, distance: int) -> Near:
        """Return every known simhash within ``distance`` bits of each query. Exact: none is missed.

        Raises:
            ArgumentError: ``distance`` is not 0 to 12, or the array has another shape or dtype.
        """
        check_simhashes(queries)
        check_distance(distance, DEFAULT_LAYOUT.distances[-1])
        found = [_compare(queries, self._fresh, distance)]
        found += [part for level in self._levels for part in level.near(queries, distance)]
        numbers, simhashes = map(np.concatenate, zip(*found, strict=True))
        order = np.lexsort((simhashes, numbers))
        pairs = np.stack([numbers[order].astype(np.uint64), simhashes[order]])
        first = np.ones(len(order), dtype=bool)
        first[1:] = (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)
        return Near(numbers[order][first], simhashes[order][first])


class _Table(NamedTuple):
    """A permutation with its permuted simhashes in order, and where each prefix begins."""

    permutation: Permutation
    permuted: _Simhashes
    starts: NDArray[np.uint32]


class _Level(NamedTuple):
    """Some simhashes, ascending, and their tables."""

    simhashes: _Simhashes
    layout: Layout
    tables: tuple[_Table, ...]

    def near(self, queries: _Simhashes, distance: int) -> Iterator[Near]:
        radii = self.layout.radii(distance) if len(self.simhashes) else ()
        for table, radius in zip(self.tables, radii, strict=False):
            if radius >= 0:
                yield from _probe(table, queries, distance, radius)


def _distinct(simhashes: _Simhashes) -> _Simhashes:
    """Return each once, ascending; of so many numpy's own ``unique`` takes four times as long."""
    ascending = np.sort(simhashes)
    first = np.ones(len(ascending), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]


def _level(simhashes: _Simhashes) -> _Level:
    layout = DEFAULT_LAYOUT if len(simhashes) > _SOME else _SMALL_LAYOUT
    return _Level(simhashes, layout, tuple(_table(one, simhashes) for one in layout.permutations))


def _table(permutation: Permutation, simhashes: _Simhashes) -> _Table:
    permuted = simhashes
    if permutation.number > 1:
        # The first one leaves the blocks as they are.
        permuted = permutation.permute(simhashes)
        permuted.sort()
    counts = np.bincount(_prefixes(permutation, permuted), minlength=1 << permutation.width)
    starts = np.zeros(len(counts) + 1, dtype=np.uint32)
    np.cumsum(counts, out=starts[1:])
    return _Table(permutation, permuted, starts)


def _prefixes(permutation: Permutation, permuted: _Simhashes) -> _Numbers:
    return (permuted >> np.uint64(BITS - permutation.width)).astype(np.intp)


def _probe(table: _Table, queries: _Simhashes, distance: int, radius: int) -> Iterator[Near]:
    """Yield what is near by the probes of one permutation, for some queries at a time."""
    permutation, permuted, starts = table
    flips = np.array(permutation.flips(radius), dtype=np.intp)
    sought = permutation.permute(queries)
    expected = len(flips) * max(1, len(permuted) >> permutation.width)
    for some in _cut(np.full(len(queries), expected)):
        probes = _prefixes(permutation, sought[some])[:, np.newaxis] ^ flips
        begins = starts.take(probes, mode="clip")
        counts = starts[1:].take(probes, mode="clip") - begins
        of_query = counts.sum(axis=1, dtype=np.intp)
        # Prefixes that many simhashes share: their candidates need no more room than others.
        for part in _cut(of_query):
            sizes = counts[part].ravel()
            # Of what is true or not numpy finds it several times as fast as of numbers.
            filled = np.flatnonzero(sizes != 0)
            sizes = sizes[filled]
            ends = np.cumsum(sizes, dtype=np.intp)
            places = np.repeat(begins[part].ravel()[filled] - (ends - sizes), sizes)
            places += np.arange(len(places))
            candidates = permuted.take(places, mode="clip")
            asked = np.repeat(sought[some][part], of_query[part])
            hits = np.flatnonzero(hamming_distances(asked, candidates) <= distance)
            first = some.start + part.start
            numbers = np.searchsorted(np.cumsum(of_query[part]), hits, side="right") + first
            yield Near(numbers, permutation.restore(candidates[hits]))


def _compare(queries: _Simhashes, known: _Simhashes, distance: int) -> Near:
    """Return what is near of a few, all of which are candidates."""
    numbers, places = [], []
    for some in _cut(np.full(len(queries), len(known))):
        rows, columns, _ = near_pairs(queries[some], known, distance)
        numbers.append(rows + some.start)
        places.append(columns)
    if not numbers:
        return Near(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.uint64))
    return Near(np.concatenate(numbers), known[np.concatenate(places)])


def _cut(sizes: _Numbers) -> Iterator[slice]:
    """Cut a row of queries, with their numbers of candidates, into pieces of bounded size."""
    pieces = np.cumsum(sizes) // _ROOM
    borders = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(sizes)]
    return (slice(start, end) for start, end in pairwise(borders) if start < end)
