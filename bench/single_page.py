"""Measure one page in a service: a lookup, a bare insert, an add and an ingest of a record.

    python bench/single_page.py [--dsn DSN] [--rows N] [--pages N] [--clients N]...

Each client is a process with its own connection that makes one call after the other, a quarter of
its calls of each kind in turn. The limit is one find and three bare commits, measured in the same
run. Without --dsn an embedded server is started in a temporary folder.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import chain
from multiprocessing import get_context
from typing import TYPE_CHECKING

import click
import numpy as np
import psycopg

from pgsimhash import connect
from pgsimhash.maintenance import delete_collection
from pgsimhash.pages.records import PageRecord

if TYPE_CHECKING:
    from bench.workload import database, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import database, random_simhashes

CALLS = ("find", "bare", "add", "ingest")
BARE_TABLE = "bench_single_page"
WARM_UP = 20

Job = tuple[str, str, int, int]


def client(job: Job) -> list[list[float]]:
    """Return the seconds of each call, by :data:`CALLS`."""
    dsn, collection, number, pages = job
    values = iter(random_simhashes(4 * (pages + WARM_UP), np.random.default_rng(number)).tolist())
    seconds: list[list[float]] = [[] for _ in CALLS]
    with (
        connect(dsn, collection=collection, lookup_memory=0) as store,
        psycopg.connect(dsn, autocommit=True) as bare,
    ):

        def insert(value: int) -> None:
            bare.execute(
                f"INSERT INTO {BARE_TABLE} (url, simhash) VALUES (%s, %s)",
                [f"https://bare{number}.example/{value}", value >> 1],
            )

        def add(value: int) -> None:
            store.add(f"https://add{number}.example/{value}", value)

        def ingest(value: int) -> None:
            record = PageRecord(
                f"https://ingest{number}.example/{value}", value, title="A page", tokens=100
            )
            list(store.ingest_many([record]))

        calls: list[Callable[[int], object]] = [store.find, insert, add, ingest]
        for at in range(pages + WARM_UP):
            for taken, call in zip(seconds, calls, strict=True):
                value = next(values)
                started = time.perf_counter()
                call(value)
                if at >= WARM_UP:
                    taken.append(time.perf_counter() - started)
    return seconds


def measure(dsn: str, collection: str, clients: int, pages: int) -> list[list[float]]:
    """Return the seconds of the calls of all clients."""
    jobs = [(dsn, collection, 1000 * clients + number, pages) for number in range(clients)]
    with get_context("spawn").Pool(clients) as pool:
        measured = pool.map(client, jobs, chunksize=1)
    return [list(chain(*taken)) for taken in zip(*measured, strict=True)]


@click.command()
@click.option("--dsn")
@click.option("--rows", default=100_000, show_default=True, help="Simhashes that are known.")
@click.option("--pages", default=200, show_default=True, help="Calls of each kind and client.")
@click.option("--clients", multiple=True, default=(1, 4, 16), show_default=True)
def main(dsn: str | None, rows: int, pages: int, clients: tuple[int, ...]) -> None:
    """Measure single pages with several clients."""
    with database(dsn) as where, psycopg.connect(where, autocommit=True) as connection:
        collection = f"bench-{time.time_ns()}"
        connection.execute(f"CREATE TABLE {BARE_TABLE} (url text PRIMARY KEY, simhash bigint)")
        with connect(where, collection=collection) as store:
            store.add_simhashes(random_simhashes(rows, np.random.default_rng(0)))
        connection.execute("VACUUM ANALYZE")
        try:
            header = "".join(f"{name:>9}" for name in CALLS)
            print(f"{'clients':>7}{header}{'limit':>9}  median ms; add and ingest over the limit")
            for count in clients:
                times = measure(where, collection, count, pages)
                find, bare, add, ingest = (statistics.median(taken) * 1e3 for taken in times)
                limit = find + 3 * bare
                row = "".join(f"{value:9.2f}" for value in (find, bare, add, ingest, limit))
                print(f"{count:7}{row}  {add / limit:.2f}  {ingest / limit:.2f}", flush=True)
        finally:
            connection.execute(f"DROP TABLE {BARE_TABLE}")
            delete_collection(connection, collection)


if __name__ == "__main__":
    main()
