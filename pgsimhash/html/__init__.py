"""Read the main content of a page from its bytes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from lxml.html import HtmlElement

from pgsimhash.html.article import Article, WeightedWords
from pgsimhash.html.charset import clean_utf8
from pgsimhash.html.content import Content, unmarked
from pgsimhash.html.head import read_head
from pgsimhash.html.parse import ELEMENTS_MAX, parse
from pgsimhash.html.soft_404 import PAGE_WORDS_MAX, check_stand_in
from pgsimhash.html.structure import structure_simhash
from pgsimhash.pages.values import BytesLike

_TAG: Final = re.compile(b"<[a-zA-Z/!?]")

__all__ = ["Article", "WeightedWords", "article_of_tree", "read_article"]


def read_article(
    html: BytesLike | str,
    url: str | None = None,
    charset: str | None = None,
    max_elements: int = ELEMENTS_MAX,
) -> Article:
    """Return the main content of a page: all words with weights, and the heaviest to read.

    Text without tags is plain text: all lines are main content with equal weights.

    Args:
        html: the page, as bytes or text.
        url: the page's URL, the base of relative URLs.
        charset: the label in the HTTP header, if any.
        max_elements: the most elements of a page.

    Raises:
        PageError: the page has another format (``not_html``) or too many elements (``too_large``),
            or is an error page (``error_page``), a bot check (``blocked``) or JavaScript-rendered
            (``needs_script``).
    """
    source = clean_utf8(html, charset)
    if _TAG.search(source) is None:
        text = source.decode()
        if len(text.split()) <= PAGE_WORDS_MAX:
            check_stand_in(None, text, [])
        return Article(lambda: unmarked(map(str.strip, text.split("\n"))), text)
    root = parse(source, max_elements)
    return Article("", "") if root is None else article_of_tree(root, url)


def article_of_tree(
    root: HtmlElement, url: str | None = None, also: Collection[HtmlElement] = ()
) -> Article:
    """Return the main content of a parsed page, including all elements of ``also``.

    The other arguments and the errors are those of :func:`read_article`.
    """
    head = read_head(root, url)
    body = root.find("body")
    content = Content(root if body is None else body, head.base, also=also)
    structure = structure_simhash(content.outline)
    if len(content.words.words) <= PAGE_WORDS_MAX:
        check_stand_in(head.title, content.text(), _empty_ids(root))
    return Article(
        content.markdown,
        content.text,
        head.title,
        head.canonical_url,
        head.language,
        structure,
        content.words,
    )


def _empty_ids(root: HtmlElement) -> Iterator[str]:
    """Yield the ids of the elements without text."""
    filled: set[HtmlElement | None] = {None}
    for element in root.xpath("//*[text()[normalize-space()]]"):
        while element not in filled:
            filled.add(element)
            element = element.getparent()
    for element in root.xpath("//*[@id]"):
        if element not in filled:
            yield element.get("id")
