"""The main content of a page: its words with weights, and the blocks that people are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.article import WeightedWords
from pgsimhash.html.blocks import Outline, Piece, outline
from pgsimhash.html.charset import clean_text
from pgsimhash.html.links import restore_images
from pgsimhash.html.markdown import render
from pgsimhash.html.markdown_syntax import escape, escape_start
from pgsimhash.html.names import NEVER_TEXT, is_hidden
from pgsimhash.html.page_words import read_words
from pgsimhash.html.weights import is_frame_only, scores_of, shown_blocks, weights_of

_REMOVED: Final = "removed"

MARKED_UP_MAX: Final = 200_000
"""A page of more elements is shown without headings, lists and links."""


class Content:
    """The blocks of a page with their weights, and what of them people are shown.

    Args:
        body: the tree; asking for Markdown changes it.
        base: what relative URLs are relative to.
        chosen: whether all of it is known to be the content.

    Attributes:
        outline: the blocks and the elements around them.
        words: the words and weights of the blocks.
    """

    def __init__(self, body: HtmlElement, base: str | None, *, chosen: bool = False) -> None:
        self._body, self._base = body, base
        self.outline: Outline = outline(body)
        page = read_words(self.outline)
        if chosen:
            weights, shown = np.ones(len(page.counts)), np.ones(len(page.counts), np.bool_)
            counted = shown
        else:
            scores = scores_of(page)
            weights = weights_of(scores, page.counts)
            shown = shown_blocks(page, weights)
            counted = shown & (not is_frame_only(page, scores))
        self.words = WeightedWords(
            page.vocabulary, page.words, page.kinds, page.blocks, weights, counted
        )
        self._shown = frozenset(page.places[shown].tolist())

    def text(self) -> str:
        """Return the text of the blocks that are shown, a line for each."""
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        texts = self.outline.texts()
        return [texts[place] for place in sorted(self._shown)]

    def markdown(self) -> str:
        """Return the Markdown of the blocks that are shown, with the pictures among them."""
        if self._body.xpath("count(.//*) > $most", most=MARKED_UP_MAX):
            return _unmarked(self._lines())
        return _marked_up(self._body, self._shown, self._base)


def _unmarked(lines: Iterable[str]) -> str:
    """Return lines of text as Markdown: a paragraph each."""
    return "\n\n".join([escape_start(escape(line)) for line in lines if line])


def _marked_up(body: HtmlElement, shown: Collection[int], base: str | None) -> str:
    """Return the Markdown of some blocks of a page, with the pictures among them.

    The tree is not what it was afterwards.

    Args:
        body: the tree, as :func:`pgsimhash.html.blocks.outline` saw it.
        shown: the numbers of the blocks.
        base: what relative URLs are relative to.
    """
    pieces: list[Piece] = []
    outline(body, pieces)
    restore_images(body)
    kept = {body}
    for piece in pieces:
        if piece.block in shown:
            element = piece.around()
            while element not in kept:
                kept.add(element)
                element = element.getparent()
    removed: set[HtmlElement] = set()
    for piece in pieces:
        if piece.block not in shown:
            element = piece.around()
            if element in kept:
                piece.blank()
                continue
            # The largest element that holds nothing to show goes, with its pictures.
            while element not in removed and element.getparent() not in kept:
                element = element.getparent()
            removed.add(element)
    removed.update(element for element in body.iterdescendants() if is_hidden(element))
    for element in removed:
        element.tag = _REMOVED
    etree.strip_elements(body, _REMOVED, *NEVER_TEXT, with_tail=False)
    return clean_text(render([body], base).markdown)
