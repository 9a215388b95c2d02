"""Draw tables and progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from pgsimhash.cli.printing import printable, printable_lines


def stderr_console() -> Console:
    """Return the console on stderr, without colours and motion if it is piped."""
    # Names may look like markup, in which a link is an escape sequence.
    return _PrintableConsole(stderr=True, highlight=False, markup=False, emoji=False)


def print_table(
    columns: Iterable[str | Column], rows: Iterable[Iterable[str]], **style: Any
) -> None:
    """Print a table; ``style`` are arguments of Rich's ``Table``."""
    table = Table(*columns, title_justify="left", **style)
    for row in rows:
        table.add_row(*row)
    stderr_console().print(table)


def print_figures(figures: Iterable[tuple[str, str]]) -> None:
    """Print a table of names and values."""
    print_table(("figure", *numbers("value")), figures, show_header=False)


def numbers(*names: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(name, justify="right") for name in names]


@contextmanager
def progress_bar(
    name: str, *, pages: bool = True, prints: bool = True
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that receives the number of finished items and the total, for a bar.

    Items other than ``pages`` are shown in per cent. ``prints`` says whether the command prints
    data meanwhile: if the terminal also shows the data, its lines are the progress.
    """
    console = stderr_console()
    if not console.is_terminal or (prints and sys.stdout.isatty()):
        yield lambda done, total: None
        return
    counted: tuple[ProgressColumn, ...] = (TaskProgressColumn(),)
    if pages:
        counted = (MofNCompleteColumn(), TextColumn("pages"))
    # stdout is data, so Rich must not redirect it above the bar.
    with Progress(
        TextColumn(name),
        BarColumn(),
        *counted,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class _PrintableConsole(Console):
    """A console that removes control characters, except Rich's own."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        # A Text created elsewhere was measured already; escaping keeps it harmless.
        for segment in super().render(renderable, options):
            shown = printable_lines(segment.text)
            if segment.control or shown == segment.text:
                yield segment
            else:
                yield Segment(shown, segment.style)
