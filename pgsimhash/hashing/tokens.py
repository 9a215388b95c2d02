"""Split text into tokens.

A token is a run of letters, digits and combining marks, folded to NFKC and lower case. Soft
hyphens and other invisible characters are removed. Scripts without spaces between words (Chinese,
Japanese, Thai, Lao, Khmer, Burmese) give each pair of neighbouring characters, since there is no
dictionary. Tokens of digits alone are ignored: on web pages they are dates, counters and prices,
which change while the text does not.

The work is bounded for any text. Only the first :data:`TOKENS_MAX` tokens count, and text is
normalised in pieces. Only the first :data:`MARKS_MAX` marks on a letter count, because sorting
marks takes quadratic time.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, filterfalse, islice, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import invalid_argument

__all__ = ["shingles", "tokenize", "tokenize_with_numbers"]

TOKENS_MAX: Final = 500_000
"""How many tokens of a text count; a long novel has fewer."""

MARKS_MAX: Final = 30
"""How many marks in a row count, as in the Stream-Safe Text Format (Unicode Annex 15)."""

PIECE: Final = 1 << 16  # about this many characters are processed at a time

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, other scripts of
# Southeast Asia, kana, ideographs.
_UNSPACED: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua980-\ua9ff\uaa60-\uaadf\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# What a reader does not see within a word: what stretches it in Arabic, N'Ko and Mongolian;
# Unicode's Default_Ignorable_Code_Point, such as soft hyphens, joiners, fillers and variation
# selectors; the controls of annotations and hieroglyphs.
_UNSEEN: Final = re.compile(
    "[\u0640\u07fa\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180a-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_UNSPACED_RUN: Final = re.compile(rf"[{_UNSPACED}]+")
# No token crosses one of these, and none of them combines with the character before it.
_BREAK: Final = re.compile(r"[\x01-/:-@\[-`{-\x7f]")
# The sign NUL stays.
_ASCII: Final = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(1, 128)}

# Code points below this (alphabets and punctuation) are folded by a table.
_TABLE_SIZE: Final = 0x3000

# The table's entry for a character that needs its neighbours, or becomes several characters.
COMPLEX: Final = 0xFFFFFFFF
# Up to this share of complex characters, only the words around them are normalised.
_FEW: Final = 0.02

SIGNS: Final = ("\0", "\0\0", "\0\0\0", "\0\0\0\0", "\0\0\0\0\0")
"""What :func:`tokenize_signed` keeps; libxml2 ends texts at NUL, so no page's text contains it."""


def tokenize(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, without those of digits alone."""
    tokens = chain.from_iterable(_tokens(text.replace("\0", " ")))
    return list(islice(filterfalse(str.isdecimal, tokens), TOKENS_MAX))


def tokenize_with_numbers(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, including those of digits alone."""
    return tokenize_signed(text.replace("\0", " "))


def tokenize_signed(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, including those of digits alone and :data:`SIGNS`."""
    return list(islice(chain.from_iterable(_tokens(text)), TOKENS_MAX))


def shingles(tokens: Sequence[str], size: int) -> list[str]:
    """Return each window of ``size`` neighbouring tokens, joined by one space.

    Single words survive edits; shingles separate pages that share a vocabulary (Manku, Jain, Das
    Sarma, WWW 2007, section 2; Broder, "On the Resemblance and Containment of Documents", 1997).
    Fewer tokens than ``size`` give an empty list.
    """
    if size < 1:
        raise invalid_argument(f"a shingle has 1 token or more, not {size}")
    return list(map(" ".join, zip(*(tokens[start:] for start in range(size)), strict=False)))


def is_unspaced(token: str) -> bool:
    """Return whether a token belongs to a script without spaces between words."""
    return not token.isascii() and _UNSPACED_RUN.match(token) is not None


def _tokens(text: str) -> Iterator[list[str]]:
    """Yield the tokens of a text in parts."""
    start = 0
    while start < len(text):
        separator = _BREAK.search(text, start + PIECE)
        end = separator.start() if separator else len(text)
        yield from _tokens_of_piece(text[start:end])
        start = end


def _tokens_of_piece(text: str) -> Iterable[list[str]]:
    if text.isascii():
        return (text.translate(_ASCII).split(),)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    folded = fold_table().take(codes, mode="clip")
    places = np.flatnonzero(folded == COMPLEX)
    if len(places) <= _FEW * len(text):
        folded[places] = codes[places]
        words = folded.tobytes().decode("utf-32-le", "surrogatepass")
        mixed = _mixed_words(text, words, places.tolist())
        if mixed is not None:
            return (mixed,)
    return complex_words(text)


def _mixed_words(text: str, words: str, places: list[int]) -> list[str] | None:
    """Return the words of a text in which a few characters do not fold by themselves.

    Return None if one of these may combine with a character before it, across a word boundary.
    """
    parts: list[str] = []
    done = 0
    for place in places:
        if place < done:
            continue
        start = max(words.rfind(" ", done, place) + 1, done)
        end = words.find(" ", place)
        end = len(words) if end < 0 else end
        if is_mark(text[start]):
            return None
        parts += (words[done:start], *map(" ".join, complex_words(text[start:end])))
        done = end
    parts.append(words[done:])
    return "".join(parts).split()


def complex_words(text: str) -> Iterator[list[str]]:
    """Yield the words of any text, in lists."""
    # Cuts only text that runs for pages without a space or punctuation.
    size = len(text) if len(text) <= 4 * PIECE else PIECE
    for start in range(0, len(text), size or 1):
        folded = _folded(text[start : start + size])
        words = _signed_word().findall(folded)
        if _UNSPACED_RUN.search(folded):
            words = list(chain.from_iterable(map(_pairs, words)))
        yield words


@cache
def _signed_word() -> re.Pattern[str]:
    """Return the pattern of signs and words.

    Within words, re counts no marks (Unicode's category M) as word characters: accents, points of
    Hebrew and Arabic, vowel signs of the Indic scripts.
    """
    categories = ((chr(code), unicodedata.category(chr(code))) for code in range(0x300, 0x20000))
    marks = (mark for mark, category in categories if category.startswith("M"))
    spaced = "".join(mark for mark in marks if not _UNSPACED_RUN.match(mark))
    return re.compile(rf"\0+|(?:[^\W_{_UNSPACED}]|[{spaced}])+|[{_UNSPACED}]+")


def _pairs(word: str) -> list[str]:
    """Return a word, or the pairs of characters of one without spaces."""
    pairs = map("".join, pairwise(word)) if is_unspaced(word) else ()
    return list(pairs) or [word]


def _folded(text: str) -> str:
    text = too_many_marks().sub(_cut_marks, _UNSEEN.sub("", text))
    # Case folding can denormalise: some capitals fold to a letter and a mark.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _UNSEEN.sub("", folded)


def _cut_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in run[0]:
        marks = marks + 1 if is_mark(character) else 0
        if marks <= MARKS_MAX:
            kept.append(character)
    return "".join(kept)


@lru_cache(maxsize=4096)
def is_mark(character: str) -> bool:
    """Return whether normalisation may reorder ``character`` with the one before it."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


@cache
def too_many_marks() -> re.Pattern[str]:
    """Return the pattern of runs longer than :data:`MARKS_MAX`, which may contain non-marks.

    One character class is many times as fast as exact alternatives. There are no marks from U+3400
    to U+9FFF, from U+AC00 to U+F8FF and from U+20000 on. All characters from U+10000 to U+1FFFF are
    included.
    """
    codes = (*range(0x80, 0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x10000))
    marks = "".join(filter(is_mark.__wrapped__, map(chr, codes)))
    return re.compile(f"[{marks}\U00010000-\U0001ffff]{{{MARKS_MAX + 1},}}")


@cache
def fold_table() -> NDArray[np.uint32]:
    """Return what each code point folds to: itself, another, a space, or :data:`COMPLEX`."""
    table = np.full(_TABLE_SIZE + 1, COMPLEX, dtype="<u4")
    table[0] = 0
    for code in range(1, _TABLE_SIZE):
        character = chr(code)
        folded = _folded(character)
        if not folded:
            continue  # invisible: the characters around it form one word
        if not _signed_word().search(folded):
            if not unicodedata.combining(character):
                table[code] = ord(" ")
        elif len(folded) == 1 and not _joins(character) and not _joins(folded):
            # Digits of other scripts are rare, so readers of the table need not handle them.
            is_foreign_digit = folded.isdecimal() and not folded.isascii()
            table[code] = COMPLEX if is_foreign_digit else ord(folded)
    return table


def _joins(character: str) -> bool:
    """Return whether a character may combine with the one before it, or is unspaced."""
    return (
        unicodedata.category(character).startswith("M")
        or "\u1100" <= character <= "\u11ff"
        or _UNSPACED_RUN.match(character) is not None
    )
