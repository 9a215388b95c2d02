"""Read the title, canonical URL and language of a page."""

from __future__ import annotations

from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from pgsimhash.html.charset import clean_text
from pgsimhash.html.links import absolute

_CANONICAL_MAX: Final = 10
_TITLES_MAX: Final = 100


def page_title(root: HtmlElement) -> str | None:
    """Return the first title with text, among the first 100."""
    for element in islice(root.iter("title"), _TITLES_MAX):
        # A title in an svg names a drawing.
        if next(element.iterancestors("svg"), None) is None:
            title = " ".join(clean_text("".join(element.itertext())).split())
            if title:
                return title
    return None


def canonical_url(root: HtmlElement, base: str | None) -> str | None:
    """Return the URL of ``rel=canonical``, resolved against ``base``, if the result is absolute."""
    links = (
        link for link in root.iter("link") if "canonical" in (link.get("rel") or "").lower().split()
    )
    for link in islice(links, _CANONICAL_MAX):
        url = absolute(link.get("href"), base)
        if url is not None and url.startswith(("http://", "https://")):
            return url
    return None


def page_language(root: HtmlElement) -> str | None:
    """Return the root's ``lang``, at most 35 characters of it."""
    language = root.get("lang") or root.get("xml:lang") or ""
    return language.strip()[:35] or None
