"""The geometry of the search: no pair within the distance escapes the probes."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import InvalidDistanceError
from pgsimhash.layout import COLLECTION_MAX, COLLECTION_SHIFT, DEFAULT_LAYOUT, NOT_PROBED, Layout

simhashes = st.integers(0, 2**64 - 1)
distances = st.integers(DEFAULT_LAYOUT.distances[0], DEFAULT_LAYOUT.distances[-1])


def seen_by(a: int, b: int, distance: int) -> list[int]:
    """The permutations whose probes lead from ``a`` to ``b``."""
    found = []
    radii = DEFAULT_LAYOUT.radii(distance)
    for permutation, radius in zip(DEFAULT_LAYOUT.permutations, radii, strict=True):
        probes = [permutation.prefix(a) ^ flip for flip in permutation.flips(radius)]
        if radius != NOT_PROBED and permutation.prefix(b) in probes:
            found.append(permutation.number)
    return found


@given(simhashes, st.data())
def test_whatever_bits_are_flipped_some_permutation_sees_the_pair(
    simhash: int, data: st.DataObject
) -> None:
    distance = data.draw(distances)
    flipped = data.draw(st.sets(st.integers(0, 63), max_size=distance))
    other = simhash ^ sum(1 << bit for bit in flipped)
    assert seen_by(simhash, other, distance)


@pytest.mark.parametrize("distance", DEFAULT_LAYOUT.distances)
def test_every_way_to_spread_the_flipped_bits_over_the_blocks_is_covered(distance: int) -> None:
    """Exhaustive: which bits of a block differ does not matter, only how many do."""
    radii = DEFAULT_LAYOUT.radii(distance)
    blocks = len(DEFAULT_LAYOUT.widths)
    # Stars and bars: all tuples of `blocks` counts that add up to `distance`.
    spreads = 0
    for bars in combinations(range(distance + blocks - 1), blocks - 1):
        ends = (-1, *bars, distance + blocks - 1)
        counts = [right - left - 1 for left, right in pairwise(ends)]
        assert any(count <= radius for count, radius in zip(counts, radii, strict=True)), counts
        spreads += 1
    assert spreads == comb(distance + blocks - 1, blocks - 1)


@pytest.mark.parametrize("distance", DEFAULT_LAYOUT.distances)
def test_the_radii_are_the_smallest_that_suffice(distance: int) -> None:
    radii = DEFAULT_LAYOUT.radii(distance)
    assert sum(radius + 1 for radius in radii) == distance + 1
    assert list(radii) == sorted(radii, reverse=True)


def test_a_distance_beyond_the_layout_is_refused() -> None:
    with pytest.raises(InvalidDistanceError):
        DEFAULT_LAYOUT.radii(9)


def test_flips_are_all_masks_of_few_bits_each_once() -> None:
    for permutation in DEFAULT_LAYOUT.permutations:
        for radius in range(3):
            flips = permutation.flips(radius)
            assert (
                len(flips)
                == len(set(flips))
                == sum(comb(permutation.width, count) for count in range(radius + 1))
            )
            assert all(
                0 <= flip <= permutation.mask and flip.bit_count() <= radius for flip in flips
            )
        assert permutation.flips(NOT_PROBED) == []


@given(simhashes)
def test_the_prefixes_together_are_the_simhash(simhash: int) -> None:
    assert (
        sum(
            permutation.prefix(simhash) << permutation.shift
            for permutation in DEFAULT_LAYOUT.permutations
        )
        == simhash
    )


@given(st.lists(simhashes, min_size=1, max_size=9), st.integers(1, COLLECTION_MAX))
def test_prefixes_of_an_array_carry_the_collection_above_the_prefix(
    values: list[int], collection_id: int
) -> None:
    columns = DEFAULT_LAYOUT.prefixes(np.array(values, dtype=np.uint64), collection_id)
    assert columns.shape == (len(values), len(DEFAULT_LAYOUT.permutations))
    assert columns.dtype == np.int64
    for row, value in zip(columns.tolist(), values, strict=True):
        assert row == [
            (collection_id << COLLECTION_SHIFT) + permutation.prefix(value)
            for permutation in DEFAULT_LAYOUT.permutations
        ]


@pytest.mark.parametrize("collection_id", [0, -1, COLLECTION_MAX + 1])
def test_a_collection_number_that_would_overflow_is_refused(collection_id: int) -> None:
    with pytest.raises(ValueError, match="a collection's number"):
        DEFAULT_LAYOUT.prefixes(np.array([1], dtype=np.uint64), collection_id)


@pytest.mark.parametrize("widths", [(22, 21, 20), (64,), (41, 23), (0, 32, 32)])
def test_a_layout_that_cannot_be_searched_is_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="block"):
        Layout("wrong", widths)
