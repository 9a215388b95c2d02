"""Measure the time and memory to read hostile pages: the worst of some two hundred kinds.

    python bench/hostile.py [--sizes 10] [--scheme NAME] [--kinds WORD]
    python bench/hostile.py --fuzz 10

Each page is read in a separate process, like in a worker of `pgsimhash ingest`. Time is CPU time.
Memory is the maximum of the process above its memory after an ordinary page,
including the bytes of the page. Sizes are in MB.

With --fuzz, random pages are read for so many minutes. Each must give a fingerprint or a
`PageError`; Hypothesis prints a minimal page otherwise.
"""

import faulthandler
import multiprocessing
import resource
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import click
from hypothesis import HealthCheck, Phase, given, settings

from pgsimhash import PageError, fingerprint
from pgsimhash.pages.records import PageFailure
from pgsimhash.reading.workers import extract
from pgsimhash.schemes import DEFAULT_NAME, get_scheme
from pgsimhash.sources import SourcePage

sys.path.append(str(Path(__file__).parents[1]))

from tests.html.fuzzed_pages import CHARSETS, PAGES
from tests.html.hostile_pages import KINDS, STORY, page

URL = "https://bay.example/ledger"
GOAL_SECONDS, GOAL_MB = 3.0, 500.0
SECONDS_MAX = 120
"""A page that takes longer is aborted."""


class Result(NamedTuple):
    """The cost and the result of reading a page."""

    kind: str
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
    record = extract(SourcePage(URL, html, charset), scheme)
    seconds = time.process_time() - started
    end = record.reason if isinstance(record, PageFailure) else f"{record.tokens:,} tokens"
    pipe.send((seconds, memory("VmHWM") - before, end))


def measured(kind: str, scheme: str, size: float) -> Result:
    """Read a page of a kind in its own process."""
    html = page(kind, int(size * 1e6))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pgsimhash.reading.workers"])
    here, there = context.Pipe()
    process = context.Process(target=read, args=(there, scheme, KINDS[kind].charset))
    process.start()
    there.close()
    try:
        here.send_bytes(html)
        return Result(kind, size, *here.recv())
    except (EOFError, OSError):
        return Result(kind, size, float(SECONDS_MAX), 0.0, "given up")
    finally:
        process.join()


def print_worst(results: list[Result]) -> None:
    """Print the results that are closest to a limit or exceed it."""
    over = sum(result.badness > 1 for result in results)
    print(f"{len(results)} pages, {over} beyond {GOAL_SECONDS:.0f} s or {GOAL_MB:.0f} MB")
    print(f"  {'kind':34} {'size MB':>7}  {'CPU s':>6}  {'MB':>5}  end")
    for result in sorted(results, key=lambda result: -result.badness)[:25]:
        print(
            f"  {result.kind:34} {result.size:7.1f}  {result.seconds:6.2f}"
            f"  {result.megabytes:5.0f}  {result.end}"
        )


def fuzz(minutes: float) -> None:
    """Read random pages for about this long."""
    ends: Counter[str] = Counter()
    slowest = 0.0

    @settings(
        max_examples=500,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(PAGES, CHARSETS)
    def one_round(html: str | bytes, charset: str | None) -> None:
        nonlocal slowest
        started = time.process_time()
        try:
            result = fingerprint(html, URL, charset=charset)
            assert 0 <= result.simhash < 1 << 64
            assert "\0" not in result.markdown
            ends["fingerprint"] += 1
        except PageError as error:
            ends[error.reason] += 1
        slowest = max(slowest, time.process_time() - started)

    last = time.monotonic() + minutes * 60
    while time.monotonic() < last:
        one_round()
    print(", ".join(f"{count:,} {end}" for end, count in ends.most_common()))
    print(f"the slowest page took {slowest:.2f} s of CPU time; memory {memory('VmHWM'):.0f} MB")


@click.command()
@click.option("--sizes", default="10", show_default=True, help="In MB, with commas.")
@click.option("--scheme", default=DEFAULT_NAME, show_default=True)
@click.option("--kinds", default="", help="Only those whose name has this.")
@click.option("--fuzz", "minutes", type=float, help="Read random pages for so many minutes.")
def main(sizes: str, scheme: str, kinds: str, minutes: float | None) -> None:
    """Read hostile pages."""
    if minutes is not None:
        fuzz(minutes)
        return
    results = [
        measured(kind, scheme, float(size))
        for kind in KINDS
        if kinds in kind
        for size in sizes.split(",")
    ]
    print_worst(results)


if __name__ == "__main__":
    main()
