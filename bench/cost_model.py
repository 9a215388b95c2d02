"""Measure what a lookup costs in every layout, and fit the constants of the planner.

python bench/cost_model.py [--rows N] [--dsn DSN]

Prints the measured and the fitted milliseconds of each layout and distance, and the constants for
pgsimhash/search/layout_costs.py: per call, per permutation, per
condition of a permutation on those before it, per probe, per candidate.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click
import numpy as np
import psycopg
from rich.console import Console
from rich.table import Table

from pgsimhash.db.connection import open_connection
from pgsimhash.search.layout import LAYOUTS, Layout
from pgsimhash.search.layout_costs import expected_candidates
from pgsimhash.store import connect

if TYPE_CHECKING:
    from bench.workload import database, load, near_copies, percentiles, random_simhashes
else:
    from workload import database, load, near_copies, percentiles, random_simhashes

QUERIES = 100
PROBES_MAX = 7_000


def measure(
    connection: psycopg.Connection, layout: Layout, distance: int, queries: list[int]
) -> float:
    """Milliseconds of one lookup, from the prepared statement of one client."""
    statement = "SELECT * FROM pgsimhash.near_duplicates(%s::bigint, %s, %s)"

    def run(query: int) -> None:
        signed = query - 2**64 if query >= 2**63 else query
        connection.execute(statement, [signed, distance, layout.name], prepare=True).fetchall()

    middle, _ = percentiles(run, np.array(queries, dtype=np.uint64))
    return middle


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--dsn")
def main(rows: int, dsn: str | None) -> None:
    """Measure, fit and print."""
    rng = np.random.default_rng(1)
    values = random_simhashes(rows, rng)
    table = Table(
        "layout", "k", "probes", "candidates", "ms", "fitted", title=f"{rows:,} simhashes"
    )
    measured, parts, labels = [], [], []
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        connection = stack.enter_context(open_connection(dsn, autocommit=True))
        connection.execute("SET maintenance_work_mem = '1GB'")
        for layout in LAYOUTS.values():
            started = time.perf_counter()
            store = connect(connection, collection=layout.name, layout=layout.name)
            (number,) = connection.execute(
                "SELECT collection_id FROM pgsimhash.collections WHERE name = %s",
                [store.collection],
            ).fetchone() or (0,)
            load(connection, values, layout.table, number)
            connection.execute(f"REINDEX TABLE pgsimhash.{layout.table}")
            connection.execute(f"VACUUM ANALYZE pgsimhash.{layout.table}")
            click.echo(f"{layout.name}: {time.perf_counter() - started:.0f} s to load", err=True)
            for distance in layout.distances:
                if layout.probes(distance) > PROBES_MAX:
                    continue
                queries = near_copies(values, QUERIES, distance, rng).tolist()
                candidates = expected_candidates(layout, rows, distance)
                measured.append(measure(connection, layout, distance, queries))
                columns = len(layout.permutations)
                conditions = columns * (columns - 1) / 2
                parts.append([1, columns, conditions, layout.probes(distance), candidates])
                labels.append((layout.name, distance))
            connection.execute(f"TRUNCATE pgsimhash.{layout.table}")
    target, matrix = np.array(measured), np.array(parts, dtype=np.float64)
    # Relative errors: a lookup of 0.1 ms counts as much as one of 10 ms.
    weights = 1 / target
    constants = np.linalg.lstsq(matrix * weights[:, np.newaxis], np.ones(len(target)), rcond=None)[
        0
    ]
    for (name, distance), row, ms, fitted in zip(
        labels, parts, measured, matrix @ constants, strict=True
    ):
        table.add_row(
            name, str(distance), f"{row[3]:,}", f"{row[4]:,.1f}", f"{ms:.3f}", f"{fitted:.3f}"
        )
    Console(width=110).print(table)
    names = ("CALL_MS", "PERMUTATION_MS", "CONDITION_MS", "PROBE_MS", "CANDIDATE_MS")
    for name, constant in zip(names, constants, strict=True):
        click.echo(f"{name} = {constant:.6f}")


if __name__ == "__main__":
    main()
