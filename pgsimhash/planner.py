"""What a layout costs: bytes, probes, candidates and milliseconds, for any number of rows.

A lookup costs a call, a scan of each permutation's index, a descent for each probe and a check for
each candidate; a random simhash lies behind a probe of a ``width``-bit prefix with probability
``2**-width``. The constants were fitted by ``bench/cost_model.py`` on PostgreSQL 18 with
everything in memory; what counts is how layouts compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from typing import Final

from pgsimhash.bits import check_distance
from pgsimhash.layout import LAYOUTS, NOT_PROBED, Layout

CALL_MS: Final = 0.09
PERMUTATION_MS: Final = 0.01
PROBE_MS: Final = 0.0012
CANDIDATE_MS: Final = 0.0002

DISK_READ_MS: Final = 0.1
"""One page from a solid-state disk, where neither PostgreSQL nor the system has it in memory."""

HEAP_BYTES: Final = 44
INDEX_BYTES: Final = 29.1
"""A row without its prefix columns and an index entry, by PostgreSQL's page layout."""

PREFIX_BYTES: Final = 8

NEAR_ENOUGH: Final = 2.0
"""A layout is fast enough if it takes at most so many times as long as the fastest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one layout costs for lookups of one distance.

    Attributes:
        layout: its name.
        columns: how many prefix columns, and indexes, it has.
        radii: how many prefix bits the probes of each column may flip.
        probes: how many prefixes a lookup visits.
        candidates: how many simhashes it meets there and checks, in a collection of random ones.
        milliseconds: how long that takes with the indexes in memory.
        disk_milliseconds: how long where every probe reads its page from disk.
        bytes_a_row: heap and freshly built indexes.
        index_bytes_a_row: of these, the indexes.
    """

    layout: str
    columns: int
    radii: tuple[int, ...]
    probes: int
    candidates: float
    milliseconds: float
    disk_milliseconds: float
    bytes_a_row: int
    index_bytes_a_row: int


def plan(layout: Layout, rows: int, distance: int) -> Plan:
    """Return what lookups of ``distance`` cost in a collection of ``rows`` distinct simhashes.

    Raises:
        InvalidDistanceError: the layout does not answer ``distance``.
    """
    radii = cheapest_radii(layout, rows, distance)
    probes = sum(
        permutation.probes(radius)
        for permutation, radius in zip(layout.permutations, radii, strict=True)
    )
    candidates = _candidates(layout, rows, radii)
    milliseconds = _milliseconds(layout, rows, radii)
    columns = len(layout.permutations)
    indexes = round(INDEX_BYTES * columns)
    return Plan(
        layout=layout.name,
        columns=columns,
        radii=radii,
        probes=probes,
        candidates=candidates,
        milliseconds=milliseconds,
        disk_milliseconds=milliseconds + DISK_READ_MS * min(probes, rows),
        bytes_a_row=HEAP_BYTES + PREFIX_BYTES * columns + indexes,
        index_bytes_a_row=indexes,
    )


def plans(rows: int, distance: int) -> list[Plan]:
    """Return the plan of every layout that answers ``distance``, the smallest first.

    Raises:
        InvalidDistanceError: no layout answers ``distance``.
    """
    largest = max(layout.distances[-1] for layout in LAYOUTS.values())
    check_distance(distance, largest)
    found = [
        plan(layout, rows, distance) for layout in LAYOUTS.values() if distance in layout.distances
    ]
    return sorted(found, key=attrgetter("bytes_a_row"))


def recommend(found: list[Plan]) -> Plan:
    """Return the smallest of the plans that are at most twice as slow as the fastest."""
    fastest = min(option.milliseconds for option in found)
    return min(
        (option for option in found if option.milliseconds <= NEAR_ENOUGH * fastest),
        key=attrgetter("bytes_a_row"),
    )


def cheapest_radii(layout: Layout, rows: int, distance: int) -> tuple[int, ...]:
    """Return the radii that miss nothing within ``distance`` and take the least time.

    Where single blocks lead, every choice with sum(radius + 1) = distance + 1 is exact.

    Raises:
        InvalidDistanceError: the layout does not answer ``distance``.
    """
    usual = layout.radii(distance)
    if layout.leading > 1 or layout.inner:
        return usual
    # A radius far from the even share costs many times as much.
    choices = range(max(NOT_PROBED, min(usual) - 1), max(usual) + 2)
    exact = (
        radii
        for radii in product(choices, repeat=len(usual))
        if sum(radius + 1 for radius in radii) == distance + 1
    )
    return min(exact, key=lambda radii: (_milliseconds(layout, rows, radii), radii != usual))


def expected_candidates(layout: Layout, rows: int, distance: int) -> float:
    """Return how many of ``rows`` random simhashes a lookup of ``distance`` checks."""
    return _candidates(layout, rows, layout.radii(distance))


def _candidates(layout: Layout, rows: int, radii: tuple[int, ...]) -> float:
    return sum(
        permutation.probes(radius) * rows / (1 << permutation.width)
        for permutation, radius in zip(layout.permutations, radii, strict=True)
    )


def _milliseconds(layout: Layout, rows: int, radii: tuple[int, ...]) -> float:
    probes = sum(
        permutation.probes(radius)
        for permutation, radius in zip(layout.permutations, radii, strict=True)
    )
    return (
        CALL_MS
        + PERMUTATION_MS * len(layout.permutations)
        + PROBE_MS * probes
        + CANDIDATE_MS * _candidates(layout, rows, radii)
    )
