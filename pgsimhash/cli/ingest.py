"""The main job: pages in, verdicts out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pgsimhash.cli.options import (
    collection_option,
    distance_option,
    dsn_option,
    people,
    print_json,
)
from pgsimhash.cli.summary import Summary
from pgsimhash.records import Verdict
from pgsimhash.sources import count_pages, read_pages
from pgsimhash.store import connect

_WORTH_PROCESSES = 200
"""Below this many pages starting processes takes longer than they save."""

_INTERRUPTED = 130


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@distance_option(None, "the collection's, 8")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes that read pages; by default one for each core where there is enough to do.",
)
@click.option(
    "--summary/--no-summary",
    default=None,
    help="Print the closing tables, or not; by default on a terminal only.",
)
@collection_option
@dsn_option
@click.pass_context
def ingest(
    context: click.Context,
    paths: tuple[str, ...],
    distance: int | None,
    jobs: int | None,
    summary: bool | None,
    collection: str,
    dsn: str | None,
) -> None:
    """Decide for each page whether it is known, and remember it.

    PATH is a folder of .html files, such a file, a .jsonl file with "url" and "html" on each
    line, a .warc or .warc.gz file; - reads JSON lines from stdin. Prints one JSON line a page.
    What is committed stays: after Ctrl-C the same command continues, and over pages that are
    all known it adds nothing.
    """
    console = people()
    total = count_pages(paths)
    if jobs is None:
        jobs = 1 if total is not None and total < _WORTH_PROCESSES else os.cpu_count() or 1
    result = Summary()
    interrupted = False
    with connect(dsn, collection=collection) as store:
        pages = read_pages(paths, stdin=sys.stdin.buffer)
        verdicts = store.ingest_many(pages, distance=distance, jobs=jobs)
        started = time.monotonic()
        try:
            for verdict in _with_progress(verdicts, total, console):
                result.add(verdict)
                print_json(verdict.as_json())
        except KeyboardInterrupt:
            interrupted = True
        result.seconds = time.monotonic() - started
    if console.is_terminal if summary is None else summary:
        result.print(console)
    if interrupted:
        click.echo("Stopped. What was printed is stored; run again to continue.", err=True)
        context.exit(_INTERRUPTED)
    context.exit(1 if result.counts["failed"] else 0)


def _with_progress(
    verdicts: Iterable[Verdict], total: int | None, console: Console
) -> Iterator[Verdict]:
    # On a terminal that shows the data as well, the lines themselves are the progress.
    if not console.is_terminal or sys.stdout.isatty():
        yield from verdicts
        return
    columns = (
        TextColumn("ingest"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pages"),
        TimeRemainingColumn(),
    )
    # stdout is data: it must not be drawn on stderr above the bar.
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        yield from progress.track(verdicts, total=total)
