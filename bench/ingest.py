"""Measure whole ingest jobs into a collection of a million pages: speed, CPU time and memory.

    python bench/ingest.py FOLDER [--pages N] [--jobs N]... [--dsn DSN]

Reads the .html files under FOLDER, and a WARC of them, with the default number of processes of
`pgsimhash ingest`, then with each number of --jobs. Every job is a separate process, and is undone
afterwards. "here" is the process that reads, distributes and stores pages; CPU is without the
server. Without --dsn an embedded server is started in a temporary folder.
"""

from __future__ import annotations

import io
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psutil
import psycopg
from rich.console import Console
from rich.table import Table
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from pgsimhash import connect
from pgsimhash.cli.options import choose_jobs
from pgsimhash.sources import SourcePage, read_pages, work_at

if TYPE_CHECKING:
    from bench.workload import database, fill_pages
else:  # A script finds its neighbours under their own names.
    from workload import database, fill_pages


class Job(NamedTuple):
    """What one job cost: CPU seconds and bytes of this process, and of those that read."""

    pages: int
    seconds: float
    here: float
    readers: float
    peak: int
    reader_peak: int


class Watch(threading.Thread):
    """Samples this process and its children five times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._seconds: dict[int, float] = {}
        self.peak = self.reader_peak = 0

    def run(self) -> None:
        this = psutil.Process()
        while not self._ended.wait(0.2):
            self.peak = max(self.peak, this.memory_info().rss)
            for child in this.children(recursive=True):
                try:
                    used = child.cpu_times()
                    self._seconds[child.pid] = used.user + used.system
                    self.reader_peak = max(self.reader_peak, child.memory_info().rss)
                except psutil.Error:
                    continue

    def end(self) -> float:
        """Return the CPU seconds of the children."""
        self._ended.set()
        self.join()
        return sum(self._seconds.values())


def ingest(dsn: str, path: Path, jobs: int) -> Job:
    """Ingest the pages, then undo that."""
    with connect(dsn) as store:
        store.start_run("bench")
        watch = Watch()
        watch.start()
        started, cpu = time.perf_counter(), time.process_time()
        pages = sum(1 for _ in store.ingest_many(read_pages([path]), jobs=jobs))
        seconds, here = time.perf_counter() - started, time.process_time() - cpu
        readers = watch.end()
        store.undo_run(store.runs()[0].run_id)
    return Job(pages, seconds, here, readers, watch.peak, watch.reader_peak)


def write_warc(folder: Path, path: Path) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number, page in enumerate(read_pages([folder])):
            if isinstance(page, SourcePage) and isinstance(page.html, bytes):
                headers = StatusAndHeaders(
                    "200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1"
                )
                record = writer.create_warc_record(
                    f"https://example.com/{number}",
                    "response",
                    payload=io.BytesIO(page.html),
                    http_headers=headers,
                )
                writer.write_record(record)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pages", default=1_000_000, show_default=True, help="Pages that are stored before.")
@click.option("--jobs", multiple=True, type=click.IntRange(1), default=(1, 2))
@click.option("--dsn", help="An empty database.")
def main(folder: Path, pages: int, jobs: tuple[int, ...], dsn: str | None) -> None:
    """Ingest the .html files under FOLDER, and a WARC of them."""
    default = choose_jobs(None, work_at([folder])[0] or 0)
    table = Table(
        *("source", "processes", "pages/s", "ratio to 1", "CPU ms a page: here", "readers"),
        *("peak MB: here", "a reader"),
        title=f"{pages:,} pages stored before",
    )
    with ExitStack() as stack:
        where = stack.enter_context(database(dsn))
        warc = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "pages.warc.gz"
        write_warc(folder, warc)
        connect(where).close()
        connection = stack.enter_context(psycopg.connect(where, autocommit=True))
        fill_pages(connection, pages)
        for name, path in {"folder": folder, "WARC": warc}.items():
            speeds: dict[int, float] = {}
            for number in dict.fromkeys((1, *jobs, default)):
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    done = pool.submit(ingest, where, path, number).result()
                connection.execute("VACUUM (ANALYZE)")
                speeds[number] = done.pages / done.seconds
                table.add_row(
                    *(name, f"{number} (default)" if number == default else f"{number}"),
                    *(f"{speeds[number]:.0f}", f"{speeds[number] / speeds[1]:.2f}"),
                    f"{1e3 * done.here / done.pages:.2f}",
                    f"{1e3 * done.readers / done.pages:.2f}",
                    *(f"{done.peak / 1e6:.0f}", f"{done.reader_peak / 1e6:.0f}"),
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
