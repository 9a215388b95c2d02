"""Show two simhashes by a layout's bit blocks and probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pgsimhash.hashing.bits import check_simhash, hamming_distance
from pgsimhash.search.layout import Layout


class BlockBits(NamedTuple):
    """A bit block: its bits in both simhashes, as digits, and how many differ."""

    a: str
    b: str
    differing: int


@dataclass(frozen=True, slots=True)
class PermutationView:
    """The pair in one permutation.

    ``differing`` is the number of differing bits of the prefix. ``sees_from`` is the smallest
    distance at which a lookup of one finds the other by this permutation, or None.
    """

    number: int
    column: str
    differing: int
    sees_from: int | None


def block_bits(a: int, b: int, layout: Layout) -> list[BlockBits]:
    """Return the bits of both simhashes in each block of the layout, highest first."""
    blocks = []
    for block in layout.blocks:
        left, right = (check_simhash(value) >> block.shift & block.mask for value in (a, b))
        digits = [f"{value:0{block.width}b}" for value in (left, right)]
        blocks.append(BlockBits(digits[0], digits[1], (left ^ right).bit_count()))
    return blocks


def permutation_views(a: int, b: int, layout: Layout) -> list[PermutationView]:
    """Return the pair in each permutation of the layout."""
    bits = hamming_distance(a, b)
    radii_by_distance = [(distance, layout.radii(distance)) for distance in layout.distances[bits:]]
    views = []
    for number, permutation in enumerate(layout.permutations):
        differing = (permutation.prefix(a) ^ permutation.prefix(b)).bit_count()
        sees = next((at for at, radii in radii_by_distance if radii[number] >= differing), None)
        views.append(PermutationView(permutation.number, permutation.column, differing, sees))
    return views
