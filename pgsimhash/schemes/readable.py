"""Choose the article of a page by readability, with bounded work.

Some of readability's steps read the same text many times: for each ancestor, for each list below a
heading, for each empty element nearby. The characters read are counted, and a page that needs too
many has no article.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.parse import parse

CHARS_MAX: Final = 2_500_000
"""The most characters of HTML of a page."""

LOOKED_AT_MAX: Final = 30_000_000
"""The most characters to read, with repetitions; each reading counts :data:`_LOOK` more."""

_LOOK: Final = 50

_LONG: Final = re.compile(r"(?<!\s)\s{255,}")
_BREAKS: Final = re.compile(r"(?<!\s)\s*\n\s*")
_BLANKS: Final = re.compile(r"\t|[ \t]{2,}")

_work = threading.local()


class _TooMuchError(BaseException):
    """Readability takes too long. Not an ``Exception``, because readability catches those."""


def article_of(html: str) -> HtmlElement | None:
    """Return the article that readability chooses, or None if the page takes too long."""
    own = _readability()
    _work.left = LOOKED_AT_MAX
    try:
        return parse(str(own.Summary(html).summary()))
    except (own.Unparseable, _TooMuchError):
        return None


def _look_at(size: int) -> None:
    _work.left -= size + _LOOK
    if _work.left < 0:
        raise _TooMuchError


def clean(text: str) -> str:
    """Return the result of readability's ``clean``, in linear time."""
    _look_at(len(text))
    text = _LONG.sub(" " * 255, text)
    text = _BREAKS.sub("\n", text)
    return _BLANKS.sub(" ", text).strip()


def _counted(written: Callable[..., str | bytes]) -> Callable[..., str | bytes]:
    def write(*arguments: Any, **options: Any) -> str | bytes:
        text = written(*arguments, **options)
        _look_at(len(text))
        return text

    return write


def _around(
    elements: Iterable[HtmlElement], holds: Callable[[HtmlElement], bool]
) -> Iterator[HtmlElement]:
    """Yield the elements that, or an ancestor of which, satisfies ``holds``, called once each."""
    known: dict[HtmlElement | None, bool] = {None: False}
    for element in elements:
        unknown: list[HtmlElement] = []
        node: HtmlElement | None = element
        while node is not None and node not in known:
            unknown.append(node)
            node = node.getparent()
        is_inside = known[node]
        for below in reversed(unknown):
            known[below] = is_inside = is_inside or holds(below)
        if known[element]:
            yield element


def _lists_contents(element: HtmlElement) -> bool:
    heading = element.getprevious() if element.tag == "ul" else None
    return (
        heading is not None
        and heading.tag in ("h2", "h3", "h4")
        and clean(heading.text_content()).lower() == "table of contents"
    )


@cache
def _readability() -> Any:
    """Return a private copy of readability's module, with some functions replaced."""
    spec = importlib.util.find_spec("readability.readability")
    assert spec is not None
    assert spec.loader is not None
    own: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    own.clean = clean
    own.tostring, own.tounicode = _counted(own.tostring), _counted(own.tounicode)
    # Used only for its log, and they keep the last page in memory.
    own.describe = own.text_content = lambda *_: ""
    # It logs every page without an article as an error.
    logging.getLogger("readability").addHandler(logging.NullHandler())

    class Summary(own.Document):  # type: ignore[misc]
        """Readability with bounds on depth and time."""

        def _parse(self, input: str) -> HtmlElement:  # noqa: A002
            return super()._parse(parse(input))

        def get_clean_html(self) -> str:
            # The attributes that it removes are already gone.
            return str(etree.tostring(self.html, encoding="unicode", method="html"))

        def get_link_density(self, elem: HtmlElement) -> float:
            _look_at(int(elem.xpath("count(.//*)")))
            return float(super().get_link_density(elem))

        def get_editorial_leads(self, best_elem: HtmlElement) -> list[HtmlElement]:
            matches = own.REGEXES["editorialLeadRe"].search
            named = self.html.xpath("//*[@class or @id]")
            leads = sum(
                1 for node in named if matches(f"{node.get('class', '')} {node.get('id', '')}")
            )
            # It searches the previous leads for each lead and its ancestors.
            _look_at(10 * leads * leads)
            return list(super().get_editorial_leads(best_elem))

        def get_preserved_elements(self, node: HtmlElement) -> dict[HtmlElement, bool]:
            lists = _around(self.tags(node, "ul"), _lists_contents)
            blocks = _around(self.tags(node, "div", "section"), self._leads_to_quote)
            return dict.fromkeys([*lists, *blocks], True)

        def _leads_to_quote(self, element: HtmlElement) -> bool:
            following = element.getnext()
            if following is None or next(following.iterdescendants("blockquote"), None) is None:
                return False
            text = clean(element.text_content())
            return len(text) >= self.min_text_length and text.endswith(":")

    own.Summary = Summary
    return own
