"""Measure lookups of pages: pages near one, and all pairs with their URLs.

    python bench/near.py [--pages N] [--dsn DSN]

Two pages share each simhash, and ten thousand share one.
"""

from __future__ import annotations

import resource
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click
import numpy as np

from pgsimhash import analysis
from pgsimhash.db.connection import open_connection
from pgsimhash.store import connect

if TYPE_CHECKING:
    from bench.workload import database, percentiles
else:  # A script finds its neighbours under their own names.
    from workload import database, percentiles

HOT = 10_000
QUERIES = 200


@click.command()
@click.option("--pages", default=1_000_000, show_default=True)
@click.option("--dsn")
def main(pages: int, dsn: str | None) -> None:
    """Fill a collection, measure and print."""
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        connection = stack.enter_context(open_connection(dsn, autocommit=True))
        store = stack.enter_context(connect(dsn, collection="near"))
        connection.execute(
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash, title) "
            "SELECT collection_id, 'https://a.example/' || n, "
            "CASE WHEN n <= %s THEN 0 ELSE hashint8extended(n / 2, 7) END, 'A title' "
            "FROM pgsimhash.collections, generate_series(1, %s) AS n WHERE name = 'near'",
            [HOT, pages],
        )
        connection.execute(
            "SELECT pgsimhash.add_simhashes('near', array_agg(simhash)) "
            "FROM (SELECT DISTINCT simhash FROM pgsimhash.pages) AS d"
        )
        connection.execute("VACUUM (ANALYZE)")
        numbers = np.random.default_rng(1).integers(HOT + 2, pages, QUERIES, dtype=np.uint64)
        for distance in (3, 8):

            def ask(number: int, distance: int = distance) -> None:
                assert store.near_pages(f"https://a.example/{number}", distance)

            middle, late = percentiles(ask, numbers)
            click.echo(f"by URL, {distance} bits: {middle:.2f} ms, 99th percentile {late:.2f} ms")
        for limit in (None, 10):
            started = time.perf_counter()
            found = len(store.near_pages(0, 3, limit=limit))
            took = (time.perf_counter() - started) * 1e3
            click.echo(f"{found:,} pages of one simhash: {took:.1f} ms")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        pairs = sum(1 for _ in analysis.page_pairs(store, 8))
        took = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        click.echo(
            f"{pairs:,} pairs of pages within 8 bits: {took:.1f} s, "
            f"peak memory {peak / 1e3:.0f} MB ({before / 1e3:.0f} MB before)"
        )


if __name__ == "__main__":
    main()
