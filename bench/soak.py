"""Write and look up for hours: throughput, latency, memory and space, as a picture.

    python bench/soak.py [--rows 5000000] [--minutes 30] [--writers 8] [--readers 4] [--output FILE]

Each writer adds batches of 100 pages, a fifth of them near-duplicates of known pages and a fifth
new versions of its own pages, and deletes its oldest host now and then, so that rows come and go.
Each reader looks up simhashes. Both keep a constant pace, because this measures stability, not
speed: that is bench/search.py. At the end the collection is checked.
"""

from __future__ import annotations

import csv
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import numpy as np
import psutil
import psycopg

from pgsimhash import connect, maintenance

if TYPE_CHECKING:
    from bench.workload import database, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import database, random_simhashes

BATCH = 100
HOST_BATCHES = 20
"""Batches of a writer per host."""
HOSTS = 10
"""Hosts that a writer keeps."""

SPACE = """
SELECT
    sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname = 'simhashes')::float
        / greatest(max(c.reltuples) FILTER (WHERE c.relname = 'simhashes'), 1),
    sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname <> 'simhashes')::float
        / greatest(max(c.reltuples) FILTER (WHERE c.relname = 'pages'), 1)
FROM pg_class AS c
WHERE c.oid IN (
    'pgsimhash.simhashes'::regclass, 'pgsimhash.pages'::regclass, 'pgsimhash.last_seen'::regclass
)
"""


class Sample(NamedTuple):
    """Measurements of an interval; times in milliseconds, memory in megabytes, space in bytes."""

    minute: float
    pages_a_second: float
    lookups_a_second: float
    lookup_p50: float
    lookup_p99: float
    batch_p99: float
    largest_client: float
    bytes_a_simhash: float
    bytes_a_page: float


class Done(NamedTuple):
    """The times and durations of a process's calls, in seconds."""

    kind: str
    when: float
    took: float


if TYPE_CHECKING:
    Told = multiprocessing.Queue[list[Done]]


def pace(started: float, number: int, a_second: float) -> None:
    """Wait for the next call."""
    if a_second:
        time.sleep(max(0.0, started + number / a_second - time.monotonic()))


def write(dsn: str, writer: int, pages_a_second: float, stop: Event, told: Told) -> None:
    """Write batches until told to stop."""
    rng = np.random.default_rng(writer)
    started, number = time.monotonic(), 0
    own: list[tuple[str, int]] = []
    with connect(dsn) as store:
        while not stop.is_set():
            host, of_host = divmod(number, HOST_BATCHES)
            values = rng.integers(0, 2**64, BATCH, dtype=np.uint64).tolist()
            if own:
                for n in range(BATCH // 5):
                    values[n] = own[int(rng.integers(len(own)))][1] ^ (1 << int(rng.integers(64)))
            pages = [
                (f"https://w{writer}-{host}.example/{of_host}/{n}", value)
                for n, value in enumerate(values)
            ]
            if own:
                pages[-BATCH // 5 :] = [
                    (own[int(rng.integers(len(own)))][0], value) for value in values[-BATCH // 5 :]
                ]
            begun = time.monotonic()
            for verdict in store.add_many(pages):
                assert verdict.verdict != "failed"
            told.put([Done("batch", time.monotonic(), time.monotonic() - begun)])
            own = (own + pages)[-2000:]
            number += 1
            if of_host == HOST_BATCHES - 1 and host >= HOSTS:
                gone = f"w{writer}-{host - HOSTS}.example"
                store.delete_host(gone)
                own = [page for page in own if f"//{gone}/" not in page[0]]
            pace(started, number, pages_a_second / BATCH)


def read(dsn: str, reader: int, a_second: float, stop: Event, told: Told) -> None:
    """Look up until told to stop."""
    rng = np.random.default_rng(1000 + reader)
    with connect(dsn) as store:
        started, number = time.monotonic(), 0
        done: list[Done] = []
        while not stop.is_set():
            asked = int(rng.integers(0, 2**64, dtype=np.uint64))
            begun = time.monotonic()
            store.find(asked)
            done.append(Done("lookup", time.monotonic(), time.monotonic() - begun))
            number += 1
            if len(done) >= max(1, a_second):
                told.put(done)
                done = []
            pace(started, number, a_second)


def percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share)) * 1e3 if values else 0.0


def samples(
    connection: psycopg.Connection,
    processes: Sequence[psutil.Process],
    told: Told,
    minutes: float,
    every: float,
) -> Iterator[Sample]:
    """Yield the measurements of each interval of ``every`` seconds."""
    started = last = time.monotonic()
    while last - started < minutes * 60:
        time.sleep(every)
        now = time.monotonic()
        took: dict[str, list[float]] = {"batch": [], "lookup": []}
        while not told.empty():
            for one in told.get():
                took[one.kind].append(one.took)
        space = connection.execute(SPACE).fetchone()
        assert space is not None
        yield Sample(
            (now - started) / 60,
            BATCH * len(took["batch"]) / (now - last),
            len(took["lookup"]) / (now - last),
            percentile(took["lookup"], 50),
            percentile(took["lookup"], 99),
            percentile(took["batch"], 99),
            max(process.memory_info().rss for process in processes) / 1e6,
            float(space[0] or 0),
            float(space[1] or 0),
        )
        last = now


PANELS = {
    "pages a second": ["pages_a_second"],
    "lookups a second": ["lookups_a_second"],
    "a lookup, ms: median and 99%": ["lookup_p50", "lookup_p99"],
    "a batch of 100, ms: 99%": ["batch_p99"],
    "largest client, MB": ["largest_client"],
    "bytes a simhash, and a page": ["bytes_a_simhash", "bytes_a_page"],
}
WIDTH, HEIGHT, GAP = 340, 90, 50


def picture(found: Sequence[Sample], title: str) -> str:
    """Return the samples as SVG, a panel for each kind of measurement."""
    last = max(sample.minute for sample in found)
    parts = [f'<text x="0" y="-22" font-size="13">{title}</text>']
    for number, (name, columns) in enumerate(PANELS.items()):
        left = number % 2 * (WIDTH + 2 * GAP)
        top = number // 2 * (HEIGHT + GAP)
        highest = max(getattr(one, column) for one in found for column in columns) or 1.0
        parts.append(
            f'<text x="{left}" y="{top - 5}">{name}</text>'
            f'<path d="M{left} {top}V{top + HEIGHT}H{left + WIDTH}" stroke="#999"/>'
            f'<text x="{left + WIDTH + 3}" y="{top + 9}">{highest:,.4g}</text>'
            f'<text x="{left + WIDTH}" y="{top + HEIGHT + 12}" text-anchor="end">'
            f"{last:.0f} minutes</text>"
        )
        for column, colour in zip(columns, ("#15616d", "#e07a1f"), strict=False):
            points = " ".join(
                f"{left + WIDTH * one.minute / last:.1f},"
                f"{top + HEIGHT - HEIGHT * getattr(one, column) / highest:.1f}"
                for one in found
            )
            parts.append(f'<polyline points="{points}" stroke="{colour}"/>')
    width, height = 2 * WIDTH + 3 * GAP, -(-len(PANELS) // 2) * (HEIGHT + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -40 {width + 10} {height + 20}" '
        'fill="none" font-family="sans-serif" font-size="11">'
        "<style>text{fill:#555}</style>" + "".join(parts) + "</svg>\n"
    )


@click.command()
@click.option("--rows", default=5_000_000, show_default=True)
@click.option("--minutes", default=30.0, show_default=True)
@click.option("--writers", default=8, show_default=True)
@click.option("--readers", default=4, show_default=True)
@click.option("--pages", default=800.0, show_default=True, help="A second, all writers; 0: all.")
@click.option("--lookups", default=80.0, show_default=True, help="A second, all readers; 0: all.")
@click.option("--every", default=10.0, show_default=True, help="Seconds of a sample.")
@click.option("--output", type=click.Path(path_type=Path), help="Draw it here, as SVG.")
@click.option("--figures", type=click.Path(path_type=Path), help="Write the samples here, as CSV.")
@click.option("--dsn")
def main(
    rows: int,
    minutes: float,
    writers: int,
    readers: int,
    pages: float,
    lookups: float,
    every: float,
    output: Path | None,
    figures: Path | None,
    dsn: str | None,
) -> None:
    """Load, run, sample, check, and print the results."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        where = stack.enter_context(database(dsn))
        store = stack.enter_context(connect(where))
        connection = stack.enter_context(psycopg.connect(where, autocommit=True))
        store.add_simhashes(random_simhashes(rows, np.random.default_rng(0)))
        connection.execute("VACUUM (ANALYZE)")
        idle = []
        for asked in random_simhashes(500, np.random.default_rng(1)).tolist():
            begun = time.monotonic()
            store.find(asked)
            idle.append(time.monotonic() - begun)
        click.echo(
            f"{rows:,} rows, idle: a lookup {percentile(idle, 50):.2f} ms, "
            f"99% {percentile(idle, 99):.2f} ms",
            err=True,
        )
        stop, told = context.Event(), context.Queue()
        working = [
            *(
                context.Process(target=write, args=(where, one, pages / writers, stop, told))
                for one in range(writers)
            ),
            *(
                context.Process(target=read, args=(where, one, lookups / readers, stop, told))
                for one in range(readers)
            ),
        ]
        for process in working:
            process.start()
        watched = [psutil.Process(process.pid) for process in working]
        found = []
        for sample in samples(connection, watched, told, minutes, every):
            found.append(sample)
            click.echo(" ".join(f"{value:,.1f}" for value in sample), err=True)
        stop.set()
        # A process ends only when its results have been received.
        while any(process.is_alive() for process in working):
            while not told.empty():
                told.get()
            time.sleep(0.1)
        codes = [process.exitcode for process in working]
        wrong = list(maintenance.check(store))
    # Processes take a while to start, and the number of rows is known after the first vacuum.
    settled = found[max(len(found) // 10, 3) :]
    for name in Sample._fields[1:]:
        values = [getattr(sample, name) for sample in settled]
        click.echo(
            f"{name}: median {np.median(values):,.1f}, first {values[0]:,.1f}, "
            f"last {values[-1]:,.1f}, most {max(values):,.1f}"
        )
    slow = float(np.median([sample.lookup_p99 for sample in settled])) / percentile(idle, 99)
    click.echo(f"a lookup's 99% is {slow:.1f} times what it is idle")
    click.echo(f"exit codes {codes}; the check found {len(wrong)} violations")
    if figures is not None:
        with figures.open("w", newline="") as file:
            csv.writer(file).writerows([Sample._fields, *found])
    if output is not None:
        output.write_text(
            picture(found, f"{writers} writers and {readers} readers over {rows:,} simhashes"),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
