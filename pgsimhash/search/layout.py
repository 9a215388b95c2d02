"""Cut the 64 bits into blocks, and choose which prefixes a lookup probes.

A layout has one column for each permutation of its blocks; the column holds the leading blocks as a
prefix (Manku, Jain, Das Sarma, WWW 2007, section 3). A probe may flip up to ``radius`` bits of the
prefix, so the same few columns serve every distance. If two simhashes differ in at most k bits and
the radii of single blocks satisfy sum(radius + 1) > k, then in some block they differ in at most
that block's radius (pigeonhole; Norouzi, Punjani, Fleet, "Fast Exact Search in Hamming Space with
Multi-Index Hashing", 2014, section 3).

All SQL that depends on the layout is rendered from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, groupby, pairwise
from math import comb
from typing import TYPE_CHECKING, Final

from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.bits import BITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLLECTION_SHIFT: Final = 40  # a prefix column holds the collection's number above this bit
DISTANCE_MAX: Final = 12  # beyond it, random matches outnumber true ones
PROBES_MAX: Final = 20_000  # probes of a lookup; limits the distances of a layout


@dataclass(frozen=True, slots=True)
class Block:
    """A run of ``width`` bits that starts ``shift`` bits above the lowest."""

    width: int
    shift: int

    @property
    def mask(self) -> int:
        """The block's bits, shifted down to bit 0."""
        return (1 << self.width) - 1


@dataclass(frozen=True)
class Permutation:
    """One order of the bit blocks.

    ``number`` counts from 1 and names the column ``prefix_<number>``. The prefix has the bits of
    the ``leading`` blocks, in order; the others of all ``bits`` follow, from the highest down.
    """

    number: int
    leading: tuple[Block, ...]
    bits: int = BITS

    @property
    def width(self) -> int:
        """The width of the prefix in bits."""
        return sum(block.width for block in self.leading)

    @property
    def places(self) -> list[tuple[Block, int]]:
        """Each leading block, with the number of prefix bits behind it."""
        return _places(self.leading, self.width)

    def permute(self, simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the permuted simhashes, with the prefix in the highest bits."""
        return _moved(simhashes, [(block, block.shift, to) for block, to in self._order])

    def restore(self, permuted: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the simhashes that :meth:`permute` turns into ``permuted``."""
        return _moved(permuted, [(block, at, block.shift) for block, at in self._order])

    @cached_property
    def _order(self) -> list[tuple[Block, int]]:
        """The blocks in order, and the permuted position of each."""
        front = _bits_of(self.leading)
        behind = (bit for bit in reversed(range(self.bits)) if bit not in front)
        return _places(runs_of([*front, *behind]), BITS)

    def flips(self, radius: int) -> list[int]:
        """Return every mask of ``width`` bits with at most ``radius`` bits set, ascending."""
        return sorted(
            sum(1 << bit for bit in bits)
            for count in range(radius + 1)
            for bits in combinations(range(self.width), count)
        )


@dataclass(frozen=True)
class Layout:
    """A partition of the 64 bits into blocks, with a permutation for each choice of leading blocks.

    ``widths`` are the blocks from the highest bit down; ``leading`` of them lead in every
    permutation ("m choose r": Manku, Jain, Das Sarma, WWW 2007, section 3.1.2). ``inner`` cuts the
    bits behind the one leading block into this many blocks again; each follows the leading block
    in its own permutation (the paper's 16 tables of section 3.1.3). ``bits`` differs from 64 only
    in exhaustive tests and within hot prefixes of :mod:`pgsimhash.search.pairs`.
    """

    name: str
    widths: tuple[int, ...]
    leading: int = 1
    inner: int = 0
    bits: int = BITS

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, from the highest bits to the lowest."""
        ends = accumulate(self.widths)
        return tuple(map(Block, self.widths, (self.bits - end for end in ends)))

    @cached_property
    def permutations(self) -> tuple[Permutation, ...]:
        """The permutations in the order of their columns."""
        fronts = list(combinations(self.blocks, self.leading))
        if self.inner:
            fronts = [front + piece for front in fronts for piece in self._pieces_behind(front)]
        return tuple(
            Permutation(number, front, self.bits) for number, front in enumerate(fronts, start=1)
        )

    def _pieces_behind(self, front: tuple[Block, ...]) -> list[tuple[Block, ...]]:
        """Cut the bits behind the leading block into ``inner`` pieces of about the same width."""
        bits = _bits_of(block for block in self.blocks if block not in front)
        borders = [len(bits) * number // self.inner for number in range(self.inner + 1)]
        return [runs_of(bits[start:end]) for start, end in pairwise(borders)]

    @cached_property
    def distances(self) -> range:
        """The supported distances: 0 to the largest within :data:`PROBES_MAX`."""
        distances = range(DISTANCE_MAX + 1)
        return range(sum(self.probes(distance) <= PROBES_MAX for distance in distances))

    def probes(self, distance: int) -> int:
        """Return how many probes a lookup of ``distance`` takes in all permutations."""
        return sum(
            comb(permutation.width, count)
            for permutation, radius in zip(self.permutations, self.radii(distance), strict=True)
            for count in range(radius + 1)
        )

    def radii(self, distance: int) -> tuple[int, ...]:
        """Return a radius for each permutation, so that no match within ``distance`` is missed.

        With one leading block, sum(radius + 1) over the permutations is exactly ``distance + 1``;
        the first blocks take the larger radii. -1 marks a permutation that is not needed. With
        more, all radii are equal: the fewest differing bits that some prefix must have in any case.
        """
        blocks = len(self.widths)
        least, more = divmod(distance, blocks)
        if self.inner:
            # `first`: differing bits in the best block; the best inner block shares the rest.
            radius = max(first + (distance - first) // self.inner for first in range(least + 1))
        elif self.leading > 1:
            radius = self.leading * least + max(0, self.leading - (blocks - more))
        else:
            return tuple(least - (number > more) for number in range(blocks))
        return (radius,) * len(self.permutations)


def _places(blocks: Sequence[Block], bits: int) -> list[tuple[Block, int]]:
    """Return each block of a row of ``bits``, with the number of bits behind it."""
    ends = accumulate(block.width for block in blocks)
    return [(block, bits - end) for block, end in zip(blocks, ends, strict=True)]


def _bits_of(blocks: Iterable[Block]) -> list[int]:
    return [
        bit for block in blocks for bit in reversed(range(block.shift, block.shift + block.width))
    ]


def runs_of(bits: list[int]) -> tuple[Block, ...]:
    """Return descending bit numbers as blocks of neighbours."""
    # The sum of a bit's place and number is the same for all neighbours.
    runs = (list(run) for _, run in groupby(enumerate(bits), sum))
    return tuple(Block(len(run), run[-1][1]) for run in runs)


def equal_widths(blocks: int, bits: int = BITS) -> tuple[int, ...]:
    """Return the widths of this many blocks, nearly equal, the wider ones first."""
    width, wider = divmod(bits, blocks)
    return tuple(width + (number < wider) for number in range(blocks))


LAYOUTS: Final = {
    layout.name: layout
    for layout in (
        Layout("22+21+21", (22, 21, 21)),
        Layout("32+32", (32, 32)),
        Layout("16+16+16+16", (16, 16, 16, 16)),
        Layout("5 choose 2", equal_widths(5), leading=2),
        Layout("4x4", (16, 16, 16, 16), inner=4),
        Layout("6 choose 3", equal_widths(6), leading=3),
        Layout("8 choose 2", equal_widths(8), leading=2),
    )
}
"""The layouts of schemas and tables; "4x4", "6 choose 3" and "8 choose 2" are the paper's."""

DEFAULT_LAYOUT: Final = LAYOUTS["22+21+21"]


def get_layout(name: str) -> Layout:
    """Return the layout called ``name``, one of :data:`LAYOUTS`."""
    layout = LAYOUTS.get(name)
    if layout is None:
        raise invalid_argument(f"{name!r} is not a layout: there are {', '.join(LAYOUTS)}")
    return layout


def _moved(numbers: NDArray[np.uint64], moves: list[tuple[Block, int, int]]) -> NDArray[np.uint64]:
    import numpy as np

    result = np.zeros_like(numbers)
    for block, start, end in moves:
        bits = numbers >> np.uint64(start)
        bits &= np.uint64(block.mask)
        bits <<= np.uint64(end)
        result |= bits
    return result
