"""Classify elements by tag, class, id, role and style, with the web's common words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from lxml.html import HtmlElement


def words(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())


def flags_of(listed: Iterable[tuple[int, Collection[str]]]) -> dict[str, int]:
    """Return for each word the sum of the flags of the lists that it is in."""
    flags: dict[str, int] = {}
    for flag, listed_words in listed:
        for word in listed_words:
            flags[word] = flags.get(word, 0) | flag
    return flags


NEVER_TEXT: Final = words(
    "script style template svg iframe object embed applet canvas audio video input button select"
    " textarea datalist head noscript map frameset"
)
"""The tags whose content is not text."""

HEADING_TAGS: Final = words("h1 h2 h3 h4 h5 h6")
LIST_TAGS: Final = words("ul ol dl")

BESIDE_TAGS: Final = words("nav aside dialog menu form")
"""The tags of content beside the main text."""

_BESIDE: Final = words(
    # navigation
    "nav navbar navigation menu menus topnav breadcrumb breadcrumbs pager pagination tabs"
    " role=navigation role=menu role=menubar"
    # columns
    " sidebar sidenav aside widget widgets rail toc right left role=complementary"
    # other pages
    " related recommended recommendations recommendation teaser teasers trending popular more"
    " latest also mostread most promo promotion promos similar"
    # other people
    " comment comments disqus reply respond replies share sharing social follow shares sharebar"
    # overlays
    " cookie cookies consent popup modal overlay newsletter subscribe signup login dialog gdpr"
    " toolbar role=dialog role=alertdialog role=search search"
    # advertisements
    " ad ads advert advertisement advertising sponsored sponsor anzeige werbung adsense"
)
_OVERLAY: Final = words(
    "cookie cookies consent gdpr onetrust cmp cookiebot popup modal overlay role=dialog"
    " role=alertdialog"
)
# Whole class names; "overflow-hidden" and "hidden md:block" mean something else.
_HIDING: Final = words("hidden hide invisible is-hidden sr-only visually-hidden screen-reader-text")
_FOOTER: Final = words(
    "footer copyright copyrights legal bottom foot role=contentinfo colophon disclaimer imprint"
    " impressum trademark trademarks siteinfo license"
)
_HEADER: Final = words("header masthead topbar head banner role=banner")
_CONTENT: Final = words(
    "article main content post body entry text story page blog markdown prose document role=main"
    " role=article"
)
_NAMES_MAX: Final = 500
_HIDDEN: Final = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE
)
# React streams content as hidden elements that its script moves into place.
_STREAMED: Final = re.compile(r"S:[0-9a-f]+")
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


SAYS_BESIDE, SAYS_FOOTER, SAYS_HEADER, SAYS_CONTENT, SAYS_OVERLAY, SAYS_HIDDEN = (
    1 << bit for bit in range(6)
)
_SAYINGS: Final = flags_of(
    (
        (SAYS_BESIDE, _BESIDE),
        (SAYS_FOOTER, _FOOTER),
        (SAYS_HEADER, _HEADER),
        (SAYS_CONTENT, _CONTENT),
        (SAYS_OVERLAY, _OVERLAY),
    )
)


class Names(NamedTuple):
    """The meaning of the class, id and role of an element, by whole words, also of camelCase.

    ``says`` is the sum of ``SAYS_BESIDE`` and the others that apply. ``first`` is the first word,
    used to find similar siblings.
    """

    says: int
    first: str


UNNAMED: Final = Names(0, "")


def is_hidden(element: HtmlElement) -> bool:
    """Return whether an element's attributes hide it."""
    style = element.get("style")
    if style is not None and _HIDDEN.search(style):
        return True
    return element.get("hidden") is not None and not _STREAMED.fullmatch(element.get("id") or "")


def names(attributes: Iterable[tuple[str, str]]) -> Names | None:
    """Return the meaning of an element's attributes, or None if they hide it."""
    classes = identity = role = ""
    hidden = False
    for name, value in attributes:
        if name == "class":
            classes = value
        elif name == "id":
            identity = value
        elif name == "role":
            role = value
        elif name == "hidden":
            hidden = True
        elif name == "style" and _HIDDEN.search(value):
            return None
    if hidden and not _STREAMED.fullmatch(identity):
        return None
    if classes or identity or role:
        return _names(classes[:_NAMES_MAX], identity[:_NAMES_MAX], role[:_NAMES_MAX])
    return UNNAMED


@lru_cache(maxsize=8192)
def _names(classes: str, identity: str, role: str) -> Names:
    text = f"{classes} {identity}" if identity else classes
    parts = _CAMEL.findall(text[:_NAMES_MAX])
    if role:
        parts.append(f"role={role}")
    says = 0
    for part in parts:
        says |= _SAYINGS.get(part.lower(), 0)
    if ":" not in classes and not _HIDING.isdisjoint(classes.split()):
        says |= SAYS_HIDDEN
    return Names(says, parts[0].lower() if parts else "")
