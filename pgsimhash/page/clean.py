"""Takes out of a page what is not its text: code, controls, navigation, advertisements, comments.

Elements go by their tag, by whole words of their class and id, or because they are mostly
links. What holds a large part of the page's text stays, whatever it is called.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.page.outline import Outline


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_TEXT: Final = _words(
    "script style template svg iframe object embed applet canvas audio video input button select"
    " textarea datalist head noscript map frameset"
)
_BESIDE_TEXT: Final = _words("nav aside footer dialog menu")
_BESIDE_ROLES: Final = _words(
    "navigation banner contentinfo complementary search menu menubar dialog alertdialog toolbar"
    " tablist"
)
_PROTECTED: Final = _words("html body main article")
_BESIDE_WORDS: Final = _words(
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
_TEXT_WORDS: Final = _words("article main body entry story content text page")
_LINK_BLOCKS: Final = _words("ul ol dl div section table header form")
_AD_LABELS: Final = _words(
    "advertisement sponsored anzeige werbung publicité publicidad pubblicità publicidade reklama"
    " реклама 広告 广告 廣告 광고"
)
_AD_MAX: Final = 400
_AD_SHARE: Final = 0.2
_CALL: Final = re.compile(
    r"(?:sign up|subscribe|get the latest)\b.*\b(?:newsletters?|e-?mails?|inbox)\b", re.DOTALL
)
_CALL_MAX: Final = 200
_NAMES_MAX: Final = 1000
_CAMEL: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HIDDEN_STYLE: Final = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)

_LARGE_SHARE: Final = 0.4
"""What holds more of the page's text than this stays, whatever it is called."""

_REST_SHARE: Final = 0.3
"""If names would leave less of the text than this, they are not believed."""

_LINK_SHARE: Final = 0.6
"""A block with more of its text in links than this is navigation."""


def clean(root: HtmlElement) -> Outline:
    """Remove from the tree what is not text of the page, and return the rest's outline.

    The outline still lists the removed elements, in ``removed``.
    """
    etree.strip_elements(root, *_NEVER_TEXT, with_tail=False)
    outline = Outline(root)
    total = outline.unlinked(0)
    by_tag: set[int] = set()
    for index, node in enumerate(outline.nodes):
        if node.tag in _PROTECTED or outline.unlinked(index) > _LARGE_SHARE * total:
            continue
        if _is_beside(node):
            outline.removed.add(index)
            if node.tag in _BESIDE_TEXT:
                by_tag.add(index)
        elif node.text:
            _remove_labelled(outline, index, node.text)
    outline.measure()
    if outline.unlinked(0) < _REST_SHARE * total:
        outline.removed = by_tag
        outline.measure()
    total = outline.unlinked(0)
    for index, node in enumerate(outline.nodes):
        chars = outline.chars[index]
        if (
            node.tag in _LINK_BLOCKS
            and outline.linked[index] > _LINK_SHARE * chars > 0
            and outline.unlinked(index) <= _LARGE_SHARE * total
        ):
            outline.removed.add(index)
    outline.measure()
    for index in outline.removed:
        outline.nodes[index].tag = "removed"
    etree.strip_elements(root, "removed", with_tail=False)
    return outline


def _remove_labelled(outline: Outline, index: int, text: str) -> None:
    """Remove an advertisement that says so, or a call to sign up, however it is marked up."""
    if len(text) > _CALL_MAX:
        return
    words = text.strip().lower()
    if words.strip("[]():- ") in _AD_LABELS:
        parent = outline.parents[index]
        small = outline.chars[parent] <= min(_AD_MAX, _AD_SHARE * outline.chars[0])
        whole = small and outline.nodes[parent].tag not in _PROTECTED
        outline.removed.add(parent if whole else index)
    elif outline.chars[index] <= _CALL_MAX and _CALL.match(words):
        outline.removed.add(index)


def _is_beside(node: HtmlElement) -> bool:
    if node.tag in _BESIDE_TEXT:
        return True
    for name, value in node.items():
        if name in ("class", "id"):
            if _names_beside(value[:_NAMES_MAX]):
                return True
        elif name == "style":
            if _HIDDEN_STYLE.search(value):
                return True
        elif name == "hidden" or (name == "role" and value in _BESIDE_ROLES):
            return True
    return False


@lru_cache(maxsize=4096)
def _names_beside(value: str) -> bool:
    for name in value.split():
        words = {word.lower() for word in _CAMEL.findall(name)}
        if words & _BESIDE_WORDS and not words & _TEXT_WORDS:
            return True
    return False
