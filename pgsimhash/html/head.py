"""Read the title, canonical URL and language of a page, and the base of its URLs."""

from __future__ import annotations

from typing import Final, NamedTuple

from lxml.html import HtmlElement

from pgsimhash.html.charset import clean_text
from pgsimhash.html.links import absolute

_CANONICAL_MAX: Final = 10
_TITLES_MAX: Final = 100
_WEB: Final = ("http://", "https://")


class Head(NamedTuple):
    """What a page says about itself.

    Attributes:
        title: the first title with text, among the first 100.
        base: the base of relative URLs: the page's ``<base>``, else the page's URL.
        canonical_url: the first absolute URL of a ``rel=canonical``, resolved against ``base``.
        language: the root's ``lang``, at most 35 characters of it.
    """

    title: str | None
    base: str | None
    canonical_url: str | None
    language: str | None


def read_head(root: HtmlElement, url: str | None) -> Head:
    """Return what a page at ``url`` says about itself, wherever these elements are."""
    title: str | None = None
    titles = 0
    base: str | None = None
    canonical: list[str | None] = []
    # One walk, because each one visits the whole tree.
    for element in root.iter("title", "base", "link"):
        if element.tag == "link":
            if len(canonical) < _CANONICAL_MAX and _is_canonical(element):
                canonical.append(element.get("href"))
        elif element.tag == "base":
            base = element.get("href") if base is None else base
        elif title is None and titles < _TITLES_MAX:
            titles += 1
            title = _title(element)
    base = url if base is None else absolute(base, url) or url
    urls = (absolute(reference, base) for reference in canonical)
    absolute_urls = (link for link in urls if link is not None and link.startswith(_WEB))
    return Head(title, base, next(absolute_urls, None), _language(root))


def _title(element: HtmlElement) -> str | None:
    # A title in an svg names a drawing.
    if next(element.iterancestors("svg"), None) is not None:
        return None
    return " ".join(clean_text("".join(element.itertext())).split()) or None


def _is_canonical(link: HtmlElement) -> bool:
    return "canonical" in (link.get("rel") or "").lower().split()


def _language(root: HtmlElement) -> str | None:
    language = root.get("lang") or root.get("xml:lang") or ""
    return language.strip()[:35] or None
