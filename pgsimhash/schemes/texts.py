"""Read plain text for schemes, and split it into tokens in different ways."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pgsimhash.hashing.tokens import TOKENS_MAX
from pgsimhash.html import Article
from pgsimhash.html.charset import refuse_binary
from pgsimhash.pages.values import BytesLike

RUN_MAX: Final = 256
"""How many characters of a run of letters count; hashing longer runs takes too long."""

CHARS_MAX: Final = 1_000_000
"""How many characters of a text :class:`CategoryWords` reads."""

_CATEGORIES: Final = frozenset({"Ll", "Lu", "Lt", "Lo", "Lm", "Mn", "Nd", "Pc"})
# The letters of the categories above.
_LETTER: Final = re.compile(r"[^\W\d_]")
# Unicode's Default_Ignorable_Code_Point: soft hyphens, zero-width and directional characters.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_HOST: Final = r"(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?![a-z0-9-])"
_URL: Final = (
    rf"(?:[a-z][a-z0-9+.-]{{0,31}}://|www\.|{_HOST}(?::\d{{1,5}})?/)"
    r"""[^\s<>"\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]+"""
)
_IDENTIFIER: Final = re.compile(
    r"""
    (?=[a-z0-9])(?<![a-z0-9_])
    (?: (?:doi|isbn|issn|arxiv|pmid|pmcid|hdl|orcid|uri|url)[:\s]{0,3}
        (?=[a-z][a-z0-9+.-]{0,31}://|www\.) )?
    (?: <URL>
      | [a-z0-9._%+-]{1,64}@<HOST>
      | (?:doi[:\s]{0,3}|info:doi/|(?:dx\.)?doi\.org/)? 10\.\d{4,9}/[^\s<>"]+
      | (?:urn:[a-z0-9-]{1,32}:|hdl:|mailto:|ark:/?\d) [^\s<>"]+
      | arxiv[:\s]{1,3} (?: [a-z-]{1,20}(?:\.[a-z]{2})?/\d{7} | \d{4}\.\d{4,5} ) (?:v\d{1,3})?
      | isbn(?:-1[03])?[:\s]{0,3} (?:97[89][\ -]?)? \d[\d\ -]{7,15}[\dx] (?![a-z0-9])
      | (?:[ep]-?)?issn[:\s]{0,3} \d{4}-?\d{3}[\dx] (?![a-z0-9])
      | \d{4}-\d{3}x (?![a-z0-9])
      | (?:orcid[:\s]{0,3})? \d{4}-\d{4}-\d{4}-\d{3}[\dx] (?![a-z0-9])
      | (?:pmid|pmcid|oclc|lccn|s2cid|jstor)[:\s]{0,3} (?:pmc)?\d{1,12} (?![a-z0-9])
      | pmc\d{4,12} (?![a-z0-9])
      | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} (?![a-z0-9])
    )
    """.replace("<URL>", _URL).replace("<HOST>", _HOST),
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
"""URLs, and the identifiers of publications and people, with their labels.

A URL has a scheme, begins with ``www.``, or is a host with a path. It ends at white space, a quote,
or the punctuation of scripts without spaces.
"""


def read_text(text: BytesLike | str, url: str | None = None, charset: str | None = None) -> Article:
    """Return plain text as an article that is all main content.

    Args:
        text: the text; bytes are decoded, and invalid bytes become U+FFFD.
        url: ignored.
        charset: the encoding of bytes; UTF-8 if missing or unknown.

    Raises:
        PageError: the bytes are an image, an archive, a PDF or another binary format.
    """
    plain = text if isinstance(text, str) else _decoded(bytes(text), charset)
    return Article(markdown=plain, text=plain)


def _decoded(text: bytes, charset: str | None) -> str:
    refuse_binary(text, "text")
    try:
        return text.decode(charset or "utf-8-sig", "replace")
    except LookupError:
        return text.decode("utf-8-sig", "replace")


def spaced_words(text: str) -> list[str]:
    """Return the words of lower-cased ``text``, separated by white space.

    White space is that of JavaScript's regular expressions, including U+FEFF.
    """
    return text.lower().replace("\ufeff", " ").split()


def long_words(text: str) -> list[str]:
    """Return the :func:`spaced_words` of ``text`` with more than 2 characters."""
    return [word for word in spaced_words(text) if len(word) > 2]


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """Split text into runs of letters, marks, digits and connectors by Unicode category.

    First, invisible characters (such as soft hyphens and zero-width spaces) are removed from the
    text, and URLs and identifiers (e-mail addresses, DOI, ISBN, ISSN, arXiv, ORCID and others, with
    their labels) are replaced by spaces. Then it is lower-cased. A token is the first
    :data:`RUN_MAX` characters of a run of the categories Ll, Lu, Lt, Lo, Lm, Mn, Nd and Pc that
    contains a letter. There is no normalisation. Only the first :data:`CHARS_MAX` characters count.

    Attributes:
        stop_words: tokens to leave out, in lower case.
    """

    stop_words: frozenset[str] = frozenset()

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of ``text`` in order."""
        prose = _IDENTIFIER.sub(" ", _IGNORABLE.sub("", text[:CHARS_MAX]))
        runs = (run[:RUN_MAX] for run in prose.lower().translate(_SPACED).split())
        words = (run for run in runs if run not in self.stop_words and _LETTER.search(run))
        return list(islice(words, TOKENS_MAX))


class _Spaced(dict[int, int]):
    """A table from each character to itself or a space, filled on demand."""

    def __missing__(self, code: int) -> int:
        replacement = code if unicodedata.category(chr(code)) in _CATEGORIES else 32
        self[code] = replacement
        return replacement


_SPACED: Final = _Spaced()
