"""Measure the expiry of many pages during writes: its time, the writers' waits, and the space.

    python bench/expiry.py [--rows N] [--writers N] [--policies N] [--dsn DSN]

With --policies, this many hosts have one, and pages expire by their policies.
"""

from __future__ import annotations

import multiprocessing
import time
from contextlib import ExitStack
from datetime import timedelta
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING

import click
import numpy as np
import psycopg

from pgsimhash import connect

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

FILL = """
INSERT INTO pgsimhash.pages (collection_id, url, simhash, fetched_at)
SELECT
    c.collection_id,
    'https://' || n %% 5000 || '.example/an/article/of/some/length/' || n,
    ('x' || substr(md5(n::text), 1, 16))::bit(64)::bigint,
    now() - interval '100 days'
FROM pgsimhash.collections AS c CROSS JOIN generate_series(1, %(rows)s) AS n
WHERE c.name = 'default'
"""

POLICIES = """
SELECT pgsimhash.set_policy('default', n || '.example', expire_after => interval '90 days')
FROM generate_series(0, %(policies)s - 1) AS n
"""

SIZES = """
SELECT
    pg_size_pretty(pg_table_size('pgsimhash.pages') + pg_table_size('pgsimhash.simhashes')),
    pg_size_pretty(pg_indexes_size('pgsimhash.pages') + pg_indexes_size('pgsimhash.simhashes'))
"""


def write(dsn: str, number: int, stop: Event, batches: multiprocessing.Queue[list[float]]) -> None:
    """Write batches of 100 random pages until told to stop; return their times."""
    rng = np.random.default_rng(number)
    seconds: list[float] = []
    with connect(dsn) as store:
        # At least one batch, however soon the others end.
        while not (seconds and stop.is_set()):
            values = rng.integers(0, 2**64, 100, dtype=np.uint64).tolist()
            at = len(seconds)
            pages = [(f"https://w{number}.example/{at}/{n}", v) for n, v in enumerate(values)]
            started = time.perf_counter()
            verdicts = list(store.add_many(pages))
            seconds.append(time.perf_counter() - started)
            assert all(verdict.verdict != "failed" for verdict in verdicts)
    batches.put(seconds)


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--writers", default=2, show_default=True)
@click.option("--policies", default=0, show_default=True)
@click.option("--dsn")
def main(rows: int, writers: int, policies: int, dsn: str | None) -> None:
    """Expire ROWS pages while WRITERS processes add pages."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        store = stack.enter_context(connect(dsn))
        connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        connection.execute(FILL, {"rows": rows})
        connection.execute(POLICIES, {"policies": policies})
        connection.execute("VACUUM (ANALYZE)")

        def sizes(when: str) -> None:
            print(f"{when}: tables %s, indexes %s" % connection.execute(SIZES).fetchall()[0])

        sizes("full")
        stop, batches = context.Event(), context.Queue()
        working = [
            context.Process(target=write, args=(dsn, number, stop, batches))
            for number in range(writers)
        ]
        for process in working:
            process.start()
        started = time.perf_counter()
        deleted = store.expire(None if policies else timedelta(days=90)).versions
        seconds = time.perf_counter() - started
        stop.set()
        taken = np.array([value for _ in working for value in batches.get(timeout=60)]) * 1e3
        for process in working:
            process.join()
        codes = [process.exitcode for process in working]
        print(f"expired {deleted:,} pages in {seconds:.1f} s, {deleted / seconds:,.0f} pages/s")
        print(
            f"{writers} writers, exit codes {codes}: {len(taken)} batches of 100, "
            f"median {np.median(taken):.0f} ms, 99% {np.percentile(taken, 99):.0f} ms, "
            f"longest {taken.max():.0f} ms"
        )
        started = time.perf_counter()
        connection.execute("VACUUM (ANALYZE)")  # what autovacuum does sooner or later
        sizes(f"vacuum, {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
