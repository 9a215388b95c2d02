"""All near-copies within an array of simhashes, in memory.

The paper's batch method (Manku, Jain, Das Sarma, WWW 2007, section 4) turned inside out: for each
permutation the simhashes are permuted and sorted, so that those with equal prefixes stand side
by side, and neighbours are compared at growing offsets while their prefixes agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import check_distance, check_simhashes, hamming_distances
from pgsimhash.layout import Layout, Permutation

_CHUNK: Final = 1 << 15
"""How many simhashes are worked on at a time: they stay in the processor's cache."""


class Pairs(NamedTuple):
    """Pairs of distinct simhashes, ``low[i] < high[i]``, and their distances; all shape (n,)."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    distances: NDArray[np.uint8]


def find_pairs(simhashes: NDArray[np.uint64], distance: int = 3) -> Pairs:
    """Return every pair of distinct simhashes within ``distance`` bits, each once, in order.

    Exact. Equal simhashes are one simhash here. Beside the input it holds a sorted copy and one
    permuted copy of it (16 bytes a simhash) and the pairs found.

    Args:
        simhashes: shape (n,), dtype uint64.
        distance: the largest number of differing bits, 0 to 8.

    Raises:
        InvalidSimhashError: the array has another shape or dtype.
        InvalidDistanceError: ``distance`` is not in 0..8.
    """
    values = _distinct(check_simhashes(simhashes))
    layout = _layout_for(check_distance(distance), len(simhashes))
    found = [
        pairs
        for permutation in layout.permutations
        for pairs in _pairs_by(permutation, layout, values, distance)
    ]
    if not found:
        empty = np.empty(0, dtype=np.uint64)
        return Pairs(empty, empty, np.empty(0, dtype=np.uint8))
    one, other = (np.concatenate(side) for side in zip(*found, strict=True))
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    return Pairs(low, high, hamming_distances(low, high))


def _layout_for(distance: int, count: int) -> Layout:
    """Choose how many blocks: enough for groups of few, no more, for each costs a sort."""
    # With m = distance + r blocks, r of them are always equal. More blocks in the prefix mean
    # smaller groups but more permutations.
    wanted = max(1, int(count).bit_length() - 2)
    leading = 1
    while leading < 3 and 64 * leading // (distance + leading) < wanted:
        leading += 1
    blocks = distance + leading
    if blocks == leading:  # equal ones only: any split will do
        return Layout("32+32", (32, 32))
    width, more = divmod(64, blocks)
    widths = tuple(width + (number < more) for number in range(blocks))
    return Layout(f"{blocks} choose {leading}", widths, leading)


def _distinct(simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # np.unique takes several times as long as sorting does.
    values = np.sort(simhashes)
    if len(values) < 2:
        return values
    first = np.empty(len(values), dtype=np.bool_)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values if first.all() else values[first]


def _pairs_by(
    permutation: Permutation, layout: Layout, values: NDArray[np.uint64], distance: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    """Yield the pairs that agree in the prefix and that no earlier permutation has seen."""
    permuted = np.empty_like(values)
    for start in range(0, len(values), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        permuted[chunk] = permutation.permute(values[chunk])
    permuted.sort()
    shift = np.uint64(64 - permutation.width)
    earlier = [
        np.uint64(other.bits % 2**64) for other in layout.permutations[: permutation.number - 1]
    ]
    for start in range(0, len(permuted) - 1, _CHUNK):
        neighbours = permuted[start : start + _CHUNK + 1]
        at = start + np.flatnonzero((neighbours[1:] ^ neighbours[:-1]) >> shift == 0)
        offset = 1
        while len(at):
            differing = permuted[at] ^ permuted[at + offset]
            close = np.bitwise_count(differing) <= distance
            if close.any():
                one = permutation.restore(permuted[at[close]])
                other = permutation.restore(permuted[at[close] + offset])
                new = np.ones(len(one), dtype=np.bool_)
                for bits in earlier:
                    new &= (one ^ other) & bits != 0
                yield one[new], other[new]
            offset += 1
            at = at[at + offset < len(permuted)]
            at = at[(permuted[at] ^ permuted[at + offset]) >> shift == 0]
