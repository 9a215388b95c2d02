"""What people are shown of a page: the blocks that weigh enough, as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.blocks import Piece, outline
from pgsimhash.html.charset import clean_text
from pgsimhash.html.links import restore_images
from pgsimhash.html.markdown import render
from pgsimhash.html.markdown_syntax import escape, escape_start
from pgsimhash.html.names import NEVER_TEXT, is_hidden

_REMOVED: Final = "removed"

MARKED_UP_MAX: Final = 200_000
"""A page of more elements is shown without headings, lists and links."""


def unmarked(lines: Iterable[str]) -> str:
    """Return lines of text as Markdown: a paragraph each."""
    return "\n\n".join([escape_start(escape(line)) for line in lines if line])


def markdown_of(body: HtmlElement, shown: Collection[int], base: str | None) -> str:
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
