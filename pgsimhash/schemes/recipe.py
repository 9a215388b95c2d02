"""Define schemes: named recipes from a page to its simhash."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import mmh3
import numpy as np

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.bits import NEAR_MAX, check_distance
from pgsimhash.hashing.hashes import HashFunction, murmur3_64
from pgsimhash.hashing.signature import signature_hashes
from pgsimhash.hashing.tokens import TOKENS_MAX, tokenize
from pgsimhash.hashing.votes import vote
from pgsimhash.html import Article, WeightedWords
from pgsimhash.schemes.article_features import (
    EVENED,
    BlockWeights,
    murmur3_64_of_words,
    sums_of_occurrences,
    words_of,
)
from pgsimhash.search.layout import DISTANCE_MAX

Extraction = Callable[[bytes | str, str | None, str | None], Article]
"""Returns the main content of a page, given the page, its URL and its HTTP header's charset."""

Tokenizer = Callable[[str], Sequence[str]]
"""Returns the tokens of ``Article.text`` in order."""

Weighting = Callable[[Sequence[str], Article], Mapping[str, float]]
"""Returns the features and their weights, given the tokens of an article and the article."""


class Vote(NamedTuple):
    """The result of a scheme for an article; ``Fingerprint`` describes the fields."""

    simhash: int
    signature: int
    features: int
    tokens: int
    text_digest: int
    unseen: float | None = None


@dataclass(frozen=True, slots=True)
class Scheme:
    """A named recipe from a page to its simhash.

    Only simhashes of one scheme can be compared, so a recipe that changes a simhash needs a new
    name. Schemes with equal parts are equal. Build parts from functions of a module or from frozen
    dataclasses: both can be compared and sent to other processes, unlike lambdas.

    Attributes:
        name: the name of the recipe in stores, with its version at the end.
        extract: returns the article of a page, such as :func:`pgsimhash.html.read_article`.
        weigh: returns the weighted features of tokens, such as ``ShingleWeights((1, 2))``.
        tokenize: returns the tokens of a text.
        hash_features: returns the 64-bit hashes of features, such as those of
            :mod:`pgsimhash.hashing.hashes`.
        min_tokens: the fewest tokens of an article with a fingerprint.
        distance: the default distance of collections: the most bits in which copies differ. It is
            not part of the recipe, so comparisons of schemes ignore it.
    """

    name: str
    extract: Extraction
    weigh: Weighting
    tokenize: Tokenizer = tokenize
    hash_features: HashFunction = murmur3_64
    min_tokens: int = 20
    distance: int = field(default=NEAR_MAX, compare=False)

    def __post_init__(self) -> None:
        """Check the distance."""
        check_distance(self.distance, DISTANCE_MAX)

    def vote(self, article: Article) -> Vote:
        """Return the simhash and more of ``article``, by its first 500,000 tokens.

        Raises:
            PageError: the article has fewer than ``min_tokens`` tokens, or no feature.
            ArgumentError: a weight is negative or not finite.
        """
        if isinstance(self.weigh, BlockWeights) and self.hash_features is murmur3_64_of_words:
            return self._vote_blocks(self.weigh, article)
        tokens = self.tokenize(article.text)[:TOKENS_MAX]
        self._check_length(len(tokens))
        weighted = self.weigh(tokens, article)
        weights = np.fromiter(weighted.values(), dtype=np.float64, count=len(weighted))
        hashes = self.hash_features(weighted.keys())
        signature = signature_hashes(hashes)
        digest = _digest(words_of(article))
        return Vote(vote(hashes, weights), signature, len(weighted), len(tokens), digest)

    def _vote_blocks(self, weigh: BlockWeights, article: Article) -> Vote:
        native = weigh.native_vote(article)
        if native is not None:
            self._check_length(Vote(*native).tokens)
            return Vote(*native)
        words = words_of(article)
        length = words.length
        self._check_length(length)
        names, sums = sums_of_occurrences(words)
        hashes = self.hash_features(names)
        signature = signature_hashes(hashes, sums / (sums + EVENED))
        unseen, _ = words.unseen
        simhash = vote(hashes, weigh.damped(sums))
        return Vote(simhash, signature, len(hashes), length, _digest(words), unseen)

    def simhash(self, text: str) -> int:
        """Return the simhash of ``text`` as the main content.

        Raises:
            PageError: the text has fewer than ``min_tokens`` tokens, or no feature.
        """
        return self.vote(Article(markdown=text, text=text)).simhash

    def _check_length(self, tokens: int) -> None:
        if tokens < self.min_tokens:
            raise PageError(
                "too_short",
                f"the main content has {tokens} words, and a fingerprint needs "
                f"{self.min_tokens}: fewer would match unrelated pages",
            )

    def check_portable(self) -> Scheme:
        """Return this scheme, which can be sent to other processes.

        Raises:
            ArgumentError: a part of it cannot be pickled.
        """
        try:
            pickle.dumps(self)
        except Exception as error:
            raise ArgumentError(
                "invalid_argument",
                f"the scheme {self.name!r} cannot be sent to other processes ({error}); make its "
                "parts functions of a module or frozen dataclasses, or use one process",
            ) from error
        return self


def _digest(words: WeightedWords) -> int:
    return mmh3.hash64(" ".join(words.lasting_words()).encode(errors="replace"), signed=False)[0]
