"""From text to tokens.

A token is a run of letters, digits and the marks on them, folded to NFKC and lower case. Scripts
that write no spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give each pair of
neighbouring characters instead, for lack of a dictionary. Tokens of digits alone are left out: on
web pages they are dates, counters and prices, which change while the text does not.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from pgsimhash.counters import drop_counters
from pgsimhash.errors import InvalidRecipeError

Form = Literal["NFC", "NFKC"]

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
_WORD: Final = re.compile(rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])+|[{_UNSPACED}]+")
_DIGIT: Final = re.compile("[0-9]")
_UNSPACED_RUN: Final = re.compile(rf"[{_UNSPACED}]+")

_ASCII_SPACED: Final = {
    code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)
}
_TABLE_SIZE: Final = 0x3000
"""Code points below this, where alphabets and punctuation are, go through a table."""
COMPLEX: Final = 0xFFFFFFFF
"""In the table: what this becomes depends on its neighbours, or is more than one character."""


MARKS: Final = ("\0", "\0\0", "\0\0\0", "\0\0\0\0")
"""What :func:`tokenize_marked` keeps; no text of a page has NUL, for libxml2 ends texts at it."""

_MARKED_ASCII: Final = _ASCII_SPACED | {0: "\0"}
_MARKED_WORD: Final = re.compile(rf"\0+|{_WORD.pattern}")


def tokenize_marked(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, with those of digits alone, and its :data:`MARKS`.

    Args:
        text: with marks, each between spaces, that nothing reaches across.
    """
    if text.isascii():
        return text.translate(_MARKED_ASCII).split()
    codes = code_points(text)
    folded = _marked_table()[np.minimum(codes, _TABLE_SIZE)]
    if folded.max() != COMPLEX:
        return folded.tobytes().decode("utf-32-le").split()
    return _split(_folded(text, "NFKC"), _MARKED_WORD)


def tokenize(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, without those of digits alone."""
    words = _simple_words(text)
    if words is not None:
        plain = text.isascii() and _DIGIT.search(text) is None
        return words if plain else _without_numbers(words)
    # Nothing reaches across the end of a line, and most lines are simple ones.
    tokens: list[str] = []
    for line in text.split("\n"):
        words = _simple_words(line)
        tokens += _split(_folded(line, "NFKC")) if words is None else words
    return _without_numbers(tokens)


@dataclass(frozen=True, slots=True)
class Words:
    """A tokenizer with choices; without any, it is :func:`tokenize`.

    Attributes:
        min_length: shorter tokens are left out, in characters.
        numbers: keep tokens of digits alone.
        counters: keep dates, times and counters; see :func:`pgsimhash.counters.drop_counters`.
        form: the normalisation; NFKC makes one of full width, ligatures and superscripts, NFC
            only of the ways to write an accent.

    Raises:
        InvalidRecipeError: ``min_length`` is below 1, or ``form`` is another form.
    """

    min_length: int = 1
    numbers: bool = False
    counters: bool = True
    form: Form = "NFKC"

    def __post_init__(self) -> None:
        if self.min_length < 1:
            raise InvalidRecipeError(f"min_length is 1 or more, not {self.min_length}")
        if self.form not in ("NFC", "NFKC"):
            raise InvalidRecipeError(f"form is 'NFC' or 'NFKC', not {self.form!r}")

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of ``text`` in order."""
        if not self.counters:
            text = drop_counters(text)
        if self.form == "NFKC" and not self.numbers:
            tokens = tokenize(text)
        else:
            tokens = _split(_folded(text, self.form))
            if not self.numbers:
                tokens = _without_numbers(tokens)
        if self.min_length > 1:
            tokens = [token for token in tokens if len(token) >= self.min_length]
        return tokens


def _without_numbers(tokens: list[str]) -> list[str]:
    return [token for token in tokens if not token.isdecimal()]


def _folded(text: str, form: Form) -> str:
    # Folding can leave what is not normal: a capital that folds to a letter and a mark.
    return unicodedata.normalize(form, unicodedata.normalize(form, text).casefold())


def _split(folded: str, pattern: re.Pattern[str] = _WORD) -> list[str]:
    words = pattern.findall(folded)
    if _UNSPACED_RUN.search(folded) is None:
        return words
    tokens: list[str] = []
    for word in words:
        if len(word) > 1 and _UNSPACED_RUN.match(word):
            tokens.extend(map("".join, itertools.pairwise(word)))
        else:
            tokens.append(word)
    return tokens


def _simple_words(text: str) -> list[str] | None:
    """Return the words of a text in which each character folds by itself; None for another."""
    if text.isascii():
        return text.translate(_ASCII_SPACED).split()
    codes = code_points(text)
    folded = fold_table()[np.minimum(codes, _TABLE_SIZE)]
    if folded.max() == COMPLEX:
        return None
    return folded.tobytes().decode("utf-32-le").split()


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of ``text`` (shape (n,), dtype uint32)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


@cache
def fold_table() -> NDArray[np.uint32]:
    """Return what each code point folds to: itself, another, a space, or :data:`COMPLEX`.

    Returns:
        Shape (12289,), dtype uint32; the last stands for all code points from there on. A space
        stands for what is not in a token.
    """
    table = np.full(_TABLE_SIZE + 1, COMPLEX, dtype="<u4")
    for code in range(_TABLE_SIZE):
        character = chr(code)
        folded = _folded(character, "NFKC")
        if not _WORD.search(folded):
            if not unicodedata.combining(character):
                table[code] = ord(" ")
        elif len(folded) == 1 and not _joins(character) and not _joins(folded):
            table[code] = COMPLEX if _is_foreign_digit(folded) else ord(folded)
    return table


@cache
def _marked_table() -> NDArray[np.uint32]:
    table = fold_table().copy()
    table[0] = 0
    return table


def _is_foreign_digit(character: str) -> bool:
    # They are rare, and whoever reads the table need not know them.
    return character.isdecimal() and not character.isascii()


def _joins(character: str) -> bool:
    """Whether a character may become one with the character before it, or is unspaced."""
    return (
        unicodedata.category(character).startswith("M")
        or "\u1100" <= character <= "\u11ff"
        or _UNSPACED_RUN.match(character) is not None
    )
