"""Look up near simhashes in memory, by the prefixes of a layout.

The method is that of the tables' indexes (Manku, Jain, Das Sarma, WWW 2007, section 3; in the batch
queries of section 4 known simhashes and queries change places). numpy processes hundreds of lookups
at once: all their probes are one array, and so are their candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.bits import BITS, as_simhashes, check_distance, hamming_distances, near_pairs
from pgsimhash.search.layout import DEFAULT_LAYOUT, LAYOUTS, Layout
from pgsimhash.search.pairs import distinct
from pgsimhash.search.permutation import Permutation

__all__ = ["BlockIndex"]

_FRESH: Final = 1024
"""Up to this many simhashes are compared one by one, before they are sorted into a level."""

_SMALL: Final = 1 << 14
_MEDIUM: Final = 1 << 19
_SHARE: Final = 8
"""The medium level may grow to 1/8 of the largest before it is merged into it."""

_CANDIDATES: Final = 1 << 16
"""How many candidates are compared at a time, unless one query has more."""

_SMALL_LAYOUT: Final = LAYOUTS["16+16+16+16"]

_Numbers = NDArray[np.intp]
_Simhashes = NDArray[np.uint64]


class Near(NamedTuple):
    """The near pairs of queries and known simhashes: shape (n,) each.

    ``queries`` holds the index of the query (intp), ``simhashes`` the known simhash (uint64). Pairs
    are distinct and in the order of the queries.
    """

    queries: _Numbers
    simhashes: _Simhashes


class BlockIndex:
    """An index of known simhashes, for lookups of any distance up to 12 bits; it can grow.

    It takes 8 bytes a simhash for each of three permutations (four if it is small), plus at most
    96 MB.
    """

    def __init__(self, simhashes: _Simhashes) -> None:
        simhashes = as_simhashes(simhashes)
        self._fresh = np.empty(0, dtype=np.uint64)
        # The largest first: to merge a few new simhashes into all would cost more than lookups.
        self._levels = [_level(distinct(simhashes)), *map(_level, [self._fresh] * 2)]

    def __len__(self) -> int:
        """Return the number of simhashes; one that was added twice may count twice."""
        return len(self._fresh) + sum(len(level.simhashes) for level in self._levels)

    def add(self, simhashes: _Simhashes) -> None:
        """Add simhashes: shape (n,), dtype uint64; known ones are allowed."""
        simhashes = as_simhashes(simhashes)
        self._fresh = np.concatenate([self._fresh, simhashes])
        if len(self._fresh) <= _FRESH:
            return
        merged, self._fresh = self._fresh, self._fresh[:0]
        limits = (None, max(_MEDIUM, len(self._levels[0].simhashes) // _SHARE), _SMALL)
        for at in (2, 1, 0):
            merged = distinct(np.concatenate([self._levels[at].simhashes, merged]))
            limit = limits[at]
            fits = limit is None or len(merged) <= limit
            self._levels[at] = _level(merged if fits else merged[:0])
            if fits:
                return

    def near(self, queries: _Simhashes, distance: int) -> Near:
        """Return every known simhash within ``distance`` bits of each query; none is missed."""
        queries = as_simhashes(queries)
        check_distance(distance, DEFAULT_LAYOUT.distances[-1])
        parts = [_compare(queries, self._fresh, distance)]
        parts += [part for level in self._levels for part in level.near(queries, distance)]
        numbers, simhashes = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((simhashes, numbers))
        pairs = np.stack([numbers[order].astype(np.uint64), simhashes[order]])
        first = np.ones(len(order), dtype=bool)
        first[1:] = (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)
        return Near(numbers[order][first], simhashes[order][first])


class _Table(NamedTuple):
    """A permutation, its sorted permuted simhashes, and where each prefix begins."""

    permutation: Permutation
    permuted: _Simhashes
    starts: NDArray[np.uint32]


class _Level(NamedTuple):
    """A part of the simhashes, ascending, and their tables."""

    simhashes: _Simhashes
    layout: Layout
    tables: tuple[_Table, ...]

    def near(self, queries: _Simhashes, distance: int) -> Iterator[Near]:
        radii = self.layout.radii(distance) if len(self.simhashes) else ()
        for table, radius in zip(self.tables, radii, strict=False):
            if radius >= 0:
                yield from _probe(table, queries, distance, radius)


def _level(simhashes: _Simhashes) -> _Level:
    layout = DEFAULT_LAYOUT if len(simhashes) > _MEDIUM else _SMALL_LAYOUT
    tables = tuple(_table(permutation, simhashes) for permutation in layout.permutations)
    return _Level(simhashes, layout, tables)


def _table(permutation: Permutation, simhashes: _Simhashes) -> _Table:
    permuted = simhashes
    if permutation.number > 1:
        # The first permutation is the identity.
        permuted = permutation.permute(simhashes)
        permuted.sort()
    counts = np.bincount(_prefixes(permutation, permuted), minlength=1 << permutation.width)
    starts = np.zeros(len(counts) + 1, dtype=np.uint32)
    np.cumsum(counts, out=starts[1:])
    return _Table(permutation, permuted, starts)


def _prefixes(permutation: Permutation, permuted: _Simhashes) -> _Numbers:
    return (permuted >> np.uint64(BITS - permutation.width)).astype(np.intp)


def _probe(table: _Table, queries: _Simhashes, distance: int, radius: int) -> Iterator[Near]:
    """Yield the near pairs by the probes of one permutation, for some queries at a time."""
    permutation, permuted, starts = table
    flips = np.array(permutation.flips(radius), dtype=np.intp)
    permuted_queries = permutation.permute(queries)
    expected = len(flips) * max(1, len(permuted) >> permutation.width)
    for chunk in _cut(np.full(len(queries), expected)):
        probes = _prefixes(permutation, permuted_queries[chunk])[:, np.newaxis] ^ flips
        begins = starts.take(probes, mode="clip")
        counts = starts[1:].take(probes, mode="clip") - begins
        of_query = counts.sum(axis=1, dtype=np.intp)
        # Cut again by the actual counts: many simhashes may share a prefix.
        for part in _cut(of_query):
            sizes = counts[part].ravel()
            # flatnonzero is several times as fast for booleans as for numbers.
            filled = np.flatnonzero(sizes != 0)
            sizes = sizes[filled]
            ends = np.cumsum(sizes, dtype=np.intp)
            places = np.repeat(begins[part].ravel()[filled] - (ends - sizes), sizes)
            places += np.arange(len(places))
            candidates = permuted.take(places, mode="clip")
            repeated = np.repeat(permuted_queries[chunk][part], of_query[part])
            hits = np.flatnonzero(hamming_distances(repeated, candidates) <= distance)
            first = chunk.start + part.start
            numbers = np.searchsorted(np.cumsum(of_query[part]), hits, side="right") + first
            yield Near(numbers, permutation.restore(candidates[hits]))


def _compare(queries: _Simhashes, known: _Simhashes, distance: int) -> Near:
    """Return the near pairs by comparing each query with each of a few known simhashes."""
    numbers, places = [], []
    for chunk in _cut(np.full(len(queries), len(known))):
        rows, columns, _ = near_pairs(queries[chunk], known, distance)
        numbers.append(rows + chunk.start)
        places.append(columns)
    if not numbers:
        return Near(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.uint64))
    return Near(np.concatenate(numbers), known[np.concatenate(places)])


def _cut(sizes: _Numbers) -> Iterator[slice]:
    """Return slices of queries with bounded numbers of candidates, given those of each query."""
    pieces = np.cumsum(sizes) // _CANDIDATES
    borders = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(sizes)]
    return (slice(start, end) for start, end in pairwise(borders) if start < end)
