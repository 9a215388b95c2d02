"""Weigh the words and shingles of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.features import DAMPINGS, Damping, weigh
from pgsimhash.html import Article


@dataclass(frozen=True, slots=True)
class ShingleWeights:
    """Weigh shingles of all ``sizes`` (1 for single tokens), damped by their counts.

    Attributes:
        sizes: the sizes of shingles.
        damping: how a weight grows with the count.

    Raises:
        ArgumentError: ``sizes`` is empty or has a size below 1, or the damping is unknown.
    """

    sizes: tuple[int, ...] = (1, 2)
    damping: Damping = "sqrt"

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ArgumentError(
                "invalid_argument", f"sizes are one or more numbers from 1, not {self.sizes}"
            )
        if self.damping not in DAMPINGS:
            raise ArgumentError(
                "invalid_argument", f"damping is one of {', '.join(DAMPINGS)}, not {self.damping!r}"
            )

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        return weigh(tokens, self.sizes, self.damping)
