"""Compute the features of the default scheme: words, numbers and pairs, by block weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.hashes import GOLDEN_RATIO, Hashes, murmur3_64, murmur3_mix
from pgsimhash.html import Article, WeightedWords
from pgsimhash.html.native import NativeVote
from pgsimhash.html.page_words import VOLATILE, words_by_line

OCCURRENCES: Final = {
    "word": 1.0,
    "number": 2.5,
    "listed": 0.222,
    "volatile": 0.1644,
    "pair": 0.088,
    "pair_with_number": 0.1659,
    "pair_with_listed": 0.05547,
    "pair_with_volatile": 0.2999,
}
"""The weight of an occurrence of a feature, times its block's weight (fitted by bench/fit.py)."""

EVENED: Final = 0.1
"""A feature with this sum of weights has half of the largest weight in a signature."""


def pair_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Return the hashes of pairs of words, computed from the hashes of the words.

    They are MurmurHash3's 64-bit finalizer of ``first * 0x9E3779B97F4A7C15 + second``, modulo
    2**64. So no string is hashed for a pair.
    """
    return murmur3_mix(first * GOLDEN_RATIO + second)


def murmur3_64_of_words(features: Collection[str]) -> Hashes:
    """Return the hashes of words by ``murmur3_64``, and of pairs by :func:`pair_hashes`."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    nothing = numbers[""]
    parts = chain.from_iterable(feature.partition(" ") for feature in features)
    words = np.fromiter(map(numbers.__getitem__, parts), np.intp, 3 * len(features))
    hashes = murmur3_64(numbers)
    first, second = words[::3], words[2::3]
    return np.where(second == nothing, hashes[first], pair_hashes(hashes[first], hashes[second]))


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """Weigh words, and pairs of neighbouring words in a block, by the weights of their blocks.

    The weight of a feature is ``s / (1 + s) ** damping``. An occurrence adds to s the weight of its
    block times that of its kind (:data:`OCCURRENCES`). So a word of the text loses no weight if it
    is also in the navigation, and each repetition adds less. In an article without weighted words,
    such as plain text, each line is a block of weight 1.

    Attributes:
        damping: from 0 (the weight is s) to 1 (the weight is at most 1).
    """

    damping: float = 0.85

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights; ``tokens`` is ignored."""
        names, sums = sums_of_occurrences(words_of(article))
        return dict(zip(names, self.damped(sums).tolist(), strict=True))

    def native_vote(self, article: Article) -> NativeVote | None:
        """Return the vote of a page that the C extension read, or None for any other."""
        if article.native is None or type(self) is not BlockWeights:
            return None
        return article.native.vote(tuple(OCCURRENCES.values()), self.damping, EVENED)

    def damped(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights in the vote of features with these sums of weights."""
        weights: NDArray[np.float64] = sums * (1.0 + sums) ** -self.damping
        return weights


def sums_of_occurrences(words: WeightedWords) -> tuple[list[str], NDArray[np.float64]]:
    """Return the words, then the pairs, and the sums of the weights of their occurrences."""
    factors = [*OCCURRENCES.values()]
    sums: defaultdict[str, float] = defaultdict(float)
    for block in words.blocks:
        for word, kind in zip(block.words, block.kinds, strict=True):
            sums[word] += block.weight * factors[min(kind, VOLATILE)]
    for block in words.blocks:
        kinds = map(max, pairwise(block.kinds))
        for pair, kind in zip(map(" ".join, pairwise(block.words)), kinds, strict=True):
            sums[pair] += block.weight * factors[4 + min(kind, VOLATILE)]
    return list(sums), np.fromiter(sums.values(), np.float64, len(sums))


def words_of(article: Article) -> WeightedWords:
    """Return the weighted words of an article; without them, each line has weight 1."""
    return words_by_line(article.text) if article.words is None else article.words
