"""Measure one page in a service: a lookup, a bare insert and an add.

    python bench/single_page.py [--dsn DSN] [--rows N] [--pages N] [--clients N]...

Each client makes one call after the other, a third of each kind, in turn. First each is a process
with its own connection. Then each is an asyncio task of one process with a pool, where concurrent
calls share statements. The limit is one find and three bare commits, measured in the same run.
Without --dsn an embedded server is started in a temporary folder.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from multiprocessing import get_context
from typing import TYPE_CHECKING

import click
import numpy as np
import psycopg
from psycopg_pool import AsyncConnectionPool

from pgsimhash import AsyncStore, connect, connect_async
from pgsimhash.maintenance import delete_collection

if TYPE_CHECKING:
    from bench.workload import database, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import database, random_simhashes

CALLS = ("find", "bare", "add")
BARE_TABLE = "bench_single_page"
BARE = f"INSERT INTO {BARE_TABLE} (url, simhash) VALUES (%s, %s)"
WARM_UP = 20

Job = tuple[str, str, int, int]


def simhashes_of(number: int, pages: int) -> Iterator[int]:
    """Yield the simhashes of one client."""
    return iter(random_simhashes(pages + WARM_UP, np.random.default_rng(number)).tolist())


def process(job: Job) -> list[list[float]]:
    """Return the seconds of each call of one client, by :data:`CALLS`."""
    dsn, collection, number, pages = job
    seconds = []
    with (
        connect(dsn, collection=collection, lookup_memory=0) as store,
        psycopg.connect(dsn, autocommit=True) as bare,
    ):
        for simhash in simhashes_of(number, pages):
            url = f"https://client{number}.example/{simhash}"
            times = [time.perf_counter()]
            store.find(simhash)
            times.append(time.perf_counter())
            bare.execute(BARE, [url, simhash >> 1])
            times.append(time.perf_counter())
            store.add(url, simhash)
            times.append(time.perf_counter())
            seconds.append(np.diff(times).tolist())
    return seconds[WARM_UP:]


async def task(
    store: AsyncStore, pool: AsyncConnectionPool, number: int, pages: int
) -> list[list[float]]:
    """Do the same as :func:`process`."""
    seconds = []
    for simhash in simhashes_of(number, pages):
        url = f"https://task{number}.example/{simhash}"
        times = [time.perf_counter()]
        await store.find(simhash)
        times.append(time.perf_counter())
        async with pool.connection() as bare:
            await bare.execute(BARE, [url, simhash >> 1])
        times.append(time.perf_counter())
        await store.add(url, simhash)
        times.append(time.perf_counter())
        seconds.append(np.diff(times).tolist())
    return seconds[WARM_UP:]


def processes(dsn: str, collection: str, clients: int, pages: int) -> list[list[list[float]]]:
    jobs = [(dsn, collection, 1000 * clients + number, pages) for number in range(clients)]
    with get_context("spawn").Pool(clients) as pool:
        return pool.map(process, jobs, chunksize=1)


async def tasks(dsn: str, collection: str, clients: int, pages: int) -> list[list[list[float]]]:
    async with AsyncConnectionPool(
        dsn, min_size=clients, max_size=clients + 3, kwargs={"autocommit": True}, open=False
    ) as pool:
        await pool.wait()
        async with await connect_async(pool, collection=collection) as store:
            numbers = range(2000 * clients, 2001 * clients)
            return await asyncio.gather(*(task(store, pool, number, pages) for number in numbers))


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
            print(f"{'clients':>16}{header}{'limit':>9}  median ms; add over the limit")
            for count in clients:
                measured = {
                    "processes": processes(where, collection, count, pages),
                    "tasks": asyncio.run(tasks(where, collection, count, pages)),
                }
                for kind, seconds in measured.items():
                    find, bare, add = np.median(np.concatenate(seconds), axis=0) * 1e3
                    limit = find + 3 * bare
                    row = "".join(f"{value:9.2f}" for value in (find, bare, add, limit))
                    print(f"{count:6} {kind:9}{row}  {add / limit:.2f}", flush=True)
        finally:
            connection.execute(f"DROP TABLE {BARE_TABLE}")
            delete_collection(connection, collection)


if __name__ == "__main__":
    main()
