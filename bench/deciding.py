"""Measure the cost of a dry run of a verdict, relative to its lookup.

    python bench/deciding.py FOLDER [--dsn DSN] [--rows N] [--rounds N]

Every page under FOLDER is decided about, and fingerprinted and looked up, alternately: once from
its bytes, like in a crawler, and once for the statements alone. The collection has random simhashes
besides the pages.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from pgsimhash import connect, fingerprint
from pgsimhash.errors import PageError
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.records import PageRecord
from pgsimhash.reading.workers import extract
from pgsimhash.sources import SourcePage, read_pages
from pgsimhash.store.writer import evaluate_batch

if TYPE_CHECKING:
    from bench.workload import database
else:  # A script finds its neighbours under their own names.
    from workload import database

DISTANCE = 8


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turn(
    number: int, one: Callable[[], object], other: Callable[[], object]
) -> tuple[float, float]:
    """The seconds of both; the first one runs first if ``number`` is even."""
    if number % 2:
        second = timed(other)
        return timed(one), second
    return timed(one), timed(other)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--dsn")
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--rounds", default=20, show_default=True)
def main(folder: Path, dsn: str | None, rows: int, rounds: int) -> None:
    """Measure decide() against fingerprint() and find()."""
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        store = stack.enter_context(connect(dsn, collection=f"bench-{time.time_ns()}"))
        rng = np.random.default_rng(0)
        store.add_simhashes(rng.integers(0, 2**64, rows, dtype=np.uint64))
        pages = [page for page in read_pages([folder]) if isinstance(page, SourcePage)]
        for _ in store.ingest_many(pages):
            pass
        with store.session.read() as connection:
            connection.execute("VACUUM (ANALYZE)")
        whole: list[tuple[float, float]] = []
        alone: list[tuple[float, float]] = []

        def look_up(page: SourcePage) -> None:
            try:
                made = fingerprint(page.html, page.url, charset=page.charset)
            except PageError:
                return
            store.find(made.simhash, DISTANCE, signature=made.signature)

        def judge(record: PageRecord) -> None:
            with store.session.read() as connection:
                evaluate_batch(
                    connection, store.opened, [record], [MatchSettings(DISTANCE)], by_policies=False
                )

        records = [extract(page) for page in pages]

        def decide(page: SourcePage) -> None:
            store.decide(page.url, page.html)

        def find(record: PageRecord) -> None:
            store.find(record.simhash, DISTANCE, signature=record.signature)

        # The second one finds the index in memory, so the two alternate.
        for number in range(rounds):
            for page, record in zip(pages, records, strict=True):
                whole.append(in_turn(number, partial(decide, page), partial(look_up, page)))
                if isinstance(record, PageRecord):
                    alone.append(in_turn(number, partial(judge, record), partial(find, record)))
    for name, times in (("from the bytes", whole), ("the statements", alone)):
        decided, found = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        ratio = statistics.median(one / other for one, other in times)
        print(f"{name}: decide {decided:.2f} ms, find {found:.2f} ms, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
