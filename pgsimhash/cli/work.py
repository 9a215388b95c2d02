"""Processes and progress bars of commands that read many pages."""

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
"""Below this many pages, starting processes costs more than it saves."""

_JOBS_MAX = 8
"""More processes would wait for the main process, which feeds them and stores results."""


def jobs_option(command: Command) -> Command:
    """Add ``--jobs``."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        help="Processes that read pages; by default one per core, up to 8, if there are enough"
        " pages.",
    )(command)


def summary_option(command: Command) -> Command:
    """Add ``--summary`` and ``--no-summary``."""
    return click.option(
        "--summary/--no-summary",
        default=None,
        help="Whether to print the closing tables; by default only on a terminal.",
    )(command)


def choose_jobs(jobs: int | None, pages: int | None) -> int:
    """Return how many processes to use for ``pages`` pages (None: an unknown number)."""
    if jobs is not None:
        return jobs
    if pages is not None and pages < _WORTH_PROCESSES:
        return 1
    return min(usable_cores(), _JOBS_MAX)


def tell_left_out(left_out: Counter[str]) -> None:
    """Print what :func:`pgsimhash.sources.read_pages` skipped, if anything."""
    if left_out:
        tell("Left out: " + ", ".join(f"{kind} ({n:,})" for kind, n in left_out.items()) + ".")


@contextmanager
def verdicts_too(parquet: str | None, verdicts: Iterator[Verdict]) -> Iterator[Iterator[Verdict]]:
    """Write verdicts to a Parquet file too, if one is named."""
    if parquet is None:
        yield verdicts
        return
    from pgsimhash.batch.parquet import write_verdicts

    # After Ctrl-C the file has all printed verdicts.
    with closing(write_verdicts(parquet, verdicts)) as reported:
        yield reported


def with_progress(
    items: Iterable[Item],
    total: int | None,
    console: drawn.Console,
    name: str,
    left_out: Counter[str],
) -> Iterator[Item]:
    """Yield ``items`` with a progress bar; files that are ``left_out`` count as done."""
    with progress_bar(console, name) as progress:
        for number, item in enumerate(items, 1):
            yield item
            progress(number + left_out[FILES_BEFORE], total)


@contextmanager
def progress_bar(
    console: drawn.Console, name: str, *, pages: bool = True, prints: bool = True
) -> Iterator[Callable[[int, int | None], None]]:
    """Lend a function that receives the number of finished items and the total, for a bar.

    Items other than ``pages`` are shown in per cent. ``prints`` says whether the command prints
    data meanwhile.
    """
    if not _shows_bar(console, prints=prints):
        yield lambda done, total: None
        return
    counted: tuple[drawn.ProgressColumn, ...] = (drawn.TaskProgressColumn(),)
    if pages:
        counted = (drawn.MofNCompleteColumn(), drawn.TextColumn("pages"))
    columns = (drawn.TextColumn(name), drawn.BarColumn(), *counted, drawn.TimeRemainingColumn())
    with _progress(console, *columns) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def progress_bars(console: drawn.Console) -> Iterator[Callable[[str, int, int], None]]:
    """Lend a function that receives the step, the finished items and the total: a bar per step."""
    if not _shows_bar(console):
        yield lambda step, done, total: None
        return
    steps = drawn.TextColumn("{task.description}")
    progress = _progress(console, steps, drawn.BarColumn(), drawn.TimeElapsedColumn())
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
    # If the terminal also shows the data, its lines are the progress.
    return console.is_terminal and not (prints and sys.stdout.isatty())


def _progress(console: drawn.Console, *columns: drawn.ProgressColumn) -> drawn.Progress:
    # stdout is data, so Rich must not redirect it above the bar.
    return drawn.Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
