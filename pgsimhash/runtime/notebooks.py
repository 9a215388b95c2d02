"""Show results in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any, Final

ROWS: Final = 20
"""How many rows are shown."""


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a title and the first rows as an HTML table."""

    def line(tag: str, cells: Iterable[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in islice(rows, ROWS))
    return f"<p>{escape(title)}</p><table>{line('th', columns)}{body}</table>"
