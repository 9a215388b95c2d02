"""What schemes need besides features and weights: reading plain text, and other tokens."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pgsimhash.html import Article, SiteHints, read_article
from pgsimhash.html.parse import ELEMENTS_MAX
from pgsimhash.octets import Octets
from pgsimhash.tokens import TOKENS_MAX

RUN_MAX: Final = 256
"""How many characters of a run of letters count; hashes of longer ones would take long."""

CHARS_MAX: Final = 1_000_000
"""How many characters of a text :class:`CategoryWords` looks at, the first ones."""

_CATEGORIES: Final = frozenset({"Ll", "Lu", "Lt", "Lo", "Lm", "Mn", "Nd", "Pc"})
# Of the categories above, those of letters.
_LETTER: Final = re.compile(r"[^\W\d_]")
# Unicode's Default_Ignorable_Code_Point: soft hyphens, zero-width and directional characters.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_URL: Final = (
    r"(?:[a-z][a-z0-9+.-]{0,31}://|www\.)"
    r"""[^\s<>"\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]+"""
)
_IDENTIFIER: Final = re.compile(
    r"""
    (?=[a-z0-9])(?<![a-z0-9_])
    (?: (?:doi|isbn|issn|arxiv|pmid|pmcid|hdl|orcid|uri|url)[:\s]{0,3}
        (?=[a-z][a-z0-9+.-]{0,31}://|www\.) )?
    (?: <URL>
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
    """.replace("<URL>", _URL),
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
"""URLs, and what publications and people are known by, with the word that says which it is.

A URL ends at white space, a quote, or the punctuation of scripts that write none after it.
"""


@dataclass(frozen=True, slots=True)
class ArticleReader:
    """``read_article`` with hints for sites, or with another limit.

    Attributes:
        hints: where on the pages of some hosts the content is.
        max_elements: a page of more elements is refused (``PageError``).
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


def spaced_words(text: str) -> list[str]:
    """Return what stands between white space in lower-cased ``text``.

    White space is what JavaScript's regular expressions take for it, U+FEFF too.
    """
    return text.lower().replace("\ufeff", " ").split()


def long_words(text: str) -> list[str]:
    """Return the :func:`spaced_words` of ``text`` that have more than 2 characters."""
    return [word for word in spaced_words(text) if len(word) > 2]


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """Runs of letters, marks, digits and connectors by their Unicode categories.

    ``text`` is stripped of characters that show nothing, such as soft hyphens and zero-width
    spaces, so that they part no word; of URLs and identifiers (DOI, ISBN, ISSN, arXiv, ORCID and
    others, with their labels); and lower-cased. A token is a run of characters of the categories
    Ll, Lu, Lt, Lo, Lm, Mn, Nd and Pc with a letter in it, its first :data:`RUN_MAX` characters.
    Nothing is normalised. The first :data:`CHARS_MAX` characters count.

    Attributes:
        stop_words: tokens that are left out, in lower case.
    """

    stop_words: frozenset[str] = frozenset()

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of ``text`` in order."""
        shown = _IDENTIFIER.sub(" ", _IGNORABLE.sub("", text[:CHARS_MAX]))
        runs = (run[:RUN_MAX] for run in shown.lower().translate(_SPACED).split())
        kept = (run for run in runs if run not in self.stop_words and _LETTER.search(run))
        return list(islice(kept, TOKENS_MAX))


class _Spaced(dict[int, int]):
    """What becomes of each character: itself, or a space; filled as characters are met."""

    def __missing__(self, code: int) -> int:
        kept = code if unicodedata.category(chr(code)) in _CATEGORIES else 32
        self[code] = kept
        return kept


_SPACED: Final = _Spaced()
