"""From the bytes of a page to its main content."""

from __future__ import annotations

from typing import Final

import numpy as np
from lxml.html import HtmlElement

from pgsimhash.page.article import Article, WeightedWords
from pgsimhash.page.blocks import Outline, Piece, outline
from pgsimhash.page.decode import clean_text, decode
from pgsimhash.page.hints import SiteHints
from pgsimhash.page.links import absolute, base_url, restore_images
from pgsimhash.page.markdown import render
from pgsimhash.page.parse import ELEMENTS_MAX, parse
from pgsimhash.page.refusals import CHARS_MAX, check_stand_in
from pgsimhash.page.structure import structure_simhash
from pgsimhash.page.weights import Page, read_words, weigh

__all__ = ["Article", "SiteHints", "WeightedWords", "read_article"]

READ: Final = 0.3
"""Blocks of this weight or more are what people are shown."""


def read_article(
    html: bytes | str,
    url: str | None = None,
    charset: str | None = None,
    hints: SiteHints | None = None,
    max_elements: int = ELEMENTS_MAX,
) -> Article:
    """Return the main content of a page: its words with weights, and the blocks that weigh most.

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
    body = root.find("body")
    found = _Content(root if body is None else body, base, hints, url)
    title = _title(root)
    if len(found.page.words) <= CHARS_MAX:
        found.check(title)
    return Article(
        found.markdown,
        found.text,
        title,
        _canonical(root, base),
        _language(root),
        structure_simhash(root),
        found.words,
    )


class _Content:
    """The blocks of one page, and what is shown of them when it is asked for."""

    def __init__(
        self, body: HtmlElement, base: str | None, hints: SiteHints | None, url: str | None
    ) -> None:
        self._body, self._base = body, base
        self._hinted = hints.select(body, url) if hints is not None else []
        self._outline = outline(body)
        self.page: Page = read_words(self._outline)
        weights = weigh(self.page)
        self.words = WeightedWords(
            self.page.vocabulary, self.page.words, self.page.blocks, weights
        )

    def text(self) -> str:
        lines = self._outline.texts()
        shown = self.page.places[self.words.weights >= READ]
        return "\n".join([lines[place] for place in shown.tolist()])

    def markdown(self) -> str:
        return ""

    def check(self, title: str | None) -> None:
        text = self.text()
        empty = () 
        check_stand_in(title, text, empty)


def _title(root: HtmlElement) -> str | None:
    for element in root.iter("title"):
        # An svg has titles too, and those name a drawing.
        if next(element.iterancestors("svg"), None) is None:
            title = " ".join(clean_text("".join(element.itertext())).split())
            if title:
                return title
    return None


def _canonical(root: HtmlElement, base: str | None) -> str | None:
    for link in root.iter("link"):
        if "canonical" in (link.get("rel") or "").lower().split():
            found = absolute(link.get("href"), base)
            if found is not None and found.startswith(("http://", "https://")):
                return found
    return None


def _language(root: HtmlElement) -> str | None:
    language = root.get("lang") or root.get("xml:lang") or ""
    return language.strip()[:35] or None
