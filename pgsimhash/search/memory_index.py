"""Look up near simhashes in memory, by the prefixes of a layout.

The method is that of the tables' indexes (Manku, Jain, Das Sarma, WWW 2007, section 3; in the batch
queries of section 4 known simhashes and queries change places). numpy processes hundreds of lookups
at once: all their probes are one array, and so are their candidates.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.bits import BITS
from pgsimhash.search.layout import DEFAULT_LAYOUT, LAYOUTS, Permutation
from pgsimhash.search.pairs import distinct

_FEW: Final = 64  # up to this many simhashes are compared one by one
_MEDIUM: Final = 1 << 19  # up to this many simhashes take narrower prefixes
_CANDIDATES: Final = 1 << 16  # candidates compared at a time, unless one query has more
_SMALL_LAYOUT: Final = LAYOUTS["16+16+16+16"]

_Numbers = NDArray[np.intp]
_Simhashes = NDArray[np.uint64]
# The indexes of queries, and the known simhashes near them: shape (n,) each.
Near = tuple[_Numbers, _Simhashes]
# A permutation, its sorted permuted simhashes, and where each prefix begins.
_Table = tuple[Permutation, _Simhashes, NDArray[np.uint32]]


class BlockIndex:
    """An index of known simhashes, for lookups of any distance up to 12 bits.

    It takes 8 bytes a simhash for each of three permutations (four if small), and up to 32 MB.
    """

    def __init__(self, simhashes: _Simhashes) -> None:
        self._known = distinct(simhashes)
        self._layout = DEFAULT_LAYOUT if len(self._known) > _MEDIUM else _SMALL_LAYOUT
        self._tables: list[_Table] = []
        if len(self._known) > _FEW:
            self._tables = [_table(one, self._known) for one in self._layout.permutations]

    def near(self, queries: _Simhashes, distance: int) -> Near:
        """Return every known simhash within ``distance`` bits of each query; none is missed.

        Pairs are distinct and in the order of the queries.
        """
        parts = [(np.empty(0, dtype=np.intp), self._known[:0])]
        if self._tables:
            for table, radius in zip(self._tables, self._layout.radii(distance), strict=True):
                if radius >= 0:
                    parts += _probe(table, queries, distance, radius)
        else:
            parts += _compare(queries, self._known, distance)
        numbers, simhashes = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((simhashes, numbers))
        numbers, simhashes = numbers[order], simhashes[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (numbers[1:] != numbers[:-1]) | (simhashes[1:] != simhashes[:-1])
        return numbers[first], simhashes[first]


def _table(permutation: Permutation, simhashes: _Simhashes) -> _Table:
    permuted = simhashes
    if permutation.number > 1:
        # The first permutation is the identity.
        permuted = permutation.permute(simhashes)
        permuted.sort()
    counts = np.bincount(_prefixes(permutation, permuted), minlength=1 << permutation.width)
    starts = np.zeros(len(counts) + 1, dtype=np.uint32)
    np.cumsum(counts, out=starts[1:])
    return permutation, permuted, starts


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
            hits = np.flatnonzero(np.bitwise_count(repeated ^ candidates) <= distance)
            first = chunk.start + part.start
            numbers = np.searchsorted(np.cumsum(of_query[part]), hits, side="right") + first
            yield numbers, permutation.restore(candidates[hits])


def _compare(queries: _Simhashes, known: _Simhashes, distance: int) -> Iterator[Near]:
    """Yield the near pairs by comparing each query with each of a few known simhashes."""
    for chunk in _cut(np.full(len(queries), len(known))):
        distances = np.bitwise_count(queries[chunk, np.newaxis] ^ known).ravel()
        # Five times as fast in one dimension.
        rows, columns = np.divmod(np.flatnonzero(distances <= distance), max(1, len(known)))
        yield rows + chunk.start, known[columns]


def _cut(sizes: _Numbers) -> Iterator[slice]:
    """Return slices of queries with bounded numbers of candidates, given those of each query."""
    pieces = np.cumsum(sizes) // _CANDIDATES
    borders = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(sizes)]
    return (slice(start, end) for start, end in pairwise(borders) if start < end)
