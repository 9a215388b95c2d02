"""The features of the default scheme: words, numbers and pairs, by the weights of their blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashes import GOLDEN_RATIO, Hashes, murmur3_64, murmur3_mix
from pgsimhash.html import Article, WeightedWords
from pgsimhash.html.numbers import VOLATILE
from pgsimhash.html.page_words import words_by_line
from pgsimhash.html.tree import sums_of

OCCURRENCES: Final = {
    "word": 1.0,
    "number": 2.5,
    "listed": 0.3306,
    "volatile": 0.1209,
    "pair": 0.06892,
    "pair_with_number": 0.2645,
    "pair_with_listed": 0.06402,
    "pair_with_volatile": 0.3264,
}
"""How much each occurrence of a feature adds, in weights of its block (fitted by bench/fit.py)."""

EVENED: Final = 0.1
"""A feature with this sum of weights counts half of the most in a sketch."""

_SINGLES: Final = np.array([*OCCURRENCES.values()][:4])
_PAIRS: Final = np.array([*OCCURRENCES.values()][4:])


class HashedFeatures(NamedTuple):
    """Features by their hashes and weights.

    Attributes:
        hashes: shape (n,), dtype uint64.
        weights: for the vote (shape (n,), dtype float64).
        evened: for the sketch, nearly the same for all but what hardly counts (shape (n,), dtype
            float64). So the sketch sees content that the vote gives too little weight.
    """

    hashes: Hashes
    weights: NDArray[np.float64]
    evened: NDArray[np.float64]


def pair_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Return the hashes of pairs of words, made of the hashes of the words.

    That is MurmurHash3's 64-bit finalizer of ``first * 0x9E3779B97F4A7C15 + second``, modulo
    2**64: a pair takes no hashing of letters.

    Args:
        first: shape (n,), dtype uint64.
        second: shape (n,), dtype uint64.
    """
    return murmur3_mix(first * GOLDEN_RATIO + second)


def murmur3_64_of_words(features: Collection[str]) -> Hashes:
    """:func:`~pgsimhash.hashes.murmur3_64` of words; of pairs, :func:`pair_hashes` of both words.

    Args:
        features: words, and pairs of words with one space between them.
    """
    firsts, _, seconds = zip(*(feature.partition(" ") for feature in features), strict=True)
    hashes = murmur3_64(firsts)
    is_pair = np.fromiter(map(bool, seconds), np.bool_, len(seconds))
    pairs = pair_hashes(hashes, murmur3_64(seconds))
    return np.where(is_pair, pairs, hashes)


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """Words and pairs of neighbouring words of a block, by the weights of their blocks.

    A feature weighs ``s / (1 + s) ** damping``, where s is the sum over its occurrences of the
    weight of the block times what its kind adds (:data:`OCCURRENCES`): a word of the text that
    stands in the navigation too loses nothing by that, and repeating a word adds less and less. An
    article without weighted words, such as plain text, is taken line by line, with a weight of 1
    for each.

    Attributes:
        damping: 0 for the sum itself, 1 for at most 1.
    """

    damping: float = 0.85

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights; ``tokens`` are the article's own."""
        said = words_of(article)
        vocabulary = said.vocabulary
        singles, pairs, sums = self._weigh(said)
        weights = self._damped(sums)
        names = [vocabulary[word] for word in singles.tolist()]
        names += [
            f"{vocabulary[first]} {vocabulary[second]}"
            for first, second in zip(*(word.tolist() for word in pairs), strict=True)
        ]
        return dict(zip(names, weights.tolist(), strict=True))

    def hashed(self, said: WeightedWords) -> HashedFeatures:
        """Return the hashes of the features and their weights.

        They are what calling this and :func:`murmur3_64_of_words` give, in less time.
        """
        singles, (first, second), sums = self._weigh(said)
        hashes = murmur3_64(said.vocabulary)
        return HashedFeatures(
            np.concatenate((hashes[singles], pair_hashes(hashes[first], hashes[second]))),
            self._damped(sums),
            sums / (sums + EVENED),
        )

    def _damped(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = sums * (1.0 + sums) ** -self.damping
        return weights

    def _weigh(
        self, said: WeightedWords
    ) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...], NDArray[np.float64]]:
        """Return the words and pairs, by their numbers, and the sums of weights of both."""
        size = len(said.vocabulary)
        own, kinds = said.weights[said.blocks], np.minimum(said.kinds, VOLATILE)
        sums = sums_of(said.words, own * _SINGLES[kinds], size)
        singles = np.flatnonzero(np.bincount(said.words, minlength=size))
        inside = said.blocks[1:] == said.blocks[:-1]
        pairs = (said.words[:-1] * size + said.words[1:])[inside]
        own = (own[1:] * _PAIRS[np.maximum(kinds[1:], kinds[:-1])])[inside]
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        sums = np.concatenate(
            (sums[singles], np.add.reduceat(own[order], starts) if len(starts) else ())
        )
        return singles, np.divmod(pairs[starts], max(size, 1)), sums


def words_of(article: Article) -> WeightedWords:
    """Return the weighted words of an article; its lines weigh 1 where it has none."""
    return words_by_line(article.text) if article.words is None else article.words
