"""The recipe taken literally, which the package's own is measured against.

BeautifulSoup drops elements whose class or id contains a suspicious string, readability finds
the article, every word votes with its count. There is no attempt at being slow or wrong.
"""

from __future__ import annotations

import re
from collections import Counter

import mmh3
from bs4 import BeautifulSoup, Tag
from readability import Document
from readability.readability import Unparseable

_TAGS = ["script", "style", "noscript", "iframe", "nav", "header", "footer", "aside", "form"]
_PARTS = re.compile(
    "nav|menu|header|footer|sidebar|breadcrumb|comment|share|social|related|cookie|banner|popup"
    "|promo|subscribe|newsletter|advert|ad-|ads-|sponsor",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def literal_simhash(html: bytes) -> int:
    """Return the simhash of a page; 0 if nothing is left of it."""
    soup = BeautifulSoup(html, "html.parser")
    for tag in soup(_TAGS):
        tag.decompose()
    for tag in soup.find_all(_is_suspicious):
        if not tag.decomposed:
            tag.decompose()
    try:
        article = Document(str(soup)).summary()
    except Unparseable:
        article = ""
    text = BeautifulSoup(article, "html.parser").get_text(" ")
    sums = [0] * 64
    for word, count in Counter(_WORD.findall(text.lower())).items():
        value = mmh3.hash64(word, signed=False)[0]
        for bit in range(64):
            sums[bit] += count if value >> bit & 1 else -count
    return sum(1 << bit for bit in range(64) if sums[bit] > 0)


def _is_suspicious(tag: Tag) -> bool:
    return any(
        _PARTS.search(" ".join(map(str, tag.get_attribute_list(name)))) for name in ("class", "id")
    )
