"""What schemes need besides features and weights: reading plain text, and other tokens."""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Final

from pgsimhash.octets import Octets
from pgsimhash.page import Article, SiteHints, read_article
from pgsimhash.page.parse import ELEMENTS_MAX

RUN_MAX: Final = 256
"""How many characters of a run of letters count; hashes of longer ones would take long."""

_LETTERS: Final = ("Ll", "Lu", "Lt", "Lo", "Lm")
_CATEGORIES: Final = frozenset({*_LETTERS, "Mn", "Nd", "Pc"})
_URL: Final = re.compile(r"\b(?:[a-z][a-z0-9+.-]{0,31}://|www\.)\S+", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ArticleReader:
    """``read_article`` with hints for sites, or with another limit.

    Attributes:
        hints: where on the pages of some hosts the content is.
        max_elements: a page of more elements is refused (``TooLargeError``).
    """

    hints: SiteHints | None = None
    max_elements: int = ELEMENTS_MAX

    def __call__(self, html: Octets | str, url: str | None, charset: str | None) -> Article:
        """Return the main content of a page."""
        return read_article(html, url, charset, self.hints, self.max_elements)


def read_text(text: Octets | str, url: str | None = None, charset: str | None = None) -> Article:
    """Return plain text as an article: all of it is the main content.

    Args:
        text: the text; bytes are decoded, and what cannot be becomes U+FFFD.
        url: where it was found; of no effect.
        charset: the encoding of bytes, UTF-8 if none or an unknown one.
    """
    plain = text if isinstance(text, str) else _decoded(bytes(text), charset)
    return Article(markdown=plain, text=plain, title=None, canonical_url=None, language=None)


def _decoded(text: bytes, charset: str | None) -> str:
    try:
        return text.decode(charset or "utf-8-sig", "replace")
    except LookupError:
        return text.decode("utf-8-sig", "replace")


def long_words(text: str) -> list[str]:
    r"""Return the runs of ``\w`` in lower-cased ``text`` that have more than 2 characters."""
    return [word for word in _WORD.findall(text.lower()) if len(word) > 2]


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """Runs of letters, marks, digits and connectors by their Unicode categories.

    ``text`` is lower-cased and stripped of URLs (what follows ``scheme://`` or ``www.`` up to
    white space); a token is a run of characters of the categories Ll, Lu, Lt, Lo, Lm, Mn, Nd and
    Pc with a letter in it, its first :data:`RUN_MAX` characters. Nothing is normalised.

    Attributes:
        stop_words: tokens that are left out, in lower case.
    """

    stop_words: frozenset[str] = frozenset()

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of ``text`` in order."""
        runs = _URL.sub(" ", text).lower().translate(_SPACED).split()
        runs = [run[:RUN_MAX] for run in runs]
        return [run for run in runs if run not in self.stop_words and any(map(_is_letter, run))]


class _Spaced(dict[int, str]):
    """What becomes of each character: itself, or a space; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kept = character if unicodedata.category(character) in _CATEGORIES else " "
        return self.setdefault(code, sys.intern(kept))


_SPACED: Final = _Spaced()


def _is_letter(character: str) -> bool:
    return character.isalpha() or unicodedata.category(character) in _LETTERS
