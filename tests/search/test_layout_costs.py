"""The costs of layouts: the arithmetic of the plans, and the recommendation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.search import layout_costs as planner
from pgsimhash.search.layout import DEFAULT_LAYOUT, LAYOUTS


def test_a_plan_counts_probes_and_expected_candidates() -> None:
    plan = planner.plan(LAYOUTS["22+21+21"], 2**24, 3)
    assert plan.radii == (1, 0, 0)
    assert plan.probes == 23 + 1 + 1
    assert plan.candidates == 23 * 2**24 / 2**22 + 2 * 2**24 / 2**21
    assert plan.columns == 3
    assert plan.milliseconds == plan.memory_milliseconds < plan.disk_milliseconds


def test_indexes_beyond_memory_are_read_from_disk() -> None:
    layout = LAYOUTS["22+21+21"]
    half = planner.plan(layout, 10**9, 3, memory=87 * 10**9 // 2)
    assert half.milliseconds == pytest.approx(
        (half.memory_milliseconds + half.disk_milliseconds) / 2
    )
    none = planner.plan(layout, 10**9, 3, memory=0)
    assert none.milliseconds == none.disk_milliseconds


def test_expected_candidates_match_random_simhashes() -> None:
    """Counted in Python: all prefixes of a sample within the radii of a few queries."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**64, 200_000, dtype=np.uint64)
    queries = rng.integers(0, 2**64, 40, dtype=np.uint64)
    layout = LAYOUTS["16+16+16+16"]
    met = sum(
        int((np.bitwise_count((values ^ query) & np.uint64(permutation.bits % 2**64)) <= r).sum())
        for query in queries
        for permutation, r in zip(layout.permutations, layout.radii(5), strict=True)
    )
    expected = planner.expected_candidates(layout, len(values), 5)
    assert met / len(queries) == pytest.approx(expected, rel=0.1)


def test_bytes_a_row_are_those_of_the_table_that_was_measured() -> None:
    """156 bytes were measured for three columns, indexes rebuilt (bench/search.py)."""
    assert planner.plan(DEFAULT_LAYOUT, 10**6, 3).bytes_a_row == pytest.approx(156, abs=2)


def test_pages_are_counted_beside_simhashes_and_their_markdown_apart() -> None:
    bare = planner.plan(DEFAULT_LAYOUT, 10**6, 3)
    assert (bare.page_bytes, bare.markdown_bytes) == (0, 0)
    assert bare.simhash_bytes == bare.bytes_a_row * 10**6
    full = planner.plan(DEFAULT_LAYOUT, 10**6, 3, pages=2 * 10**6)
    assert full.simhash_bytes == bare.simhash_bytes
    assert full.page_bytes == 2 * 10**6 * (planner.PAGE_BYTES + planner.SEEN_BYTES)
    assert full.markdown_bytes == 2 * 10**6 * planner.MARKDOWN_BYTES
    assert planner.plans(10**6, 3, pages=2 * 10**6)[0].page_bytes == full.page_bytes


def test_a_plan_has_the_radii_that_are_deployed() -> None:
    for layout in LAYOUTS.values():
        for distance in layout.distances:
            assert planner.plan(layout, 10**6, distance).radii == layout.radii(distance)


@pytest.mark.parametrize("rows", [10**4, 10**6, 10**8, 8 * 10**9])
def test_the_radii_that_are_deployed_cost_hardly_more_than_the_cheapest(rows: int) -> None:
    """So one set of radii serves a collection of any size."""
    for layout in LAYOUTS.values():
        if layout.leading > 1 or layout.inner:
            continue
        for distance in layout.distances:
            exact = (
                radii
                for radii in product(range(-1, 6), repeat=len(layout.permutations))
                if sum(radius + 1 for radius in radii) == distance + 1
            )
            cheapest = min(planner.milliseconds(layout, rows, radii) for radii in exact)
            assert planner.milliseconds(layout, rows, layout.radii(distance)) <= 1.3 * cheapest, (
                layout,
                distance,
            )


def test_beyond_memory_few_probes_and_candidates_are_cheapest() -> None:
    """As in the paper, whose tables for 8 billion pages need one probe with a long prefix."""
    small, large = (planner.recommend(planner.plans(rows, 3)) for rows in (10**6, 8 * 10**9))
    assert small.columns <= 3
    assert set(large.radii) == {0}
    assert min(permutation.width for permutation in LAYOUTS[large.layout].permutations) >= 25


def test_the_recommended_layout_is_the_smallest_that_is_fast_enough() -> None:
    found = planner.plans(10**7, 3)
    best = planner.recommend(found)
    fastest = min(plan.milliseconds for plan in found)
    assert best.milliseconds <= planner.NEAR_ENOUGH * fastest
    assert all(
        plan.milliseconds > planner.NEAR_ENOUGH * fastest
        for plan in found
        if plan.bytes_a_row < best.bytes_a_row
    )


def test_only_layouts_that_answer_the_distance_are_compared() -> None:
    assert "32+32" not in {plan.layout for plan in planner.plans(10**6, 8)}
    with pytest.raises(ArgumentError, match="0 to 12"):
        planner.plans(10**6, 13)


@pytest.mark.parametrize(
    ("layout", "tables", "leading", "candidates"),
    [
        # Section 3.1.2 of the paper, for 2**34 fingerprints and 3 bits.
        ("6 choose 3", 20, {31, 32, 33}, 8),
        ("4x4", 16, {28}, 64),
        ("5 choose 2", 10, {25, 26}, 512),
        ("16+16+16+16", 4, {16}, 2**18),
    ],
)
def test_the_tables_of_the_paper(
    layout: str, tables: int, leading: set[int], candidates: int
) -> None:
    made = LAYOUTS[layout]
    assert len(made.permutations) == tables
    assert {permutation.width for permutation in made.permutations} == leading
    # The largest number of matches of a probe with the narrowest prefix, by the paper.
    narrowest = min(permutation.width for permutation in made.permutations)
    assert 2**34 / 2**narrowest == candidates
    assert planner.expected_candidates(made, 2**34, 3) <= candidates * tables
