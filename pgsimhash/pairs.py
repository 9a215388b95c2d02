"""All near-copies within an array of simhashes, in memory.

The paper's batch method (Manku, Jain, Das Sarma, WWW 2007, section 4) turned inside out: for each
permutation the simhashes are ordered by their prefixes, so that those with equal ones stand side
by side, and neighbours are compared at growing offsets while their prefixes agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import comb
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import (
    BITS,
    NEAR_MAX,
    check_distance,
    check_simhash,
    check_simhashes,
    hamming_distances,
)
from pgsimhash.errors import ArgumentError
from pgsimhash.layout import COLLECTION_SHIFT, DISTANCE_MAX, Layout, equal_widths
from pgsimhash.permutation import Permutation
from pgsimhash.progress import MEMORY_BYTES, unheard
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

PASSES_MAX: Final = 5_000
"""How many passes over the simhashes are made at most, where the caller says how many blocks."""

_BYTES_A_SIMHASH: Final = 40
_BLOCK: Final = 1 << 16

_Found = tuple[NDArray[np.uint64], NDArray[np.uint64]]

Compared = Callable[[int, int], None]
"""Told how many simhashes are compared of how many, each counted once for every pass."""


class Pairs(NamedTuple):
    """Pairs of distinct simhashes, ``low[i] < high[i]``, and their distances; all shape (n,)."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    distances: NDArray[np.uint8]


def find_pairs(
    simhashes: NDArray[np.uint64] | Iterable[int],
    distance: int = NEAR_MAX,
    *,
    blocks: int | None = None,
) -> Pairs:
    """Return every pair of distinct simhashes within ``distance`` bits, each once, in order.

    Exact. Equal simhashes are one simhash here. Beside the input it holds a sorted and two
    permuted copies of it (about 24 bytes a simhash) and the pairs found.

    Args:
        simhashes: shape (n,), dtype uint64, or a list of integers.
        distance: the largest number of differing bits, 0 to 12.
        blocks: into how many blocks to cut the bits, more than ``distance``: all but ``distance``
            of them lead, so there are as many passes as ways to choose these. By default what is
            fastest for so many simhashes. The pairs are the same.

    Raises:
        ArgumentError: the array has another shape or dtype, or a number is no simhash; or
            ``distance`` is not in 0..12; or ``blocks`` is not from ``distance`` + 1 to 64, or takes
            more than 5,000 passes.
    """
    values = _distinct(_as_array(simhashes))
    check_distance(distance, DISTANCE_MAX)
    layout = _layout_for(distance, len(values)) if blocks is None else _cut(blocks, distance)
    found = [
        pairs
        for permutation in layout.permutations
        for pairs in _pairs_by(permutation, layout, values, distance, lambda done: None)
    ]
    pairs = _as_pairs(found)
    order = np.lexsort((pairs.high, pairs.low))
    return Pairs(pairs.low[order], pairs.high[order], pairs.distances[order])


def stream_pairs(
    spool: Spool,
    distance: int = NEAR_MAX,
    *,
    memory: int = MEMORY_BYTES,
    progress: Compared = unheard,
) -> Iterator[Pairs]:
    """Yield the pairs of :func:`find_pairs`, each once, block by block, in no order.

    Exact, in bounded memory: for each permutation the simhashes are read in as many parts as it
    takes, each part a range of prefixes. Only simhashes that share one prefix must fit.

    Args:
        spool: distinct simhashes.
        distance: the largest number of differing bits, 0 to 12.
        memory: how many bytes to use for simhashes, beside the pairs of a block.
        progress: told how far it is.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
    """
    layout = _layout_for(check_distance(distance, DISTANCE_MAX), spool.count)
    parts = max(1, -(-spool.count * _BYTES_A_SIMHASH // memory))
    whole = spool.read() if parts == 1 else None
    waiting: list[_Found] = []
    size = done = 0
    total = spool.count * len(layout.permutations)
    for permutation in layout.permutations:
        for part in range(parts):
            values = _part(spool, permutation, part, parts) if whole is None else whole
            compared = partial(_tell, progress, done, total)
            for found in _pairs_by(permutation, layout, values, distance, compared):
                waiting.append(found)
                size += len(found[0])
                if size >= _BLOCK:
                    yield _as_pairs(waiting)
                    waiting, size = [], 0
            done += len(values)
    progress(total, total)
    if size:
        yield _as_pairs(waiting)


def _tell(progress: Compared, before: int, total: int, here: int) -> None:
    progress(before + here, total)


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


def _as_array(simhashes: NDArray[np.uint64] | Iterable[int]) -> NDArray[np.uint64]:
    if isinstance(simhashes, np.ndarray):
        return check_simhashes(simhashes)
    if isinstance(simhashes, str | bytes) or not isinstance(simhashes, Iterable):
        raise ArgumentError(
            "invalid_simhash",
            f"simhashes are an array or a list of integers, not {type(simhashes).__name__}",
        )
    return np.fromiter(map(check_simhash, simhashes), dtype=np.uint64)


def _cut(blocks: int, distance: int) -> Layout:
    """Return the layout in which all but ``distance`` of so many blocks lead."""
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not distance < blocks <= BITS:
        raise ArgumentError(
            "invalid_blocks",
            f"blocks is a number from {distance + 1} to {BITS} for distance {distance}, "
            f"not {blocks!r}",
        )
    if distance == 0:
        return _layout_for(0, 0)
    if comb(blocks, distance) > PASSES_MAX:
        raise ArgumentError(
            "invalid_blocks",
            f"{blocks} blocks take {comb(blocks, distance):,} passes for distance {distance}, "
            f"and at most {PASSES_MAX:,} are made; use fewer blocks",
        )
    leading = blocks - distance
    return Layout(f"{blocks} choose {leading}", equal_widths(blocks), leading, prefix_max=BITS)


def _layout_for(distance: int, count: int) -> Layout:
    """Choose how many blocks lead: the fewest nanoseconds by a rough model of the steps."""
    if distance == 0:  # distinct simhashes are never equal
        return Layout("32+32", (32, 32))
    candidates = []
    for leading in range(1, _LEADING_MAX + 1):
        blocks = distance + leading
        width = BITS // blocks
        if leading * (width + 1) > COLLECTION_SHIFT:
            break
        widths = equal_widths(blocks)
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
    permutation: Permutation,
    layout: Layout,
    values: NDArray[np.uint64],
    distance: int,
    compared: Callable[[int], None],
) -> Iterator[_Found]:
    """Yield the pairs that agree in the prefix and in that of no earlier permutation.

    ``compared`` is told how many of the simhashes are done.
    """
    # Choices of blocks come in order, so the first that sees a pair skips none that is the same.
    last = min(block.shift for block in permutation.leading)
    skipped = [
        np.uint64(block.mask << block.shift)
        for block in layout.blocks
        if block.shift > last and block not in permutation.leading
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
                for bits in skipped:
                    new &= (one ^ other) & bits != 0
                yield one[new], other[new]
        compared(start + len(chunk))


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
