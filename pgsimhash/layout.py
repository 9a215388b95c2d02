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

from pgsimhash.bits import BITS, NEAR_MAX, check_distance, check_simhash, to_bigint

COLLECTION_SHIFT: Final = 40
"""A prefix column holds the collection's number above this bit and the prefix below it."""

COLLECTION_MAX: Final = (1 << (63 - COLLECTION_SHIFT)) - 1

NOT_PROBED: Final = -1
"""The radius of a permutation that a distance does not need."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of ``width`` bits that starts ``shift`` bits above the lowest."""

    width: int
    shift: int

    @property
    def mask(self) -> int:
        """The block's bits, shifted down to bit 0."""
        return (1 << self.width) - 1


@dataclass(frozen=True, slots=True)
class Permutation:
    """One order of the blocks, known by the blocks it brings to the front.

    ``number`` counts from 1 and names the column ``prefix_<number>``; the prefix is the bits of
    the blocks in ``leading``, in their order; ``trailing`` are the others.
    """

    number: int
    leading: tuple[Block, ...]
    trailing: tuple[Block, ...]

    @property
    def width(self) -> int:
        """How many bits the prefix has."""
        return sum(block.width for block in self.leading)

    @property
    def places(self) -> list[tuple[Block, int]]:
        """Each leading block, and how many bits of the prefix come behind it."""
        position, found = self.width, []
        for block in self.leading:
            position -= block.width
            found.append((block, position))
        return found

    @property
    def bits(self) -> int:
        """The leading blocks' bits where they are in a simhash, as PostgreSQL's bigint."""
        return to_bigint(sum(block.mask << block.shift for block in self.leading))

    @property
    def column(self) -> str:
        """The name of the column that holds the prefix."""
        return f"prefix_{self.number}"

    def prefix(self, simhash: int) -> int:
        """Return the prefix of ``simhash`` (0 <= prefix < 2**width)."""
        number = check_simhash(simhash)
        return sum(
            ((number >> block.shift) & block.mask) << position for block, position in self.places
        )

    def permute(self, simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return a new array of permuted simhashes, the prefix in the highest bits."""
        permuted = np.zeros_like(simhashes)
        position = BITS
        for block in _joined((*self.leading, *self.trailing)):
            position -= block.width
            moved = simhashes >> np.uint64(block.shift)
            moved &= np.uint64(block.mask)
            moved <<= np.uint64(position)
            permuted |= moved
        return permuted

    def restore(self, permuted: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the simhashes that :meth:`permute` made ``permuted`` of."""
        simhashes = np.zeros_like(permuted)
        position = BITS
        for block in _joined((*self.leading, *self.trailing)):
            position -= block.width
            moved = permuted >> np.uint64(position)
            moved &= np.uint64(block.mask)
            moved <<= np.uint64(block.shift)
            simhashes |= moved
        return simhashes

    def flips(self, radius: int) -> list[int]:
        """Return every mask of ``width`` bits with at most ``radius`` bits set, ascending."""
        return sorted(
            sum(1 << bit for bit in bits)
            for count in range(radius + 1)
            for bits in combinations(range(self.width), count)
        )


def _joined(blocks: tuple[Block, ...]) -> list[Block]:
    """Join the blocks that are neighbours in the simhash as well."""
    joined: list[Block] = []
    for block in blocks:
        if joined and joined[-1].shift == block.shift + block.width:
            joined[-1] = Block(joined[-1].width + block.width, block.shift)
        else:
            joined.append(block)
    return joined


@dataclass(frozen=True, slots=True)
class Layout:
    """A partition of the 64 bits into blocks, with a permutation for each choice of some.

    ``widths`` are the blocks from the highest bit down; every permutation brings ``leading`` of
    them to the front ("m choose r": Manku, Jain, Das Sarma, WWW 2007, section 3.1.2).

    Raises:
        ValueError: the widths do not add up to 64, or a prefix would be too wide.
    """

    name: str
    widths: tuple[int, ...]
    leading: int = 1

    def __post_init__(self) -> None:
        if sum(self.widths) != BITS or min(self.widths) < 1:
            raise ValueError(f"the blocks of a layout add up to {BITS} bits, not {self.widths}")
        if not 0 < self.leading < len(self.widths):
            raise ValueError(f"some of {len(self.widths)} blocks lead, not {self.leading}")
        if any(permutation.width > COLLECTION_SHIFT for permutation in self.permutations):
            raise ValueError(f"a prefix has at most {COLLECTION_SHIFT} bits; use smaller blocks")

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, from the highest bits to the lowest."""
        shift, found = BITS, []
        for width in self.widths:
            shift -= width
            found.append(Block(width, shift))
        return tuple(found)

    @property
    def permutations(self) -> tuple[Permutation, ...]:
        """The permutations in the order of their columns."""
        return tuple(
            Permutation(number, front, tuple(block for block in self.blocks if block not in front))
            for number, front in enumerate(combinations(self.blocks, self.leading), start=1)
        )

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

        With one leading block each, the radii add up, with one more for each permutation, to
        exactly ``distance + 1``; the first blocks take the larger ones. ``NOT_PROBED`` marks a
        permutation that is not needed. With several leading blocks all radii are the same: what
        the blocks with the fewest differing bits hold when these are spread most evenly.

        Raises:
            InvalidDistanceError: ``distance`` is not in :attr:`distances`.
        """
        bits = check_distance(distance, self.distances[-1])
        blocks = len(self.widths)
        if self.leading > 1:
            least, more = divmod(bits, blocks)
            radius = self.leading * least + max(0, self.leading - (blocks - more))
            return (radius,) * len(self.permutations)
        share, extra = divmod(bits + 1, blocks)
        return tuple(share - 1 + (number <= extra) for number in range(1, blocks + 1))

    def prefixes(self, simhashes: NDArray[np.uint64], collection_id: int) -> NDArray[np.int64]:
        """Return what the prefix columns hold: shape (n,) uint64 in, (n, permutations) int64 out.

        Raises:
            ValueError: ``collection_id`` does not fit above the prefix.
        """
        if not 0 < collection_id <= COLLECTION_MAX:
            raise ValueError(f"a collection's number is 1 to {COLLECTION_MAX}, not {collection_id}")
        columns = [
            permutation.permute(simhashes) >> np.uint64(BITS - permutation.width)
            for permutation in self.permutations
        ]
        scoped = np.stack(columns, axis=1) | np.uint64(collection_id << COLLECTION_SHIFT)
        return scoped.astype(np.int64)


THREE_BLOCKS: Final = Layout("22+21+21", (22, 21, 21))

LAYOUTS: Final = {layout.name: layout for layout in (THREE_BLOCKS,)}

DEFAULT_LAYOUT: Final = THREE_BLOCKS
