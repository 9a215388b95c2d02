"""From the main content to Markdown for people and plain text for the simhash, in one walk.

The Markdown is CommonMark with GitHub's tables. The plain text has the same words without
markup, URLs or images, a line for each block.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.links import absolute, image_source
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

URLS_MAX: Final = 50_000
"""How many links and images keep their URLs, the first ones."""


class Rendered(NamedTuple):
    """One text twice: ``markdown`` for people, ``plain`` for the simhash."""

    markdown: str
    plain: str


def render(elements: Iterable[HtmlElement], base: str | None) -> Rendered:
    """Return the Markdown and the plain text of ``elements``, one after the other.

    Links and images become absolute against ``base``. The walk is iterative, and what is nested
    deeper than 32 lists and quotes is written at that depth, so that output stays linear.
    """
    writer = _Writer(base)
    for element in elements:
        walker = etree.iterwalk(element, events=("start", "end"))
        for event, node in walker:
            if event == "end":
                writer.end(node)
                if node is not element and node.tail:
                    writer.text(node.tail)
            elif not isinstance(node.tag, str) or writer.start(node):
                walker.skip_subtree()
        writer.flush()
    return Rendered("\n\n".join(writer.blocks), "".join(writer.plain))


class _Writer:
    """What has been written so far, and the block being written."""

    def __init__(self, base: str | None) -> None:
        self.blocks: list[str] = []
        self.plain: list[str] = []
        self._base = base
        self._urls = 0
        self._inline: list[str] = []
        # Where each open inline element began: its block and the place in that block.
        self._open: list[tuple[int, int]] = []
        self._block = 0
        # The prefix of each open list item or quote: of its first line, and of the others.
        self._first: list[str] = []
        self._rest: list[str] = []
        self._lists: list[int | None] = []
        self._deeper = 0
        self._heading = 0
        self._code = 0
        self._table: Table | None = None
        self._table_depth = 0

    def start(self, node: HtmlElement) -> bool:
        """Open ``node``; return whether it is done with, children and all."""
        tag = node.tag
        if tag in INLINE:
            if tag == "img":
                self._image(node)
            elif MARKS.get(tag) == "`":
                self._code += 1
            self._open.append((self._block, len(self._inline)))
        elif tag == "br":
            self._inline.append(" " if self._table or self._heading else "\n")
            self.plain.append("\n")
        elif self._table is not None:
            self._start_in_table(node, self._table)
        else:
            self.flush()
            if tag == "pre":
                self._fence(node)
                return True
            if tag == "table" and is_data_table(node):
                self._table = Table()
            elif tag == "li":
                self._enter(self._marker(), None)
            elif tag == "blockquote":
                self._enter("> ", "> ")
            elif tag in ("ul", "ol"):
                start = node.get("start", "1")
                number = int(start) if start.isascii() and start.isdigit() else 1
                self._lists.append(number % 10**9 if tag == "ol" else None)
            elif tag in HEADINGS:
                self._heading = HEADINGS[tag]
            elif tag == "hr":
                self._emit("---")
        if node.text:
            self.text(node.text)
        return False

    def end(self, node: HtmlElement) -> None:
        """Close ``node``."""
        tag = node.tag
        if tag in INLINE:
            self._close_inline(node, *self._open.pop())
        elif tag == "br" or (tag == "pre" and self._table is None):
            return
        elif self._table is not None:
            self._end_in_table(node, self._table)
        else:
            self.flush()
            if tag in ("li", "blockquote"):
                self._leave()
            elif tag in ("ul", "ol"):
                self._lists.pop()
            elif tag in HEADINGS:
                self._heading = 0

    def text(self, text: str) -> None:
        """Add ``text`` to the open block."""
        self.plain.append(text)
        words = " ".join(text.split())
        before = " " if text[0].isspace() else ""
        after = " " if words and text[-1].isspace() else ""
        self._inline.append(f"{before}{escape(words)}{after}")

    def flush(self) -> None:
        """End the open block."""
        self._block += 1
        self.plain.append("\n")
        if not self._inline:
            return
        lines = [" ".join(line.split()) for line in "".join(self._inline).split("\n")]
        self._inline.clear()
        text = "  \n".join(line for line in lines if line)
        if text and self._heading:
            self._emit(f"{'#' * self._heading} {text}")
        elif text:
            self._emit(escape_start(text))

    def _emit(self, text: str) -> None:
        first, rest = "".join(self._first), "".join(self._rest)
        self._first[:] = self._rest
        if rest:
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

    def _marker(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _close_inline(self, node: HtmlElement, block: int, place: int) -> None:
        tag = node.tag
        mark = MARKS.get(tag)
        if mark == "`":
            self._code -= 1
        # Within code, marks and links would be read as they are written.
        if self._code or block != self._block or not (mark or tag == "a"):
            return
        inner = "".join(self._inline[place:])
        words = inner.strip()
        if not words:
            return
        if mark == "`":
            words = code_span(unescape(words))
        elif mark:
            words = words if self._heading and mark == "**" else f"{mark}{words}{mark}"
        else:
            href = self._url(node.get("href"))
            words = f"[{words}]({href})" if href else words
        before = " " if inner[0].isspace() else ""
        after = " " if inner[-1].isspace() else ""
        self._inline[place:] = [before + words.replace("\n", " ") + after]

    def _image(self, node: HtmlElement) -> None:
        source = self._url(image_source(node))
        if source:
            alt = escape(" ".join((node.get("alt") or "").split()))
            self._inline.append(f"![{alt}]({source})")

    def _url(self, reference: str | None) -> str | None:
        self._urls += 1
        return absolute(reference, self._base) if self._urls <= URLS_MAX else None

    def _fence(self, node: HtmlElement) -> None:
        for line_break in node.iter("br"):
            line_break.text = "\n"
        code = "".join(node.itertext()).strip("\n").rstrip()
        self.plain += (code, "\n")
        if code:
            self._emit(code_block(code, code_language(node)))

    def _start_in_table(self, node: HtmlElement, table: Table) -> None:
        self.plain.append("\n")
        if node.tag == "table":
            self._table_depth += 1
        elif self._table_depth:
            self._inline.append(" ")
        elif node.tag == "tr":
            table.add_row()
        elif node.tag in ("td", "th"):
            self._block += 1
            self._inline.clear()
        else:
            self._inline.append(" ")

    def _end_in_table(self, node: HtmlElement, table: Table) -> None:
        self._inline.append(" ")
        self.plain.append("\n")
        if node.tag == "table" and self._table_depth:
            self._table_depth -= 1
        elif self._table_depth:
            return
        elif node.tag in ("td", "th", "caption"):
            cell = " ".join("".join(self._inline).split())
            self._block += 1
            self._inline.clear()
            if node.tag != "caption":
                table.add_cell(cell, node.get("colspan"))
            elif cell:
                self._emit(cell)
        elif node.tag == "table":
            self._table = None
            self._inline.clear()
            text = table.markdown()
            if text:
                self._emit(text)
