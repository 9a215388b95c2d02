"""How Markdown writes things: emphasis, escapes, code and tables, each on its own.

The walk over a page that uses them is :mod:`pgsimhash.html.markdown`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from lxml.html import HtmlElement

from pgsimhash.html.names import HEADING_TAGS, words

HEADINGS: Final = {tag: int(tag[1]) for tag in HEADING_TAGS}
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
_LINE_START: Final = re.compile(r"^(?:([#+>-])|(\d{1,9})([.)]))(?=\s|$)")
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:language|lang|hljs|highlight-source)-|brush:\s{0,9})([\w+#.-]{1,30})(?=\s|;|$)"
)
_NAME: Final = re.compile(r"[\w+#.-]{1,30}")
_NAMES_MAX: Final = 500
_BACKTICKS: Final = re.compile(r"`+")
_COLUMNS_MAX: Final = 100
CELL_BLOCKS: Final = words("p div ul ol pre h1 h2 h3 article section")
"""What cells without headers above hold in the layout of a page, and never in a table of data."""


def escape(text: str) -> str:
    """Return ``text`` with a backslash before each sign that Markdown reads as its own."""
    return text.translate(_ESCAPES) if _SPECIAL.search(text) else text


def unescape(text: str) -> str:
    """Return ``text`` as it was before :func:`escape`."""
    # No text of a page has a NUL, and one pattern would ask Python for each sign.
    text = text.replace("\\\\", "\0")
    for sign in "`*_[]<":
        text = text.replace(f"\\{sign}", sign)
    return text.replace("\0", "\\")


def escape_start(line: str) -> str:
    """Return ``line``, not empty, so that it does not begin a heading, a list or a quote."""
    return line if line[0].isalpha() else _LINE_START.sub(r"\2\\\1\3", line)


def code_language(block: HtmlElement, known: dict[HtmlElement, str]) -> str:
    """Return the language of a ``pre``, empty if unknown.

    Its own attributes say it, or its first child's, its parent's or its grandparent's: classes
    such as ``language-x``, ``lang-x``, ``hljs-x`` and
    ``highlight-source-x``, ``data-lang``, or ``lang`` on
    the ``pre`` itself.

    Args:
        block: the ``pre``.
        known: what elements say that were asked before; others are added.
    """
    for place in (block, *block[:1], *islice(block.iterancestors(), 2)):
        if place not in known:
            known[place] = _said_language(place)
        if known[place]:
            return known[place]
    return str(block.get("lang")) if _NAME.fullmatch(block.get("lang", "")) else ""


def _said_language(place: HtmlElement) -> str:
    found = _LANGUAGE.search(place.get("class", "")[:_NAMES_MAX])
    if found:
        return found[1]
    for name in ("data-lang", "data-language"):
        if _NAME.fullmatch(place.get(name, "")):
            return str(place.get(name))
    return ""


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


def is_data_table(table: HtmlElement) -> bool:
    """Return whether a ``table`` holds data, rather than the layout of a page.

    Data has header cells, or at least two rows whose cells hold no blocks of their own.
    """
    if table.get("role") in ("presentation", "none"):
        return False
    # First, so that of tables within tables only the innermost are looked at whole.
    if next(table.iterdescendants("table"), None) is not None:
        return False
    if next(table.iter("th"), None) is not None:
        return True
    rows = table.iter("tr")
    next(rows, None)
    return next(rows, None) is not None and next(table.iterdescendants(*CELL_BLOCKS), None) is None


class Table:
    """The cells of one data table."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        # The rows that have data, by their numbers.
        self._data: set[int] = set()

    def add_row(self) -> None:
        """Begin the next row."""
        self._rows.append([])

    def add_cell(self, text: str, span: str | None = None, *, is_header: bool = False) -> None:
        """Add a cell of one line to the row, and empty ones for the columns it spans."""
        if not self._rows:
            self.add_row()
        row = self._rows[-1]
        if text and not is_header:
            self._data.add(len(self._rows) - 1)
        row.append(text.replace("|", "\\|"))
        if span and span.isascii() and span.isdigit() and 1 < int(span[:4]) <= _COLUMNS_MAX:
            row.extend([""] * (int(span[:4]) - 1))

    def markdown(self) -> str:
        """Return the table as GitHub Flavored Markdown, with an empty header if it has none.

        The header is the first row, if it has nothing but header cells. Rows are filled up to at
        most 100 columns; a longer row keeps its cells.
        """
        numbers = [number for number, row in enumerate(self._rows) if any(row)]
        if not numbers:
            return ""
        rows = [self._rows[number] for number in numbers]
        if numbers[0] in self._data:
            rows.insert(0, [])
        width = min(max(map(len, rows)), _COLUMNS_MAX)
        lines = [_table_row(row + [""] * (width - len(row))) for row in rows]
        lines.insert(1, _table_row(["---"] * max(width, len(rows[0]))))
        return "\n".join(lines)


def _table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
