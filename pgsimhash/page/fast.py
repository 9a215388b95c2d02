"""Reads the main content of a page several times faster than the package's default way.

The page goes through the HTML5 parser lexbor (selectolax, the extra ``fast``), what is not its
text is taken out by tag and by name as in :mod:`pgsimhash.page.clean`, and of the rest the first
``article``, ``main``, ``role=main`` or ``id=content`` that holds enough counts, else all of it.
There is no scoring of paragraphs and no Markdown, which is where the default way spends its time.
"""

from __future__ import annotations

import codecs
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pgsimhash.errors import MissingPackageError
from pgsimhash.page import read_article
from pgsimhash.page.article import Article
from pgsimhash.page.decode import clean_text, decode, refuse_binary
from pgsimhash.page.links import absolute
from pgsimhash.page.names import BESIDE_TEXT, NEVER_TEXT, PROTECTED, is_beside
from pgsimhash.page.nesting import may_be_slow
from pgsimhash.page.refusals import check_stand_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from selectolax.lexbor import LexborHTMLParser, LexborNode

MEASURED_MAX: Final = 100_000_000
"""How many characters are counted, those of nested elements once for each, before it is enough."""

_LARGE_SHARE: Final = 0.4
_SMALL_SHARE: Final = 0.1
_LINK_SHARE: Final = 0.6
_ENOUGH: Final = 0.35
_NEVER, _BESIDE, _FRAME, _LIST, _PASSED = range(1, 6)
_PASSED_TAGS: Final = """
    html body a b i em strong span code br img small sup sub font time label path p h1 h2 h3 h4
    pre li dd dt tr th td tbody thead option
"""
_KINDS: Final = (
    dict.fromkeys(_PASSED_TAGS.split(), _PASSED)
    | dict.fromkeys(NEVER_TEXT, _NEVER)
    | dict.fromkeys(BESIDE_TEXT, _BESIDE)
    | dict.fromkeys(PROTECTED - {"html", "body"}, _FRAME)
    | dict.fromkeys(("ul", "ol"), _LIST)
)
_UNLIKE_ASCII: Final = (b"\0", b"\x1b")


def read_article_fast(
    html: bytes | str, url: str | None = None, charset: str | None = None
) -> Article:
    """Return the main content of a page, read the fast way.

    Its ``markdown`` is the text alone, a line for each piece. A page that would keep an HTML5
    parser busy (more than 10,000 tags, a tag with thousands of attributes) is read by
    :func:`pgsimhash.page.read_article` instead, whose time is bounded.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found; its canonical URL is resolved against this.
        charset: the label in the HTTP header, if there was one.

    Raises:
        MissingPackageError: selectolax is not installed.
        NotHtmlError: the bytes are an image, an archive, a PDF or another binary format.
        TooLargeError: the page has more than 500,000 elements.
        ErrorPageError, BlockedPageError: the page stands in for another.
    """
    parse = _parser()
    source = _utf8(html, charset)
    if may_be_slow(source):
        return read_article(source, url)
    tree = parse(source)
    body = tree.body
    if body is None:
        return Article("", "", None, None, None)
    title = _title(tree)
    canonical = _canonical(tree, url)
    root = tree.root
    language = (root.attributes.get("lang") or "").strip()[:35] if root is not None else ""
    text = clean_text(_main_text(body))
    check_stand_in(title, text)
    return Article(text, text, title, canonical, clean_text(language) or None)


@lru_cache(maxsize=1)
def _parser() -> Callable[[bytes], LexborHTMLParser]:
    try:
        from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser
    except ImportError as error:
        raise MissingPackageError(
            "the fast reader needs selectolax: pip install 'pgsimhash[fast]'"
        ) from error
    # Without events, a page cannot have the parser copy parts of it.
    options = LexborDocumentOptions.WO_EVENTS
    return lambda source: LexborHTMLParser(source, scripting=True, options=options)


def _utf8(html: bytes | str, charset: str | None) -> bytes:
    if isinstance(html, str):
        return clean_text(html).encode("utf-8", "replace")
    if not html.startswith(codecs.BOM_UTF8) and not any(byte in html for byte in _UNLIKE_ASCII):
        try:
            html.decode()
        except UnicodeDecodeError:
            pass
        else:
            refuse_binary(html)
            return html
    return decode(html, charset).encode("utf-8", "replace")


def _title(tree: LexborHTMLParser) -> str | None:
    element = tree.head.css_first("title") if tree.head is not None else None
    return None if element is None else " ".join(clean_text(element.text()).split()) or None


def _canonical(tree: LexborHTMLParser, url: str | None) -> str | None:
    for link in tree.head.css("link") if tree.head is not None else ():
        if "canonical" in (link.attributes.get("rel") or "").lower().split():
            base = tree.css_first("base[href]")
            start = base and absolute(base.attributes["href"], url)
            found = absolute(link.attributes.get("href"), start or url)
            if found is not None and found.startswith(("http://", "https://")):
                return clean_text(found)
    return None


def _main_text(body: LexborNode) -> str:
    never: list[LexborNode] = []
    beside: list[LexborNode] = []
    lists: list[LexborNode] = []
    frames: list[LexborNode] = []
    kind_of = _KINDS.get
    for node in body.traverse():
        kind = kind_of(node.tag or "")
        if kind == _PASSED:
            continue
        if kind == _NEVER:
            never.append(node)
        elif kind == _BESIDE:
            beside.append(node)
        elif kind == _FRAME:
            frames.append(node)
        else:
            attributes = node.attributes
            if attributes and is_beside(attributes.items()):
                beside.append(node)
            elif kind == _LIST:
                lists.append(node)
            elif attributes.get("role") == "main" or attributes.get("id") == "content":
                frames.append(node)
    for node in never:
        node.decompose()
    scales = _Scales(body)
    for node in beside:
        if not scales.is_large(node, scales.chars(node)):
            node.decompose()
    scales = _Scales(body)
    for node in lists:
        chars = scales.chars(node)
        if chars == 0 or scales.linked(node) <= _LINK_SHARE * chars:
            continue
        if not scales.is_large(node, chars):
            node.decompose()
    enough = _ENOUGH * scales.chars(body)
    main = next((node for node in frames if scales.chars(node) >= enough), body)
    return main.text(separator="\n", skip_empty=True)


class _Scales:
    """The measures of elements beside those of the page."""

    def __init__(self, body: LexborNode) -> None:
        self._body = body
        self._spent = 0
        self._chars = self.chars(body)
        self._unlinked: int | None = None

    def chars(self, node: LexborNode) -> int:
        """Return the characters in ``node``, white space at the ends of texts aside."""
        if self._spent > MEASURED_MAX:
            return 0
        chars = len(node.text(strip=True))
        self._spent += chars
        return chars

    def linked(self, node: LexborNode) -> int:
        """Return how many of them are in links."""
        return sum([self.chars(link) for link in node.css("a")])

    def is_large(self, node: LexborNode, chars: int) -> bool:
        """Return whether ``node``, of ``chars`` characters, holds much of the page's own text."""
        if self._spent > MEASURED_MAX:
            return True
        if chars <= _SMALL_SHARE * self._chars:
            return False
        if self._unlinked is None:
            self._unlinked = self._chars - self.linked(self._body)
        return chars - self.linked(node) > _LARGE_SHARE * self._unlinked
