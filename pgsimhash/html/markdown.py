"""Render the main content as Markdown for people, in one walk.

The Markdown is CommonMark with GitHub's tables, and definitions that begin with a colon.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.blocks import (
    BLOCK,
    CELL_BLOCKS,
    HEADING_TAGS,
    NEVER_TEXT,
    Ignored,
    is_hidden,
    words,
)
from pgsimhash.html.head import absolute, image_source

URLS_MAX: Final = 50_000  # how many links and images keep their URLs
_CONTAINERS_MAX: Final = 32
_INDENTS_MAX: Final = 20_000_000  # the most characters of prefixes of all lines in lists and quotes
_COLUMNS_MAX: Final = 100
_CLASS_MAX: Final = 500

# The tags that separate blocks; others are inline, as unknown ones are in browsers.
_BLOCKS: Final = BLOCK | words(
    "caption col colgroup dir hgroup hr legend listing plaintext search xmp"
)
_MARKS: Final = {
    "b": "**", "strong": "**", "em": "*", "i": "*", "code": "`", "kbd": "`", "samp": "`", "tt": "`",
    "del": "~~", "s": "~~", "strike": "~~",
}  # fmt: skip
_HEADINGS: Final = {tag: f"{'#' * int(tag[1])} " for tag in HEADING_TAGS}

_SIGNS: Final = "`*_[]<"
_SPECIAL: Final = f"\\{_SIGNS}"  # the backslash first, because it escapes the others
_LINE_START: Final = re.compile(r"^(?:([#+>-])|(\d{1,9})([.)]))(?=\s|$)")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")  # as CommonMark allows
_BACKTICKS: Final = re.compile(r"`+")
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:language|lang|hljs|highlight-source)-|brush:\s{0,9})([\w+#.-]{1,30})(?=\s|;|$)"
)
_LANGUAGE_NAME: Final = re.compile(r"[\w+#.-]{1,30}")


def render(element: HtmlElement, base: str | None, ignored: Ignored | None = None) -> str:
    """Return the Markdown of ``element``, in one pass that does not change the tree.

    Without ``ignored``, hidden elements and scripts are rendered, too.
    """
    writer = _Writer(base)
    elements, texts, tails = ignored or Ignored(set(), set(), set())
    walker = etree.iterwalk(element, events=("start", "end"))
    skipped = None
    for event, node in walker:
        if event == "end":
            if node is not skipped:
                writer.end(node)
            if node.tail and node is not element and node not in tails:
                writer.text(node.tail)
        elif ignored and (node in elements or node.tag in NEVER_TEXT or is_hidden(node)):
            skipped = node
            walker.skip_subtree()
        else:
            writer.start(node)
            if node.text and node not in texts:
                writer.text(node.text)
    writer.flush()
    return "\n\n".join(writer.blocks)


class _Writer:
    """Collects the finished Markdown blocks and the open one."""

    def __init__(self, base: str | None) -> None:
        self.blocks: list[str] = []
        self._base, self._urls = base, 0
        # The text of the open block. A tuple is a mark, and whether it ends: of emphasis, of a
        # link or of code.
        self._inline: list[str | tuple[str, bool]] = []
        # The open inline elements: the number of the block, the place in its text, and how many
        # parts with words there were so far.
        self._open: list[tuple[int, int, int]] = []
        self._block = self._parts = self._code = 0
        # The prefixes of each open list item or quote: of its first line, and of the others.
        self._first: list[str] = []
        self._rest: list[str] = []
        self._indents = 0
        self._lists: list[int | None] = []
        self._heading = ""
        self._languages: dict[HtmlElement, str] = {}
        # The open pre, its text so far, and whether the next text begins a line.
        self._pre: HtmlElement | None = None
        self._pre_text: list[str] = []
        self._pre_breaks = False
        self._table: _Table | None = None  # which contains no other

    def start(self, node: HtmlElement) -> None:
        """Open ``node``."""
        tag = str(node.tag)
        if self._pre is not None:
            self._break_line(tag)
        elif tag not in _BLOCKS and tag != "br":
            self._open.append((self._block, len(self._inline), self._parts))
            if tag == "img":
                self._image(node)
            elif tag in _MARKS or tag == "a":
                # A placeholder for its mark, written if it has words.
                self._inline.append("")
                self._code += _MARKS.get(tag) == "`"
        elif tag == "br":
            self._inline.append(" " if self._table or self._heading else "\n")
        elif self._table is None:
            self.flush()
            self._start_block(node)
        elif tag == "tr":
            self._table.rows.append([])
        elif tag in ("td", "th"):
            self._line()
        else:
            self._inline.append(" ")

    def _start_block(self, node: HtmlElement) -> None:
        tag = node.tag
        if tag == "pre":
            self._pre = node
        elif tag == "table" and is_data_table(node):
            self._table = _Table()
        elif tag == "li":
            number = self._lists[-1] if self._lists else None
            if number is not None:
                self._lists[-1] = number + 1
            self._enter("- " if number is None else f"{number}. ")
        elif tag == "blockquote":
            self._enter("> ", "> ")
        elif tag == "dd" and not _goes_on(node):
            self._enter(": ")
        elif tag == "dd":
            self._first[-1] = ": "
        elif tag == "ul":
            self._lists.append(None)
        elif tag == "ol":
            start = node.get("start", "1").strip()
            self._lists.append(int(start) if _NUMBER.fullmatch(start) else 1)
        elif tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "hr":
            self._emit("---")

    def end(self, node: HtmlElement) -> None:
        """Close ``node``."""
        tag = str(node.tag)
        if node is self._pre:
            self._end_code(node)
        elif self._pre is not None:
            self._break_line("" if tag == "br" else tag)
        elif tag == "br":
            return
        elif tag not in _BLOCKS:
            self._end_inline(node)
        elif self._table is not None:
            self._end_in_table(node, self._table)
        else:
            self.flush()
            if tag in ("li", "blockquote") or (tag == "dd" and not _goes_on(node)):
                self._first.pop()
                self._rest.pop()
            elif tag in ("ul", "ol"):
                self._lists.pop()
            elif tag in _HEADINGS:
                self._heading = ""

    def text(self, text: str) -> None:
        """Add ``text`` to the open block."""
        if self._pre is not None:
            if self._pre_breaks and text[0] != "\n":
                self._pre_text.append("\n")
            self._pre_breaks = False
            self._pre_text.append(text)
        elif not text.isspace():
            self._parts += 1
            before, after = " " * text[0].isspace(), " " * text[-1].isspace()
            self._inline.append(f"{before}{escape(' '.join(text.split()))}{after}")
        elif self._inline:  # at the start of a line it would be stripped
            self._inline.append(" ")

    def flush(self) -> None:
        """End the open block."""
        text = self._line()
        if text:
            self._emit(f"{self._heading}{text}" if self._heading else escape_start(text))

    def _line(self) -> str:
        """End the inline text and return it, with white space outside its marks."""
        self._block += 1
        line: list[str] = []
        # The white space before the next words, and the marks that begin there.
        space = ""
        begun: list[str] = []
        marks = 0
        code: list[str] | None = None
        for part in self._inline:
            if isinstance(part, tuple):
                mark, is_end = part
                marks += -1 if is_end else 1
                if mark != "`":
                    (line if is_end else begun).append(mark)
                    continue
                if code is None:
                    code = []
                    continue
                part = _code_span("".join(code))
                code = None
            if code is not None:
                code.append(part)
            elif part == "\n" and not marks:
                space = "  \n"
            elif part:
                if part[0].isspace():
                    space = space or " "
                content = part.strip()
                if content:
                    line += (space if line else "", *begun, content)
                    begun.clear()
                    space = " " if part[-1].isspace() else ""
        self._inline.clear()
        return "".join(line)

    def _emit(self, text: str) -> None:
        first, rest = ("".join(each[:_CONTAINERS_MAX]) for each in (self._first, self._rest))
        self._first[:_CONTAINERS_MAX] = self._rest[:_CONTAINERS_MAX]
        self._indents += len(rest) * (text.count("\n") + 1)
        if rest and self._indents <= _INDENTS_MAX:
            text = "\n".join(
                f"{rest if number else first}{line}".rstrip()
                for number, line in enumerate(text.split("\n"))
            )
        self.blocks.append(text)

    def _enter(self, first: str, rest: str | None = None) -> None:
        self._first.append(first)
        self._rest.append(" " * len(first) if rest is None else rest)

    def _end_inline(self, node: HtmlElement) -> None:
        block, place, parts = self._open.pop()
        mark = _MARKS.get(str(node.tag), "")
        self._code -= mark == "`"
        # Markdown does not interpret marks and links within code.
        if self._code or block != self._block or parts == self._parts:
            return
        if not mark and node.tag != "a":
            return
        end = mark = "" if self._heading and mark == "**" else mark
        href = self._url(node.get("href")) if node.tag == "a" else None
        if href:
            mark, end = "[", f"]({href})"
        self._inline[place] = (mark, False)
        self._inline.append((end, True))

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

    def _end_code(self, node: HtmlElement) -> None:
        code = "".join(self._pre_text).strip("\n").rstrip()
        self._pre = None
        self._pre_text.clear()
        self._pre_breaks = False
        if code:
            fence = "`" * max(3, _longest_run(code) + 1)
            self._emit(f"{fence}{_code_language(node, self._languages)}\n{code}\n{fence}")

    def _end_in_table(self, node: HtmlElement, table: _Table) -> None:
        self._inline.append(" ")
        if node.tag in ("td", "th"):
            rows = next(islice(node.iterancestors(), 1, None), None)
            is_header = node.tag == "th" or (rows is not None and rows.tag == "thead")
            table.add_cell(self._line(), node.get("colspan"), is_header=is_header)
        elif node.tag == "caption":
            caption = self._line()
            if caption:
                self._emit(escape_start(caption))
        elif node.tag == "table":
            self._table = None
            self._line()
            text = table.markdown()
            if text:
                self._emit(text)


def escape(text: str) -> str:
    """Return ``text`` with a backslash before each special character of Markdown."""
    # Linear on any platform; str.translate may copy the text for each character that it adds.
    for sign in _SPECIAL:
        text = text.replace(sign, f"\\{sign}")
    return text


def escape_start(line: str) -> str:
    """Return ``line``, not empty, escaped so that it does not begin a heading, list or quote."""
    return line if line[0].isalpha() else _LINE_START.sub(r"\2\\\1\3", line)


def _goes_on(definition: HtmlElement) -> bool:
    """Return whether a ``dd`` is in another: the parser nests them if end tags are missing."""
    around = definition.getparent()
    return around is not None and around.tag == "dd"


def _code_span(escaped: str) -> str:
    """Return code between backticks that do not occur in it, with white space outside them."""
    # No page's text has a NUL, and one pattern would call Python for each sign.
    code = " ".join(escaped.split()).replace("\\\\", "\0")
    for sign in _SIGNS:
        code = code.replace(f"\\{sign}", sign)
    code = code.replace("\0", "\\")
    ticks = "`" * (_longest_run(code) + 1)
    space = " " if code.startswith("`") or code.endswith("`") else ""
    before, after = " " * escaped[0].isspace(), " " * escaped[-1].isspace()
    return f"{before}{ticks}{space}{code}{space}{ticks}{after}"


def _longest_run(code: str) -> int:
    return max(map(len, _BACKTICKS.findall(code)), default=0)


def _code_language(block: HtmlElement, known: dict[HtmlElement, str]) -> str:
    """Return the language of a ``pre``, empty if unknown.

    The ``pre``, its first child, its parent or its grandparent has it in ``data-lang`` or in a
    class such as ``language-x``, ``lang-x``, ``hljs-x`` or ``highlight-source-x``. Otherwise
    ``lang`` of the ``pre`` counts.
    """
    for element in (block, *block[:1], *islice(block.iterancestors(), 2)):
        if element not in known:
            match = _LANGUAGE.search(element.get("class", "")[:_CLASS_MAX])
            known[element] = match[1] if match else _named(element, "data-lang", "data-language")
        if known[element]:
            return known[element]
    return _named(block, "lang")


def _named(element: HtmlElement, *attributes: str) -> str:
    """Return the first of the attributes that can be the name of a language, else nothing."""
    values = (str(element.get(name, "")) for name in attributes)
    return next(filter(_LANGUAGE_NAME.fullmatch, values), "")


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
    has_rows = next(islice(table.iter("tr"), 1, None), None) is not None
    return has_rows and next(table.iterdescendants(*CELL_BLOCKS), None) is None


class _Table:
    """The cells of one data table."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._data: set[int] = set()  # the numbers of rows with data

    def add_cell(self, text: str, span: str | None, *, is_header: bool) -> None:
        """Add a cell of one line to the row, and empty cells for the columns it spans."""
        if not self.rows:
            self.rows.append([])
        row = self.rows[-1]
        if text and not is_header:
            self._data.add(len(self.rows) - 1)
        row.append(text.replace("|", "\\|"))
        if span and span.isascii() and span.isdigit() and 1 < int(span[:4]) <= _COLUMNS_MAX:
            row.extend([""] * (int(span[:4]) - 1))

    def markdown(self) -> str:
        """Return the table as GitHub Flavored Markdown.

        The header is the first row if it has only header cells, else it is empty. Rows are filled
        up to at most 100 columns; a longer row keeps its cells.
        """
        numbers = [number for number, row in enumerate(self.rows) if any(row)]
        if not numbers:
            return ""
        rows = [self.rows[number] for number in numbers]
        if numbers[0] in self._data:
            rows.insert(0, [])
        width = min(max(map(len, rows)), _COLUMNS_MAX)
        rows = [row + [""] * (width - len(row)) for row in rows]
        rows.insert(1, ["---"] * len(rows[0]))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
