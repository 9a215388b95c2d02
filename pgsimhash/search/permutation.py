"""Permute bit blocks, so that some of them lead.

A column holds the prefix of a permutation, and lookups probe it (Manku, Jain, Das Sarma, "Detecting
Near-Duplicates for Web Crawling", WWW 2007, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from pgsimhash.hashing.bits import BITS, check_simhash, to_bigint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    """One order of the bit blocks.

    ``number`` counts from 1 and names the column ``prefix_<number>``. The prefix has the bits of
    the ``leading`` blocks, in order; ``trailing`` are all other blocks.
    """

    number: int
    leading: tuple[Block, ...]
    trailing: tuple[Block, ...]

    @property
    def width(self) -> int:
        """The width of the prefix in bits."""
        return sum(block.width for block in self.leading)

    @property
    def places(self) -> list[tuple[Block, int]]:
        """Each leading block, with the number of prefix bits behind it."""
        position, places = self.width, []
        for block in self.leading:
            position -= block.width
            places.append((block, position))
        return places

    @property
    def bits(self) -> int:
        """The mask of the leading blocks' bits in a simhash, as a PostgreSQL bigint."""
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
        """Return the permuted simhashes, with the prefix in the highest bits."""
        return _moved(simhashes, [(block, block.shift, to) for block, to in self._order()])

    def restore(self, permuted: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the simhashes that :meth:`permute` turns into ``permuted``."""
        return _moved(permuted, [(block, at, block.shift) for block, at in self._order()])

    def _order(self) -> Iterator[tuple[Block, int]]:
        """Yield the blocks in order, and the permuted position of each."""
        position = BITS
        for block in _joined((*self.leading, *self.trailing)):
            position -= block.width
            yield block, position

    def flips(self, radius: int) -> list[int]:
        """Return every mask of ``width`` bits with at most ``radius`` bits set, ascending."""
        return sorted(
            sum(1 << bit for bit in bits)
            for count in range(radius + 1)
            for bits in combinations(range(self.width), count)
        )

    def probes(self, radius: int) -> int:
        """Return how many prefixes are within ``radius`` bits of a prefix."""
        return sum(comb(self.width, count) for count in range(radius + 1))


def _moved(numbers: NDArray[np.uint64], moves: list[tuple[Block, int, int]]) -> NDArray[np.uint64]:
    import numpy as np

    result = np.zeros_like(numbers)
    for block, start, end in moves:
        bits = numbers >> np.uint64(start)
        bits &= np.uint64(block.mask)
        bits <<= np.uint64(end)
        result |= bits
    return result


def _joined(blocks: tuple[Block, ...]) -> list[Block]:
    """Join blocks that are also neighbours in the simhash."""
    joined: list[Block] = []
    for block in blocks:
        if joined and joined[-1].shift == block.shift + block.width:
            joined[-1] = Block(joined[-1].width + block.width, block.shift)
        else:
            joined.append(block)
    return joined
