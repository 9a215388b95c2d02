"""All near-copies within an array of simhashes, in memory.

The paper's batch method (Manku, Jain, Das Sarma, WWW 2007, section 4) turned inside out: for each
permutation the simhashes are ordered by their prefixes, so that those with equal ones stand side
by side, and neighbours are compared at growing offsets while their prefixes agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import check_distance, check_simhashes, hamming_distances
from pgsimhash.layout import COLLECTION_SHIFT, DISTANCE_MAX, Layout
from pgsimhash.permutation import Permutation
from pgsimhash.spool import Spool

_CHUNK: Final = 1 << 14
"""How many simhashes are worked on at a time: they stay in the processor's cache."""

_RADIX_BITS: Final = 16
"""numpy sorts 16-bit keys by radix, wider ones by comparison."""

# Nanoseconds a simhash takes in each step, as measured: only their ratios matter.
_RADIX_NS: Final = 25.0
_SORT_NS: Final = 95.0
_COMPARE_NS: Final = 1.5

_LEADING_MAX: Final = 4

MEMORY_BYTES: Final = 1 << 28
"""How much memory a stream of pairs uses for simhashes by default."""

_BYTES_A_SIMHASH: Final = 40
_BLOCK: Final = 1 << 16

_Found = tuple[NDArray[np.uint64], NDArray[np.uint64]]


class Pairs(NamedTuple):
    """Pairs of distinct simhashes, ``low[i] < high[i]``, and their distances; all shape (n,)."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    distances: NDArray[np.uint8]


def find_pairs(simhashes: NDArray[np.uint64], distance: int = 3) -> Pairs:
    """Return every pair of distinct simhashes within ``distance`` bits, each once, in order.

    Exact. Equal simhashes are one simhash here. Beside the input it holds a sorted and two
    permuted copies of it (about 24 bytes a simhash) and the pairs found.

    Args:
        simhashes: shape (n,), dtype uint64.
        distance: the largest number of differing bits, 0 to 12.

    Raises:
        InvalidSimhashError: the array has another shape or dtype.
        InvalidDistanceError: ``distance`` is not in 0..12.
    """
    values = _distinct(check_simhashes(simhashes))
    layout = _layout_for(check_distance(distance, DISTANCE_MAX), len(simhashes))
    found = [
        pairs
        for permutation in layout.permutations
        for pairs in _pairs_by(permutation, layout, values, distance)
    ]
    pairs = _as_pairs(found)
    order = np.lexsort((pairs.high, pairs.low))
    return Pairs(pairs.low[order], pairs.high[order], pairs.distances[order])


def stream_pairs(spool: Spool, distance: int = 3, *, memory: int = MEMORY_BYTES) -> Iterator[Pairs]:
    """Yield the pairs of :func:`find_pairs`, each once, block by block, in no order.

    Exact, in bounded memory: for each permutation the simhashes are read in as many parts as it
    takes, each part a range of prefixes. Only simhashes that share one prefix must fit.

    Args:
        spool: distinct simhashes.
        distance: the largest number of differing bits, 0 to 12.
        memory: how many bytes to use for simhashes, beside the pairs of a block.

    Raises:
        InvalidDistanceError: ``distance`` is not in 0..12.
    """
    layout = _layout_for(check_distance(distance, DISTANCE_MAX), spool.count)
    parts = max(1, -(-spool.count * _BYTES_A_SIMHASH // memory))
    whole = spool.read() if parts == 1 else None
    waiting: list[_Found] = []
    size = 0
    for permutation in layout.permutations:
        for part in range(parts):
            values = _part(spool, permutation, part, parts) if whole is None else whole
            for found in _pairs_by(permutation, layout, values, distance):
                waiting.append(found)
                size += len(found[0])
                if size >= _BLOCK:
                    yield _as_pairs(waiting)
                    waiting, size = [], 0
    if size:
        yield _as_pairs(waiting)


def _part(spool: Spool, permutation: Permutation, part: int, parts: int) -> NDArray[np.uint64]:
    """Return the simhashes whose prefixes are in one of ``parts`` ranges."""
    first = np.uint64((part << permutation.width) // parts)
    beyond = np.uint64(((part + 1) << permutation.width) // parts)
    shift = np.uint64(64 - permutation.width)
    kept = []
    for chunk in spool.chunks():
        for piece in _chunks(len(chunk)):
            prefixes = permutation.permute(chunk[piece]) >> shift
            kept.append(chunk[piece][(prefixes >= first) & (prefixes < beyond)])
    return np.concatenate(kept)


def _as_pairs(found: Sequence[_Found]) -> Pairs:
    if not found:
        empty = np.empty(0, dtype=np.uint64)
        return Pairs(empty, empty, np.empty(0, dtype=np.uint8))
    one, other = (np.concatenate(side) for side in zip(*found, strict=True))
    low, high = np.minimum(one, other), np.maximum(one, other)
    return Pairs(low, high, hamming_distances(low, high))


def _layout_for(distance: int, count: int) -> Layout:
    """Choose how many blocks lead: the fewest nanoseconds by a rough model of the steps."""
    if distance == 0:  # distinct simhashes are never equal
        return Layout("32+32", (32, 32))
    candidates = []
    for leading in range(1, _LEADING_MAX + 1):
        blocks = distance + leading
        width, more = divmod(64, blocks)
        if leading * (width + 1) > COLLECTION_SHIFT:
            break
        widths = tuple(width + (number < more) for number in range(blocks))
        prefix = leading * width
        grouping = _SORT_NS if prefix + leading > _RADIX_BITS else _RADIX_NS
        seconds = comb(blocks, leading) * (grouping + _COMPARE_NS * (3 + count / 2**prefix))
        candidates.append((seconds, Layout(f"{blocks} choose {leading}", widths, leading)))
    return min(candidates, key=itemgetter(0))[1]


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
) -> Iterator[_Found]:
    """Yield the pairs that agree in the prefix and in that of no earlier permutation."""
    earlier = [
        np.uint64(other.bits % 2**64) for other in layout.permutations[: permutation.number - 1]
    ]
    keys, ordered = _grouped(permutation, values)
    for start in range(0, len(ordered) - 1, _CHUNK):
        chunk, chunk_keys = ordered[start : start + _CHUNK], keys[start : start + _CHUNK]
        for offset in range(1, len(ordered) - start):
            others = ordered[start + offset : start + offset + _CHUNK]
            together = chunk_keys[: len(others)] == keys[start + offset : start + offset + _CHUNK]
            if not together.any():
                break
            close = np.bitwise_count(chunk[: len(others)] ^ others) <= distance
            at = np.flatnonzero(close & together)
            if len(at):
                one, other = chunk[at], others[at]
                new = np.ones(len(at), dtype=np.bool_)
                for bits in earlier:
                    new &= (one ^ other) & bits != 0
                yield one[new], other[new]


def _grouped(
    permutation: Permutation, values: NDArray[np.uint64]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint64]]:
    """Return the prefixes in order, and the simhashes in the order of their prefixes."""
    if permutation.width <= _RADIX_BITS:
        prefixes = np.empty(len(values), dtype=np.uint16)
        shift = np.uint64(64 - permutation.width)
        for chunk in _chunks(len(values)):
            prefixes[chunk] = permutation.permute(values[chunk]) >> shift
        order = np.argsort(prefixes, kind="stable")
        return prefixes[order], values[order]
    permuted = np.empty_like(values)
    for chunk in _chunks(len(values)):
        permuted[chunk] = permutation.permute(values[chunk])
    permuted.sort()
    ordered = np.empty_like(values)
    for chunk in _chunks(len(values)):
        ordered[chunk] = permutation.restore(permuted[chunk])
        permuted[chunk] >>= np.uint64(64 - permutation.width)
    return permuted, ordered


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, count, _CHUNK))
