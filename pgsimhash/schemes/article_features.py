"""Compute the features of the default scheme: words, numbers and pairs, by block weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.hashes import GOLDEN_RATIO, Hashes, murmur3_64, murmur3_mix
from pgsimhash.html import Article, WeightedWords
from pgsimhash.html.native import NativeVote
from pgsimhash.html.page_words import VOLATILE, words_by_line
from pgsimhash.html.tree import sums_of

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

_SINGLES: Final = np.array([*OCCURRENCES.values()][:4])
_PAIRS: Final = np.array([*OCCURRENCES.values()][4:])


class HashedFeatures(NamedTuple):
    """The hashes and weights of features.

    Attributes:
        hashes: shape (n,), dtype uint64.
        weights: the weights in the vote (shape (n,), dtype float64).
        evened: the weights in the signature (shape (n,), dtype float64). They are nearly equal,
            except for very light features, so the signature includes content that the vote
            underrates.
    """

    hashes: Hashes
    weights: NDArray[np.float64]
    evened: NDArray[np.float64]


def pair_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Return the hashes of pairs of words, computed from the hashes of the words.

    They are MurmurHash3's 64-bit finalizer of ``first * 0x9E3779B97F4A7C15 + second``, modulo
    2**64. So no string is hashed for a pair.
    """
    return murmur3_mix(first * GOLDEN_RATIO + second)


def murmur3_64_of_words(features: Collection[str]) -> Hashes:
    """Return the hashes of words by ``murmur3_64``, and of pairs by :func:`pair_hashes`."""
    firsts, _, seconds = zip(*(feature.partition(" ") for feature in features), strict=True)
    hashes = murmur3_64(firsts)
    is_pair = np.fromiter(map(bool, seconds), np.bool_, len(seconds))
    pairs = pair_hashes(hashes, murmur3_64(seconds))
    return np.where(is_pair, pairs, hashes)


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
        words = words_of(article)
        vocabulary = words.vocabulary
        singles, pairs, sums = self._weigh(words)
        weights = self._damped(sums)
        names = [vocabulary[word] for word in singles.tolist()]
        names += [
            f"{vocabulary[first]} {vocabulary[second]}"
            for first, second in zip(*(word.tolist() for word in pairs), strict=True)
        ]
        return dict(zip(names, weights.tolist(), strict=True))

    def hashed(self, said: WeightedWords) -> HashedFeatures:
        """Return the hashes of the features and their weights.

        The result is that of a call and :func:`murmur3_64_of_words`, in less time.
        """
        singles, (first, second), sums = self._weigh(said)
        hashes = murmur3_64(said.vocabulary)
        return HashedFeatures(
            np.concatenate((hashes[singles], pair_hashes(hashes[first], hashes[second]))),
            self._damped(sums),
            sums / (sums + EVENED),
        )

    def native_vote(self, article: Article) -> NativeVote | None:
        """Return the vote of a page that the C extension read, or None for any other."""
        if article.native is None or type(self) is not BlockWeights:
            return None
        return article.native.vote(tuple(OCCURRENCES.values()), self.damping, EVENED)

    def _damped(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = sums * (1.0 + sums) ** -self.damping
        return weights

    def _weigh(
        self, page: WeightedWords
    ) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...], NDArray[np.float64]]:
        """Return the numbers of words and pairs, and the sums of weights of both."""
        size = len(page.vocabulary)
        own, kinds = page.weights[page.blocks], np.minimum(page.kinds, VOLATILE)
        sums = sums_of(page.words, own * _SINGLES[kinds], size)
        singles = np.flatnonzero(np.bincount(page.words, minlength=size))
        inside = page.blocks[1:] == page.blocks[:-1]
        pairs = (page.words[:-1] * size + page.words[1:])[inside]
        own = (own[1:] * _PAIRS[np.maximum(kinds[1:], kinds[:-1])])[inside]
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        is_first = np.ones(len(pairs), np.bool_)
        is_first[1:] = pairs[1:] != pairs[:-1]
        starts = np.flatnonzero(is_first)
        sums = np.concatenate(
            (sums[singles], np.add.reduceat(own[order], starts) if len(starts) else ())
        )
        return singles, np.divmod(pairs[starts], max(size, 1)), sums


def words_of(article: Article) -> WeightedWords:
    """Return the weighted words of an article; without them, each line has weight 1."""
    return words_by_line(article.text) if article.words is None else article.words
