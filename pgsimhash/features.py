"""From text to the weighted features that vote for its simhash.

A token is a word; a shingle is a window of neighbouring tokens, joined by one space. Words say
what a page is about and survive edits; shingles tell pages apart that share a vocabulary
(Manku, Jain, Das Sarma, WWW 2007, section 2; Broder, "On the Resemblance and Containment of
Documents", 1997). A feature that occurs tf times weighs 1 + ln(tf).
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, ideographs.
_UNSPACED: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Marks inside words, which re does not count as word characters: combining accents, Hebrew and
# Arabic points, and the vowel signs of the Indic scripts (their letters are \w anyway).
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0971-\u09e3\u09fe\u0a01-\u0a65\u0a70-\u0ae5\u0b01-\u0b65\u0b71-\u0be5"
    "\u0c00-\u0c65\u0c80-\u0ce5\u0d00-\u0d65\u0d81-\u0df3\u200c\u200d"
)
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_WORD: Final = re.compile(rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])+|[{_UNSPACED}]+")
_UNSPACED_RUN: Final = re.compile(rf"[{_UNSPACED}]+")


def tokenize(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, folded to NFKC and lower case.

    A token is a run of letters, digits and the marks on them. In scripts that write no spaces
    between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each pair of neighbouring
    characters is a token. Tokens of digits alone are left out: on web pages they are dates,
    counters and prices, which change while the text does not.
    """
    if text.isascii():
        return [word for word in _ASCII_WORD.findall(text.lower()) if not word.isdigit()]
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(unicodedata.normalize("NFKC", folded))
    if _UNSPACED_RUN.search(folded) is None:
        return [word for word in words if not word.isdecimal()]
    tokens: list[str] = []
    for word in words:
        if _UNSPACED_RUN.match(word) and len(word) > 1:
            tokens.extend(map("".join, itertools.pairwise(word)))
        elif not word.isdecimal():
            tokens.append(word)
    return tokens


def shingles(tokens: Sequence[str], size: int) -> list[str]:
    """Return each window of ``size`` neighbouring tokens, joined by one space.

    Fewer tokens than ``size`` give none.
    """
    if size == 1:
        return list(tokens)
    return list(map(" ".join, zip(*(tokens[start:] for start in range(size)), strict=False)))


def weigh(tokens: Sequence[str], sizes: Sequence[int] = (1, 2)) -> dict[str, float]:
    """Return the features of ``tokens``, shingles of all ``sizes``, with their weights.

    The weight is 1 + ln(tf), where tf is how often the feature occurs. Keys are in order of
    first occurrence, the smaller size first.
    """
    weighted: dict[str, float] = {}
    for size in sizes:
        for feature, count in Counter(shingles(tokens, size)).items():
            weighted[feature] = 1.0 if count == 1 else 1.0 + math.log(count)
    return weighted
