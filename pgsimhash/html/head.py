"""What the head of a page says about it."""

from __future__ import annotations

from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from pgsimhash.html.charset import clean_text
from pgsimhash.html.links import absolute

_CANONICAL_MAX: Final = 10
_TITLES_MAX: Final = 100


def page_title(root: HtmlElement) -> str | None:
    """Return the first title that says anything, of the first 100."""
    for element in islice(root.iter("title"), _TITLES_MAX):
        # An svg has titles too, and those name a drawing.
        if next(element.iterancestors("svg"), None) is None:
            title = " ".join(clean_text("".join(element.itertext())).split())
            if title:
                return title
    return None


def canonical_url(root: HtmlElement, base: str | None) -> str | None:
    """Return what ``rel=canonical`` says, resolved against ``base``, if that is absolute."""
    named = (
        link for link in root.iter("link") if "canonical" in (link.get("rel") or "").lower().split()
    )
    for link in islice(named, _CANONICAL_MAX):
        found = absolute(link.get("href"), base)
        if found is not None and found.startswith(("http://", "https://")):
            return found
    return None


def page_language(root: HtmlElement) -> str | None:
    """Return what ``lang`` of the root says."""
    language = root.get("lang") or root.get("xml:lang") or ""
    return language.strip()[:35] or None
