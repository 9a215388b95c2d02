"""URLs in a page: made absolute, and images found behind their lazy loading."""

from __future__ import annotations

from typing import Final
from urllib.parse import urljoin

from lxml.html import HtmlElement

_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-url", "data-image")
_LAZY_SETS: Final = ("data-srcset", "data-lazy-srcset", "srcset")


def absolute(url: str | None, base: str | None) -> str | None:
    """Return ``url`` made absolute against ``base``, None for what is empty or no URL."""
    if url is None or not (trimmed := url.strip()):
        return None
    try:
        return urljoin(base, trimmed) if base else trimmed
    except ValueError:
        return None


def base_url(root: HtmlElement, url: str | None) -> str | None:
    """Return what the page's relative URLs are relative to (``base``, else its own URL)."""
    for element in root.iter("base"):
        href = element.get("href")
        if href:
            return absolute(href, url)
    return url


def image_source(image: HtmlElement) -> str | None:
    """Return the URL of an ``img``, wherever lazy loading keeps it, None for a placeholder."""
    for name in (*_LAZY, "src"):
        value: str = image.get(name, "")
        if value and not value.startswith("data:"):
            return value
    for name in _LAZY_SETS:
        candidates: str = image.get(name, "")
        if first := candidates.strip().split(",", 1)[0].split():
            return first[0]
    return None


def restore_lazy_images(root: HtmlElement) -> None:
    """Put an image that a page repeats inside ``noscript`` where its placeholder stands."""
    for fallback in root.iter("noscript"):
        images = list(fallback.iter("img"))
        placeholder = fallback.getprevious()
        if len(images) == 1 and placeholder is not None and placeholder.tag == "img":
            source = image_source(images[0])
            if source and image_source(placeholder) is None:
                placeholder.set("src", source)
