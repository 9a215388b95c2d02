"""Weigh features of titles, product names, messages and queries.

A title has too few words for a vote of words: one typo would change a quarter of the votes. So
pairs of letters vote, and windows of letters across words, which depend on the order of words.
Numbers are part of each feature instead. So texts with different numbers share no feature, and the
number of numbers does not affect the similarity of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgsimhash.hashing.tokens import Words, is_unspaced
from pgsimhash.html import Article

WORDS_MAX: Final = 1_000
"""How many words of a text count."""

# "e-mail" and "email", "don't" and "dont" are the same word, and "1,299" and "1299" one number.
_JOINER: Final = re.compile(r"(?<=[^\W\d_])[-'\u2010\u2011\u2019](?=[^\W\d_])")
_GROUPING: Final = re.compile(r"(?<=\d)[,.'\u2019](?=\d{3}(?!\d))")
_RUN: Final = re.compile(r"\d+|\D+")
_WORDS: Final = Words(numbers=True)


def short_words(text: str) -> list[str]:
    """Return the words and numbers of ``text`` in order.

    Words are joined at hyphens and apostrophes, and split between digits and letters. Leading zeros
    and thousands separators are removed.
    """
    tokens = _WORDS(_GROUPING.sub("", _JOINER.sub("", text)))[:WORDS_MAX]
    runs = [run for token in tokens for run in _RUN.findall(token)]
    return [_number(run) if run.isdecimal() else run for run in runs[:WORDS_MAX]]


def _number(run: str) -> str:
    if not run.isascii():
        run = "".join(str(unicodedata.decimal(digit)) for digit in run)
    return run.lstrip("0") or "0"


@dataclass(frozen=True, slots=True)
class ShortWeights:
    """Weigh letters of words, each feature with all numbers of the text in order.

    A feature is ``numbers|letters``. Pairs of neighbouring characters of ``<word>`` have weight 1
    per occurrence. Windows of three characters of the joined words have weight ``across``. Words of
    scripts without spaces have no ``<`` and ``>``. If a text has only numbers, they are the words.

    Attributes:
        across: the weight of the windows; larger values separate different orders of words.
    """

    across: float = 0.35

    def __call__(self, tokens: Sequence[str], article: Article) -> Mapping[str, float]:
        """Return the features and their weights."""
        numbers = " ".join(token for token in tokens if token.isdecimal())
        words = [token for token in tokens if not token.isdecimal()] or tokens
        bordered = (word if is_unspaced(word) else f"<{word}>" for word in words)
        pairs = Counter(pair for word in bordered for pair in _windows(word, 2))
        across = Counter(_windows("".join(words), 3))
        weighted = {f"{numbers}|{pair}": float(count) for pair, count in pairs.items()}
        weighted.update((f"{numbers}|{three}", self.across * n) for three, n in across.items())
        return weighted


def _windows(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(len(text) - size + 1)]
