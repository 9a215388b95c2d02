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
    STOP_WORDS,
    Damping,
    damped,
    image_features,
    shingles,
    spot_shingles,
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

    Raises:
        ArgumentError: ``sizes`` is empty or has a size below 1, or the damping is unknown.
    """

    sizes: tuple[int, ...] = (1, 2)
    damping: Damping = "sqrt"

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ArgumentError(
                "invalid_recipe", f"sizes are one or more numbers from 1, not {self.sizes}"
            )
        _check_damping(self.damping)

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        return weigh(tokens, self.sizes, self.damping)


@dataclass(frozen=True, slots=True)
class SpotWeights:
    """Weigh stop words with the words after them, against advertisements (SpotSigs, SIGIR 2008).

    Raises:
        ArgumentError: ``size`` is below 2, or the damping is unknown.
    """

    size: int = 3
    stop_words: frozenset[str] = STOP_WORDS
    damping: Damping = "sqrt"

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ArgumentError("invalid_recipe", f"size is 2 or more, not {self.size}")
        _check_damping(self.damping)

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        return damped(Counter(spot_shingles(tokens, self.size, self.stop_words)), self.damping)


@dataclass(frozen=True, slots=True)
class ImageWeights:
    """Weigh the images of an article, by URL or by ``key(url)``, such as a hash."""

    weight: float = 1.0
    key: Callable[[str], str | None] | None = None

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        return dict.fromkeys(image_features(article.markdown, self.key), self.weight)


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Multiply the weights of another weighting for features in the title and headings.

    Attributes:
        weighting: the weighting that gives the features and their weights.
        title: the factor for features in the article's title.
        headings: the factor for features in its headings; for features in both, the larger factor.
        sizes: the sizes of shingles of titles and headings.
        tokenize: the tokenizer of titles and headings; use that of the scheme.
    """

    weighting: Weighting
    title: float = 2.0
    headings: float = 1.5
    sizes: tuple[int, ...] = (1, 2)
    tokenize: Tokenizer = tokenize

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        factors: dict[str, float] = {}
        lines = [(line, self.headings) for line in _headings(article.markdown)]
        if article.title:
            lines.append((article.title, self.title))
        for line, factor in lines:
            words = self.tokenize(line)
            for size in self.sizes:
                for feature in shingles(words, size):
                    factors[feature] = max(factors.get(feature, factor), factor)
        weighted = self.weighting(tokens, article)
        return {feature: weight * factors.get(feature, 1.0) for feature, weight in weighted.items()}


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


def _check_damping(damping: str) -> None:
    if damping not in DAMPINGS:
        raise ArgumentError(
            "invalid_recipe", f"damping is one of {', '.join(DAMPINGS)}, not {damping!r}"
        )
