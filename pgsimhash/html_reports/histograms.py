"""Compute the bars of a histogram; ``templates/histogram.html`` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

WIDTH: Final = 400
HEIGHT: Final = 170
LEFT: Final = 4
BASE: Final = 130
_TALLEST: Final = 108
_FEWEST: Final = 9


class Bar(NamedTuple):
    """A bar: its place and size, its number of bits, and its number of pages."""

    x: float
    y: float
    width: float
    height: float
    bits: int
    pages: int
    label: str

    @property
    def middle(self) -> float:
        """The horizontal centre, for its labels."""
        return round(self.x + self.width / 2, 1)


def bars(distances: Mapping[int, int]) -> list[Bar]:
    """Return a bar for each number of bits from 0 on, with proportional heights.

    Args:
        distances: the number of pages by number of bits.
    """
    places = max(_FEWEST, *(bits + 1 for bits in distances)) if distances else _FEWEST
    step = (WIDTH - 2 * LEFT) / places
    highest = max(distances.values(), default=0) or 1
    histogram = []
    for bits in range(places):
        pages = distances.get(bits, 0)
        height = max(_TALLEST * pages / highest, 2.0) if pages else 0.0
        histogram.append(
            Bar(
                round(LEFT + bits * step + 1, 1),
                round(BASE - height, 1),
                round(step - 2, 1),
                round(height, 1),
                bits,
                pages,
                _short(pages) if pages else "",
            )
        )
    return histogram


def _short(count: int) -> str:
    """Return a number in at most four characters."""
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.{0 if count >= 10 * unit else 1}f}{name}"
    return str(count)
