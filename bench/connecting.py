"""Measure stores over SQLAlchemy and asyncio, relative to psycopg alone.

    python bench/connecting.py [--rows 100000] [--dsn ...]

Adds pages through a psycopg connection and a Session of SQLAlchemy, in batches and one by one.
Looks up simhashes on one connection, and with 16 tasks on a pool. Each is measured on the server
directly, and through a relay process that delays data like a network. Rounds alternate; medians and
ratios are printed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from statistics import median
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from pgsimhash import connect, connect_async

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

TASKS = 16
WARMING = 2_000
ADDED = 2_000
LOOKUPS = 4_000
DELAYS = (0.0, 0.001)
"""The one-way latency of a network in seconds."""


def pages(name: str, values: np.ndarray[Any, np.dtype[np.uint64]]) -> list[tuple[str, int]]:
    """Return unknown pages."""
    return [(f"https://{name}.example/{number}", int(one)) for number, one in enumerate(values)]


def added(where: Any, commit: Callable[[], None], rows: list[tuple[str, int]], size: int) -> float:
    """Return pages per second, committed in batches of ``size``."""
    store = connect(where)
    commit()
    started = time.perf_counter()
    for at in range(0, len(rows), size):
        for _ in store.add_many(rows[at : at + size], batch_size=size):
            pass
        commit()
    return len(rows) / (time.perf_counter() - started)


async def looked_up(dsn: str, values: Sequence[int], distance: int) -> float:
    """Return lookups per second by tasks on a pool."""
    waiting: list[int] = []
    async with AsyncConnectionPool(dsn, min_size=TASKS, max_size=TASKS, open=False) as pool:
        store = await connect_async(pool)

        async def work() -> None:
            while waiting:
                await store.find(waiting.pop(), distance)

        # Each connection plans its own statements.
        waiting += values[:WARMING]
        await asyncio.gather(*(work() for _ in range(TASKS)))
        waiting += values
        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(TASKS)))
        return len(values) / (time.perf_counter() - started)


async def relayed(host: str, port: str, delay: float, told: Connection) -> None:
    """Forward data with a delay each way, and report the port."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        later = asyncio.get_running_loop().call_later
        while data := await reader.read(65536):
            later(delay, writer.write, data)
        later(delay, writer.close)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if host.startswith("/"):
            server = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            server = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pump(reader, server[1]), pump(server[0], writer))

    listening = await asyncio.start_server(serve, "127.0.0.1")
    told.send(listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


def relay(host: str, port: str, delay: float, told: Connection) -> None:
    """Run the relay until the process ends."""
    asyncio.run(relayed(host, port, delay, told))


@contextmanager
def far_away(dsn: str, delay: float) -> Iterator[str]:
    """The DSN of the same database behind a relay with this latency each way."""
    if not delay:
        yield dsn
        return
    given = conninfo_to_dict(dsn)
    here, there = multiprocessing.Pipe()
    where = (str(given["host"]), str(given.get("port") or 5432))
    process = multiprocessing.get_context("spawn").Process(
        target=relay, args=(*where, delay, there), daemon=True
    )
    process.start()
    try:
        yield make_conninfo(dsn, host="127.0.0.1", hostaddr="127.0.0.1", port=here.recv())
    finally:
        process.terminate()
        process.join()


def answers(dsn: str) -> Iterator[float]:
    """Yield the time of SELECT 1, because timers are too coarse for the configured delay."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(200):
            started = time.perf_counter()
            connection.execute("SELECT 1")
            yield time.perf_counter() - started


@click.command()
@click.option("--rows", default=100_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--dsn")
def main(rows: int, rounds: int, dsn: str | None) -> None:
    """Measure and print."""
    rng = np.random.default_rng(1)

    def fresh(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return rng.integers(0, 2**64, count, np.uint64)

    with database(dsn) as where, psycopg.connect(where) as connection:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(where))
        with connect(where) as store, Session(engine) as session:
            store.add_simhashes(fresh(rows))
            connection.execute("ANALYZE")
            connection.commit()
            for size in (1, 100):
                plain, by_session = [], []
                for number in range(rounds):
                    count = ADDED if size > 1 else ADDED // 4
                    some = pages(f"p{size}-{number}", fresh(count))
                    plain.append(added(connection, connection.commit, some, size))
                    some = pages(f"s{size}-{number}", fresh(count))
                    by_session.append(added(session, session.commit, some, size))
                one, other = median(plain), median(by_session)
                click.echo(
                    f"add, {size} a transaction: psycopg {one:,.0f}/s, Session {other:,.0f}/s, "
                    f"which takes {one / other:.2f} times as long"
                )
        for delay in DELAYS:
            known = [int(value) for value in fresh(LOOKUPS // 4 if delay else LOOKUPS)]
            with far_away(where, delay) as there, connect(there) as store:
                answered = median(answers(there))
                for distance in (3, 8):
                    single, pooled = [], []
                    for value in known[:100]:
                        store.find(value, distance)
                    for _ in range(rounds):
                        started = time.perf_counter()
                        for value in known:
                            store.find(value, distance)
                        single.append(len(known) / (time.perf_counter() - started))
                        pooled.append(asyncio.run(looked_up(there, known, distance)))
                    one, other = median(single), median(pooled)
                    click.echo(
                        f"find, distance {distance}, SELECT 1 answered in {answered * 1e3:.2g} ms: "
                        f"one connection {one:,.0f}/s, {TASKS} tasks on a pool {other:,.0f}/s, "
                        f"{other / one:.2f} times as many"
                    )


if __name__ == "__main__":
    main()
