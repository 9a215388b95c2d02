"""Measure ingestion: speed, the share of each step, and memory.

    python bench/ingest.py FOLDER [--times N] [--jobs N ...] [--dsn DSN]

Reads the .html files under FOLDER, and a WARC of them, with the default number of processes of
`pgsimhash ingest`, then with each number of --jobs. Every run is a separate process with a new
collection. --times repeats the pages under other URLs: memory does not grow with their number. Then
it prints the share of each step, for one process. Before that it prints the cost of reading a page,
alongside other libraries (bench/reading.py).

"here" is the process that reads, distributes and stores pages; CPU is that of the processes that
read, without the server. Without --dsn an embedded server is started in a temporary folder.
"""

from __future__ import annotations

import functools
import io
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import psutil
import psycopg
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import pgsimhash.html
from pgsimhash.cli.work import choose_jobs
from pgsimhash.pages.records import PageFailure
from pgsimhash.schemes import Scheme
from pgsimhash.sources import SourcePage, count_pages, read_pages
from pgsimhash.store import connect

if TYPE_CHECKING:
    from bench.reading import print_reading
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from reading import print_reading
    from workload import database

Item = SourcePage | PageFailure

STEPS = {
    "decode": (pgsimhash.html, "clean_utf8"),
    "parse": (pgsimhash.html, "parse"),
    "main content": (pgsimhash.html, "Content"),
    "structure": (pgsimhash.html, "structure_simhash"),
    "features, simhash": (Scheme, "vote"),
    "wait for the database": (psycopg.Connection, "wait"),
}


class Case(NamedTuple):
    """The parameters of one run."""

    dsn: str
    path: Path
    times: int
    jobs: int
    steps: bool = False


class Result(NamedTuple):
    """The cost of a run: CPU seconds and bytes of this process, and of the others."""

    pages: int
    seconds: float
    here: float
    workers: float
    early: int
    peak: int
    worker_peak: int
    steps: Counter[str]


class Watch(threading.Thread):
    """Samples this process and its children five times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._seconds: dict[int, float] = {}
        self.peak = self.worker_peak = 0

    def run(self) -> None:
        this = psutil.Process()
        while not self._ended.wait(0.2):
            self.peak = max(self.peak, this.memory_info().rss)
            for child in this.children(recursive=True):
                try:
                    used = child.cpu_times()
                    self._seconds[child.pid] = used.user + used.system
                    self.worker_peak = max(self.worker_peak, child.memory_info().rss)
                except psutil.Error:
                    continue

    def end(self) -> float:
        """Return the CPU seconds of the others."""
        self._ended.set()
        self.join()
        return sum(self._seconds.values())


def repeated(path: Path, times: int, taken: Counter[str]) -> Iterator[Item]:
    """Yield the pages of ``path``, also under other URLs; the time of reading is summed."""
    for number in range(times):
        pages = read_pages([path])
        while True:
            started = time.perf_counter()
            page = next(pages, None)
            taken["read"] += time.perf_counter() - started  # type: ignore[assignment]
            if page is None:
                break
            if number and isinstance(page, SourcePage):
                page = SourcePage(f"{page.url}?{number}", page.html, page.charset, page.fetched_at)
            yield page


def measured(taken: Counter[str], step: str, work: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(work, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            taken[step] += time.perf_counter() - started  # type: ignore[assignment]

    return run


def ingest(case: Case) -> Result:
    """Ingest the pages into a new collection."""
    taken: Counter[str] = Counter()
    if case.steps:
        for step, (place, name) in STEPS.items():
            setattr(place, name, measured(taken, step, getattr(place, name)))
    with connect(case.dsn, collection=f"bench-{time.time_ns()}") as store:
        watch = Watch()
        watch.start()
        taken.clear()
        pages = early = 0
        started, cpu = time.perf_counter(), time.process_time()
        source = repeated(case.path, case.times, taken)
        for pages, _ in enumerate(store.ingest_many(source, jobs=case.jobs), 1):
            if pages == 1000:
                early = watch.peak
        seconds, here = time.perf_counter() - started, time.process_time() - cpu
        workers = watch.end()
    taken["decide, store, the rest"] = seconds - sum(taken.values())  # type: ignore[assignment]
    return Result(
        pages, seconds, here, workers, early or watch.peak, watch.peak, watch.worker_peak, taken
    )


def alone(case: Case) -> Result:
    """The same in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(ingest, case).result()


def write_warc(folder: Path, path: Path) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number, page in enumerate(read_pages([folder])):
            if isinstance(page, SourcePage) and isinstance(page.html, bytes):
                headers = StatusAndHeaders(
                    "200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1"
                )
                url = f"https://example.com/{number}"
                record = writer.create_warc_record(
                    url, "response", payload=io.BytesIO(page.html), http_headers=headers
                )
                writer.write_record(record)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--times", default=1, show_default=True)
@click.option("--jobs", multiple=True, type=click.IntRange(1), default=(1, 2, 3))
@click.option("--dsn")
def main(folder: Path, times: int, jobs: tuple[int, ...], dsn: str | None) -> None:
    """Ingest the .html files under FOLDER, and a WARC of them."""
    print_reading(folder, 300)
    default = choose_jobs(None, (count_pages([folder]) or 0) * times)
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        warc = home / "pages.warc.gz"
        write_warc(folder, warc)
        # The first run pays for one-time costs, such as reading the files into memory.
        alone(Case(dsn, folder, 1, 1))
        print(
            "source  jobs         pages/s  ratio to 1  CPU ms a page: here  workers"
            "  peak MB here: 1,000 pages  all  a worker"
        )
        for name, path in {"folder": folder, "WARC": warc}.items():
            made = {
                count: alone(Case(dsn, path, times, count)) for count in dict.fromkeys((1, *jobs))
            }
            if default not in made:
                made[default] = alone(Case(dsn, path, times, default))
            one = made[1].pages / made[1].seconds
            for count in dict.fromkeys((default, *made)):
                done = made[count]
                speed = done.pages / done.seconds
                told = f"{count} (default)" if count == default else f"{count}"
                print(
                    f"{name:6}  {told:11}  {speed:7.1f}  {speed / one:10.2f}"
                    f"  {1e3 * done.here / done.pages:19.2f}"
                    f"  {1e3 * done.workers / done.pages:7.2f}"
                    f"  {done.early / 1e6:25.0f}  {done.peak / 1e6:3.0f}"
                    f"  {done.worker_peak / 1e6:8.0f}",
                    flush=True,
                )
        for name, path in {"folder": folder, "WARC": warc}.items():
            steps = alone(Case(dsn, path, times, 1, steps=True))
            print(f"{name}, one process, {steps.pages:,} pages, share of {steps.seconds:.1f} s:")
            for step, seconds in steps.steps.most_common():
                print(f"  {step:24} {seconds / steps.seconds:6.1%}")


if __name__ == "__main__":
    main()
