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

FIVE_CHOOSE_TWO = Layout("13+13+13+13+12 choose 2", (13, 13, 13, 13, 12), leading=2)
LAYOUTS = [
    DEFAULT_LAYOUT,
    Layout("16+16+16+16", (16, 16, 16, 16)),
    Layout("32+32", (32, 32)),
    FIVE_CHOOSE_TWO,
    Layout("11+11+11+11+10+10 choose 3", (11, 11, 11, 11, 10, 10), leading=3),
]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)

simhashes = st.integers(0, 2**64 - 1)
distances = st.integers(DEFAULT_LAYOUT.distances[0], DEFAULT_LAYOUT.distances[-1])


def seen_by(layout: Layout, a: int, b: int, distance: int) -> list[int]:
    """The permutations whose probes lead from ``a`` to ``b``."""
    return [
        permutation.number
        for permutation, radius in zip(layout.permutations, layout.radii(distance), strict=True)
        if (permutation.prefix(a) ^ permutation.prefix(b)).bit_count() <= radius
    ]


@every_layout
@given(simhash=simhashes, data=st.data())
def test_whatever_bits_are_flipped_some_permutation_sees_the_pair(
    layout: Layout, simhash: int, data: st.DataObject
) -> None:
    distance = data.draw(distances)
    flipped = data.draw(st.sets(st.integers(0, 63), max_size=distance))
    other = simhash ^ sum(1 << bit for bit in flipped)
    assert seen_by(layout, simhash, other, distance)


@every_layout
@pytest.mark.parametrize("distance", DEFAULT_LAYOUT.distances)
def test_every_way_to_spread_the_flipped_bits_over_the_blocks_is_covered(
    layout: Layout, distance: int
) -> None:
    """Exhaustive: which bits of a block differ does not matter, only how many do."""
    blocks = len(layout.widths)
    # Stars and bars: all tuples of `blocks` counts that add up to `distance`.
    spreads = 0
    for bars in combinations(range(distance + blocks - 1), blocks - 1):
        ends = (-1, *bars, distance + blocks - 1)
        counts = [right - left - 1 for left, right in pairwise(ends)]
        other = sum(
            ((1 << count) - 1) << block.shift
            for count, block in zip(counts, layout.blocks, strict=True)
        )
        assert seen_by(layout, 0, other, distance), counts
        spreads += 1
    assert spreads == comb(distance + blocks - 1, blocks - 1)


@pytest.mark.parametrize("distance", DEFAULT_LAYOUT.distances)
def test_the_radii_are_the_smallest_that_suffice(distance: int) -> None:
    radii = DEFAULT_LAYOUT.radii(distance)
    assert sum(radius + 1 for radius in radii) == distance + 1
    assert list(radii) == sorted(radii, reverse=True)


def test_choosing_enough_blocks_needs_no_flips() -> None:
    """Three differing bits leave two of five blocks alone; four may not."""
    assert FIVE_CHOOSE_TWO.radii(3) == (0,) * 10
    assert FIVE_CHOOSE_TWO.radii(4) == (1,) * 10


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
                0 <= flip < 1 << permutation.width and flip.bit_count() <= radius for flip in flips
            )
        assert permutation.flips(NOT_PROBED) == []


@every_layout
@given(values=st.lists(simhashes, min_size=1, max_size=9))
def test_permuting_moves_every_bit_and_the_prefix_to_the_front(
    layout: Layout, values: list[int]
) -> None:
    array = np.array(values, dtype=np.uint64)
    for permutation in layout.permutations:
        permuted = permutation.permute(array)
        assert permutation.restore(permuted).tolist() == values
        assert [value.bit_count() for value in permuted.tolist()] == [
            value.bit_count() for value in values
        ]
        assert [value >> (64 - permutation.width) for value in permuted.tolist()] == [
            permutation.prefix(value) for value in values
        ]


@given(simhashes)
def test_the_prefixes_together_are_the_simhash(simhash: int) -> None:
    assert (
        sum(
            permutation.prefix(simhash) << permutation.leading[0].shift
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


@pytest.mark.parametrize(
    ("widths", "leading"),
    [((22, 21, 20), 1), ((64,), 1), ((41, 23), 1), ((0, 32, 32), 1), ((32, 32), 2), ((32, 32), 0)],
)
def test_a_layout_that_cannot_be_searched_is_refused(widths: tuple[int, ...], leading: int) -> None:
    with pytest.raises(ValueError, match="block"):
        Layout("wrong", widths, leading)
