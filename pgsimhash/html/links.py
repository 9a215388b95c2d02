"""Resolve the URLs inside a page, without errors for any page."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final
from urllib.parse import urljoin, urlsplit

from lxml.html import HtmlElement

_URL_MAX: Final = 8192
_LAZY_SOURCES: Final = ("data-src", "data-original", "data-lazy-src", "data-url")
_SOURCE_SETS: Final = ("srcset", "data-srcset", "data-lazy-srcset")
_NOT_PLACES: Final = frozenset({"javascript", "data", "about", "blob", "vbscript"})
_LINE_BREAKS: Final = re.compile(r"[\t\r\n]+")
_UNSAFE: Final = re.compile(r"[\s()<>\"\\]")


def absolute(reference: str | None, base: str | None) -> str | None:
    """Return ``reference`` resolved against ``base`` (RFC 3986), percent-encoded for Markdown.

    Return None for an empty or invalid reference, for ``javascript:``, ``data:`` and similar URLs,
    and for one longer than 8,192 characters. Without ``base``, a relative reference stays relative.
    """
    if not reference or len(reference) > _URL_MAX:
        return None
    # Browsers drop line breaks from URLs, and white space around them.
    word = _LINE_BREAKS.sub("", reference).strip()
    try:
        joined = urljoin(base, word) if base else word
        if not word or urlsplit(joined).scheme in _NOT_PLACES:
            return None
    except ValueError:
        return None
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), joined)


def image_source(image: HtmlElement) -> str | None:
    """Return the reference to the image that an ``img`` shows after its scripts ran.

    A lazy-loading attribute has priority over ``src``, which is then a placeholder. Without both,
    the first entry of a ``srcset`` counts.
    """
    for name in (*_LAZY_SOURCES, "src"):
        value: str = image.get(name, "")
        if value and not value.startswith("data:"):
            return value
    for name in _SOURCE_SETS:
        entries: list[str] = image.get(name, "").split(maxsplit=1)
        if entries and not entries[0].startswith("data:"):
            return entries[0].rstrip(",")
    return None


def restore_images(root: HtmlElement) -> None:
    """Give each placeholder ``img`` the source of the image in the following ``noscript``."""
    for fallback in root.iter("noscript"):
        placeholder = fallback.getprevious()
        if placeholder is None or placeholder.tag != "img":
            continue
        images = list(islice(fallback.iter("img"), 2))
        if len(images) != 1:
            continue
        source = image_source(images[0])
        if source and image_source(placeholder) is None:
            placeholder.set("src", source)
