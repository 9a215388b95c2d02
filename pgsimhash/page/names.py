"""What elements say they are: their class, id, role and style, in the web's common words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final


def words(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())


NEVER_TEXT: Final = words(
    "script style template svg iframe object embed applet canvas audio video input button select"
    " textarea datalist head noscript map frameset"
)
"""The tags of what a reader does not read."""

BESIDE_TEXT: Final = words("nav aside footer dialog menu")
"""The tags of what stands beside a text."""

PROTECTED: Final = words("html body main article")
"""The tags of what is never taken out."""

BESIDE_ROLES: Final = words(
    "navigation banner contentinfo complementary search menu menubar dialog alertdialog toolbar"
    " tablist"
)
BESIDE_WORDS: Final = words(
    "ad ads advert adverts advertisement advertisements advertising adsense sponsored sponsor"
    " sponsors outbrain taboola promo promos promotion promoted"
    " comment comments disqus respond"
    " sidebar breadcrumb breadcrumbs pagination pager paginator"
    " nav navbar navigation menu submenu toolbar"
    " share sharing shares social addthis sharethis"
    " related recommended recommendations recirculation trending"
    " newsletter newsletters subscribe subscription signup cookie cookies consent gdpr paywall"
    " popup modal overlay lightbox tooltip"
    " footer masthead copyright skip"
)
# Beside one of these, a word above says where a text is rather than what it is (nav-article).
TEXT_WORDS: Final = words("article main body entry story content text page")
_NAMES_MAX: Final = 1000
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HIDDEN_STYLE: Final = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)


def is_beside(attributes: Iterable[tuple[str, str | None]]) -> bool:
    """Return whether an element's attributes say that it stands beside the text, or is hidden."""
    for name, value in attributes:
        if name in ("class", "id"):
            if value and _names_beside(value[:_NAMES_MAX]):
                return True
        elif name == "style":
            if value and _HIDDEN_STYLE.search(value):
                return True
        elif (
            name == "hidden"
            or (name == "role" and value in BESIDE_ROLES)
            or (name == "itemtype" and value and value.rstrip("/").endswith("schema.org/Comment"))
        ):
            return True
    return False


@lru_cache(maxsize=4096)
def _names_beside(value: str) -> bool:
    for name in value.split():
        found = {word.lower() for word in _CAMEL.findall(name)}
        if found & BESIDE_WORDS and not found & TEXT_WORDS:
            return True
    return False
