"""Blocks, permutations, prefixes and probes: the geometry of the exact search.

A layout cuts the 64 bits of a simhash into blocks and gives each permutation of the blocks one
column, which holds the leading block as a prefix (Manku, Jain, Das Sarma, WWW 2007, section 3).
Where the prefix alone is probed, every match must have an unchanged block; by letting a probe
flip up to ``radius`` bits of the prefix the same few columns answer every distance: if two
simhashes differ in at most k bits and the radii satisfy sum(radius + 1) > k, then in some block
they differ in at most that block's radius (pigeonhole; Norouzi, Punjani, Fleet, "Fast Exact
Search in Hamming Space with Multi-Index Hashing", 2014, section 3).

Everything in SQL that depends on the layout is rendered from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import BITS, NEAR_MAX, check_distance, check_simhash

COLLECTION_SHIFT: Final = 40
"""A prefix column holds the collection's number above this bit and the prefix below it."""

COLLECTION_MAX: Final = (1 << (63 - COLLECTION_SHIFT)) - 1

NOT_PROBED: Final = -1
"""The radius of a permutation that a distance does not need."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """One order of the blocks, known by the block it brings to the front.

    ``number`` counts from 1 and names the column ``prefix_<number>``; the prefix is the
    ``width`` bits of the simhash that start ``shift`` bits above the lowest.
    """

    number: int
    width: int
    shift: int

    @property
    def mask(self) -> int:
        """The prefix's bits, shifted down to bit 0."""
        return (1 << self.width) - 1

    @property
    def column(self) -> str:
        """The name of the column that holds the prefix."""
        return f"prefix_{self.number}"

    def prefix(self, simhash: int) -> int:
        """Return the prefix of ``simhash`` (0 <= prefix < 2**width)."""
        return (check_simhash(simhash) >> self.shift) & self.mask

    def flips(self, radius: int) -> list[int]:
        """Return every mask of ``width`` bits with at most ``radius`` bits set, ascending."""
        return sorted(
            sum(1 << bit for bit in bits)
            for count in range(radius + 1)
            for bits in combinations(range(self.width), count)
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """A partition of the 64 bits into blocks, widest first, with a permutation for each.

    Raises:
        ValueError: the widths do not add up to 64, or a block cannot be a prefix.
    """

    name: str
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(self.widths) != BITS:
            raise ValueError(f"the blocks of a layout add up to {BITS} bits, not to {self.widths}")
        if not all(0 < width <= COLLECTION_SHIFT for width in self.widths):
            raise ValueError(f"a block is 1 to {COLLECTION_SHIFT} bits wide, not {self.widths}")

    @property
    def permutations(self) -> tuple[Permutation, ...]:
        """The permutations in the order of their columns."""
        shift, found = BITS, []
        for number, width in enumerate(self.widths, start=1):
            shift -= width
            found.append(Permutation(number, width, shift))
        return tuple(found)

    @property
    def distances(self) -> range:
        """The distances a lookup may ask for."""
        return range(NEAR_MAX + 1)

    @property
    def largest_radius(self) -> int:
        """The largest radius that any distance of this layout needs."""
        return max(max(self.radii(distance)) for distance in self.distances)

    def radii(self, distance: int) -> tuple[int, ...]:
        """Return one radius for each permutation, so that no match within ``distance`` is missed.

        The radii add up, with one more for each permutation, to exactly ``distance + 1``; the
        wider blocks take the larger ones, because a probe of theirs meets fewer candidates.
        ``NOT_PROBED`` marks a permutation that is not needed.

        Raises:
            InvalidDistanceError: ``distance`` is not in :attr:`distances`.
        """
        share, extra = divmod(check_distance(distance, self.distances[-1]) + 1, len(self.widths))
        return tuple(share - 1 + (number <= extra) for number in range(1, len(self.widths) + 1))

    def prefixes(self, simhashes: NDArray[np.uint64], collection_id: int) -> NDArray[np.int64]:
        """Return what the prefix columns hold: shape (n,) uint64 in, (n, permutations) int64 out.

        Raises:
            ValueError: ``collection_id`` does not fit above the prefix.
        """
        if not 0 < collection_id <= COLLECTION_MAX:
            raise ValueError(f"a collection's number is 1 to {COLLECTION_MAX}, not {collection_id}")
        columns = [(simhashes >> np.uint64(p.shift)) & np.uint64(p.mask) for p in self.permutations]
        scoped = np.stack(columns, axis=1) | np.uint64(collection_id << COLLECTION_SHIFT)
        return scoped.astype(np.int64)


THREE_BLOCKS: Final = Layout("22+21+21", (22, 21, 21))

LAYOUTS: Final = {layout.name: layout for layout in (THREE_BLOCKS,)}

DEFAULT_LAYOUT: Final = THREE_BLOCKS
