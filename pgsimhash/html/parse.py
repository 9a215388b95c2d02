"""From the text of a page to one lxml tree, whatever the text looks like."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Final

from lxml import etree, html
from lxml.html import HtmlElement

from pgsimhash.errors import PageError
from pgsimhash.html.charset import clean_text
from pgsimhash.html.names import words

ELEMENTS_MAX: Final = 500_000
"""How many elements a page may have; browsers give up long before."""

DEPTH_MAX: Final = 256
"""How deep the tree gets where libxml2 gives up: deeper elements leave only their text."""

ATTRIBUTES_MAX: Final = 100
"""How many attributes an element keeps where some have far too many."""

ATTRIBUTES_CROWD: Final = 200
"""How many are far too many."""

HEAD: Final = words("base basefont bgsound link meta noframes noscript script style template title")
"""What may stand in a head (WHATWG HTML, section 13.2.6.4.4); anything else begins the body."""

_Text = str | bytes

_TOO_DEEP: Final = etree.ErrorTypes.ERR_RESOURCE_LIMIT
_NO_MEMORY: Final = etree.ErrorTypes.ERR_NO_MEMORY
# What lxml takes from Python is narrower than what its parser makes by itself.
_NAME: Final = re.compile(r"[a-z_][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)

_SMALL: Final = 1 << 16
"""In so few bytes no tag can have enough attributes to matter."""

_SEARCHED_MAX: Final = 400_000_000
"""How many open elements a parser may look through for those that end, about a second's worth."""

_PIECE: Final = 1 << 16

_LONG_TAG: Final = 2048
_PAIRS_ROOT_MAX: Final = 10_000
# A tag that every parser ends at the same place.
_PLAIN_TAG: Final = re.compile(
    rb"""/?[a-z][a-z0-9:-]*+(?:\s++[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'`<>=]++))?+)*+"""
    rb"\s*+/?>",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(rb""""[^"]*+"|'[^']*+'""")
_SEPARATORS: Final = b" \t\n\r\f/\"'"

# One class for all elements: lxml.html's own lookup asks Python for each.
_ELEMENTS: Final = etree.ElementDefaultClassLookup(element=HtmlElement)


def parse(text: str, max_elements: int = ELEMENTS_MAX) -> HtmlElement | None:
    """Return the root element of ``text``, None where there is no element and no text.

    Nothing is loaded from the network or from other files: libxml2's HTML parser knows neither
    external entities nor document types. It is older than ``article`` and ``main``, and leaves
    them in the head of a page that does not write ``<body>``; here they are in the body. Two of
    its limits need a way around, which reads the page as a stream of events: it stops at 2,048
    nested elements and drops the rest of the page (here all text stays, in a tree
    :data:`DEPTH_MAX` deep), and its time is quadratic in the attributes of an element (here the
    first :data:`ATTRIBUTES_MAX` count).

    Raises:
        PageError: there are more than ``max_elements`` elements, or very many within one another
            and as many end tags, each of which may be looked for among them.
        MemoryError: there is too little memory for the tree.
    """
    source = text.encode("utf-8", "replace")
    survey = _survey(source, max_elements) if _may_be_too_much(source, max_elements) else None
    if survey is not None and survey.most > ATTRIBUTES_CROWD:
        root = _parse_events(source)
    else:
        parser = etree.HTMLParser(
            encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
        )
        parser.set_element_class_lookup(_ELEMENTS)
        try:
            root = etree.fromstring(source, parser)
        except etree.XMLSyntaxError as error:
            if any(entry.type == _NO_MEMORY for entry in parser.error_log):
                raise MemoryError("for the tree of a page") from error
            return None
        if any(entry.type == _TOO_DEEP for entry in parser.error_log):
            if survey is None:
                _survey(source, max_elements)
            root = _parse_events(source)
    # A tag opens two elements at most, itself and one that it implies.
    many = source.count(b"<") > max_elements // 2
    if many and root is not None and root.xpath("count(//*) > $most", most=max_elements):
        raise PageError("too_large", f"the page has more than {max_elements:,} elements")
    if root is not None:
        _empty_head(root)
    return root


def _empty_head(root: HtmlElement) -> None:
    """Move what begins the body, where ``<body>`` was left out, from the head to the body."""
    head = root.find("head")
    begins = () if head is None else [child for child in head if child.tag not in HEAD]
    if head is None or not begins:
        return
    body = root.find("body")
    if body is None:
        body = root.makeelement("body")
        head.addnext(body)
    if body.text:
        begins[-1].tail = f"{begins[-1].tail or ''}{body.text}"
        body.text = None
    body[:0] = begins


def _may_be_too_much(source: bytes, max_elements: int) -> bool:
    """Return whether a page may have too many elements, or attributes, to make a tree of them."""
    ends = source.count(b"</")
    starts = source.count(b"<") - ends
    return max(starts, ends) > max_elements or may_crowd_attributes(source)


def _survey(source: bytes, max_elements: int) -> _Survey:
    """Return what a first look without a tree says about a page.

    Raises:
        PageError: there are more than ``max_elements`` elements, or too many within one another,
            seen before a tree of them fills the memory.
    """
    survey = _Survey(source, max_elements)
    parser = etree.HTMLParser(
        target=survey,  # type: ignore[arg-type]  # what it has no method for is not told
        encoding="utf-8",
        huge_tree=True,
    )
    # Within one call the parser would go on to the end of the page whatever is raised.
    for start in range(0, len(source), _PIECE):
        parser.feed(source[start : start + _PIECE])
    with suppress(etree.XMLSyntaxError):
        parser.close()
    return survey


def may_crowd_attributes(source: bytes) -> bool:
    """Return whether a tag in ``source`` (UTF-8) may have thousands of attributes.

    A parser compares every attribute of a tag with those before it (WHATWG HTML, section
    13.2.5.33), so that one tag can keep it busy for minutes. This errs on the side of saying so:
    some long comments look like tags too.
    """
    if len(source) <= _SMALL:
        return False
    pairs = 0
    at = source.find(b"<")
    while at >= 0:
        # The last bracket within reach: the way to it holds no long tag.
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
    """A parser target that counts elements, and those that are open, up to limits.

    ``most`` is the most attributes any element has.
    """

    most = 0

    def __init__(self, source: bytes, max_elements: int) -> None:
        self._max_elements = max_elements
        self._elements = 0
        self._depth = 0
        # The parser looks for each element that ends among all that are open, one by one.
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
    parser = etree.HTMLParser(target=_FlatBuilder(), encoding="utf-8", huge_tree=True)
    root: HtmlElement | None = etree.fromstring(source, parser)
    return root


def _storable(text: _Text) -> str:
    # The one white space that HTML knows and XML does not.
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

    def comment(self, text: _Text) -> None:
        pass

    def close(self) -> HtmlElement | None:
        try:
            return self._builder.close()
        except AssertionError:
            return None
