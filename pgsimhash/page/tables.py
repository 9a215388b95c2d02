"""Tables: which of them hold data, and how those look in Markdown."""

from __future__ import annotations

from typing import Final

from lxml.html import HtmlElement

_COLUMNS_MAX: Final = 100
_BLOCKS: Final = ("table", "p", "div", "ul", "ol", "pre", "h1", "h2", "h3", "article", "section")


def is_data_table(table: HtmlElement) -> bool:
    """Return whether a ``table`` holds data, rather than the layout of a page.

    Data has header cells, or at least two rows whose cells hold no blocks of their own.
    """
    if table.get("role") in ("presentation", "none"):
        return False
    if next(table.iter("th"), None) is not None:
        return next(table.iterdescendants("table"), None) is None
    rows = table.iter("tr")
    next(rows, None)
    return next(rows, None) is not None and next(table.iterdescendants(*_BLOCKS), None) is None


class Table:
    """The cells of one data table."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []

    def add_row(self) -> None:
        """Begin the next row."""
        self._rows.append([])

    def add_cell(self, text: str, span: str | None = None) -> None:
        """Add a cell of one line to the row, and empty ones for the columns it spans."""
        if not self._rows:
            self.add_row()
        row = self._rows[-1]
        row.append(text.replace("|", "\\|"))
        if span and span.isascii() and span.isdigit() and 1 < int(span[:4]) <= _COLUMNS_MAX:
            row.extend([""] * (int(span[:4]) - 1))

    def markdown(self) -> str:
        """Return the table as GitHub Flavored Markdown; the first row is the header.

        Rows are filled up to at most 100 columns; a longer row keeps its cells.
        """
        rows = [row for row in self._rows if any(row)]
        if not rows:
            return ""
        width = min(max(map(len, rows)), _COLUMNS_MAX)
        lines = [_line(row + [""] * (width - len(row))) for row in rows]
        lines.insert(1, _line(["---"] * max(width, len(rows[0]))))
        return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
