"""Program code: its language, and how it looks in Markdown."""

from __future__ import annotations

import re
from typing import Final

from lxml.html import HtmlElement

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:language|lang|hljs|highlight-source)-|brush:\s{0,9})([\w+#.-]{1,30})(?=\s|;|$)"
)
_NAME: Final = re.compile(r"[\w+#.-]{1,30}")
_BACKTICKS: Final = re.compile(r"`+")


def code_language(block: HtmlElement) -> str:
    """Return the language of a ``pre``, empty if unknown.

    Its own attributes say it, or its first child's, its parent's or its grandparent's: classes
    such as ``language-x``, ``lang-x``, ``hljs-x`` and
    ``highlight-source-x``, ``data-lang``, or ``lang`` on
    the ``pre`` itself.
    """
    places = [block, *block[:1]]
    parent = block.getparent()
    if parent is not None:
        places.append(parent)
        above = parent.getparent()
        if above is not None:
            places.append(above)
    for place in places:
        found = _LANGUAGE.search(place.get("class", ""))
        if found:
            return found[1]
        for name in ("data-lang", "data-language"):
            if _NAME.fullmatch(place.get(name, "")):
                return str(place.get(name))
    return str(block.get("lang")) if _NAME.fullmatch(block.get("lang", "")) else ""


def code_block(code: str, language: str) -> str:
    """Return ``code`` between fences longer than any run of backticks in it."""
    fence = "`" * max(3, _longest_run(code) + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def code_span(code: str) -> str:
    """Return ``code``, one line of it, between backticks that do not occur in it."""
    ticks = "`" * (_longest_run(code) + 1)
    space = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{space}{code}{space}{ticks}"


def _longest_run(code: str) -> int:
    return max(map(len, _BACKTICKS.findall(code)), default=0)
