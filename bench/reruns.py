"""Go through a collection again: verdicts on other terms, and simhashes of another scheme.

python bench/reruns.py [--dsn DSN] [--pages N]

Without --dsn an embedded server is started in a temporary folder. The collection is that of
bench/report.py, with 4 kB of Markdown a page. Each rerun is a process of its own, whose peak memory
is printed too.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import click
import psycopg
from report import load

from pgsimhash import connect, migrate, server
from pgsimhash.terms import Options

SCHEME = "pgsimhash-blog-words-1"

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
            store.refingerprint(f"{name}-again", SCHEME, **options)
            if what == "refingerprint"
            else store.rejudge(save=what.endswith("save"), **options)
        )
        pages = sum(1 for _ in verdicts)
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{what} {options or ''}: {pages:,} pages, {pages / seconds:,.0f} a second, {peak} MB")


@click.command()
@click.option("--dsn")
@click.option("--pages", default=100_000, show_default=True)
def main(dsn: str | None, pages: int) -> None:
    """Measure rejudge and refingerprint over many pages."""
    with ExitStack() as stack:
        if dsn is None:
            home = Path(tempfile.mkdtemp(prefix="pgsimhash-bench-"))
            stack.callback(shutil.rmtree, home, ignore_errors=True)
            dsn = server.start(home)
        migrate.upgrade(dsn)
        name = f"bench-{time.time_ns()}"
        processes = get_context("spawn")
        work = [(load, (dsn, name, pages))]
        work += [(rerun, (dsn, name, what, options)) for what, options in WORK]
        for target, arguments in work:
            process = processes.Process(target=target, args=arguments)
            process.start()
            process.join()
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("VACUUM (ANALYZE)")


if __name__ == "__main__":
    main()
