"""Find all near pairs within an array of simhashes, in memory.

For each permutation of the blocks, simhashes with equal prefixes are compared. This is a variant of
the batch method of Manku, Jain, Das Sarma, WWW 2007, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import comb
from typing import Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import BITS, NEAR_MAX, as_simhashes, check_distance, hamming_distances
from pgsimhash.runtime.progress import no_progress
from pgsimhash.search.layout import DISTANCE_MAX, Layout, equal_widths
from pgsimhash.search.prefix_pairs import Found, layout_for, pairs_by

PASSES_MAX: Final = 5_000
"""The maximum number of passes, if the caller chooses the number of blocks."""

_CHUNK: Final = 1 << 16

Compared = Callable[[int, int], None]
"""Receives how many simhashes are compared, and of how many; each counts once per pass."""


class Pairs(NamedTuple):
    """Pairs of distinct simhashes, ``low[i] < high[i]``, and their distances; all shape (n,)."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    distances: NDArray[np.uint8]


def find_pairs(
    simhashes: Iterable[SupportsIndex], distance: int = NEAR_MAX, *, blocks: int | None = None
) -> Pairs:
    """Return every pair of distinct simhashes within ``distance`` bits, each once, in order.

    The result is exact. Equal simhashes count once. Besides the input and the result, memory holds
    a sorted and two permuted copies of the input (about 24 bytes a simhash).

    Args:
        simhashes: an array, a column of a data frame, or integers.
        distance: the largest number of differing bits, 0 to 12.
        blocks: the number of bit blocks, more than ``distance``. All but ``distance`` blocks lead,
            and each choice of them takes one pass. By default the fastest number. The result does
            not depend on it.

    Raises:
        ArgumentError: a row is not a simhash, ``distance`` is not in 0..12, or ``blocks`` is not in
            ``distance`` + 1..64 or takes more than 5,000 passes.
    """
    values = distinct(as_simhashes(simhashes))
    check_distance(distance, DISTANCE_MAX)
    layout = layout_for(distance, len(values)) if blocks is None else _cut(blocks, distance)
    pairs = _as_pairs(
        [
            sides
            for permutation in layout.permutations
            for sides in pairs_by(permutation, layout, values, distance)
        ]
    )
    order = np.lexsort((pairs.high, pairs.low))
    return Pairs(pairs.low[order], pairs.high[order], pairs.distances[order])


def stream_pairs(
    simhashes: NDArray[np.uint64], distance: int = NEAR_MAX, *, progress: Compared = no_progress
) -> Iterator[Pairs]:
    """Yield the pairs of distinct simhashes, each once, in chunks, in no particular order."""
    limit = check_distance(distance, DISTANCE_MAX)
    yield from in_blocks(_found(simhashes, limit, progress))


def _found(simhashes: NDArray[np.uint64], distance: int, progress: Compared) -> Iterator[Found]:
    layout = layout_for(distance, len(simhashes))
    done, total = 0, len(simhashes) * len(layout.permutations)
    for permutation in layout.permutations:
        report = partial(lambda before, here: progress(before + here, total), done)
        yield from pairs_by(permutation, layout, simhashes, distance, report)
        done += len(simhashes)
    progress(total, total)


def in_blocks(parts: Iterable[Found]) -> Iterator[Pairs]:
    """Yield the pairs in chunks of useful size."""
    chunk: list[Found] = []
    size = 0
    for sides in parts:
        chunk.append(sides)
        size += len(sides[0])
        if size >= _CHUNK:
            yield _as_pairs(chunk)
            chunk, size = [], 0
    if size:
        yield _as_pairs(chunk)


def _as_pairs(sides: Sequence[Found]) -> Pairs:
    if not sides:
        empty = np.empty(0, dtype=np.uint64)
        return Pairs(empty, empty, np.empty(0, dtype=np.uint8))
    left, right = (np.concatenate(side) for side in zip(*sides, strict=True))
    low, high = np.minimum(left, right), np.maximum(left, right)
    return Pairs(low, high, hamming_distances(low, high))


def distinct(simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each simhash once, ascending."""
    # np.unique takes several times as long.
    values = np.sort(simhashes)
    if len(values) < 2:
        return values
    first = np.empty(len(values), dtype=np.bool_)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values if first.all() else values[first]


def _cut(blocks: int, distance: int) -> Layout:
    """Return the layout in which all but ``distance`` of the blocks lead."""
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not distance < blocks <= BITS:
        raise ArgumentError(
            "invalid_argument",
            f"blocks is a number from {distance + 1} to {BITS} for distance {distance}, "
            f"not {blocks!r}",
        )
    if distance == 0:
        return layout_for(0, 0)
    if comb(blocks, distance) > PASSES_MAX:
        raise ArgumentError(
            "invalid_argument",
            f"{blocks} blocks take {comb(blocks, distance):,} passes for distance {distance}, "
            f"and at most {PASSES_MAX:,} are allowed; use fewer blocks",
        )
    leading = blocks - distance
    return Layout(f"{blocks} choose {leading}", equal_widths(blocks), leading, prefix_max=BITS)
