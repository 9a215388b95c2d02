"""What it takes to come by SQLAlchemy or asyncio, beside psycopg alone.

    python bench/connecting.py [--rows 100000] [--dsn ...]

Adds pages through a psycopg connection and a Session of SQLAlchemy, in batches and alone, and
looks simhashes up on one connection, and with 16 tasks on a pool. Rounds alternate; medians and
ratios are printed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import psycopg
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from pgsimhash import connect, connect_async

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

TASKS = 16
ADDED = 2_000
LOOKUPS = 2_000


def pages(name: str, values: np.ndarray[Any, np.dtype[np.uint64]]) -> list[tuple[str, int]]:
    """Return pages that nobody knows."""
    return [(f"https://{name}.example/{number}", int(one)) for number, one in enumerate(values)]


def added(where: Any, commit: Callable[[], None], rows: list[tuple[str, int]], size: int) -> float:
    """Return how many pages a second go in, committed in batches of ``size``."""
    store = connect(where)
    commit()
    started = time.perf_counter()
    for at in range(0, len(rows), size):
        for _ in store.add_many(rows[at : at + size], batch_size=size):
            pass
        commit()
    return len(rows) / (time.perf_counter() - started)


async def looked_up(dsn: str, values: Sequence[int], distance: int) -> float:
    """Return lookups a second by tasks on a pool."""
    waiting = list(values)
    async with AsyncConnectionPool(dsn, min_size=TASKS, max_size=TASKS, open=False) as pool:
        store = await connect_async(pool)

        async def work() -> None:
            while waiting:
                await store.find(waiting.pop(), distance)

        await asyncio.gather(*(store.find(value, distance) for value in values[:TASKS]))
        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(TASKS)))
        return len(values) / (time.perf_counter() - started)


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
            known = [int(value) for value in fresh(LOOKUPS)]
            for distance in (3, 8):
                single, pooled = [], []
                for _ in range(rounds):
                    started = time.perf_counter()
                    for value in known:
                        store.find(value, distance)
                    single.append(len(known) / (time.perf_counter() - started))
                    pooled.append(asyncio.run(looked_up(where, known, distance)))
                one, other = median(single), median(pooled)
                click.echo(
                    f"find, distance {distance}: one connection {one:,.0f}/s, {TASKS} tasks on a "
                    f"pool {other:,.0f}/s, {other / one:.2f} times as many"
                )


if __name__ == "__main__":
    main()
