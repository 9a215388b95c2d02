"""All near-copies within an array of simhashes, in memory.

The paper's batch method (Manku, Jain, Das Sarma, WWW 2007, section 4) turned inside out: for each
permutation of the blocks, those with equal prefixes are compared (``block_pairs``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import comb
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
from pgsimhash.block_pairs import Found, layout_for, pairs_by
from pgsimhash.errors import ArgumentError
from pgsimhash.layout import DISTANCE_MAX, Layout, equal_widths
from pgsimhash.progress import MEMORY_BYTES, unheard
from pgsimhash.spool import Spool, distinct

PASSES_MAX: Final = 5_000
"""How many passes over the simhashes are made at most, where the caller says how many blocks."""

_BLOCK: Final = 1 << 16

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
    values = distinct(_as_array(simhashes))
    check_distance(distance, DISTANCE_MAX)
    layout = layout_for(distance, len(values)) if blocks is None else _cut(blocks, distance)
    found = [
        pairs
        for permutation in layout.permutations
        for pairs in pairs_by(permutation, layout, values, distance)
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
    limit = check_distance(distance, DISTANCE_MAX)
    yield from in_blocks(_found(spool, limit, memory, progress))


def _found(spool: Spool, distance: int, memory: int, progress: Compared) -> Iterator[Found]:
    layout = layout_for(distance, spool.count)
    whole = spool.read() if spool.fits(memory) else None
    done, total = 0, spool.count * len(layout.permutations)
    for permutation in layout.permutations:
        for part in spool.parts(permutation, memory):
            values = spool.read_part(permutation, part) if whole is None else whole
            compared = partial(_tell, progress, done, total)
            yield from pairs_by(permutation, layout, values, distance, compared)
            done += len(values)
    progress(total, total)


def in_blocks(found: Iterable[Found]) -> Iterator[Pairs]:
    """Yield pairs as they are found, in blocks that are worth a caller's while."""
    waiting: list[Found] = []
    size = 0
    for sides in found:
        waiting.append(sides)
        size += len(sides[0])
        if size >= _BLOCK:
            yield _as_pairs(waiting)
            waiting, size = [], 0
    if size:
        yield _as_pairs(waiting)


def _tell(progress: Compared, before: int, total: int, here: int) -> None:
    progress(before + here, total)


def _as_pairs(found: Sequence[Found]) -> Pairs:
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
        return layout_for(0, 0)
    if comb(blocks, distance) > PASSES_MAX:
        raise ArgumentError(
            "invalid_blocks",
            f"{blocks} blocks take {comb(blocks, distance):,} passes for distance {distance}, "
            f"and at most {PASSES_MAX:,} are made; use fewer blocks",
        )
    leading = blocks - distance
    return Layout(f"{blocks} choose {leading}", equal_widths(blocks), leading, prefix_max=BITS)
