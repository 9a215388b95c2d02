"""Finds the main content of a cleaned page: readability's judgment first, then plainer ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml.html import HtmlElement
from readability import Document

from pgsimhash.page.outline import Outline

NODES_MAX: Final = 20_000
"""Readability is asked only up to this many elements: some of its steps are quadratic."""

_ENOUGH: Final = 0.35
_MORE: Final = 0.5
_MORE_LINKS: Final = 0.3
_BLOCKS: Final = frozenset(["blockquote", "dl", "div", "img", "ol", "p", "pre", "table", "ul"])
_FRAMES: Final = frozenset(["article", "main"])


def main_content(root: HtmlElement, outline: Outline) -> list[HtmlElement]:
    """Return the elements that hold the main content, in order, none inside another."""
    page = outline.chars[0]
    if len(outline.nodes) <= NODES_MAX:
        found = _Scorer(root, outline).best()
        if found is not None and len(found.text_content()) >= _ENOUGH * page:
            return [found]
    for path in (".//article", ".//main", ".//*[@role='main']", ".//*[@id='content']"):
        for element in root.iterfind(path):
            if len(element.text_content()) >= _ENOUGH * page:
                return [element]
    return [root]


class _Scorer(Document):  # type: ignore[misc]
    """Readability's scoring of paragraphs, on a tree that is parsed and cleaned already."""

    def __init__(self, root: HtmlElement, outline: Outline) -> None:
        super().__init__(root)
        self.html = root
        self._outline = outline
        self._places = {node: index for index, node in enumerate(outline.nodes)}

    def best(self) -> HtmlElement | None:
        self._mark_paragraphs()
        candidates = self.score_paragraphs()
        best = self.select_best_candidate(candidates)
        if best is None:
            return None
        best = self.get_semantic_article_candidate(candidates, best)
        best = self.get_semantic_main_candidate(candidates, best)
        wide = self._widened(best["elem"])
        if wide is not best["elem"]:
            return wide
        return self.get_article(candidates, best, html_partial=True)

    def _widened(self, element: HtmlElement) -> HtmlElement:
        """Return the ``article`` or ``main`` around ``element``, if it adds text and few links."""
        outline = self._outline
        inner = self._places[element]
        best = at = inner
        while at:
            at = outline.parents[at]
            if outline.nodes[at].tag not in _FRAMES:
                continue
            more = outline.unlinked(at) - outline.unlinked(best)
            links = outline.linked[at] - outline.linked[best]
            if more >= _MORE * outline.unlinked(best) and links <= _MORE_LINKS * (more + links):
                best = at
        return outline.nodes[best]

    def _html(self, force: bool = False) -> HtmlElement:
        return self.html

    def _mark_paragraphs(self) -> None:
        for element in self.html.iter("div"):
            if next(element.iterdescendants(*_BLOCKS), None) is None:
                element.tag = "p"

    def class_weight(self, e: HtmlElement) -> int:
        return 0

    def get_link_density(self, elem: HtmlElement) -> float:
        at = self._places.get(elem)
        if at is None:
            return float(super().get_link_density(elem))
        return self._outline.linked[at] / max(self._outline.chars[at], 1)

    def tags(self, node: HtmlElement, *tag_names: str) -> Iterator[HtmlElement]:
        for tag in tag_names:
            yield from node.findall(f".//{tag}")
