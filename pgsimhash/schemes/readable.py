"""Readability, which chooses the article of a page, with bounds on what it may look at.

Some of its steps look at text again and again: for each element around it, for each list below a
heading, for each empty element beside it. What they look at is counted; a page that would take too
much has no article.
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
"""It sees no page of more characters of HTML."""

LOOKED_AT_MAX: Final = 30_000_000
"""It chooses none of a page of which it would look at more characters than so many, each as often
as it does; each time counts for :data:`_LOOK` of them."""

_LOOK: Final = 50

_LONG: Final = re.compile(r"(?<!\s)\s{255,}")
_BREAKS: Final = re.compile(r"(?<!\s)\s*\n\s*")
_BLANKS: Final = re.compile(r"\t|[ \t]{2,}")

_work = threading.local()


class _TooMuchError(BaseException):
    """Readability would take too long; it catches whatever is an ``Exception``."""


def article_of(html: str) -> HtmlElement | None:
    """Return what readability takes for the article of a page, None if it may not see the page."""
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
    """Do as readability's function of this name, in time that is linear in white space too."""
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
    """Yield the elements for which it holds, or for one around them; each is asked once."""
    known: dict[HtmlElement | None, bool] = {None: False}
    for element in elements:
        asked: list[HtmlElement] = []
        node: HtmlElement | None = element
        while node is not None and node not in known:
            asked.append(node)
            node = node.getparent()
        found = known[node]
        for below in reversed(asked):
            known[below] = found = found or holds(below)
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
    """Return a copy of readability's module with ``Summary`` in it."""
    # A copy of the module of our own: the functions that it calls are others in it.
    spec = importlib.util.find_spec("readability.readability")
    assert spec is not None
    assert spec.loader is not None
    own: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    own.clean = clean
    own.tostring, own.tounicode = _counted(own.tostring), _counted(own.tounicode)
    # What they say is for its log; they keep the last page.
    own.describe = own.text_content = lambda *_: ""
    # It tells of every page that has no article, as an error.
    logging.getLogger("readability").addHandler(logging.NullHandler())

    class Summary(own.Document):  # type: ignore[misc]
        """Readability as it comes, but for steps without bounds on depth and on time."""

        def _parse(self, input: str) -> HtmlElement:  # noqa: A002
            return super()._parse(parse(input))

        def get_clean_html(self) -> str:
            # The attributes that it would take out are not there.
            return str(etree.tostring(self.html, encoding="unicode", method="html"))

        def get_link_density(self, elem: HtmlElement) -> float:
            _look_at(int(elem.xpath("count(.//*)")))
            return float(super().get_link_density(elem))

        def get_editorial_leads(self, best_elem: HtmlElement) -> list[HtmlElement]:
            called = own.REGEXES["editorialLeadRe"].search
            named = self.html.xpath("//*[@class or @id]")
            leads = sum(
                1 for node in named if called(f"{node.get('class', '')} {node.get('id', '')}")
            )
            # Each is looked for, with all around it, among those before.
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
