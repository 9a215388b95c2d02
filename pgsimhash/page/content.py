"""Finds the main content of a cleaned page: readability's judgment first, then plainer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from lxml.html import HtmlElement
from readability import Document

from pgsimhash.page.outline import Outline

NODES_MAX: Final = 20_000
"""Readability sees no page with more elements than this: some of its steps are quadratic."""

TEXT_MAX: Final = 20_000_000
"""Nor one whose elements have more text than this in all, counted once for each around it."""

_ENOUGH: Final = 0.35
_MORE: Final = 0.5
_MORE_LINKS: Final = 0.3
_BLOCKS: Final = frozenset(["blockquote", "dl", "div", "img", "ol", "p", "pre", "table", "ul"])
_FRAME_TESTS: Final[tuple[Callable[[HtmlElement], bool], ...]] = (
    lambda node: bool(node.tag == "article"),
    lambda node: bool(node.tag == "main"),
    lambda node: node.get("role") == "main",
    lambda node: node.get("id") == "content",
)
_BLOCK_SHARE: Final = 0.8
_FRAMES: Final = frozenset(["article", "main"])


def main_content(root: HtmlElement, outline: Outline) -> list[HtmlElement]:
    """Return the elements that hold the main content, in order, none inside another.

    Readability's choice stands if it holds at least 35% of the page's text. Otherwise it is the
    first that does of ``article``, ``main``, ``role=main`` and ``id=content``, and else the
    largest block of text: the innermost element with at least 80% of the page's. Pages beyond
    :data:`NODES_MAX` and :data:`TEXT_MAX` are not shown to readability.
    """
    enough = _ENOUGH * outline.chars[0]
    large = [
        index
        for index, chars in enumerate(outline.chars)
        if chars >= enough and index not in outline.removed
    ]
    if len(outline.nodes) <= NODES_MAX and sum(outline.chars) <= TEXT_MAX:
        found = _Scorer(root, outline).best(enough)
        if found is not None:
            return [found]
    for is_frame in _FRAME_TESTS:
        for index in large:
            if is_frame(outline.nodes[index]):
                return [outline.nodes[index]]
    return [_largest_block(root, outline)]


def _largest_block(root: HtmlElement, outline: Outline) -> HtmlElement:
    held = dict(zip(outline.nodes, outline.chars, strict=True))
    most = max(1.0, _BLOCK_SHARE * outline.chars[0])
    inner: HtmlElement | None = root
    while inner is not None:
        block = inner
        inner = next((child for child in block if held.get(child, 0) >= most), None)
    return block


class _Scorer(Document):  # type: ignore[misc]
    """Readability's scoring of paragraphs, on a tree that is parsed and cleaned already."""

    def __init__(self, root: HtmlElement, outline: Outline) -> None:
        super().__init__(root)
        self.html = root
        self._outline = outline
        self._places = outline.places

    def best(self, enough: float) -> HtmlElement | None:
        """Return the element with the main content, if that has ``enough`` characters."""
        self._mark_paragraphs()
        candidates = self.score_paragraphs()
        best = self.select_best_candidate(candidates)
        if best is None:
            return None
        best = self.get_semantic_article_candidate(candidates, best)
        best = self.get_semantic_main_candidate(candidates, best)
        element = self._widened(best["elem"])
        if element is best["elem"]:
            # Readability moves what it takes, from among the siblings, into an element of its own.
            parent = element.getparent()
            siblings = [] if parent is None else list(parent)
            element = self.get_article(candidates, best, html_partial=True)
            if len(element.text_content()) < enough and parent is not None:
                parent.extend(siblings)
                return None
        return element

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

    def score_paragraphs(self) -> dict[HtmlElement, dict[str, Any]]:
        """Score the parents and grandparents of paragraphs, as readability does, in less time.

        Its own method formats a line of debugging for each candidate and runs three patterns
        over each paragraph.
        """
        candidates: dict[HtmlElement, dict[str, Any]] = {}
        for element in self.tags(self.html, "p", "pre", "td", "blockquote"):
            parent = element.getparent()
            if parent is None:
                continue
            text = element.text_content()
            length = len(" ".join(text.split()))
            if length < self.min_text_length:
                continue
            score = 2 + text.count(",") + min(length / 100, 3)
            for above, share in ((parent, 1.0), (parent.getparent(), 0.5)):
                if above is not None:
                    if above not in candidates:
                        candidates[above] = self.score_node(above)
                    candidates[above]["content_score"] += score * share
        for element, candidate in candidates.items():
            candidate["content_score"] *= 1 - self.get_link_density(element)
        return candidates

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
