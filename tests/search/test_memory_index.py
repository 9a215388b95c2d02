"""The search in memory finds exactly the pairs of a full comparison."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import hamming_distances
from pgsimhash.search.memory_index import BlockIndex
from tests.refusals import because


def brute_force(
    known: NDArray[np.uint64], queries: NDArray[np.uint64], distance: int
) -> list[tuple[int, int]]:
    each = np.unique(known)
    return [
        (number, value)
        for number, query in enumerate(queries.tolist())
        for value in each[hamming_distances(query, each) <= distance].tolist()
    ]


def found(index: BlockIndex, queries: NDArray[np.uint64], distance: int) -> list[tuple[int, int]]:
    near = index.near(queries, distance)
    return list(zip(near.queries.tolist(), near.simhashes.tolist(), strict=True))


def near_to(
    values: NDArray[np.uint64], distance: int, rng: np.random.Generator
) -> NDArray[np.uint64]:
    """Each value with this many bits changed."""
    flips = [sum(1 << int(bit) for bit in rng.choice(64, distance, replace=False)) for _ in values]
    return values ^ np.array(flips, dtype=np.uint64)


@given(
    centres=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3),
    flips=st.lists(st.sets(st.integers(0, 63), max_size=7), max_size=25),
    distance=st.integers(0, 12),
)
def test_clusters_of_near_copies(centres: list[int], flips: list[set[int]], distance: int) -> None:
    values = [
        centres[number % len(centres)] ^ sum(1 << bit for bit in bits)
        for number, bits in enumerate(flips)
    ]
    known, queries = np.array(values, dtype=np.uint64), np.array(centres, dtype=np.uint64)
    assert found(BlockIndex(known), queries, distance) == brute_force(known, queries, distance)


@pytest.mark.parametrize("distance", [0, 1, 2, 3, 5, 8, 12])
def test_many_simhashes_by_blocks_of_either_width(distance: int) -> None:
    rng = np.random.default_rng(distance)
    known = rng.integers(0, 2**64, 600_000 if distance in (2, 8) else 100_000, dtype=np.uint64)
    queries = np.concatenate([near_to(known[:40], distance, rng), known[40:60] ^ np.uint64(1)])
    assert found(BlockIndex(known), queries, distance) == brute_force(known, queries, distance)
    for size in (30_000, 65, 64):
        few = known[:size]
        assert found(BlockIndex(few), queries, distance) == brute_force(few, queries, distance)


def test_a_hot_prefix_takes_bounded_memory() -> None:
    rng = np.random.default_rng(3)
    crowd = rng.integers(0, 2**42, 300_000, dtype=np.uint64) | np.uint64(0x2AAAAA << 42)
    queries = near_to(crowd[:20], 3, rng)
    assert found(BlockIndex(crowd), queries, 3) == brute_force(crowd, queries, 3)


def test_empty_indexes_and_invalid_arguments() -> None:
    none, some = np.empty(0, dtype=np.uint64), np.arange(10, dtype=np.uint64)
    index = BlockIndex(some)
    assert found(BlockIndex(none), some, 12) == found(index, none, 12) == []
    for refusing in (BlockIndex, partial(index.near, distance=3)):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            refusing(some.astype(np.float64))
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        index.near(some, 13)
