"""What a layout costs: bytes, probes, candidates and milliseconds, for any number of rows.

A lookup costs a call, a scan of each permutation's index, a descent for each probe and a check for
each candidate; a random simhash lies behind a probe of a ``width``-bit prefix with probability
``2**-width``. The constants were fitted by ``bench/cost_model.py`` on PostgreSQL 18 with
everything in memory; what counts is how layouts compare.

Several servers ("nodes") share a collection by prefix, as the paper's tables are shared (Manku,
Jain, Das Sarma, WWW 2007, section 3): a probe goes to the one node that has its prefix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from pgsimhash.bits import check_distance
from pgsimhash.layout import LAYOUTS, Layout

CALL_MS: Final = 0.087
PERMUTATION_MS: Final = 0.0008
CONDITION_MS: Final = 0.0038
"""A permutation reports only what no permutation before it sees: a condition for each of them."""

PROBE_MS: Final = 0.0007
CANDIDATE_MS: Final = 0.00029

ADD_MS: Final = 0.07
"""Storing a page in a batch, client and server together, by ``bench/search.py``. Its lookup by SQL
takes what one by itself takes, without the call."""

HELD_PROBE_MS: Final = 0.00002
HELD_CANDIDATE_MS: Final = 0.000012
"""What a store looks up in memory, by the same, from 1 to 50 million rows."""

HELD_BYTES: Final = 64
HELD_SHARE: Final = 8
"""A store holds simhashes in memory, so many bytes each while all are read (afterwards about half
of that), unless told otherwise up to such a part of the machine's memory."""

LOAD_MS: Final = 0.0013
"""Loading a row into an index and its prefix column, where they are built afterwards, by the same:
from 0.0009 at one to 0.0016 at 50 million rows."""

DISK_READ_MS: Final = 0.1
"""One page from a solid-state disk, where neither PostgreSQL nor the system has it in memory."""

HEAP_BYTES: Final = 44
INDEX_BYTES: Final = 29.1
"""A row without its prefix columns and an index entry, by PostgreSQL's page layout."""

PREFIX_BYTES: Final = 8

PAGE_BYTES: Final = 673
"""A version of a page, in all indexes, by ``bench/space.py`` with URLs of 77 characters."""

SEEN_BYTES: Final = 156
"""What it takes beside that when it was seen again unchanged, by the same."""

MARKDOWN_BYTES: Final = 4643
"""Its Markdown, where that is kept, by the same: 8,238 characters in the mean, compressed."""

MEMORY_BYTES: Final = 16 * 2**30
"""How much memory a server is taken to have for indexes, where nothing is said."""

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
        milliseconds: how long that takes: in memory, and for the part of the indexes that does
            not fit, with a read from disk for each probe.
        memory_milliseconds: how long with all indexes in memory.
        disk_milliseconds: how long with none.
        bytes_a_row: heap and freshly built indexes.
        index_bytes_a_row: of these, the indexes.
        simhash_bytes: all simhashes, with the indexes.
        page_bytes: beside these all pages with their indexes, each seen again at some time, but
            without Markdown; 0 where nothing was said of pages.
        markdown_bytes: beside these the Markdown of all pages, where it is kept.
        nodes: how many servers with that memory have all indexes in it together.
        lookups_a_second: how many single lookups they answer together, with a core each.
        adds_a_second: how many pages one writer adds, in batches of which each page is looked up.
        load_hours: how long it takes to load all simhashes into the empty layout, with
            ``Store.add_simhashes``, all nodes at a time.
        days_in_memory: after how many days of growth the indexes do not fit any more; None where
            nothing was said of growth.
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
    nodes: int
    lookups_a_second: float
    adds_a_second: float
    load_hours: float
    days_in_memory: float | None


def plan(
    layout: Layout,
    rows: int,
    distance: int,
    memory: int = MEMORY_BYTES,
    *,
    pages: int = 0,
    growth: int = 0,
) -> Plan:
    """Return what lookups of ``distance`` cost in a collection of ``rows`` distinct simhashes.

    Args:
        layout: which to look at.
        rows: how many distinct simhashes.
        distance: the largest number of differing bits.
        memory: how many bytes PostgreSQL and its system have for keeping indexes.
        pages: how many versions of pages have these simhashes.
        growth: how many distinct simhashes come each day.

    Raises:
        ArgumentError: the layout does not answer ``distance``.
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
    nodes = max(1, math.ceil(indexes * rows / memory)) if memory else 1
    # Of so many nodes these are asked, if the probes fall on them at random.
    asked = nodes * -math.expm1(probes * math.log1p(-1 / nodes)) if nodes > 1 else 1.0
    working = in_memory - CALL_MS
    held = HELD_BYTES * rows * HELD_SHARE <= memory * nodes
    remembered = HELD_PROBE_MS * probes + HELD_CANDIDATE_MS * candidates
    adding = ADD_MS + (remembered if held else working)
    room = nodes * memory - indexes * rows
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
        nodes=nodes,
        lookups_a_second=1000 * nodes / (CALL_MS * asked + working),
        adds_a_second=1000 / adding,
        load_hours=LOAD_MS * columns * rows / nodes / 3.6e6,
        days_in_memory=max(0.0, room / (indexes * growth)) if growth else None,
    )


def plans(
    rows: int,
    distance: int,
    memory: int = MEMORY_BYTES,
    others: Iterable[Layout] = (),
    *,
    pages: int = 0,
    growth: int = 0,
) -> list[Plan]:
    """Return the :func:`plan` of every layout that answers ``distance``, the smallest first.

    Args:
        rows: how many distinct simhashes.
        distance: the largest number of differing bits.
        memory: how many bytes PostgreSQL and its system have for keeping indexes.
        others: layouts to compare beside those of :data:`~pgsimhash.layout.LAYOUTS`.
        pages: how many versions of pages have these simhashes.
        growth: how many distinct simhashes come each day.

    Raises:
        ArgumentError: no layout answers ``distance``.
    """
    layouts = {layout.name: layout for layout in (*LAYOUTS.values(), *others)}.values()
    check_distance(distance, max(layout.distances[-1] for layout in layouts))
    found = [
        plan(layout, rows, distance, memory, pages=pages, growth=growth)
        for layout in layouts
        if distance in layout.distances
    ]
    return sorted(found, key=attrgetter("bytes_a_row"))


def recommend(found: list[Plan]) -> Plan:
    """Return the smallest of the plans that are at most twice as slow as the fastest."""
    fastest = min(option.milliseconds for option in found)
    return min(
        (option for option in found if option.milliseconds <= NEAR_ENOUGH * fastest),
        key=attrgetter("bytes_a_row"),
    )


def expected_candidates(layout: Layout, rows: int, distance: int) -> float:
    """Return how many of ``rows`` random simhashes a lookup of ``distance`` checks."""
    return _candidates(layout, rows, layout.radii(distance))


def milliseconds(layout: Layout, rows: int, radii: tuple[int, ...]) -> float:
    """Return the predicted milliseconds of one lookup with these radii, all in memory."""
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
