"""Write single pieces of Markdown: emphasis, escapes, code and tables; and convert it to text.

:mod:`pgsimhash.html.markdown` walks over a page and uses the pieces. :func:`plain_text` is for
pages whose HTML is no longer available.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from lxml.html import HtmlElement

from pgsimhash.html.blocks import HEADING_TAGS, words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HEADINGS: Final = {tag: int(tag[1]) for tag in HEADING_TAGS}
"""The headings and their levels."""

_INLINE_TAGS: Final = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math q rp
    rt ruby s samp small span strike strong sub sup time tt u var wbr
"""
INLINE: Final = frozenset(_INLINE_TAGS.split())
"""The tags of inline elements."""

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
"""The Markdown around the text of a tag."""

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
_NESTING_MAX: Final = 100
CELL_BLOCKS: Final = words("p div ul ol pre h1 h2 h3 article section")
"""The tags in cells of layout tables; data tables without header cells never have them."""


def escape(text: str) -> str:
    """Return ``text`` with a backslash before each special character of Markdown."""
    return text.translate(_ESCAPES) if _SPECIAL.search(text) else text


def unescape(text: str) -> str:
    """Return ``text`` as it was before :func:`escape`."""
    # No page's text has a NUL, and one pattern would call Python for each sign.
    text = text.replace("\\\\", "\0")
    for sign in "`*_[]<":
        text = text.replace(f"\\{sign}", sign)
    return text.replace("\0", "\\")


def escape_start(line: str) -> str:
    """Return ``line``, not empty, escaped so that it does not begin a heading, list or quote."""
    return line if line[0].isalpha() else _LINE_START.sub(r"\2\\\1\3", line)


def code_language(block: HtmlElement, known: dict[HtmlElement, str]) -> str:
    """Return the language of a ``pre``, empty if unknown.

    The ``pre``, its first child, its parent or its grandparent has it in ``data-lang`` or in a
    class such as ``language-x``, ``lang-x``, ``hljs-x`` or ``highlight-source-x``. Otherwise
    ``lang`` of the ``pre`` counts.
    """
    for element in (block, *block[:1], *islice(block.iterancestors(), 2)):
        if element not in known:
            known[element] = _own_language(element)
        if known[element]:
            return known[element]
    return str(block.get("lang")) if _NAME.fullmatch(block.get("lang", "")) else ""


def _own_language(element: HtmlElement) -> str:
    match = _LANGUAGE.search(element.get("class", "")[:_NAMES_MAX])
    if match:
        return match[1]
    for name in ("data-lang", "data-language"):
        if _NAME.fullmatch(element.get(name, "")):
            return str(element.get(name))
    return ""


def code_block(code: str, language: str) -> str:
    """Return ``code`` between fences longer than any run of backticks in it."""
    fence = "`" * max(3, _longest_run(code) + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def code_span(code: str) -> str:
    """Return one line of ``code`` between backticks that do not occur in it."""
    ticks = "`" * (_longest_run(code) + 1)
    space = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{space}{code}{space}{ticks}"


def _longest_run(code: str) -> int:
    return max(map(len, _BACKTICKS.findall(code)), default=0)


def is_data_table(table: HtmlElement) -> bool:
    """Return whether a ``table`` contains data, and not the layout of a page.

    A data table has header cells, or at least two rows and no block elements in its cells.
    """
    if table.get("role") in ("presentation", "none"):
        return False
    # First, so that only the innermost of nested tables are searched whole.
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
        self._data: set[int] = set()  # the numbers of rows with data

    def add_row(self) -> None:
        """Start a row."""
        self._rows.append([])

    def add_cell(self, text: str, span: str | None = None, *, is_header: bool = False) -> None:
        """Add a cell of one line to the row, and empty cells for the columns it spans."""
        if not self._rows:
            self.add_row()
        row = self._rows[-1]
        if text and not is_header:
            self._data.add(len(self._rows) - 1)
        row.append(text.replace("|", "\\|"))
        if span and span.isascii() and span.isdigit() and 1 < int(span[:4]) <= _COLUMNS_MAX:
            row.extend([""] * (int(span[:4]) - 1))

    def markdown(self) -> str:
        """Return the table as GitHub Flavored Markdown.

        The header is the first row if it has only header cells, else it is empty. Rows are filled
        up to at most 100 columns; a longer row keeps its cells.
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


def plain_text(markdown: str) -> str:
    """Return the words of ``markdown`` without markup, URLs or images, a line for each block.

    They are the hashed words of the page, except at the ends of links and emphasis within a word:
    there a word may become two, or two words one.
    """
    lines: list[str] = []
    for token in _parser().parse(markdown):
        if token.type == "inline":
            lines.append(_words(token.children or ()))
        elif token.type in ("fence", "code_block"):
            lines.append(token.content)
    return "\n".join(lines)


def _words(tokens: Sequence[Token]) -> str:
    return "".join(
        "\n" if token.type in ("softbreak", "hardbreak") else token.content
        for token in tokens
        if token.type in ("text", "text_special", "code_inline", "softbreak", "hardbreak")
    )


@cache
def _parser() -> MarkdownIt:
    # Slow to import, and only kept Markdown needs it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING_MAX}).enable("table")
    # Links are not followed, so any URL is valid, also that of a file.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
