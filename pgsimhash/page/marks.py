"""The marks of Markdown: which tags stand for which, and how text like them is escaped."""

from __future__ import annotations

import re
from typing import Final

HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
"""The headings and their levels."""

_INLINE_TAGS: Final = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math q rp
    rt ruby s samp small span strike strong sub sup time tt u var wbr
"""
INLINE: Final = frozenset(_INLINE_TAGS.split())
"""The tags of what stands within a line."""

MARKS: Final = {
    "b": "**",
    "strong": "**",
    "em": "*",
    "i": "*",
    "code": "`",
    "kbd": "`",
    "samp": "`",
    "tt": "`",
    "del": "~~",
    "s": "~~",
    "strike": "~~",
}
"""What goes around the text of a tag."""

_ESCAPES: Final = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<"})
_SPECIAL: Final = re.compile(r"[\\`*_\[\]<]")
_ESCAPED: Final = re.compile(r"\\([\\`*_\[\]<])")
_LINE_START: Final = re.compile(r"^(?:([#+>-])|(\d{1,9})([.)]))(?=\s|$)")


def escape(text: str) -> str:
    """Return ``text`` with a backslash before each sign that Markdown reads as its own."""
    return text.translate(_ESCAPES) if _SPECIAL.search(text) else text


def unescape(text: str) -> str:
    """Return ``text`` as it was before :func:`escape`."""
    return _ESCAPED.sub(r"\1", text)


def escape_start(line: str) -> str:
    """Return ``line``, not empty, so that it does not begin a heading, a list or a quote."""
    return line if line[0].isalpha() else _LINE_START.sub(r"\2\\\1\3", line)
