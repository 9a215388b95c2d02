"""Extract the main content of a page: words with weights, and the visible text blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
from lxml.html import HtmlElement

from pgsimhash.html.article import WeightedWords
from pgsimhash.html.blocks import Outline, Piece, outline
from pgsimhash.html.charset import clean_text
from pgsimhash.html.links import restore_images
from pgsimhash.html.markdown import LeftOut, render
from pgsimhash.html.markdown_syntax import escape, escape_start
from pgsimhash.html.page_words import read_words
from pgsimhash.html.weights import is_frame_only, scores_of, shown_blocks, weights_of
from pgsimhash.html.whole import with_whole_elements

MARKED_UP_MAX: Final = 150_000
"""The Markdown of a page with more elements has no headings, lists and links."""


class Content:
    """The text blocks of a page with their weights, and which of them are shown."""

    def __init__(
        self, body: HtmlElement, base: str | None, *, also: Collection[HtmlElement] = ()
    ) -> None:
        self._body, self._base = body, base
        self.outline: Outline = outline(body)
        page = read_words(self.outline)
        scores = scores_of(page)
        weights = weights_of(scores, page.counts)
        shown = with_whole_elements(page, shown_blocks(page, weights))
        if also:
            shown[_blocks_in(body, also)] = True
        counted = shown[page.places] & (not is_frame_only(page, scores))
        self.words = WeightedWords(
            page.vocabulary, page.words, page.kinds, page.blocks, weights, counted
        )
        self._shown = frozenset(np.flatnonzero(shown).tolist())

    def text(self) -> str:
        """Return the text of the shown blocks, a line each."""
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        texts = self.outline.texts()
        return [texts[place] for place in sorted(self._shown)]

    def markdown(self) -> str:
        """Return the Markdown of the shown blocks, with the images between them."""
        if self._body.xpath("count(.//*) > $most", most=MARKED_UP_MAX):
            return unmarked(self._lines())
        restore_images(self._body)
        left_out = _left_out(self._body, self._shown)
        return clean_text(render([self._body], self._base, left_out))


def unmarked(lines: Iterable[str]) -> str:
    """Return lines of text as Markdown, a paragraph each."""
    return "\n\n".join([escape_start(escape(line)) for line in lines if line])


def _blocks_in(body: HtmlElement, elements: Iterable[HtmlElement]) -> list[int]:
    """Return the numbers of the blocks in ``elements``."""
    pieces: list[Piece] = []
    outline(body, pieces)
    inside = {node for element in elements for node in element.iter()}
    return [piece.block for piece in pieces if piece.around() in inside]


def _left_out(body: HtmlElement, shown: Collection[int]) -> LeftOut:
    """Return the parts without shown blocks: the largest elements, and texts and tails."""
    pieces: list[Piece] = []
    outline(body, pieces)
    kept = {body}
    for piece in pieces:
        if piece.block in shown:
            element = piece.around()
            while element not in kept:
                kept.add(element)
                element = element.getparent()
    left_out = LeftOut(set(), set(), set())
    for piece in pieces:
        if piece.block in shown:
            continue
        element = piece.around()
        if element in kept:
            (left_out.tails if piece.is_tail else left_out.texts).add(piece.element)
        while element not in kept and element not in left_out.elements:
            left_out.elements.add(element)
            element = element.getparent()
    return left_out
