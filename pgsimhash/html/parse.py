"""Parse any page into an lxml tree, within limits of time and memory."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from lxml import etree, html
from lxml.html import HtmlElement

from pgsimhash.errors import PageError
from pgsimhash.html import native
from pgsimhash.html.charset import clean_text

ELEMENTS_MAX: Final = 500_000  # the most elements of a page; browsers give up long before
# The depth of the tree of a page that is too deep for libxml2; deeper elements keep their text.
DEPTH_MAX: Final = 256
ATTRIBUTES_MAX: Final = 100  # the attributes that an element keeps on a page above ATTRIBUTES_CROWD
ATTRIBUTES_CROWD: Final = 200  # the most attributes of an element that libxml2 parses alone

# The elements of a head (WHATWG HTML, section 13.2.6.4.4); any other begins the body.
HEAD: Final = frozenset({
    "base", "basefont", "bgsound", "link", "meta", "noframes", "noscript", "script", "style",
    "template", "title",
})  # fmt: skip

_Text = str | bytes

_TOO_DEEP: Final = etree.ErrorTypes.ERR_RESOURCE_LIMIT
_NO_MEMORY: Final = etree.ErrorTypes.ERR_NO_MEMORY
# lxml accepts fewer names from Python than its parser creates.
_NAME: Final = re.compile(r"[a-z_][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)

# How many open elements a parser may search for those that end: about a second of work.
_SEARCHED_MAX: Final = 400_000_000
_PIECE: Final = 1 << 16
_SMALL: Final = 1 << 16  # in a smaller page no tag can have enough attributes to matter
_LONG_TAG: Final = 2048
_PAIRS_ROOT_MAX: Final = 10_000
# A tag that all parsers end at the same place.
_PLAIN_TAG: Final = re.compile(
    rb"""/?[a-z][a-z0-9:-]*+(?:\s++[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'`<>=]++))?+)*+"""
    rb"\s*+/?>",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(rb""""[^"]*+"|'[^']*+'""")
_SEPARATORS: Final = b" \t\n\r\f/\"'"

# One class for all elements: lxml.html's lookup calls Python for each.
_ELEMENTS: Final = etree.ElementDefaultClassLookup(element=HtmlElement)
_OF_THREAD: Final = threading.local()


def parse(page: str | bytes, max_elements: int = ELEMENTS_MAX) -> HtmlElement | None:
    """Return the root element of a page, text or UTF-8; None without elements and text.

    Nothing is loaded from the network or from files: libxml2's HTML parser supports neither
    external entities nor document types. Three of its faults are corrected here. It is older than
    ``article`` and ``main``, and leaves them in the head of a page without ``<body>``. It stops at
    2,048 nested elements and drops the rest of the page. Here a stream of events builds a tree
    :data:`DEPTH_MAX` deep with all text. Its time is quadratic in the attributes of an element;
    here the first :data:`ATTRIBUTES_MAX` count.

    Raises:
        PageError: the page has more than ``max_elements`` elements, or so many nested elements and
            end tags that matching them takes too long.
    """
    source = page.encode("utf-8", "replace") if isinstance(page, str) else page
    # A tag opens at most two elements: itself and an implied one.
    half = max_elements // 2
    brackets = source.count(b"<") if len(source) > half else 0
    ends = source.count(b"</") if brackets > max_elements else 0
    has_many = max(ends, brackets - ends) > max_elements
    is_suspect = has_many or may_crowd_attributes(source)
    if is_suspect and _survey(source, max_elements) > ATTRIBUTES_CROWD:
        root = _parse_events(source)
    else:
        parser = _parser()
        try:
            root = etree.fromstring(source, parser)
        except etree.XMLSyntaxError as error:
            if any(entry.type == _NO_MEMORY for entry in parser.error_log):
                raise MemoryError("for the tree of a page") from error
            return None
        if any(entry.type == _TOO_DEEP for entry in parser.error_log):
            if not is_suspect:
                _survey(source, max_elements)
            root = _parse_events(source)
    if root is not None:
        if brackets > half and root.xpath("count(//*) > $most", most=max_elements):
            raise PageError("too_large", f"the page has more than {max_elements:,} elements")
        _empty_head(root)
    return root


def _parser() -> etree.HTMLParser:
    """Return the parser of this thread: a new one costs as much as parsing some kilobytes."""
    parser: etree.HTMLParser | None = getattr(_OF_THREAD, "parser", None)
    if parser is None:
        parser = etree.HTMLParser(
            encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
        )
        parser.set_element_class_lookup(_ELEMENTS)
        _OF_THREAD.parser = parser
    return parser


def _empty_head(root: HtmlElement) -> None:
    """Move elements of the body from the head to the body, if ``<body>`` was left out."""
    head = root.find("head")
    if head is None or native.has_only(head, HEAD):
        return
    misplaced = [child for child in head if child.tag not in HEAD]
    if not misplaced:
        return
    body = root.find("body")
    if body is None:
        body = root.makeelement("body")
        head.addnext(body)
    if body.text:
        misplaced[-1].tail = f"{misplaced[-1].tail or ''}{body.text}"
        body.text = None
    body[:0] = misplaced


def _event_parser(target: Any) -> etree.HTMLParser:
    return etree.HTMLParser(target=target, encoding="utf-8", huge_tree=True)


def _survey(source: bytes, max_elements: int) -> int:
    """Return the most attributes of an element of a page, and refuse too many elements."""
    survey = _Survey(source, max_elements)
    parser = _event_parser(survey)
    # Within one call the parser ignores exceptions until the end of the page.
    for start in range(0, len(source), _PIECE):
        parser.feed(source[start : start + _PIECE])
    with suppress(etree.XMLSyntaxError):
        parser.close()
    return survey.most


def may_crowd_attributes(source: bytes) -> bool:
    """Return whether a tag in ``source`` (UTF-8) may have thousands of attributes.

    A parser compares every attribute of a tag with those before it (WHATWG HTML, section
    13.2.5.33), so one tag can keep it busy for minutes. False positives occur: some long comments
    look like tags.
    """
    if len(source) <= _SMALL:
        return False
    pairs = 0
    at = source.find(b"<")
    while at >= 0:
        # Skips to the last bracket in range: no tag before it is long.
        following = source.rfind(b"<", at + 1, at + _LONG_TAG)
        if following < 0:
            following = source.find(b"<", at + _LONG_TAG)
            end = len(source) if following < 0 else following
            plain = _PLAIN_TAG.match(source, at + 1, end)
            last = plain.end() if plain else end
            tag = _QUOTED.sub(b"'", source[at:last]) if plain else source[at:last]
            pairs += (len(tag) - len(tag.translate(None, _SEPARATORS))) ** 2
            if pairs > _PAIRS_ROOT_MAX**2:
                return True
        at = following
    return False


class _Survey:
    """A parser target that counts elements, open elements and, in ``most``, attributes."""

    most = 0

    def __init__(self, source: bytes, max_elements: int) -> None:
        self._max_elements = max_elements
        self._elements = 0
        self._depth = 0
        # The parser searches all open elements for each end tag.
        self._open_max = _SEARCHED_MAX // (source.count(b"</") + 1)

    def start(self, tag: _Text, attrib: dict[_Text, _Text]) -> None:
        self._elements += 1
        if self._elements > self._max_elements:
            raise PageError("too_large", f"the page has more than {self._max_elements:,} elements")
        self._depth += 1
        if self._depth > self._open_max:
            what = f"the page has more than {self._open_max:,} elements within one another"
            raise PageError("too_large", f"{what}, and far too many end tags")
        if len(attrib) > self.most:
            self.most = len(attrib)

    def end(self, tag: _Text) -> None:
        self._depth -= 1

    def close(self) -> None:
        pass


def _parse_events(source: bytes) -> HtmlElement | None:
    root: HtmlElement | None = etree.fromstring(source, _event_parser(_FlatBuilder()))
    return root


def _storable(text: _Text) -> str:
    # A form feed is white space in HTML, and not allowed in XML.
    return clean_text(str(text)).replace("\f", " ")


class _FlatBuilder:
    """A parser target that builds a tree of limited depth, with limited attributes."""

    def __init__(self) -> None:
        self._depth = 0
        self._builder = etree.TreeBuilder(element_factory=html.html_parser.makeelement)

    def start(self, tag: _Text, attrib: dict[_Text, _Text]) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            return
        kept: dict[_Text, _Text] = {
            name: _storable(value)
            for name, value in islice(attrib.items(), ATTRIBUTES_MAX)
            if _NAME.fullmatch(str(name))
        }
        self._builder.start(tag if _NAME.fullmatch(str(tag)) else "span", kept)

    def end(self, tag: _Text) -> None:
        if self._depth <= DEPTH_MAX:
            self._builder.end(tag if _NAME.fullmatch(str(tag)) else "span")
        self._depth -= 1

    def data(self, data: _Text) -> None:
        self._builder.data(_storable(data))

    def close(self) -> HtmlElement | None:
        try:
            return self._builder.close()
        except AssertionError:
            return None
