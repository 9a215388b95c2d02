"""What the commands share that read many pages: processes, and the bar on a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

import click

from pgsimhash.cli import drawn
from pgsimhash.cli.options import Command
from pgsimhash.cli.printing import tell
from pgsimhash.pages.records import Verdict
from pgsimhash.runtime.machine import usable_cores
from pgsimhash.sources import FILES_BEFORE

Item = TypeVar("Item")

NO_PAGE = "No page was found."

_WORTH_PROCESSES = 200
"""Below this many pages starting processes takes longer than they save."""

_JOBS_MAX = 8
"""More processes would wait for the one that hands them pages and stores what they made."""


def jobs_option(command: Command) -> Command:
    """Add ``--jobs``."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        help="Processes that read pages; by default one for each core, up to 8, where there is"
        " enough to do.",
    )(command)


def summary_option(command: Command) -> Command:
    """Add ``--summary`` and ``--no-summary``."""
    return click.option(
        "--summary/--no-summary",
        default=None,
        help="Print the closing tables, or not; by default on a terminal only.",
    )(command)


def choose_jobs(asked: int | None, pages: int | None) -> int:
    """Return how many processes are to read ``pages`` pages (None: nobody knows how many)."""
    if asked is not None:
        return asked
    if pages is not None and pages < _WORTH_PROCESSES:
        return 1
    return min(usable_cores(), _JOBS_MAX)


def tell_left_out(left_out: Counter[str]) -> None:
    """Say what :func:`pgsimhash.sources.read_pages` took for no pages, if there was any."""
    if left_out:
        tell("Left out: " + ", ".join(f"{kind} ({n:,})" for kind, n in left_out.items()) + ".")


@contextmanager
def verdicts_too(parquet: str | None, verdicts: Iterator[Verdict]) -> Iterator[Iterator[Verdict]]:
    """Give verdicts that go to a Parquet file on the way, where one is named."""
    if parquet is None:
        yield verdicts
        return
    from pgsimhash.batch.parquet import write_verdicts

    # After Ctrl-C, too, the file has all that was told.
    with closing(write_verdicts(parquet, verdicts)) as told:
        yield told


def with_progress(
    items: Iterable[Item],
    total: int | None,
    console: drawn.Console,
    name: str,
    left_out: Counter[str] | None = None,
) -> Iterator[Item]:
    """Yield ``items``, with a bar on stderr where that is a terminal and stdout is none.

    Files that were skipped, by ``left_out``, count as done.
    """
    if not _shows_bar(console):
        yield from items
        return
    skipped = Counter[str]() if left_out is None else left_out
    with _bar(console, name) as progress:
        task = progress.add_task(name, total=total)
        for number, item in enumerate(items, 1):
            yield item
            progress.update(task, completed=number + skipped[FILES_BEFORE])


@contextmanager
def progress_bar(
    console: drawn.Console, name: str, *, pages: bool = True, prints: bool = True
) -> Iterator[Callable[[int, int], None]]:
    """Give what is told how much is done of how much; it moves a bar where one is shown.

    Args:
        console: where to show it.
        name: what is going on.
        pages: whether pages are counted; anything else is shown in per cent.
        prints: whether the command prints data meanwhile.
    """
    if not _shows_bar(console, prints=prints):
        yield lambda done, total: None
        return
    with _bar(console, name, pages=pages) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def progress_bars(console: drawn.Console) -> Iterator[Callable[[str, int, int], None]]:
    """Give what is told the step, and how much is done of how much: a bar for each step."""
    if not _shows_bar(console):
        yield lambda step, done, total: None
        return
    columns = (drawn.TextColumn("{task.description}"), drawn.BarColumn(), drawn.TimeElapsedColumn())
    progress = drawn.Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    tasks: dict[str, drawn.TaskID] = {}

    def tell(step: str, done: int, total: int) -> None:
        progress.start()
        if step not in tasks:
            tasks[step] = progress.add_task(step, total=total)
        progress.update(tasks[step], completed=done, total=total)

    try:
        yield tell
    finally:
        progress.stop()


def _shows_bar(console: drawn.Console, *, prints: bool = True) -> bool:
    # On a terminal that shows the data as well, the lines themselves are the progress.
    return console.is_terminal and not (prints and sys.stdout.isatty())


def _bar(console: drawn.Console, name: str, *, pages: bool = True) -> drawn.Progress:
    counted: tuple[drawn.ProgressColumn, ...] = (
        drawn.MofNCompleteColumn(),
        drawn.TextColumn("pages"),
    )
    if not pages:
        counted = (drawn.TaskProgressColumn(),)
    columns = (drawn.TextColumn(name), drawn.BarColumn(), *counted, drawn.TimeRemainingColumn())
    # stdout is data: it must not be drawn on stderr above the bar.
    return drawn.Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
