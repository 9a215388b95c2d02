"""From the bytes of a page to its main content."""

from __future__ import annotations

from typing import Final

from pgsimhash.page.article import Article
from pgsimhash.page.clean import clean, strip_controls
from pgsimhash.page.content import main_content
from pgsimhash.page.decode import clean_text, decode
from pgsimhash.page.head import canonical_url, page_language, page_title
from pgsimhash.page.hints import SiteHints
from pgsimhash.page.links import base_url, restore_images
from pgsimhash.page.markdown import render
from pgsimhash.page.parse import ELEMENTS_MAX, parse
from pgsimhash.page.refusals import CHARS_MAX, check_stand_in
from pgsimhash.page.structure import structure_simhash

__all__ = ["Article", "SiteHints", "read_article"]

_SHORT: Final = 10 * CHARS_MAX


def read_article(
    html: bytes | str,
    url: str | None = None,
    charset: str | None = None,
    hints: SiteHints | None = None,
    max_elements: int = ELEMENTS_MAX,
) -> Article:
    """Return the main content of a page.

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
        return Article("", "", None, None, None)
    base = base_url(root, url)
    title = page_title(root)
    canonical = canonical_url(root, base)
    language = page_language(root)
    structure = structure_simhash(root)
    restore_images(root)
    hinted = hints.select(root, url) if hints is not None else []
    if hinted:
        rendered = render(strip_controls(hinted), base)
        markdown = clean_text(rendered.markdown)
        return Article(markdown, rendered.plain, title, canonical, language, structure)
    outline = clean(root)
    rendered = render(main_content(root, outline), base)
    if len(rendered.plain) <= _SHORT:
        empty = (
            node.get("id")
            for node, chars in zip(outline.nodes, outline.chars, strict=True)
            if not chars
        )
        check_stand_in(title, rendered.plain, empty)
    markdown = clean_text(rendered.markdown)
    return Article(markdown, rendered.plain, title, canonical, language, structure)
