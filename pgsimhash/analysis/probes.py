"""How a layout's blocks and probes see two simhashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pgsimhash.bits import check_simhash, hamming_distance
from pgsimhash.layout import Layout


class BlockBits(NamedTuple):
    """A block of the layout: its bits in both simhashes, as digits, and how many differ."""

    a: str
    b: str
    differing: int


@dataclass(frozen=True, slots=True)
class PermutationView:
    """How one permutation sees the pair.

    ``differing`` bits of its prefix differ; ``sees_from`` is the smallest distance at which a
    lookup of one finds the other by this permutation, None where no distance is enough.
    """

    number: int
    column: str
    differing: int
    sees_from: int | None


def block_bits(a: int, b: int, layout: Layout) -> list[BlockBits]:
    """Return both simhashes cut into the layout's blocks, from the highest bits down."""
    found = []
    for block in layout.blocks:
        one, other = (check_simhash(value) >> block.shift & block.mask for value in (a, b))
        digits = [f"{value:0{block.width}b}" for value in (one, other)]
        found.append(BlockBits(digits[0], digits[1], (one ^ other).bit_count()))
    return found


def permutation_views(a: int, b: int, layout: Layout) -> list[PermutationView]:
    """Return how each permutation of the layout sees the pair."""
    bits = hamming_distance(a, b)
    reached = [(distance, layout.radii(distance)) for distance in layout.distances[bits:]]
    found = []
    for number, permutation in enumerate(layout.permutations):
        differing = (permutation.prefix(a) ^ permutation.prefix(b)).bit_count()
        sees = next((at for at, radii in reached if radii[number] >= differing), None)
        found.append(PermutationView(permutation.number, permutation.column, differing, sees))
    return found
