"""Measure the time and memory to read hostile pages: the worst of some two hundred kinds.

    python bench/hostile.py [--sizes 10] [--times N] [--all-schemes] [--kinds WORD] [--worst N]
    python bench/hostile.py --pairs 100 [--jobs N]
    python bench/hostile.py --run 10000 [--jobs N] [--dsn DSN]

Each page is read in a separate process, like in a worker of `pgsimhash ingest`. Time is CPU time,
the minimum of N runs. Memory is the maximum of the process above its memory after an ordinary page,
including the bytes of the page. Sizes are in MB.

With --pairs, pages of all pairs of tags, each in a few shapes, are first read at 0.2 MB, which
takes an hour. Then the slowest of them are read like the others.

With --run, pages of all kinds in turn, of 1 kB to 1 MB and now and then 10, are ingested in one
run, and all are counted: the run fails if one has neither a verdict nor a failure.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pgsimhash.pages.records import PageFailure
from pgsimhash.reading.workers import extract
from pgsimhash.schemes import get_scheme, scheme_names
from pgsimhash.schemes.names import DEFAULT_NAME
from pgsimhash.sources import SourcePage
from pgsimhash.store import connect

if TYPE_CHECKING:
    from bench.hostile_pages import KINDS, PAIRS, STORY, hostile, page
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from hostile_pages import KINDS, PAIRS, STORY, hostile, page
    from workload import database

URL = "https://bay.example/ledger"
GOAL_SECONDS, GOAL_MB = 3.0, 500.0
SECONDS_MAX = 120
"""A page that takes longer is aborted."""
FIRST_SIZE = 200_000
"""The size in bytes of the pages in the first round."""


class Result(NamedTuple):
    """The cost and the result of reading a page."""

    kind: str
    scheme: str
    size: float
    seconds: float
    megabytes: float
    end: str

    @property
    def badness(self) -> float:
        """Its share of a limit, the larger of the two; 1 is all of it."""
        return max(self.seconds / GOAL_SECONDS, self.megabytes / GOAL_MB)


def memory(entry: str) -> float:
    """Return VmRSS or VmHWM of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(entry):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def read(pipe: Connection, scheme_name: str, charset: str | None) -> None:
    """Read one page, and send the measurements."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    scheme = get_scheme(scheme_name)
    for _ in range(3):
        extract(SourcePage(URL, STORY.encode() * 9), scheme)
    before = memory("VmRSS")
    html = pipe.recv_bytes()
    Path("/proc/self/clear_refs").write_text("5")
    started = time.process_time()
    made = extract(SourcePage(URL, html, charset), scheme)
    seconds = time.process_time() - started
    end = made.reason if isinstance(made, PageFailure) else f"{made.tokens:,} tokens"
    pipe.send((seconds, memory("VmHWM") - before, end))


def measured(kind: str, scheme: str, size: float, times: int) -> Result:
    """Read a page of a kind several times, each in its own process."""
    html = page(kind, int(size * 1e6))
    best = Result(kind, scheme, size, float(SECONDS_MAX), 0.0, "given up")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "pgsimhash.reading.workers"])
    for _ in range(times):
        here, there = context.Pipe()
        process = context.Process(target=read, args=(there, scheme, hostile(kind).charset))
        process.start()
        there.close()
        try:
            here.send_bytes(html)
            seconds, megabytes, end = here.recv()
        except (EOFError, OSError):
            pass
        else:
            if seconds < best.seconds:
                megabytes = max(megabytes, best.megabytes)
                best = Result(kind, scheme, size, seconds, megabytes, end)
        process.join()
    return best


def first_seconds(scheme: str, kind: str) -> float:
    """Return how long a small page of a kind takes."""
    html = page(kind, FIRST_SIZE)
    recipe = get_scheme(scheme)
    started = time.process_time()
    extract(SourcePage(URL, html, None), recipe)
    return time.process_time() - started


def slowest_pairs(scheme: str, word: str, count: int, jobs: int) -> list[str]:
    """Return the kinds of pairs with a word in their names whose small pages are slowest."""
    kinds = [kind for kind in PAIRS if word in kind]
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, context) as pool:
        seconds = list(pool.map(partial(first_seconds, scheme), kinds, chunksize=50))
    slowest = sorted(zip(seconds, kinds, strict=True), reverse=True)[:count]
    mean, most = sum(seconds) / len(seconds), slowest[0][0]
    print(f"{scheme}: {len(kinds):,} pairs, small: {mean:.3f} s in the mean, {most:.3f} at most")
    return [kind for _, kind in slowest]


def print_worst(results: list[Result], worst: int) -> None:
    """Print the results that are closest to a limit or exceed it."""
    for name in dict.fromkeys(result.scheme for result in results):
        of_scheme = [result for result in results if result.scheme == name]
        over = sum(result.badness > 1 for result in of_scheme)
        print(
            f"{name}: {len(of_scheme)} pages, {over} beyond {GOAL_SECONDS:.0f} s or "
            f"{GOAL_MB:.0f} MB; the worst take "
            f"{max(result.seconds for result in of_scheme):.1f} s and "
            f"{max(result.megabytes for result in of_scheme):.0f} MB"
        )
        print(f"  {'kind':34} {'size MB':>7}  {'CPU s':>6}  {'MB':>5}  end")
        of_scheme.sort(key=lambda result: -result.badness)
        for result in of_scheme[: worst or None]:
            print(
                f"  {result.kind:34} {result.size:7.1f}  {result.seconds:6.2f}"
                f"  {result.megabytes:5.0f}  {result.end}"
            )


def pages_of_all_kinds(count: int) -> Iterator[SourcePage]:
    """Yield pages, mostly small ones, that differ from round to round."""
    rng = random.Random(0)
    kinds = list(KINDS)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        size = 1e7 if rng.random() < 0.002 else 10 ** rng.uniform(3, 6)
        url = f"https://bay{number % 7}.example/{number}"
        yield SourcePage(url, page(kind, int(size), number), KINDS[kind].charset)


def run(count: int, jobs: int, dsn: str | None) -> None:
    """Ingest pages of all kinds in one run, and count the results."""
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    started = time.perf_counter()
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        store = stack.enter_context(connect(dsn, collection=f"hostile-{time.time_ns()}"))
        expected = (f"https://bay{number % 7}.example/{number}" for number in range(count))
        for verdict in store.ingest_many(pages_of_all_kinds(count), jobs=jobs):
            if verdict.url != next(expected):
                sys.exit(f"a page is lost or out of order before {verdict.url}")
            verdicts[verdict.verdict] += 1
            reasons[verdict.reason] += verdict.verdict == "failed"
    seconds = time.perf_counter() - started
    print(f"{verdicts.total():,} verdicts for {count:,} pages in {seconds:.0f} s")
    print(", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.most_common()))
    print("of the failed:", ", ".join(f"{n:,} {reason}" for reason, n in (+reasons).most_common()))
    if verdicts.total() != count:
        sys.exit("pages are lost")


@click.command()
@click.option("--sizes", default="10", show_default=True, help="In MB, with commas.")
@click.option("--times", default=1, show_default=True)
@click.option("--all-schemes", is_flag=True, help="Not the default one alone.")
@click.option("--kinds", default="", help="Only those whose name has this.")
@click.option("--worst", default=25, show_default=True, help="How many to print; 0 for all.")
@click.option(
    "--pairs", type=click.IntRange(1), help="So many of the slowest pairs of tags instead."
)
@click.option("--run", "count", type=click.IntRange(1), help="Ingest so many instead.")
@click.option("--jobs", default=2, show_default=True, help="Of --run and --pairs.")
@click.option("--dsn")
def main(
    sizes: str,
    times: int,
    all_schemes: bool,
    kinds: str,
    worst: int,
    pairs: int | None,
    count: int | None,
    jobs: int,
    dsn: str | None,
) -> None:
    """Read hostile pages."""
    if count is not None:
        run(count, jobs, dsn)
        return
    print_worst(
        [
            measured(kind, scheme, float(size), times)
            for scheme in (scheme_names() if all_schemes else [DEFAULT_NAME])
            for kind in (
                slowest_pairs(scheme, kinds, pairs, jobs)
                if pairs
                else [kind for kind in KINDS if kinds in kind]
            )
            for size in sizes.split(",")
        ],
        worst,
    )


if __name__ == "__main__":
    main()
