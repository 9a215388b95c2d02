"""Render the main content as Markdown for people, in one walk.

The Markdown is CommonMark with GitHub's tables, and definitions that begin with a colon.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.blocks import BLOCK, NEVER_TEXT, is_hidden
from pgsimhash.html.head import absolute, image_source
from pgsimhash.html.markdown_syntax import (
    HEADINGS,
    INLINE,
    MARKS,
    Table,
    code_block,
    code_language,
    code_span,
    escape,
    escape_start,
    is_data_table,
    unescape,
)

_CONTAINERS_MAX: Final = 32
_INDENTS_MAX: Final = 20_000_000
"""The most characters of prefixes of all lines in lists and quotes."""

_NUMBER: Final = re.compile(r"[0-9]{1,9}")

URLS_MAX: Final = 50_000
"""How many links and images keep their URLs."""


class LeftOut(NamedTuple):
    """The parts of a tree to leave out, besides hidden elements and those that are never text.

    Attributes:
        elements: elements to leave out with all their content.
        texts: elements whose text before the first child is left out.
        tails: elements whose tail is left out.
    """

    elements: set[HtmlElement]
    texts: set[HtmlElement]
    tails: set[HtmlElement]


class _Mark(NamedTuple):
    """The start or end of emphasis, a link or code within the text of a block."""

    sign: str
    is_end: bool


class _Inline(NamedTuple):
    """The start of an inline element: its block, its place there, and the parts before it."""

    block: int
    place: int
    parts: int


def render(
    elements: Iterable[HtmlElement], base: str | None, left_out: LeftOut | None = None
) -> str:
    """Return the Markdown of ``elements``, in one pass that does not change the tree."""
    writer = _Writer(base)
    for element in elements:
        walker = etree.iterwalk(element, events=("start", "end"))
        skipped = None
        for event, node in walker:
            if event == "start":
                if left_out is not None and (
                    node in left_out.elements or node.tag in NEVER_TEXT or is_hidden(node)
                ):
                    skipped = node
                    walker.skip_subtree()
                    continue
                writer.start(node)
                if node.text and (left_out is None or node not in left_out.texts):
                    writer.text(node.text)
                continue
            if node is skipped:
                skipped = None
            else:
                writer.end(node)
            if node is element or (left_out is not None and node in left_out.tails):
                continue
            if node.tail:
                writer.text(node.tail)
        writer.flush()
    return "\n\n".join(writer.blocks)


class _Writer:
    """Collects the finished Markdown blocks and the open one."""

    def __init__(self, base: str | None) -> None:
        self.blocks: list[str] = []
        self._base = base
        self._urls = 0
        self._inline: list[str | _Mark] = []
        self._open: list[_Inline] = []
        self._block = 0
        # How many parts with words the inline text has so far.
        self._parts = 0
        # The prefixes of each open list item or quote: of its first line, and of the others.
        self._first: list[str] = []
        self._rest: list[str] = []
        self._indents = 0
        self._lists: list[int | None] = []
        self._deeper = 0
        self._heading = 0
        self._languages: dict[HtmlElement, str] = {}
        self._code = 0
        # The open pre, its text so far, and whether the next text begins a line.
        self._pre: HtmlElement | None = None
        self._pre_text: list[str] = []
        self._pre_breaks = False
        self._table: Table | None = None
        self._table_depth = 0

    def start(self, node: HtmlElement) -> None:
        """Open ``node``."""
        tag = node.tag
        if self._pre is not None:
            self._break_line(tag)
        elif tag in INLINE:
            self._open.append(_Inline(self._block, len(self._inline), self._parts))
            if tag == "img":
                self._image(node)
            elif tag in MARKS or tag == "a":
                # A placeholder for its mark, written if it has words.
                self._inline.append("")
                self._code += MARKS.get(tag) == "`"
        elif tag == "br":
            self._inline.append(" " if self._table or self._heading else "\n")
        elif self._table is not None:
            self._start_in_table(node, self._table)
        else:
            self.flush()
            self._start_block(node)

    def _start_block(self, node: HtmlElement) -> None:
        tag = node.tag
        if tag == "pre":
            self._pre = node
        elif tag == "table" and is_data_table(node):
            self._table = Table()
        elif tag == "li":
            self._enter(self._marker(), None)
        elif tag == "blockquote":
            self._enter("> ", "> ")
        elif tag == "dd":
            self._start_definition(node)
        elif tag in ("ul", "ol"):
            self._lists.append(_first_number(node) if tag == "ol" else None)
        elif tag in HEADINGS:
            self._heading = HEADINGS[tag]
        elif tag == "hr":
            self._emit("---")

    def end(self, node: HtmlElement) -> None:
        """Close ``node``."""
        tag = node.tag
        if node is self._pre:
            self._fence(node)
        elif self._pre is not None:
            self._break_line("" if tag == "br" else tag)
        elif tag in INLINE:
            self._close_inline(node, self._open.pop())
        elif tag == "br":
            return
        elif self._table is not None:
            self._end_in_table(node, self._table)
        else:
            self.flush()
            if tag in ("li", "blockquote") or (tag == "dd" and not _goes_on(node)):
                self._leave()
            elif tag in ("ul", "ol"):
                self._lists.pop()
            elif tag in HEADINGS:
                self._heading = 0

    def text(self, text: str) -> None:
        """Add ``text`` to the open block."""
        if self._pre is not None:
            if self._pre_breaks and text[0] != "\n":
                self._pre_text.append("\n")
            self._pre_breaks = False
            self._pre_text.append(text)
            return
        if text.isspace():
            # At the start of a line it would be stripped.
            if self._inline:
                self._inline.append(" ")
            return
        words = " ".join(text.split())
        before = " " if text[0].isspace() else ""
        after = " " if text[-1].isspace() else ""
        self._parts += 1
        self._inline.append(f"{before}{escape(words)}{after}")

    def flush(self) -> None:
        """End the open block."""
        text = self._line()
        if text and self._heading:
            self._emit(f"{'#' * self._heading} {text}")
        elif text:
            self._emit(escape_start(text))

    def _line(self) -> str:
        """End the inline text and return it, with white space outside its marks."""
        self._block += 1
        if not self._inline:
            return ""
        line: list[str] = []
        # The white space before the next words, and the marks that begin there.
        space = ""
        begun: list[str] = []
        marks = 0
        code: list[str] | None = None
        for part in self._inline:
            text = part
            if isinstance(text, _Mark):
                marks += -1 if text.is_end else 1
                if text.sign != "`":
                    (line if text.is_end else begun).append(text.sign)
                    continue
                if code is None:
                    code = []
                    continue
                text = _code_span("".join(code))
                code = None
            if code is not None:
                code.append(text)
            elif text == "\n" and not marks:
                space = "  \n"
            elif text:
                if text[0].isspace():
                    space = space or " "
                words = text.strip()
                if words:
                    line += (space if line else "", *begun, words)
                    begun.clear()
                    space = " " if text[-1].isspace() else ""
        self._inline.clear()
        return "".join(line)

    def _emit(self, text: str) -> None:
        first, rest = "".join(self._first), "".join(self._rest)
        self._first[:] = self._rest
        self._indents += len(rest) * (text.count("\n") + 1)
        if rest and self._indents <= _INDENTS_MAX:
            text = "\n".join(
                f"{rest if number else first}{line}".rstrip()
                for number, line in enumerate(text.split("\n"))
            )
        self.blocks.append(text)

    def _enter(self, first: str, rest: str | None) -> None:
        if len(self._first) >= _CONTAINERS_MAX:
            self._deeper += 1
            return
        self._first.append(first)
        self._rest.append(" " * len(first) if rest is None else rest)

    def _leave(self) -> None:
        if self._deeper:
            self._deeper -= 1
        else:
            self._first.pop()
            self._rest.pop()

    def _start_definition(self, node: HtmlElement) -> None:
        if not _goes_on(node):
            self._enter(": ", None)
        elif not self._deeper:
            self._first[-1] = ": "

    def _marker(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _close_inline(self, node: HtmlElement, begun: _Inline) -> None:
        tag = node.tag
        mark = MARKS.get(tag, "")
        self._code -= mark == "`"
        # Markdown does not interpret marks and links within code.
        if self._code or begun.block != self._block or begun.parts == self._parts:
            return
        if not mark and tag != "a":
            return
        end = mark = "" if self._heading and mark == "**" else mark
        href = self._url(node.get("href")) if tag == "a" else None
        if href:
            mark, end = "[", f"]({href})"
        self._inline[begun.place] = _Mark(mark, is_end=False)
        self._inline.append(_Mark(end, is_end=True))

    def _image(self, node: HtmlElement) -> None:
        source = self._url(image_source(node))
        if source:
            alt = escape(" ".join((node.get("alt") or "").split()))
            self._inline.append(f"![{alt}]({source})")
            self._parts += 1

    def _url(self, reference: str | None) -> str | None:
        self._urls += 1
        return absolute(reference, self._base) if self._urls <= URLS_MAX else None

    def _break_line(self, tag: str) -> None:
        """Make the following text of a ``pre`` begin a line, if ``tag`` requires it."""
        if tag == "br":
            self._pre_text.append("\n")
        elif tag in BLOCK and self._pre_text and not self._pre_text[-1].endswith("\n"):
            self._pre_breaks = True

    def _fence(self, node: HtmlElement) -> None:
        code = "".join(self._pre_text).strip("\n").rstrip()
        self._pre = None
        self._pre_text.clear()
        self._pre_breaks = False
        if code:
            self._emit(code_block(code, code_language(node, self._languages)))

    def _start_in_table(self, node: HtmlElement, table: Table) -> None:
        if node.tag == "table":
            self._table_depth += 1
        elif self._table_depth:
            self._inline.append(" ")
        elif node.tag == "tr":
            table.add_row()
        elif node.tag in ("td", "th"):
            self._line()
        else:
            self._inline.append(" ")

    def _end_in_table(self, node: HtmlElement, table: Table) -> None:
        self._inline.append(" ")
        if node.tag == "table" and self._table_depth:
            self._table_depth -= 1
        elif self._table_depth:
            return
        elif node.tag in ("td", "th", "caption"):
            cell = self._line()
            if node.tag != "caption":
                table.add_cell(cell, node.get("colspan"), is_header=_is_header(node))
            elif cell:
                self._emit(escape_start(cell))
        elif node.tag == "table":
            self._table = None
            self._line()
            text = table.markdown()
            if text:
                self._emit(text)


def _first_number(ordered: HtmlElement) -> int:
    """Return the number of the first item of an ``ol``, if CommonMark allows it, else 1."""
    start = ordered.get("start", "1").strip()
    return int(start) if _NUMBER.fullmatch(start) else 1


def _goes_on(definition: HtmlElement) -> bool:
    """Return whether a ``dd`` is in another: the parser nests them if end tags are left out."""
    around = definition.getparent()
    return around is not None and around.tag == "dd"


def _is_header(cell: HtmlElement) -> bool:
    """Return whether a cell of a table is the header of a column or a row."""
    if cell.tag == "th":
        return True
    row = cell.getparent()
    rows = None if row is None else row.getparent()
    return rows is not None and rows.tag == "thead"


def _code_span(code: str) -> str:
    """Return escaped ``code`` between backticks, with white space outside them."""
    words = code_span(unescape(" ".join(code.split())))
    return f"{' ' * code[0].isspace()}{words}{' ' * code[-1].isspace()}"
