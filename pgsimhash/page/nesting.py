"""Tells, from the bytes of a page, whether its attributes may take a parser quadratic time.

A parser compares every attribute of a tag with those before it (WHATWG HTML, section 13.2.5.33),
so that one tag can keep it busy for minutes.
"""

from __future__ import annotations

import re
from typing import Final

SMALL: Final = 1 << 16
"""In so few bytes, in bytes, no tag can have enough attributes to matter."""

_LONG: Final = 2048
_ATTRIBUTES_MAX: Final = 10_000
# A tag that every parser ends at the same place.
_PLAIN_TAG: Final = re.compile(
    rb"""/?[a-z][a-z0-9:-]*+(?:\s++[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'`<>=]++))?+)*+"""
    rb"\s*+/?>",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(rb""""[^"]*+"|'[^']*+'""")
_SEPARATORS: Final = b" \t\n\r\f/\"'"


def may_crowd_attributes(source: bytes) -> bool:
    """Return whether a tag in ``source`` (UTF-8) may have thousands of attributes.

    It errs on the side of saying so: some long comments look like tags too.
    """
    if len(source) <= SMALL:
        return False
    pairs = 0
    at = source.find(b"<")
    while at >= 0:
        # The last bracket within reach: the way to it holds no long tag.
        following = source.rfind(b"<", at + 1, at + _LONG)
        if following < 0:
            following = source.find(b"<", at + _LONG)
            end = len(source) if following < 0 else following
            plain = _PLAIN_TAG.match(source, at + 1, end)
            last = plain.end() if plain else end
            tag = _VALUE.sub(b"'", source[at:last]) if plain else source[at:last]
            pairs += (len(tag) - len(tag.translate(None, _SEPARATORS))) ** 2
            if pairs > _ATTRIBUTES_MAX**2:
                return True
        at = following
    return False
