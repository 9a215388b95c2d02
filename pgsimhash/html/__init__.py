"""From the bytes of a page to its main content."""

from __future__ import annotations

from typing import Final

import numpy as np
from lxml.html import HtmlElement

from pgsimhash.html.article import Article, WeightedWords
from pgsimhash.html.blocks import Outline, outline
from pgsimhash.html.charset import clean_text, decode
from pgsimhash.html.content import MARKED_UP_MAX, markdown_of, unmarked
from pgsimhash.html.head import canonical_url, page_language, page_title
from pgsimhash.html.hints import SiteHints
from pgsimhash.html.links import base_url
from pgsimhash.html.parse import ELEMENTS_MAX, parse
from pgsimhash.html.soft_404 import check_stand_in
from pgsimhash.html.structure import structure_simhash
from pgsimhash.html.weights import is_frame_only, read_words, scores_of, shown_blocks, weights_of
from pgsimhash.octets import Octets

__all__ = ["Article", "SiteHints", "WeightedWords", "read_article"]

_SHORT: Final = 400
"""Pages with more words than this, of whatever kind, are looked at no further."""


def read_article(
    html: Octets | str,
    url: str | None = None,
    charset: str | None = None,
    hints: SiteHints | None = None,
    max_elements: int = ELEMENTS_MAX,
) -> Article:
    """Return the main content of a page: all its words with weights, and what weighs most to read.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found; relative URLs in it are resolved against this.
        charset: the label in the HTTP header, if there was one.
        hints: where on the pages of some hosts the content is; ``url`` says which host it is.
        max_elements: a page of more elements is refused.

    Raises:
        NotHtmlError: the bytes are an image, an archive, a PDF or another binary format.
        TooLargeError: the page has more than ``max_elements`` elements.
        ErrorPageError, BlockedPageError, ScriptPageError: the page stands in for another.
    """
    text = clean_text(html) if isinstance(html, str) else decode(html, charset)
    root = parse(text, max_elements)
    if root is None:
        return Article("", "")
    base = base_url(root, url)
    title = page_title(root)
    body = root.find("body")
    content = _Content(root if body is None else body, base)
    structure = structure_simhash(content.outline)
    hinted = hints.select(root, url) if hints is not None else []
    if hinted:
        content = _Content(_around(hinted), base, chosen=True)
    elif len(content.words.words) <= _SHORT:
        check_stand_in(title, content.text(), _empty_ids(root))
    return Article(
        content.markdown,
        content.text,
        title,
        canonical_url(root, base),
        page_language(root),
        structure,
        content.words,
    )


class _Content:
    """The blocks of a page with their weights, and what of them people are shown."""

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
        self.words = WeightedWords(page.vocabulary, page.words, page.blocks, weights, counted)
        self._shown = frozenset(page.places[shown].tolist())

    def text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        texts = self.outline.texts()
        return [texts[place] for place in sorted(self._shown)]

    def markdown(self) -> str:
        if self._body.xpath("count(.//*) > $most", most=MARKED_UP_MAX):
            return unmarked(self._lines())
        return markdown_of(self._body, self._shown, self._base)


def _around(elements: list[HtmlElement]) -> HtmlElement:
    """Take ``elements`` out of their places and return what is around them now."""
    body: HtmlElement = elements[0].makeelement("body")
    for element in elements:
        element.tail = None
        body.append(element)
    return body


def _empty_ids(root: HtmlElement) -> list[str]:
    """Return the ids of the elements without text."""
    return [str(found) for found in root.xpath("//*[@id][not(normalize-space())]/@id")]
