"""Measure rebuilds of a collection: with another layout, other settings or another scheme.

    python bench/rebuilds.py [--dsn DSN] [--pages N]

Without --dsn an embedded server is started in a temporary folder. The collection is that of
bench/report.py, with 4 kB of Markdown per page. Each rebuild runs in its own process, whose peak
memory is printed too.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import click
import psycopg

from pgsimhash import connect, maintenance
from pgsimhash.html import read_article
from pgsimhash.schemes import Scheme, ShingleWeights, register_scheme

if TYPE_CHECKING:
    from bench.report import load
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from report import load
    from workload import database

SCHEME = register_scheme(Scheme("bench-words-1", read_article, ShingleWeights((1, 2)))).name

WORK: list[tuple[str, dict[str, Any]]] = [
    ("as it is", {}),
    ("another layout", {"layout": "16+16+16+16"}),
    ("reevaluate", {"reevaluate": True}),
    ("reevaluate, distance 3", {"distance": 3}),
    ("reevaluate, scope host", {"scope": "host"}),
    ("another scheme", {"scheme": SCHEME}),
]


def rebuild(dsn: str, name: str, what: str, options: dict[str, Any]) -> None:
    """Do one step and print its speed."""
    with connect(dsn, collection=name, create=False) as store:
        (pages,) = [one.pages for one in store.status() if one.collection == name]
        started = time.perf_counter()
        maintenance.rebuild(store, f"{name}-again", **options)
        seconds = time.perf_counter() - started
    with psycopg.connect(dsn, autocommit=True) as connection:
        swap = "SELECT pgsimhash.rename_collection(%s, %s, true)"
        connection.execute(swap, [name, f"{name}-again"])
        maintenance.delete_collection(connection, f"{name}-again")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{what}: {pages:,} pages, {pages / seconds:,.0f} a second, {peak} MB")


def in_a_process(dsn: str, work: Callable[..., None], *arguments: object) -> None:
    """Do a step in its own process, and clean up after it."""
    process = get_context("spawn").Process(target=work, args=(dsn, *arguments))
    process.start()
    process.join()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


@click.command()
@click.option("--dsn")
@click.option("--pages", default=100_000, show_default=True)
def main(dsn: str | None, pages: int) -> None:
    """Measure rebuilds of many pages."""
    with database(dsn) as where:
        name = f"bench-{time.time_ns()}"
        in_a_process(where, load, name, pages)
        for what, options in WORK:
            in_a_process(where, rebuild, name, what, options)


if __name__ == "__main__":
    main()
