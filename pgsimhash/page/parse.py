"""From the text of a page to one lxml tree, whatever the text looks like."""

from __future__ import annotations

from typing import Final

from lxml import etree, html
from lxml.html import HtmlElement

DEPTH_MAX: Final = 256
"""How deep the tree may be where libxml2 gives up: deeper elements become their siblings."""

_Text = str | bytes

_TOO_DEEP: Final = etree.ErrorTypes.ERR_RESOURCE_LIMIT


def parse(text: str) -> HtmlElement | None:
    """Return the root element of ``text``, None where there is no element and no text.

    Nothing is loaded from the network or from other files: libxml2's HTML parser knows neither
    external entities nor document types. It stops at 2,048 nested elements and drops the rest of
    the page; such a page is read again as a stream of events into a tree at most
    :data:`DEPTH_MAX` deep, which keeps all of its text.
    """
    source = text.encode("utf-8", "replace")
    parser = html.HTMLParser(
        encoding="utf-8", huge_tree=True, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(source, parser)
    except etree.ParserError:
        return None
    except etree.XMLSyntaxError:
        root = None
    if any(entry.type == _TOO_DEEP for entry in parser.error_log):
        flat = etree.HTMLParser(target=_FlatBuilder(), encoding="utf-8", huge_tree=True)
        root = etree.fromstring(source, flat)
    return root


class _FlatBuilder:
    """A parser target that builds a tree of limited depth."""

    def __init__(self) -> None:
        self._builder = etree.TreeBuilder(element_factory=html.html_parser.makeelement)
        self._depth = 0

    def start(self, tag: _Text, attrib: dict[_Text, _Text]) -> None:
        self._depth += 1
        if self._depth <= DEPTH_MAX:
            self._builder.start(tag, attrib)

    def end(self, tag: _Text) -> None:
        if self._depth <= DEPTH_MAX:
            self._builder.end(tag)
        self._depth -= 1

    def data(self, data: _Text) -> None:
        self._builder.data(data)

    def comment(self, text: _Text) -> None:
        pass

    def close(self) -> HtmlElement | None:
        try:
            return self._builder.close()
        except AssertionError:
            return None
