"""What a scheme is made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import mmh3
import numpy as np

from pgsimhash.bits import NEAR_MAX, check_distance
from pgsimhash.errors import ArgumentError, PageError, check_type
from pgsimhash.hashes import HashFunction, murmur3_64
from pgsimhash.html import Article, WeightedWords
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.schemes.blocks import BlockWeights, murmur3_64_of_words, words_of
from pgsimhash.sketch import sketch_hashes
from pgsimhash.tokens import TOKENS_MAX, tokenize
from pgsimhash.votes import vote

Extraction = Callable[[bytes | str, str | None, str | None], Article]
"""From a page, its URL and the charset in its HTTP header to its main content."""

Tokenizer = Callable[[str], Sequence[str]]
"""From ``Article.text`` to tokens in order."""

Weighting = Callable[[Sequence[str], Article], Mapping[str, float]]
"""From the tokens of an article, and the article, to its features and their weights."""


class Vote(NamedTuple):
    """What a scheme makes of an article: simhash, sketch, distinct features and tokens.

    ``text_digest`` is a hash of the words and numbers of the main content in their order, 64 bits:
    it tells whether a page still says the same. Counters and dates of the visit are left out; see
    :mod:`pgsimhash.html.numbers`.

    ``unseen`` is the share of the page's words in low-weight blocks, None where the scheme does not
    weigh blocks; see :attr:`pgsimhash.html.WeightedWords.unseen`.
    """

    simhash: int
    sketch: int
    features: int
    tokens: int
    text_digest: int
    unseen: float | None = None


@dataclass(frozen=True, slots=True)
class Scheme:
    """A named recipe from a page to its simhash.

    Simhashes compare only within one scheme, so whatever changes a simhash gets a new name. Two
    schemes are equal when their parts are, so make parts of functions of a module or of frozen
    dataclasses: they compare, and go to other processes. A lambda does neither.

    Attributes:
        name: what the recipe is called in stores, with its version at the end.
        extract: page to article, for example :func:`pgsimhash.html.read_article`.
        weigh: tokens to weighted features, for example ``ShingleWeights((1, 2))``.
        tokenize: text to tokens.
        hash_features: features to 64-bit hashes, one of :mod:`pgsimhash.hashes` or another.
        min_tokens: an article of fewer tokens gets no fingerprint.
        distance: in how many bits its copies differ at most, for collections that are created
            without a distance. It is not a part of the recipe: schemes are equal without it.
    """

    name: str
    extract: Extraction
    weigh: Weighting
    tokenize: Tokenizer = tokenize
    hash_features: HashFunction = murmur3_64
    min_tokens: int = 20
    distance: int = field(default=NEAR_MAX, compare=False)

    def __post_init__(self) -> None:
        """Check the distance.

        Raises:
            ArgumentError: it is not in 0..12.
        """
        check_distance(self.distance, DISTANCE_MAX)

    def vote(self, article: Article) -> Vote:
        """Return the simhash of ``article``, of its first 500,000 tokens.

        Raises:
            PageError: it has fewer than ``min_tokens`` tokens, or no feature.
            ArgumentError: the weighting gave a weight that is negative or not finite.
        """
        if isinstance(self.weigh, BlockWeights) and self.hash_features is murmur3_64_of_words:
            return self._vote_blocks(self.weigh, words_of(article))
        tokens = self.tokenize(article.text)[:TOKENS_MAX]
        self.check_length(len(tokens))
        weighted = self.weigh(tokens, article)
        weights = np.fromiter(weighted.values(), dtype=np.float64, count=len(weighted))
        hashes = self.hash_features(weighted.keys())
        sketch = sketch_hashes(hashes)
        digest = _digest(words_of(article))
        return Vote(vote(hashes, weights), sketch, len(weighted), len(tokens), digest)

    def _vote_blocks(self, weigh: BlockWeights, said: WeightedWords) -> Vote:
        length = said.length
        self.check_length(length)
        hashes, weights, evened = weigh.hashed(said)
        sketch = sketch_hashes(hashes, evened)
        digest = _digest(said)
        unseen, _ = said.unseen
        return Vote(vote(hashes, weights), sketch, len(hashes), length, digest, unseen)

    def simhash(self, text: str) -> int:
        """Return the simhash of ``text``, which is taken for the main content.

        Raises:
            PageError: it has fewer than ``min_tokens`` tokens, or no feature.
        """
        check_type("a text", text, str, wanted="a str")
        article = Article(markdown=text, text=text, title=None, canonical_url=None, language=None)
        return self.vote(article).simhash

    def check_length(self, tokens: int) -> None:
        """Refuse an article of so many tokens, if these are too few.

        Raises:
            PageError: there are fewer than ``min_tokens``.
        """
        if tokens < self.min_tokens:
            raise PageError(
                "too_short",
                f"the main content has {tokens} words, and a fingerprint takes "
                f"{self.min_tokens}: fewer would match unrelated pages",
            )

    def check_portable(self) -> Scheme:
        """Return this scheme, if other processes can be given it.

        Raises:
            ArgumentError: a part of it cannot be pickled.
        """
        try:
            pickle.dumps(self)
        except Exception as error:
            raise ArgumentError(
                "unsendable_scheme",
                f"the scheme {self.name!r} cannot be sent to other processes ({error}); make its "
                "parts functions of a module or frozen dataclasses, or use one process",
            ) from error
        return self


def _digest(said: WeightedWords) -> int:
    return mmh3.hash64(" ".join(said.lasting_words()).encode(errors="replace"), signed=False)[0]
