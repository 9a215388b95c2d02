"""Reads the main content of a page many times faster than the package's default way.

No tree is built. One pass over the bytes of the page (:mod:`pgsimhash.page.scanner`) finds its text
and containers, and what stands beside the text goes by what those are, are called and hold. There
is no Markdown, which is where the default way spends much of its time.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pgsimhash.errors import MissingPackageError
from pgsimhash.octets import Octets
from pgsimhash.page import read_article
from pgsimhash.page.article import Article
from pgsimhash.page.decode import clean_text, decode, refuse_binary
from pgsimhash.page.links import absolute
from pgsimhash.page.refusals import CHARS_MAX, check_stand_in
from pgsimhash.page.scanner import kinds, phrases

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONTAINERS_MAX: Final = 100_000
"""A page with more blocks than this is read the default way, which refuses the largest."""

_SHORT: Final = 2 * CHARS_MAX
_UNLIKE_ASCII: Final = (b"\0", b"\x1b")
_HEAD_MAX: Final = 10_000
_ATTRIBUTE: Final = re.compile(
    rb"""[\s/"']([a-z:]++)\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)""", re.IGNORECASE
)


class Scanned(NamedTuple):
    """What a page's text is, and what its head says."""

    text: str
    title: str | None
    tags: tuple[bytes, bytes, bytes]


def read_article_fast(
    html: Octets | str, url: str | None = None, charset: str | None = None
) -> Article:
    """Return the main content of a page, read the fast way.

    Its ``markdown`` is the text alone, a line for each piece. A page of more than 100,000
    containers, such as ``div``, is read by :func:`pgsimhash.page.read_article` instead.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found; its canonical URL is resolved against this.
        charset: the label in the HTTP header, if there was one.

    Raises:
        MissingPackageError: numba is not installed.
        NotHtmlError: the bytes are an image, an archive, a PDF or another binary format.
        TooLargeError: the page has more than 500,000 elements.
        ErrorPageError, BlockedPageError: the page stands in for another.
    """
    scan = _scanner()
    source = _utf8(html, charset)
    scanned = scan(source)
    if scanned is None:
        return read_article(source, url)
    text, title, (root, link, base) = scanned
    text = clean_text(text).strip()
    if len(text) <= _SHORT:
        check_stand_in(title, text)
    canonical = None
    if link:
        start = absolute(_attribute(base, b"href"), url)
        canonical = absolute(_attribute(link, b"href"), start or url)
        if canonical is not None and not canonical.startswith(("http://", "https://")):
            canonical = None
    language = (_attribute(root, b"lang") or "").strip()[:35] or None
    return Article(text, text, title, canonical, language)


@lru_cache(maxsize=1)
def _scanner() -> Callable[[bytes], Scanned | None]:
    try:
        from pgsimhash.page.scanner.blocks import main_text
        from pgsimhash.page.scanner.octets import PADDING
        from pgsimhash.page.scanner.scan import scan
    except ImportError as error:
        raise MissingPackageError(
            "the fast reader needs numba: pip install 'pgsimhash[fast]'"
        ) from error
    names, meanings = kinds.names()
    references, characters = kinds.references()
    said, about = phrases.phrases()
    padding = bytes(PADDING)

    def scanned(source: bytes) -> Scanned | None:
        data: NDArray[np.uint8] = np.frombuffer(source + padding, dtype=np.uint8)
        text, containers, marks = scan(
            data, CONTAINERS_MAX, names, meanings, references, characters
        )
        if not len(containers):
            return None
        spans = [
            source[start:end] if start >= 0 else b"" for start, end in marks.reshape(-1, 2).tolist()
        ]
        root, title, link, base = spans[:4]
        return Scanned(
            main_text(text, containers, said, about).tobytes().decode("utf-8", "replace"),
            " ".join(clean_text(unescape(title.decode())).split()) or None,
            (root, link, base),
        )

    return scanned


def _attribute(tag: bytes, wanted: bytes) -> str | None:
    for name, value in _ATTRIBUTE.findall(tag[:_HEAD_MAX]):
        if name.lower() == wanted:
            return clean_text(unescape(value.strip(b"\"'").decode("utf-8", "replace")))
    return None


def _utf8(html: Octets | str, charset: str | None) -> bytes:
    if isinstance(html, str):
        return clean_text(html).encode("utf-8", "replace")
    html = bytes(html)
    plain = not any(byte in html for byte in _UNLIKE_ASCII)
    if plain and (html.isascii() or _is_utf8(html)):
        refuse_binary(html)
        return html
    return decode(html, charset).encode("utf-8", "replace")


def _is_utf8(html: bytes) -> bool:
    if html.startswith(codecs.BOM_UTF8):
        return False
    try:
        html.decode()
    except UnicodeDecodeError:
        return False
    return True
