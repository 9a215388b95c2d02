"""Weigh the features of pages and texts: words, numbers, pairs, shingles and letters."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Final, NamedTuple

import mmh3
import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.hashes import GOLDEN_RATIO, Hashes, murmur3_64, murmur3_mix
from pgsimhash.hashing.tokens import is_unspaced, shingles, tokenize_with_numbers
from pgsimhash.hashing.votes import signature_hashes, vote
from pgsimhash.html import Article, native
from pgsimhash.html.blocks import signed_lines
from pgsimhash.html.page_words import LISTED, VOLATILE, WORD, WeightedWords, words_by_line
from pgsimhash.html.parse import refuse_binary
from pgsimhash.pages.values import BytesLike

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

EVENED: Final = 0.1  # this sum of weights is half of the largest weight in a signature


def pair_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Return the hashes of pairs of words: MurmurHash3's 64-bit finalizer of those of the words."""
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


class Vote(NamedTuple):
    """The result of a scheme for an article; ``Fingerprint`` describes the fields."""

    simhash: int
    signature: int
    features: int
    tokens: int
    text_digest: int
    unseen: float | None = None


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

    def vote(self, article: Article, check: Callable[[int], None]) -> Vote:
        """Return the vote of an article; ``check`` raises if it has too few words."""
        if article.native is not None and type(self) is BlockWeights:
            fields = article.native.vote(self.factors)
            if fields is not None:
                check(Vote(*fields).tokens)
                return Vote(*fields)
        words = words_of(article)
        check(words.length)
        names, sums = sums_of_occurrences(words)
        hashes = murmur3_64_of_words(names)
        votes, digest = self.damped(sums), words_digest(words)
        signature = signature_hashes(hashes, sums / (sums + EVENED), votes)
        simhash = vote(hashes, votes)
        return Vote(simhash, signature, len(hashes), words.length, digest, words.unseen)

    @property
    def factors(self) -> tuple[float, ...]:
        """All numbers that weights depend on, for the C extension."""
        return (*OCCURRENCES.values(), self.damping, EVENED)

    def damped(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights in the vote of features with these sums of weights."""
        weights: NDArray[np.float64] = sums * (1.0 + sums) ** -self.damping
        return weights


def occurrences(words: WeightedWords) -> Iterator[tuple[int, str, float]]:
    """Yield the place of its block, the name and the weight of each feature: words, then pairs."""
    factors = [*OCCURRENCES.values()]
    for place, block in enumerate(words.blocks):
        for word, kind in zip(block.words, block.kinds, strict=True):
            yield place, word, block.weight * factors[min(kind, VOLATILE)]
    row, last, kind = 0, "", WORD
    for place, block in enumerate(words.blocks):
        if block.row and block.row == row:
            # The last word of a cell and the first one of the next in the row; dates separate rows.
            both = max(kind, block.kinds[0])
            factor = factors[4 + (VOLATILE if both >= LISTED else both)]
            yield place, f"{last} {block.words[0]}", block.weight * factor
        row, last, kind = block.row, block.words[-1], block.kinds[-1]
        kinds = map(max, pairwise(block.kinds))
        for pair, of_both in zip(map(" ".join, pairwise(block.words)), kinds, strict=True):
            yield place, pair, block.weight * factors[4 + min(of_both, VOLATILE)]


def sums_of_occurrences(words: WeightedWords) -> tuple[list[str], NDArray[np.float64]]:
    """Return the words, then the pairs, and the sums of the weights of their occurrences."""
    sums: defaultdict[str, float] = defaultdict(float)
    for _, name, weight in occurrences(words):
        sums[name] += weight
    return list(sums), np.fromiter(sums.values(), np.float64, len(sums))


def words_of(article: Article) -> WeightedWords:
    """Return the weighted words of an article; without them, each line has weight 1."""
    return words_by_line(article.text) if article.words is None else article.words


def words_digest(words: WeightedWords) -> int:
    """Return the 64 bits that are equal for pages with the same words; see ``text_digest``."""
    return mmh3.hash64(" ".join(words.lasting_words()).encode(errors="replace"), signed=False)[0]


WORDS_MAX: Final = 1_000  # words of a text that count
_LETTERS: Final = 0.2  # the weight of three letters: five of them are about a word
# "e-mail" and "email", "don't" and "dont" are the same word, and "1,299" and "1299" one number.
# A pattern that begins with a character is searched many times as fast as one that looks behind.
_JOINER: Final = re.compile(
    r"[-'\u2010\u2011\u2019,.]"
    r"(?:(?<=[^\W\d_][^,.])(?=[^\W\d_])|(?<=\d[^-\u2010\u2011])(?=\d{3}(?!\d)))"
)
_RUN: Final = re.compile(r"\d+|\D+")


def read_text(text: BytesLike | str, url: str | None = None, charset: str | None = None) -> Article:
    """Return plain text as an article that is all main content.

    Args:
        text: the text; bytes are decoded, and invalid bytes become U+FFFD.
        url: ignored.
        charset: the encoding of bytes; UTF-8 if missing or unknown.

    Raises:
        PageError: the bytes are an image, an archive, a PDF or another binary format.
    """
    if not isinstance(text, str):
        data = bytes(text)
        refuse_binary(data, "text")
        try:
            text = data.decode(charset or "utf-8-sig", "replace")
        except LookupError:
            text = data.decode("utf-8-sig", "replace")
    return Article(text, text)


@dataclass(frozen=True, slots=True)
class ShingleWeights:
    """Weigh shingles of all ``sizes`` (1 for single tokens) by their counts."""

    sizes: tuple[int, ...] = (1, 2)

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise invalid_argument(f"sizes are one or more numbers from 1, not {self.sizes}")

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features, by size and then by first occurrence, and their counts."""
        return Counter(chain.from_iterable(shingles(tokens, size) for size in self.sizes))


def short_words(text: str) -> list[str]:
    """Return the words and numbers of ``text`` in order.

    Words are joined at hyphens and apostrophes, and split between digits and letters. Leading zeros
    and thousands separators are removed.
    """
    tokens = tokenize_with_numbers(without_joiners(text))[:WORDS_MAX]
    runs = [run for token in tokens for run in _RUN.findall(token)]
    return [_number(run) if run.isdecimal() else run for run in runs[:WORDS_MAX]]


def without_joiners(text: str) -> str:
    """Return text without hyphens and apostrophes in words, and without thousands separators."""
    return _JOINER.sub("", text)


def _number(run: str) -> str:
    if not run.isascii():
        run = "".join(str(unicodedata.decimal(digit)) for digit in run)
    return run.lstrip("0") or "0"


def short_weights(tokens: Sequence[str], article: Article) -> Mapping[str, float]:
    """Return the features and weights of titles, product names, messages and queries.

    A title has too few words for a vote of words: one typo would change a quarter of the votes. So
    windows of three letters vote. Numbers are part of each feature instead. So texts with different
    numbers share no feature, and the number of numbers does not affect the similarity of words.

    A feature is ``numbers|letters``: each window of three characters of ``<word>`` adds 0.2. Words
    of scripts without spaces have no ``<`` and ``>``, and are a window if they are shorter. If a
    text has only numbers, they are the words.
    """
    numbers = " ".join(token for token in tokens if token.isdecimal())
    words = [token for token in tokens if not token.isdecimal()] or tokens
    bordered = (word if is_unspaced(word) else f"<{word}>" for word in words)
    counts = Counter(
        word[start : start + 3] for word in bordered for start in range(max(len(word) - 2, 1))
    )
    return {f"{numbers}|{letters}": _LETTERS * times for letters, times in counts.items()}


def votes_in_c(
    weigh: object, tokenize: object, hash_features: object, texts: Sequence[str]
) -> Sequence[native.VoteFields | None]:
    """Return the fields of the votes of texts, None for those that only Python reads."""
    if type(weigh) is BlockWeights and hash_features is murmur3_64_of_words:
        return native.vote_texts(list(map(signed_lines, texts)), weigh.factors)
    if (weigh, tokenize, hash_features) == (short_weights, short_words, murmur3_64):
        short = [without_joiners(text).replace("\0", " ") for text in texts]
        return native.vote_texts(short, None)
    return [None] * len(texts)
