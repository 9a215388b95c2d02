"""The geometry of the search: no pair within the distance escapes the probes."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pgsimhash.errors import ArgumentError
from pgsimhash.search.layout import (
    COLLECTION_SHIFT,
    DEFAULT_LAYOUT,
    DISTANCE_MAX,
    LAYOUTS,
    PROBES_MAX,
    Block,
    Layout,
    Permutation,
    get_layout,
)

every_layout = pytest.mark.parametrize(
    "layout", LAYOUTS.values(), ids=lambda layout: layout.name.replace(" ", "-")
)

# The forms of the layouts above, with few enough bits to test every pair of simhashes.
SMALL = [
    Layout("three blocks", (5, 4, 4), bits=13), Layout("two blocks", (6, 6), bits=12),
    Layout("four blocks", (3, 3, 3, 3), bits=12),
    Layout("5 choose 2", (3, 3, 3, 3, 2), leading=2, bits=14),
    Layout("4x4", (4, 4, 4, 4), inner=4, bits=16),
    Layout("uneven 3x3", (5, 5, 4), inner=3, bits=14),
    Layout("5x2", (3, 3, 3, 3, 2), inner=2, bits=14), Layout("narrow first", (3, 5, 4), bits=12),
    Layout("wide and narrow", (8, 4), bits=12),
    Layout("6 choose 3", (3, 3, 3, 3, 2, 2), leading=3, bits=16),
    Layout("8 choose 2", (2,) * 8, leading=2, bits=16),
]  # fmt: skip
small_layouts = pytest.mark.parametrize("layout", SMALL, ids=lambda layout: layout.name)


def prefix(permutation: Permutation, simhash: int) -> int:
    """What the column of a permutation has of a simhash."""
    return sum(
        ((simhash >> block.shift) & block.mask) << place for block, place in permutation.places
    )


def seen_by(layout: Layout, a: int, b: int, distance: int) -> list[int]:
    """The permutations by which ``a`` finds ``b``."""
    return [
        permutation.number
        for permutation, radius in zip(layout.permutations, layout.radii(distance), strict=True)
        if (prefix(permutation, a) ^ prefix(permutation, b)).bit_count() <= radius
    ]


def fewest_beyond(layout: Layout, masks: NDArray[np.uint64], radii: Sequence[int]) -> int:
    """The smallest number of differing bits that no permutation finds, over all masks."""
    unseen = np.ones(len(masks), dtype=np.bool_)
    for permutation, radius in zip(layout.permutations, radii, strict=True):
        bits = np.uint64(sum(block.mask << block.shift for block in permutation.leading))
        unseen &= np.bitwise_count(masks & bits).astype(np.int64) > radius
    return int(np.bitwise_count(masks[unseen]).min(initial=layout.bits + 1))


@small_layouts
def test_proof_that_the_radii_miss_no_pair_and_smaller_ones_would(layout: Layout) -> None:
    """Whether a pair is found depends only on its differing bits, and these are all masks."""
    masks = np.arange(2**layout.bits, dtype=np.uint64)
    widths = [permutation.width for permutation in layout.permutations]
    for distance in layout.distances:
        radii = layout.radii(distance)
        assert fewest_beyond(layout, masks, radii) > distance
        if any(radius >= width for width, radius in zip(widths, radii, strict=True)):
            continue  # at this distance some permutation sees every pair there is
        smaller = [[radius - 1 for radius in radii]]
        if layout.leading == 1 and not layout.inner:
            smaller = [[*radii[:at], one - 1, *radii[at + 1 :]] for at, one in enumerate(radii)]
            smaller = [some for some in smaller if min(some) >= -1]
        for some in smaller:
            assert fewest_beyond(layout, masks, some) <= distance


@every_layout
def test_every_way_to_spread_the_flipped_bits_over_the_blocks_is_covered(layout: Layout) -> None:
    """Exhaustive at 64 bits: only the number of differing bits per block matters."""
    if layout.inner:
        pytest.skip("its inner blocks are not blocks of one partition")
    blocks = len(layout.widths)
    distance = min(6, layout.distances[-1])
    # Stars and bars: all tuples of `blocks` counts with the sum `distance`.
    for bars in combinations(range(distance + blocks - 1), blocks - 1):
        ends = (-1, *bars, distance + blocks - 1)
        counts = [right - left - 1 for left, right in pairwise(ends)]
        other = sum(
            ((1 << count) - 1) << block.shift
            for count, block in zip(counts, layout.blocks, strict=True)
        )
        assert seen_by(layout, 0, other, distance), counts


def test_the_inner_blocks_of_a_nested_layout_cut_what_the_leading_block_leaves() -> None:
    first, *_, last = LAYOUTS["4x4"].permutations
    assert first.leading == (Block(16, 48), Block(12, 36))
    assert last.leading == (Block(16, 0), Block(12, 16))
    across = LAYOUTS["4x4"].permutations[5]
    assert across.leading == (Block(16, 32), Block(4, 48), Block(8, 24))
    assert {permutation.width for permutation in LAYOUTS["4x4"].permutations} == {28}


def test_a_layout_offers_no_distance_that_takes_too_many_probes() -> None:
    for layout in LAYOUTS.values():
        largest = layout.distances[-1]
        assert layout.probes(largest) <= PROBES_MAX
        assert largest == DISTANCE_MAX or layout.probes(largest + 1) > PROBES_MAX
    assert LAYOUTS["32+32"].distances == range(8)


@every_layout
@given(data=st.data())
def test_every_layout_is_exact(layout: Layout, data: st.DataObject) -> None:
    assert sum(layout.widths) == 64
    distance = data.draw(st.sampled_from(layout.distances))
    flipped = data.draw(st.sets(st.integers(0, 63), max_size=distance))
    assert seen_by(layout, 0, sum(1 << bit for bit in flipped), distance)


def test_a_layout_has_a_name_and_room_for_the_collection() -> None:
    assert all(get_layout(name) is layout for name, layout in LAYOUTS.items())
    permutations = [each for layout in LAYOUTS.values() for each in layout.permutations]
    assert max(each.width for each in permutations) <= COLLECTION_SHIFT
    for name in ("7 choose 4", "40+24", "32+32; DROP TABLE pages", ""):
        with pytest.raises(ArgumentError, match=r"not a layout: there are 22\+21\+21, 32\+32"):
            get_layout(name)


def test_flips_are_all_masks_of_few_bits_each_once() -> None:
    for permutation in DEFAULT_LAYOUT.permutations:
        for radius in range(3):
            flips, width = permutation.flips(radius), permutation.width
            masks = sum(comb(width, count) for count in range(radius + 1))
            assert len(flips) == len(set(flips)) == masks
            assert all(0 <= one < 1 << width and one.bit_count() <= radius for one in flips)
        assert permutation.flips(-1) == []


@every_layout
@given(values=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9))
def test_permuting_keeps_all_bits_with_the_prefix_first(layout: Layout, values: list[int]) -> None:
    for part in layout.permutations:
        permuted = part.permute(np.array(values, dtype=np.uint64))
        assert part.restore(permuted).tolist() == values
        for value, moved in zip(values, permuted.tolist(), strict=True):
            assert moved.bit_count() == value.bit_count()
            assert moved >> (64 - part.width) == prefix(part, value)


@pytest.mark.parametrize(("name", "tables", "exact", "widths"), [
    ("22+21+21", 3, 2, {21, 22}), ("32+32", 2, 1, {32}), ("8 choose 2", 28, 6, {16}),
    # Section 3.1.2 of the paper, for 3 bits; among 2**34 fingerprints a prefix has at most
    # 8, 64, 512 and 2**18 matches.
    ("6 choose 3", 20, 3, {31, 32, 33}),
    ("4x4", 16, 3, {28}), ("5 choose 2", 10, 3, {25, 26}), ("16+16+16+16", 4, 3, {16}),
])  # fmt: skip
def test_the_tables_of_the_paper(name: str, tables: int, exact: int, widths: set[int]) -> None:
    """Up to ``exact`` bits they answer without a flip (Manku, Jain, Das Sarma, WWW 2007)."""
    layout = LAYOUTS[name]
    assert len(layout.permutations) == tables
    assert {permutation.width for permutation in layout.permutations} == widths
    assert (max(layout.radii(exact)), max(layout.radii(exact + 1))) == (0, 1)
