"""Predict what a layout costs in bytes, probes, candidates and milliseconds.

A lookup costs a call, an index scan per permutation, a descent per probe and a check per candidate.
A probe of a ``width``-bit prefix meets a random simhash with probability ``2**-width``.
``bench/cost_model.py`` fitted the constants on PostgreSQL 18 with everything in memory. Use them to
compare layouts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from pgsimhash.hashing.bits import check_distance
from pgsimhash.search.layout import LAYOUTS, Layout

CALL_MS: Final = 0.087
PERMUTATION_MS: Final = 0.0008
CONDITION_MS: Final = 0.0038
"""Each permutation excludes the matches of each earlier one, by one condition each."""

PROBE_MS: Final = 0.0007
CANDIDATE_MS: Final = 0.00029

DISK_READ_MS: Final = 0.1
"""Reading one page from a solid-state disk, outside all caches."""

HEAP_BYTES: Final = 44
INDEX_BYTES: Final = 29.1
"""A row without its prefix columns, and an index entry, by PostgreSQL's page layout."""

PREFIX_BYTES: Final = 8

PAGE_BYTES: Final = 673
"""A version of a page with its indexes, by ``bench/space.py`` with URLs of 77 characters."""

SEEN_BYTES: Final = 156
"""The additional bytes of a version that was seen again unchanged, by ``bench/space.py``."""

MARKDOWN_BYTES: Final = 4643
"""Its Markdown, if kept, by ``bench/space.py``: 8,238 characters on average, compressed."""

MEMORY_BYTES: Final = 16 * 2**30
"""A server's default memory for indexes."""

NEAR_ENOUGH: Final = 2.0
"""A layout is fast enough if it takes at most this many times as long as the fastest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The cost of one layout for lookups of one distance.

    Attributes:
        layout: the layout's name.
        columns: the number of prefix columns, each with an index.
        radii: how many prefix bits the probes of each column may flip.
        probes: how many prefixes a lookup visits.
        candidates: how many simhashes a lookup checks, in a collection of random ones.
        milliseconds: the time of a lookup, with a disk read per probe for the part of the indexes
            that does not fit into memory.
        memory_milliseconds: its time with all indexes in memory.
        disk_milliseconds: its time with all indexes on disk.
        bytes_a_row: heap and freshly built indexes.
        index_bytes_a_row: the indexes alone.
        simhash_bytes: all simhashes with their indexes.
        page_bytes: all pages with their indexes, without Markdown, each seen again once; 0 without
            ``pages``.
        markdown_bytes: the Markdown of all pages, if it is kept.
    """

    layout: str
    columns: int
    radii: tuple[int, ...]
    probes: int
    candidates: float
    milliseconds: float
    memory_milliseconds: float
    disk_milliseconds: float
    bytes_a_row: int
    index_bytes_a_row: int
    simhash_bytes: int
    page_bytes: int
    markdown_bytes: int


def plan(
    layout: Layout,
    rows: int,
    distance: int,
    memory: int = MEMORY_BYTES,
    *,
    pages: int = 0,
) -> Plan:
    """Return the cost of lookups in a collection.

    Args:
        layout: the layout.
        rows: the number of distinct simhashes.
        distance: the largest number of differing bits.
        memory: bytes of memory that PostgreSQL and its system have for indexes.
        pages: the number of versions of pages.

    Raises:
        ArgumentError: the layout does not support ``distance``.
    """
    radii = layout.radii(distance)
    probes = sum(
        permutation.probes(radius)
        for permutation, radius in zip(layout.permutations, radii, strict=True)
    )
    candidates = _candidates(layout, rows, radii)
    in_memory = milliseconds(layout, rows, radii)
    columns = len(layout.permutations)
    indexes = round(INDEX_BYTES * columns)
    missing = max(0.0, 1.0 - memory / (indexes * rows))
    reading = DISK_READ_MS * min(probes, rows)
    bytes_a_row = HEAP_BYTES + PREFIX_BYTES * columns + indexes
    return Plan(
        layout=layout.name,
        columns=columns,
        radii=radii,
        probes=probes,
        candidates=candidates,
        milliseconds=in_memory + missing * reading,
        memory_milliseconds=in_memory,
        disk_milliseconds=in_memory + reading,
        bytes_a_row=bytes_a_row,
        index_bytes_a_row=indexes,
        simhash_bytes=bytes_a_row * rows,
        page_bytes=(PAGE_BYTES + SEEN_BYTES) * pages,
        markdown_bytes=MARKDOWN_BYTES * pages,
    )


def plans(
    rows: int,
    distance: int,
    memory: int = MEMORY_BYTES,
    others: Iterable[Layout] = (),
    *,
    pages: int = 0,
) -> list[Plan]:
    """Return the :func:`plan` of every layout that supports ``distance``, the smallest first.

    The layouts are :data:`~pgsimhash.search.layout.LAYOUTS` and ``others``.

    Raises:
        ArgumentError: no layout supports ``distance``.
    """
    layouts = {layout.name: layout for layout in (*LAYOUTS.values(), *others)}.values()
    check_distance(distance, max(layout.distances[-1] for layout in layouts))
    return sorted(
        (
            plan(layout, rows, distance, memory, pages=pages)
            for layout in layouts
            if distance in layout.distances
        ),
        key=attrgetter("bytes_a_row"),
    )


def recommend(plans: list[Plan]) -> Plan:
    """Return the smallest plan among those at most twice as slow as the fastest."""
    fastest = min(option.milliseconds for option in plans)
    return min(
        (option for option in plans if option.milliseconds <= NEAR_ENOUGH * fastest),
        key=attrgetter("bytes_a_row"),
    )


def expected_candidates(layout: Layout, rows: int, distance: int) -> float:
    """Return the expected number of candidates of a lookup among ``rows`` random simhashes."""
    return _candidates(layout, rows, layout.radii(distance))


def milliseconds(layout: Layout, rows: int, radii: tuple[int, ...]) -> float:
    """Return the predicted milliseconds of a lookup with these radii, all in memory."""
    probes = sum(
        permutation.probes(radius)
        for permutation, radius in zip(layout.permutations, radii, strict=True)
    )
    columns = len(layout.permutations)
    return (
        CALL_MS
        + PERMUTATION_MS * columns
        + CONDITION_MS * columns * (columns - 1) / 2
        + PROBE_MS * probes
        + CANDIDATE_MS * _candidates(layout, rows, radii)
    )


def _candidates(layout: Layout, rows: int, radii: tuple[int, ...]) -> float:
    return sum(
        permutation.probes(radius) * rows / (1 << permutation.width)
        for permutation, radius in zip(layout.permutations, radii, strict=True)
    )
