"""Measure other lookups and writes than scale.py in a million stored pages, vacuumed and analysed.

    python bench/search.py [PART]... [--pages N] [--dsn DSN]

The parts are lookups, writes, clients, expiry and layouts; by default all. Without --dsn an
embedded server is started in a temporary folder. Every ratio is taken within the run.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import psycopg
from psycopg_pool import AsyncConnectionPool
from rich.console import Console
from rich.table import Table

from pgsimhash import AsyncStore, analysis, connect, connect_async
from pgsimhash.db.connections import open_connection
from pgsimhash.schema import migrate
from pgsimhash.search.layout import get_layout

if TYPE_CHECKING:
    from bench.workload import (
        Simhashes,
        database,
        fill_pages,
        near_copies,
        new_pages,
        percentiles,
        random_simhashes,
    )
else:  # A script finds its neighbours under their own names.
    from workload import (
        Simhashes,
        database,
        fill_pages,
        near_copies,
        new_pages,
        percentiles,
        random_simhashes,
    )

RNG = np.random.default_rng(time.time_ns())
SPAWN = multiprocessing.get_context("spawn")
DISTANCES = (3, 8)
HOT = 10_000
BARE = "INSERT INTO bench_bare (url, simhash) VALUES (%s, %s)"
LAYOUTS = ("32+32", "22+21+21", "16+16+16+16", "5 choose 2", "4x4", "6 choose 3", "8 choose 2")
HTML = "<title>Words</title><article>{}</article>"


class Bench:
    """A filled database, and the table of what was measured."""

    def __init__(self, dsn: str, pages: int, table: Table) -> None:
        self.dsn, self.pages = dsn, pages
        self._table = table
        self.connection = open_connection(dsn, autocommit=True)
        self.store = connect(dsn)
        started = time.perf_counter()
        fill_pages(self.connection, pages)
        self.row("pages loaded, indexed, vacuumed", f"{pages / since(started):,.0f} a second")
        sampled = self.connection.execute(
            "SELECT simhash FROM pgsimhash.pages ORDER BY page_id DESC LIMIT 20000"
        ).fetchall()
        self.known: Simhashes = np.array([value for (value,) in sampled], np.int64).view(np.uint64)

    def row(self, what: str, measured: str, compared: str = "") -> None:
        """Add a row to the table."""
        self._table.add_row(what, measured, compared)

    def calls(self, what: str, run: Callable[[int], object], queries: Simhashes) -> float:
        """Time single calls; return the median in milliseconds."""
        middle, slow = percentiles(run, queries)
        self.row(what, f"{middle:.2f} ms", f"p99 {slow:.2f} ms")
        return middle

    def near(self, number: int, distance: int) -> Simhashes:
        """Queries: near-duplicates of stored simhashes."""
        return near_copies(self.known, number, distance, RNG)


def since(started: float) -> float:
    return time.perf_counter() - started


def lookups(bench: Bench) -> None:
    """Lookups by page, in batches, of a frequent simhash, and all pairs."""
    store = bench.store
    urls = bench.connection.execute(
        "SELECT url FROM pgsimhash.pages ORDER BY page_id DESC LIMIT 300"
    ).fetchall()
    for distance in DISTANCES:
        bits = f"{distance} bits"
        has_near = partial(store.has_near, distance=distance)
        bench.calls(f"has_near, {bits}", has_near, bench.near(500, distance))

        def near_page(number: int, distance: int = distance) -> object:
            return store.near_pages(urls[number][0], distance)

        bench.calls(f"near_pages by URL, {bits}", near_page, np.arange(300, dtype=np.uint64))
        many = bench.near(4_000, distance)
        started = time.perf_counter()
        for start in range(0, len(many), 1_000):
            store.find_many(many[start : start + 1_000], distance)
        bench.row(f"find_many, {bits}", f"{len(many) / since(started):,.0f} a second")
    hot = int(random_simhashes(1, RNG)[0])
    list(store.add_pages((f"https://hot.example/{number}", hot) for number in range(HOT)))
    for limit in (10, None):
        started = time.perf_counter()
        found = len(store.near_pages(hot, 3, limit=limit))
        took = since(started) * 1e3
        bench.row(f"{found:,} of {HOT:,} pages that share a simhash", f"{took:.1f} ms")
    started = time.perf_counter()
    pairs = sum(1 for _ in analysis.page_pairs(store, 3))
    bench.row(f"{pairs:,} pairs with URLs, 3 bits", f"{since(started):.1f} s")


def writes(bench: Bench) -> None:
    """Pages from HTML, and batches by several writers."""
    store = bench.store
    fresh = count()

    def article() -> tuple[str, str]:
        words = " ".join(f"{value:x}" for value in RNG.integers(0, 2**24, 200))
        return f"https://article.example/{next(fresh)}", HTML.format(words)

    times = np.zeros(100, np.uint64)
    dry = bench.calls("decide, from HTML", lambda _: store.decide(*article()), times)
    wet = bench.calls("ingest, from HTML", lambda _: store.ingest(*article()), times)
    bench.row("", "", f"{wet / dry:.1f} x decide")
    for writers in (1, 2, 4):
        with SPAWN.Pool(writers) as pool:
            pool.map(abs, range(writers))
            rates_of = pool.map(batches, [bench.dsn] * writers, chunksize=1)
        bench.row(f"{writers} writers, 8 bits", f"{sum(rates_of):,.0f} pages/s")


def batches(dsn: str) -> float:
    """Add batches of new pages at 8 bits; return pages a second."""
    with connect(dsn) as store:
        for _ in range(2):
            list(store.add_pages(new_pages(256)))
        taken = 10
        started = time.perf_counter()
        for _ in range(taken):
            list(store.add_pages(new_pages(256)))
        return taken * 256 / since(started)


def clients(bench: Bench) -> None:
    """A find, a bare commit and an add in turn, by processes and by tasks of one process.

    The limit is one find and three bare commits.
    """
    bench.connection.execute("CREATE TABLE bench_bare (url text PRIMARY KEY, simhash bigint)")
    for number in (1, 4, 16):
        with SPAWN.Pool(number) as pool:
            by_processes = pool.map(one_client, [bench.dsn] * number, chunksize=1)
        by_tasks = asyncio.run(tasks(bench.dsn, number))
        for kind, seconds in (("processes", by_processes), ("tasks", by_tasks)):
            find, bare, add = np.median(np.concatenate(seconds), axis=0) * 1e3
            bench.row(
                f"{number} {kind}: find, bare commit, add",
                f"{find:.1f}, {bare:.1f}, {add:.1f} ms",
                f"add {add / (find + 3 * bare):.1f} x the limit",
            )
    bench.connection.execute("DROP TABLE bench_bare")


def one_client(dsn: str) -> list[list[float]]:
    """The seconds of each call of a process."""
    seconds = []
    with connect(dsn) as store, psycopg.connect(dsn, autocommit=True) as bare:
        for url, simhash in new_pages(120):
            times = [time.perf_counter()]
            store.find(simhash)
            times.append(time.perf_counter())
            bare.execute(BARE, [url, simhash >> 1])
            times.append(time.perf_counter())
            store.add_page(url, simhash)
            times.append(time.perf_counter())
            seconds.append(np.diff(times).tolist())
    return seconds[20:]


async def tasks(dsn: str, number: int) -> list[list[list[float]]]:
    """The same for tasks that share a pool."""
    async with AsyncConnectionPool(
        dsn, min_size=number, max_size=number + 3, kwargs={"autocommit": True}, open=False
    ) as pool:
        await pool.wait()
        async with await connect_async(pool) as store:
            return await asyncio.gather(*(one_task(store, pool) for _ in range(number)))


async def one_task(store: AsyncStore, pool: AsyncConnectionPool) -> list[list[float]]:
    seconds = []
    for url, simhash in new_pages(120):
        times = [time.perf_counter()]
        await store.find(simhash)
        times.append(time.perf_counter())
        async with pool.connection() as bare:
            await bare.execute(BARE, [url, simhash >> 1])
        times.append(time.perf_counter())
        await store.add_page(url, simhash)
        times.append(time.perf_counter())
        seconds.append(np.diff(times).tolist())
    return seconds[20:]


def expiry(bench: Bench) -> None:
    """The expiry of all pages while two writers go on."""
    stop, told = SPAWN.Event(), SPAWN.Queue()
    writers = [SPAWN.Process(target=write_until, args=(bench.dsn, stop, told)) for _ in range(2)]
    for writer in writers:
        writer.start()
    started = time.perf_counter()
    gone = bench.store.expire(timedelta(seconds=1)).deleted
    took = since(started)
    stop.set()
    waits = np.concatenate([told.get(timeout=60) for _ in writers]) * 1e3
    for writer in writers:
        writer.join()
    bench.row(f"{gone:,} pages expired", f"{gone / took:,.0f} pages/s", f"{took:.1f} s")
    bench.row(
        f"{len(waits)} batches of 100 by two writers meanwhile",
        f"{np.median(waits):.0f} ms",
        f"p99 {np.percentile(waits, 99):.0f} ms, longest {waits.max():.0f} ms",
    )


def write_until(dsn: str, stop: Event, told: Any) -> None:
    """Write batches until told to stop, at least one; return their times."""
    seconds: list[float] = []
    with connect(dsn) as store:
        while not (seconds and stop.is_set()):
            started = time.perf_counter()
            list(store.add_pages(new_pages(100)))
            seconds.append(since(started))
    told.put(seconds)


def layouts(bench: Bench) -> None:
    """The table of docs/layouts.md: every layout with as many pages."""
    for name in LAYOUTS:
        layout, schema = get_layout(name), "bench_layout"
        bench.connection.execute("DROP SCHEMA IF EXISTS bench_layout CASCADE")
        migrate.upgrade(bench.dsn, schema=schema, layout=name)
        with connect(bench.dsn, schema=schema) as store:
            started = time.perf_counter()
            fill_pages(bench.connection, bench.pages, schema=schema)
            loaded = bench.pages / since(started)
            (size,) = bench.connection.execute(
                "SELECT sum(pg_relation_size(indexrelid)) FROM pg_index "
                "WHERE indrelid = 'bench_layout.pages'::regclass "
                "AND indexrelid::regclass::text LIKE '%%prefix%%'"
            ).fetchone() or (0,)
            values = np.array(
                bench.connection.execute(
                    "SELECT simhash FROM bench_layout.pages ORDER BY page_id DESC LIMIT 20000"
                ).fetchall(),
                np.int64,
            )[:, 0].view(np.uint64)
            shown = []
            for distance in DISTANCES:
                if distance in layout.distances:
                    queries = near_copies(values, 300, distance, RNG)
                    middle, _ = percentiles(partial(store.find, distance=distance), queries)
                    shown.append(f"{middle:.2g} ms")
                else:
                    shown.append("-")
        columns, largest = len(layout.permutations), layout.distances[-1]
        bench.row(
            f"| `{name}` | {columns} | {float(size) / bench.pages:.0f} | 0-{largest} "
            f"| {' | '.join(shown)} |",
            f"{loaded:,.0f} loaded a second",
        )


PARTS = {part.__name__: part for part in (lookups, writes, clients, expiry, layouts)}


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
@click.option("--pages", default=1_000_000, show_default=True)
@click.option("--dsn", help="An empty database.")
def main(parts: tuple[str, ...], pages: int, dsn: str | None) -> None:
    """Fill a collection, measure the parts and print a table."""
    table = Table("what", "measured", "compared", title=f"{pages:,} pages")
    with database(dsn) as where:
        try:
            bench = Bench(where, pages, table)
            for part in parts or PARTS:
                PARTS[part](bench)
        finally:
            Console(width=130).print(table)


if __name__ == "__main__":
    main()
