"""Ingest a folder of pages and print where the time and the memory go.

python bench/ingest.py FOLDER [--dsn DSN] [--jobs N] [--times N]

Without --dsn an embedded server is started in a temporary folder. --times repeats the folder
under other URLs, to show that memory does not grow with the number of pages.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psycopg

from pgsimhash import connect
from pgsimhash.records import PageFailure
from pgsimhash.sources import SourcePage, read_pages

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database


class TimedConnection(psycopg.Connection):
    """A connection that adds up the time spent waiting for the server."""

    waited = 0.0

    def wait(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
        started = time.perf_counter()
        try:
            return super().wait(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            TimedConnection.waited += time.perf_counter() - started


def repeated(folder: Path, times: int) -> Iterator[SourcePage | PageFailure]:
    for number in range(times):
        for page in read_pages([folder]):
            if number and isinstance(page, SourcePage):
                page = SourcePage(f"{page.url}?{number}", page.html)
            yield page


def peak_megabytes() -> float:
    """The peak resident memory of this process (ru_maxrss: kilobytes, on macOS bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--dsn")
@click.option("--jobs", default=1, show_default=True)
@click.option("--times", default=1, show_default=True)
def main(folder: Path, dsn: str | None, jobs: int, times: int) -> None:
    """Ingest the .html files under FOLDER."""
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        connection = stack.enter_context(TimedConnection.connect(dsn, autocommit=True))
        store = connect(connection, collection=f"bench-{time.time_ns()}")
        verdicts: Counter[str] = Counter()
        TimedConnection.waited = 0.0
        started = time.perf_counter()
        for number, verdict in enumerate(store.ingest_many(repeated(folder, times), jobs=jobs), 1):
            verdicts[verdict.verdict] += 1
            if number % 1000 == 0:
                print(f"{number:>8,} pages  peak memory {peak_megabytes():7.1f} MB", flush=True)
        seconds = time.perf_counter() - started
    pages = verdicts.total()
    print(f"{pages:>8,} pages  peak memory {peak_megabytes():7.1f} MB")
    print(", ".join(f"{name} {count:,}" for name, count in verdicts.most_common()))
    print(f"{seconds:.1f} s, {pages / seconds:.1f} pages/s, jobs {jobs}")
    print(f"database: {TimedConnection.waited:.2f} s, {TimedConnection.waited / seconds:.1%} of it")


if __name__ == "__main__":
    main()
