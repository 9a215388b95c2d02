"""Render the main content as Markdown for people, in one pass.

The Markdown is CommonMark with GitHub's tables, and definitions that begin with a colon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Any, Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.blocks import (
    CELL_BLOCKS,
    CELL_TAGS,
    EVENT_TAGS,
    HEADING_TAGS,
    MARKS,
    MEANT,
    NEVER_TEXT,
    PLAIN_EVENT,
    Ignored,
    is_hidden,
)
from pgsimhash.html.head import absolute, image_source
from pgsimhash.html.native import Event

URLS_MAX: Final = 50_000  # how many links and images keep their URLs
_CONTAINERS_MAX: Final = 32
_INDENTS_MAX: Final = 20_000_000  # the most characters of prefixes of all lines in lists and quotes
_COLUMNS_MAX: Final = 100
_CLASS_MAX: Final = 500

_HEADINGS: Final = {tag: f"{'#' * int(tag[1])} " for tag in HEADING_TAGS}

_SPECIAL: Final = "\\`*_[]<"  # the backslash first, because it escapes the others
_LINE_START: Final = re.compile(
    r"^(?:(>|(?:[+-]|#{1,6})(?=\s|$)|[-=](?=[-=]*$)|~(?=~~))|(\d{1,9})([.)])(?=\s|$))"
)
_REFERENCE: Final = re.compile(r"&(?=#?\w{1,31};)")  # to a character
_NUMBER: Final = re.compile(r"[0-9]{1,9}")  # as CommonMark allows
_BACKTICKS: Final = re.compile(r"`+")
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:language|lang|hljs|highlight-source)-|brush:\s{0,9})([\w+#.-]{1,30})(?=\s|;|$)"
)
_LANGUAGE_NAME: Final = re.compile(r"[\w+#.-]{1,30}")


def events(element: HtmlElement, ignored: Ignored | None = None) -> Iterator[Event]:
    """Yield what is rendered of a tree, in order, texts beside one another as one.

    An element that begins is its tag and the element, or None where it is not needed; None is the
    end of the last one that began; a text is empty between blocks, where others may be left out.
    Without ``ignored``, hidden elements and scripts are rendered, too.
    """
    for is_text, run in groupby(_events(element, ignored), _is_text):
        events = list(run)
        yield from ["".join(map(str, events))] if is_text else events


def _is_text(event: Event) -> bool:
    return isinstance(event, str) and event != ""


def _events(element: HtmlElement, ignored: Ignored | None) -> Iterator[Event]:
    elements, texts = ignored or (set(), set())
    walker = etree.iterwalk(element, events=("start", "end"))
    skipped = None
    for event, node in walker:
        if event == "end":
            if node is not skipped and (flags := EVENT_TAGS[str(node.tag)]):
                yield "" if flags & PLAIN_EVENT else None
            if node.tail and node is not element and (node, True) not in texts:
                yield node.tail
        elif ignored and (node in elements or node.tag in NEVER_TEXT or is_hidden(node)):
            if node in elements and node.tag in CELL_TAGS:  # those behind it keep their columns
                yield str(node.tag), node
                yield None
            skipped = node
            walker.skip_subtree()
        else:
            if flags := EVENT_TAGS[str(node.tag)]:
                yield "" if flags & PLAIN_EVENT else (str(node.tag), node)
            if node.text and (node, False) not in texts:
                yield node.text


def render(events: Iterable[Event], links: Links) -> str:
    """Return the Markdown of elements and texts, or of elements and lines of Markdown."""
    writer = _Writer(links)
    opened: list[tuple[str, Any]] = []
    following = iter(events)
    for event in following:
        if event is None:
            tag, node = opened.pop()
            writer.end(tag, node)
        elif isinstance(event, tuple):
            tag, node = event
            if not tag:
                writer.line(node)
            elif tag == "pre" and writer.table is None:
                writer.code(node, _code_of(following))
            else:
                opened.append(event)
                writer.start(tag, node)
        elif event:
            writer.text(event)
        else:
            writer.separate()
    writer.flush()
    return "\n\n".join(writer.blocks)


def _code_of(events: Iterator[Event]) -> str:
    """Read up to the end of a ``pre``; return its text, in which blocks begin lines."""
    parts: list[str] = []
    opened = ["pre"]
    breaks = False  # whether the next text begins a line
    for event in events:
        tag = ""
        if isinstance(event, tuple):
            tag = event[0]
            opened.append(tag)
            parts += ["\n"] * (tag == "br")
        elif event is None:
            tag = opened.pop()
            if not opened:
                break
        elif event:
            parts += ["\n"] * (breaks and event[0] != "\n")
            parts.append(event)
            breaks = False
        if tag in MEANT or event == "":
            breaks = bool(parts) and not parts[-1].endswith("\n")
    return "".join(parts)


class Links:
    """Resolves the URLs of links and images relative to ``base``, up to :data:`URLS_MAX`."""

    def __init__(self, base: str | None) -> None:
        self._base, self._urls = base, 0

    def functions(self) -> tuple[Callable[..., object], ...]:
        """Return the functions with which the extension joins lines, see native/inline.h."""
        return self.link, self.image, escape, escape_start, is_data_table

    def link(self, node: HtmlElement) -> str:
        """Return the Markdown that ends a link, or nothing without a URL."""
        url = self._url(node.get("href"))
        return f"]({url})" if url else ""

    def image(self, node: HtmlElement) -> str:
        """Return the Markdown of an image, or nothing without a URL."""
        source = self._url(image_source(node))
        return f"![{escape(' '.join(node.get('alt', '').split()))}]({source})" if source else ""

    def _url(self, reference: str | None) -> str | None:
        self._urls += 1
        return absolute(reference, self._base) if self._urls <= URLS_MAX else None


class _Writer:
    """Collects the finished Markdown blocks and the open one."""

    def __init__(self, links: Links) -> None:
        self.blocks: list[str] = []
        self._links = links
        # The open block: words to escape; or Markdown, with what it is: "opens" or "closes" of a
        # mark, "image" or "break". Or its finished line.
        self._inline: list[Any] = []
        self._is_line = False
        # The open inline elements: the number of the block, the place in its text, and how many
        # texts and images there were so far.
        self._open: list[tuple[int, int, int]] = []
        self._block = self._texts = self._code = 0
        # The prefixes of each open list item or quote: of its first line, and of the others.
        self._first: list[str] = []
        self._rest: list[str] = []
        self._indents = 0
        self._lists: list[int | None] = []
        self._heading = ""
        self._languages: dict[HtmlElement, str] = {}
        self.table: _Table | None = None  # which contains no other

    def start(self, tag: str, node: Any) -> None:
        """Open an element."""
        if tag in MARKS:
            # A placeholder for its mark, written if it has words.
            self._open.append((self._block, len(self._inline), self._texts))
            self._inline.append("")
            self._code += MARKS[tag] == "`"
        elif tag == "img":
            if image := self._links.image(node):
                self._inline.append((image, "image"))
                self._texts += 1
        elif tag == "br":
            self._inline.append(" " if self.table or self._heading else ("  \n", "break"))
        elif self.table is None:
            self.flush()
            self._start_block(tag, node)
        elif tag in CELL_TAGS:
            self.flush()
        else:
            self.separate()
            if tag == "tr":
                self.table.rows.append([])

    def _start_block(self, tag: str, node: Any) -> None:
        if tag == "table" and is_data_table(node):
            self.table = _Table()
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

    def end(self, tag: str, node: Any) -> None:
        """Close an element."""
        if tag in MARKS:
            self._end_inline(tag, node)
        elif tag in MEANT and self.table is not None:
            self._end_in_table(tag, node, self.table)
        elif tag in MEANT:
            self.flush()
            if tag in ("li", "blockquote") or (tag == "dd" and not _goes_on(node)):
                self._first.pop()
                self._rest.pop()
            elif tag in ("ul", "ol"):
                self._lists.pop()
            elif tag in _HEADINGS:
                self._heading = ""

    def separate(self) -> None:
        """End the block before, or begin the next one; a second call changes nothing."""
        if self._inline and self.table is None:
            self.flush()
        elif self._inline:
            self._inline.append(" ")

    def text(self, text: str) -> None:
        """Add ``text`` to the open block."""
        if not text.isspace():
            self._texts += 1
            self._inline.append(text)
        elif self._inline:  # at the start of a line it would be stripped
            self._inline.append(" ")

    def line(self, line: str) -> None:
        """Add a line of Markdown, which is all of the open block."""
        self._inline, self._is_line = [line], True

    def code(self, pre: HtmlElement, text: str) -> None:
        """Add a block of code."""
        self.flush()
        if code := text.strip("\n").rstrip():
            fence = "`" * max(3, _longest_run(code) + 1)
            self._emit(f"{fence}{_code_language(pre, self._languages)}\n{code}\n{fence}")

    def flush(self) -> None:
        """End the open block: of a table, a caption or what is outside of its cells."""
        if self._inline and (text := self._line()):
            heading = "" if self.table else self._heading
            self._emit(f"{heading}{text}" if heading else escape_start(text))

    def _line(self) -> str:
        """End the inline text and return it, with white space outside its marks."""
        self._block += 1
        parts, self._inline = self._inline, []
        if self._is_line:
            self._is_line = False
            return str(parts[0])
        if tuple not in map(type, parts):
            return escape(" ".join("".join(parts).split()))
        line: list[str] = []
        # The white space before the next words, and the marks that begin there.
        space = ""
        begun: list[str] = []
        marks = 0
        code: list[str] | None = None
        for part in parts:
            text, kind = (part, "") if isinstance(part, str) else part
            if not kind and code is None:
                content = escape(" ".join(text.split()))
                if content and space[-1:] == "\n" and not begun:
                    content = escape_start(content)
            elif kind in ("opens", "closes"):
                marks += 1 if kind == "opens" else -1
                if kind == "opens" and line and not (space or begun):
                    if line[-1] == text:  # "**a****b**" would be asterisks within a word
                        del line[-1]
                        continue
                    if text == "[" and line[-1][-1:] == "!":
                        line[-1] = f"{line[-1][:-1]}\\!"
                if text != "`":
                    (begun if kind == "opens" else line).append(text)
                    continue
                if code is None:
                    code = []
                    continue
                text, code = "".join(code), None
                content = _code_span(text)
                if line and line[-1][:1] == "`" and not (space or begun):
                    space = " "
            elif code is not None:
                code.append(text)
                continue
            elif kind == "break" and not marks:
                space = text
                continue
            else:
                content = text if kind == "image" else ""
            if not space and text[:1].isspace():
                space = " "
            if content:
                line += (space if line else "", *begun, content)
                begun.clear()
                space = " " if text[-1].isspace() else ""
        return "".join(line)

    def _emit(self, text: str) -> None:
        if self._first:
            first = "".join(self._first[:_CONTAINERS_MAX])
            rest = "".join(self._rest[:_CONTAINERS_MAX])
            self._first[:_CONTAINERS_MAX] = self._rest[:_CONTAINERS_MAX]
            self._indents += len(rest) * (text.count("\n") + 1)
            if self._indents <= _INDENTS_MAX:
                text = "\n".join(
                    f"{rest if number else first}{line}".rstrip()
                    for number, line in enumerate(text.split("\n"))
                )
        self.blocks.append(text)

    def _enter(self, first: str, rest: str | None = None) -> None:
        self._first.append(first)
        self._rest.append(" " * len(first) if rest is None else rest)

    def _end_inline(self, tag: str, node: Any) -> None:
        block, place, texts = self._open.pop()
        mark = end = MARKS[tag]
        self._code -= mark == "`"
        # Markdown does not interpret marks and links within code.
        if self._code or block != self._block or texts == self._texts:
            return
        if self._heading and mark == "**":
            mark = end = ""
        elif tag == "a" and (link := self._links.link(node)):
            mark, end = "[", link
        self._inline[place] = mark, "opens"
        self._inline.append((end, "closes"))

    def _end_in_table(self, tag: str, node: Any, table: _Table) -> None:
        self.separate()
        if tag in CELL_TAGS:
            is_header = tag == "th" or node.getparent().getparent().tag == "thead"
            table.add_cell(self._line(), node.get("colspan"), is_header=is_header)
        elif tag == "table":
            self.flush()
            self.table = None
            if text := table.markdown():
                self._emit(text)


def escape(text: str) -> str:
    """Return ``text`` with a backslash before each special character of Markdown."""
    # Linear on any platform; str.translate may copy the text for each character that it adds.
    for sign in _SPECIAL:
        if sign in text:
            text = text.replace(sign, f"\\{sign}")
    return _REFERENCE.sub(r"\\&", text) if "&" in text else text


def escape_start(line: str) -> str:
    """Return ``line``, not empty, escaped so that it begins no heading, list, quote or code."""
    return line if line[0].isalpha() else _LINE_START.sub(r"\2\\\1\3", line)


def _goes_on(definition: HtmlElement) -> bool:
    """Return whether a ``dd`` is in another: the parser nests them if end tags are missing."""
    around = definition.getparent()
    return around is not None and around.tag == "dd"


def _code_span(text: str) -> str:
    """Return code between backticks that do not occur in it."""
    code = " ".join(text.split())
    ticks = "`" * (_longest_run(code) + 1)
    space = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{space}{code}{space}{ticks}"


def _longest_run(code: str) -> int:
    return max(map(len, _BACKTICKS.findall(code))) if "`" in code else 0


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
