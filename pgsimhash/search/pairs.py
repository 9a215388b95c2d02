"""Find all near pairs within an array of simhashes, in memory.

For each permutation of the blocks, simhashes are sorted by prefix, and neighbours are compared at
growing offsets while their prefixes agree. This is a variant of the batch method of Manku, Jain,
Das Sarma, WWW 2007, section 4. If very many simhashes share one prefix, their varying bits are cut
into blocks again. So a hot prefix does not take quadratic time.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from math import comb
from operator import itemgetter
from typing import Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import check_type
from pgsimhash.hashing.bits import BITS, NEAR_MAX, as_simhashes, check_distance
from pgsimhash.runtime import no_progress
from pgsimhash.runtime.extension import is_built
from pgsimhash.runtime.threads import in_threads
from pgsimhash.search.layout import (
    COLLECTION_SHIFT,
    DISTANCE_MAX,
    Layout,
    Permutation,
    equal_widths,
    runs_of,
)

if is_built:
    from pgsimhash import _native

_PAIRS: Final = 1 << 16  # pairs collected before they are yielded
_CHUNK: Final = 1 << 14  # simhashes processed at a time, which stay in the processor's cache

# Measured nanoseconds to group a simhash, and to compare two; only their ratio matters.
_GROUP_NS: Final = 30.0
_COMPARE_NS: Final = 0.6 if is_built else 3.0

_LEADING_MAX: Final = 4
_HOT: Final = 1 << 13  # from this many simhashes on, cutting a prefix again may be cheaper

# The left and right sides of pairs.
Found = tuple[NDArray[np.uint64], NDArray[np.uint64]]
# Receives after each pass how many simhashes were compared, and of how many in all passes.
Compared = Callable[[int, int], None]


class Pairs(NamedTuple):
    """Pairs of distinct simhashes, ``low[i] < high[i]``, and their distances; all shape (n,)."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    distances: NDArray[np.uint8]

    def __repr__(self) -> str:
        largest = max(self.distances.tolist(), default=0)
        return f"<pairs of simhashes: {len(self.low):,}, up to {largest} bits apart>"


def find_pairs(
    simhashes: Iterable[SupportsIndex], distance: int = NEAR_MAX, *, jobs: int = 1
) -> Pairs:
    """Return every pair of distinct simhashes within ``distance`` bits, each once, in order.

    The result is exact. Equal simhashes count once. Besides the input and the result, memory holds
    a sorted and two permuted copies of the input (about 24 bytes a simhash).

    Args:
        simhashes: an array, a column of a data frame, or integers.
        distance: the largest number of differing bits, 0 to 12.
        jobs: the number of threads.
    """
    values = distinct(as_simhashes(simhashes))
    check_distance(distance, DISTANCE_MAX)
    layout = layout_for(distance, len(values))
    found = in_threads(
        lambda each: list(pairs_by(each, layout, values, distance)), layout.permutations, jobs
    )
    pairs = _as_pairs([(values[:0], values[:0]), *chain.from_iterable(found)])
    order = np.lexsort((pairs.high, pairs.low))
    return Pairs(pairs.low[order], pairs.high[order], pairs.distances[order])


def stream_pairs(
    simhashes: NDArray[np.uint64], distance: int = NEAR_MAX, *, progress: Compared = no_progress
) -> Generator[Pairs]:
    """Yield the pairs of distinct simhashes, each once, in chunks, in no particular order."""
    check_type(progress, Callable, "progress is a function")
    layout = layout_for(check_distance(distance, DISTANCE_MAX), len(simhashes))

    def found() -> Iterator[Found]:
        passes = len(layout.permutations)
        for number, permutation in enumerate(layout.permutations, 1):
            yield from pairs_by(permutation, layout, simhashes, distance)
            progress(number * len(simhashes), passes * len(simhashes))

    yield from in_blocks(found())


def in_blocks(parts: Iterable[Found]) -> Iterator[Pairs]:
    """Yield the pairs in chunks of useful size."""
    chunk: list[Found] = []
    size = 0
    for sides in parts:
        chunk.append(sides)
        size += len(sides[0])
        if size >= _PAIRS:
            yield _as_pairs(chunk)
            chunk, size = [], 0
    if size:
        yield _as_pairs(chunk)


def _as_pairs(sides: Sequence[Found]) -> Pairs:
    left, right = (np.concatenate(side) for side in zip(*sides, strict=True))
    low, high = np.minimum(left, right), np.maximum(left, right)
    return Pairs(low, high, np.bitwise_count(low ^ high))


def distinct(simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each simhash once, ascending."""
    # np.unique takes several times as long.
    values = np.sort(simhashes)
    first = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values if first.all() else values[first]


def layout_for(distance: int, count: int, *, moving: float = 0.0) -> Layout:
    """Return the layout that finds pairs among ``count`` simhashes fastest, by a rough model.

    ``moving`` is the additional time in ns to send a simhash to the place of its prefix.
    """
    return _cheapest(distance, count, BITS, moving)[1]


def _cheapest(distance: int, count: int, bits: int, moving: float = 0.0) -> tuple[float, Layout]:
    if distance == 0:  # distinct simhashes are never equal
        return 0.0, Layout("2 choose 1", equal_widths(2, bits), bits=bits)
    candidates = []
    for leading in range(1, _LEADING_MAX + 1):
        blocks = distance + leading
        width = bits // blocks
        if width == 0 or leading * (width + 1) > COLLECTION_SHIFT:
            break
        comparing = _COMPARE_NS * (2 + count / 2 ** (leading * bits / blocks + 1))
        nanoseconds = comb(blocks, leading) * (moving + _GROUP_NS + comparing)
        name, widths = f"{blocks} choose {leading}", equal_widths(blocks, bits)
        candidates.append((nanoseconds, Layout(name, widths, leading, bits=bits)))
    return min(candidates, key=itemgetter(0))


def pairs_by(
    permutation: Permutation,
    layout: Layout,
    values: NDArray[np.uint64],
    distance: int,
) -> Iterator[Found]:
    """Yield the near pairs of distinct values that agree in this prefix and in no earlier one.

    Over all permutations of the layout, each pair within ``distance`` comes once.
    """
    # Choices come in order, so the first that sees a pair skips no block in which it agrees.
    last = min(block.shift for block in permutation.leading)
    skipped = [
        np.uint64(block.mask << block.shift)
        for block in layout.blocks
        if block.shift > last and block not in permutation.leading
    ]
    prefix = np.uint64(sum(block.mask << block.shift for block in permutation.leading))
    ordered = _grouped(permutation, values)
    done = 0
    for start, end in [*_hot(ordered, prefix), (len(ordered), len(ordered))]:
        yield from _compared(ordered[done:start], prefix, distance, skipped)
        if start < end:
            for left, right in _within(ordered[start:end], distance):
                yield _new(left, right, skipped)
        done = end


def _new(
    left: NDArray[np.uint64], right: NDArray[np.uint64], skipped: Sequence[np.uint64]
) -> Found:
    """Return the pairs that differ in all skipped blocks: no earlier permutation saw them."""
    new = np.ones(len(left), dtype=np.bool_)
    for bits in skipped:
        new &= (left ^ right) & bits != 0
    return left[new], right[new]


def _compared(
    ordered: NDArray[np.uint64],
    same: np.uint64,
    distance: int,
    skipped: Sequence[np.uint64] = (),
) -> Iterator[Found]:
    """Yield new near pairs with equal bits in ``same``; simhashes with these are neighbours."""
    if is_built:
        masks, done = np.array(skipped, dtype=np.uint64), 0
        while done < len(ordered):
            pairs, done = _native.near_pairs(ordered, int(same), masks, distance, done, _PAIRS)
            left, right = np.frombuffer(pairs, dtype=np.uint64).reshape(-1, 2).T
            yield left, right
        return
    for start in range(0, len(ordered), _CHUNK):
        chunk = ordered[start : start + _CHUNK]
        for offset in range(1, len(ordered) - start):
            neighbours = ordered[start + offset : start + offset + _CHUNK]
            differing = chunk[: len(neighbours)] ^ neighbours
            equal = differing & same == 0
            if not equal.any():
                break
            at = np.flatnonzero(equal & (np.bitwise_count(differing) <= distance))
            yield _new(chunk[at], neighbours[at], skipped)


def _hot(ordered: NDArray[np.uint64], prefix: np.uint64) -> list[tuple[int, int]]:
    """Return where each group of at least ``_HOT`` simhashes begins and ends."""
    sampled = ordered[:: _HOT // 2] & prefix
    if not np.any(sampled[1:] == sampled[:-1]):
        return []
    changes = np.flatnonzero((ordered[1:] ^ ordered[:-1]) & prefix) + 1
    borders = np.concatenate([[0], changes, [len(ordered)]])
    hot = np.flatnonzero(np.diff(borders) >= _HOT)
    return list(zip(borders[hot].tolist(), borders[hot + 1].tolist(), strict=True))


def _within(hot: NDArray[np.uint64], distance: int) -> Iterator[Found]:
    """Yield the near pairs of simhashes that share a prefix, and perhaps other bits."""
    varied = int(np.bitwise_or.reduce(hot ^ hot[0]))
    count = varied.bit_count()
    inner = _inner_layout(distance, 1 << (len(hot) - 1).bit_length(), count)
    if inner is None:
        yield from _compared(hot, np.uint64(0), distance)
        return
    together = Permutation(1, runs_of([bit for bit in reversed(range(BITS)) if varied >> bit & 1]))
    up = np.uint64(BITS - count)
    shared = together.permute(hot[:1]) & ((np.uint64(1) << up) - np.uint64(1))
    values = together.permute(hot) >> up
    for permutation in inner.permutations:
        for left, right in pairs_by(permutation, inner, values, distance):
            yield together.restore(left << up | shared), together.restore(right << up | shared)


@cache
def _inner_layout(distance: int, count: int, bits: int) -> Layout | None:
    """Return the layout for the varying bits, or None if comparing all pairs is cheaper."""
    if distance + 1 >= bits:
        return None
    nanoseconds, layout = _cheapest(distance, count, bits)
    return layout if nanoseconds < _COMPARE_NS * count / 2 else None


def _grouped(permutation: Permutation, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the simhashes, those with equal prefixes together."""
    if is_built:
        leading = [(block.shift, block.width) for block in permutation.leading]
        grouped = _native.group(np.ascontiguousarray(values), np.array(leading, dtype=np.intc))
        return np.frombuffer(grouped, dtype=np.uint64)
    return permutation.restore(np.sort(permutation.permute(values)))
