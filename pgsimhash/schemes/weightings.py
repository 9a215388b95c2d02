"""Define weightings for schemes; each is a callable frozen dataclass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.features import (
    DAMPINGS,
    Damping,
    damped,
    image_features,
    shingles,
    stop_word_shingles,
    weigh,
)
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html import Article

if TYPE_CHECKING:
    from pgsimhash.schemes.recipe import Tokenizer, Weighting

_HEADING: Final = re.compile("#{1,6} ")
_FENCE: Final = re.compile("`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class ShingleWeights:
    """Weigh shingles of all ``sizes`` (1 for single tokens), damped by their counts.

    Attributes:
        sizes: the sizes of shingles.
        damping: how a weight grows with the count.
        stop_words: weigh only shingles that include at least one of these, such as
            :data:`~pgsimhash.hashing.features.STOP_WORDS`; None for all shingles.

    Raises:
        ArgumentError: ``sizes`` is empty or has a size below 1, or the damping is unknown.
    """

    sizes: tuple[int, ...] = (1, 2)
    damping: Damping = "sqrt"
    stop_words: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ArgumentError(
                "invalid_recipe", f"sizes are one or more numbers from 1, not {self.sizes}"
            )
        if self.damping not in DAMPINGS:
            raise ArgumentError(
                "invalid_recipe", f"damping is one of {', '.join(DAMPINGS)}, not {self.damping!r}"
            )

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        if self.stop_words is None:
            return weigh(tokens, self.sizes, self.damping)
        counts = Counter(
            shingle
            for size in self.sizes
            for shingle in stop_word_shingles(tokens, size, self.stop_words)
        )
        return damped(counts, self.damping)


@dataclass(frozen=True, slots=True)
class ImageWeights:
    """Weigh the images of an article, by URL or by ``key(url)``, such as a hash."""

    weight: float = 1.0
    key: Callable[[str], str | None] | None = None

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        return dict.fromkeys(image_features(article.markdown, self.key), self.weight)


@dataclass(frozen=True, slots=True)
class HeadingWeights:
    """Weigh the shingles of the title and headings; add them to other weightings by ``Mixture``.

    Attributes:
        title: the weight of a feature in the article's title.
        headings: the weight of a feature in its headings; a feature in both has the larger weight.
        sizes: the sizes of shingles.
        tokenize: the tokenizer of titles and headings; use that of the scheme.
    """

    title: float = 1.0
    headings: float = 1.0
    sizes: tuple[int, ...] = (1, 2)
    tokenize: Tokenizer = tokenize

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights; ``tokens`` is ignored."""
        lines = [(line, self.headings) for line in _headings(article.markdown)]
        lines.append((article.title or "", self.title))
        weights: dict[str, float] = {}
        for line, weight in lines:
            words = self.tokenize(line)
            for size in self.sizes:
                for feature in shingles(words, size):
                    weights[feature] = max(weights.get(feature, weight), weight)
        return weights


@dataclass(frozen=True, slots=True)
class Mixture:
    """Add other weightings, each times its share: ``Mixture(((words, 2.0), (spots, 1.0)))``.

    Raises:
        ArgumentError: ``parts`` is empty.
    """

    parts: tuple[tuple[Weighting, float], ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ArgumentError("invalid_recipe", "a mixture has one part or more")

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        summed: dict[str, float] = {}
        for weighting, share in self.parts:
            for feature, weight in weighting(tokens, article).items():
                summed[feature] = summed.get(feature, 0.0) + share * weight
        return summed


def _headings(markdown: str) -> Iterator[str]:
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            if line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
        elif opened := _FENCE.match(line):
            fence = opened.group()
        elif _HEADING.match(line):
            yield line
