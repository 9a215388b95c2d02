"""Go through a collection again: verdicts on other terms, and simhashes of another scheme.

python bench/reruns.py [--dsn DSN] [--pages N]

Without --dsn an embedded server is started in a temporary folder. The collection is that of
bench/report.py, with 4 kB of Markdown a page. Each rerun is a process of its own, whose peak memory
is printed too.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import TYPE_CHECKING

import click
import psycopg

from pgsimhash import connect, maintenance
from pgsimhash.terms import Options

if TYPE_CHECKING:
    from bench.report import load
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from report import load
    from workload import database

SCHEME = "pgsimhash-interop-1"

WORK: list[tuple[str, Options]] = [
    ("rejudge", {}),
    ("rejudge", {"distance": 3}),
    ("rejudge", {"scope": "host"}),
    ("rejudge and save", {"distance": 3}),
    ("refingerprint", {}),
]


def rerun(dsn: str, name: str, what: str, options: Options) -> None:
    """Do one piece of work and print its speed."""
    with connect(dsn, collection=name, create=False) as store:
        started = time.perf_counter()
        verdicts = (
            maintenance.refingerprint(store, f"{name}-again", SCHEME, approximate=True, **options)
            if what == "refingerprint"
            else maintenance.rejudge(store, save=what.endswith("save"), **options)
        )
        pages = sum(1 for _ in verdicts)
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    asked = "".join(f", {name} {value}" for name, value in options.items())
    print(f"{what}{asked}: {pages:,} pages, {pages / seconds:,.0f} a second, {peak} MB")


def in_a_process(dsn: str, work: Callable[..., None], *arguments: object) -> None:
    """Do some work in a process of its own, and tidy up after it."""
    process = get_context("spawn").Process(target=work, args=(dsn, *arguments))
    process.start()
    process.join()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


@click.command()
@click.option("--dsn")
@click.option("--pages", default=100_000, show_default=True)
def main(dsn: str | None, pages: int) -> None:
    """Measure rejudge and refingerprint over many pages."""
    with database(dsn) as where:
        name = f"bench-{time.time_ns()}"
        in_a_process(where, load, name, pages)
        for what, options in WORK:
            in_a_process(where, rerun, name, what, options)


if __name__ == "__main__":
    main()
