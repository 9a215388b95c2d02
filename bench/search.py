"""Measure the search on random simhashes with planted near-duplicates, against its alternatives.

    python bench/search.py [--rows N]... [--added N] [--copy] [--dsn DSN] [--pages FOLDER]
        [--peers]

Without --dsn an embedded server is started in a temporary folder. --peers installs the peers from
PyPI into a temporary folder and runs them as well, at 3 and 8 bits, on the same simhashes with the
same planted copies; it fails if one gives other results. Every ratio is taken within the run.

Adding pages is measured for the later half of each writer's pages, when its cache may be filled,
and also from its start, including the time to fill the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from itertools import count as count_from
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import psycopg
from rich.console import Console
from rich.table import Table

from pgsimhash import Store, connect, find_pairs
from pgsimhash.db.connection import open_connection
from pgsimhash.pages.records import PageRecord
from pgsimhash.reading.workers import extract_many
from pgsimhash.sources import read_pages

if TYPE_CHECKING:
    from bench.peers import TASKS
    from bench.workload import Simhashes, database, load, near_copies, percentiles, random_simhashes
else:
    from peers import TASKS
    from workload import Simhashes, database, load, near_copies, percentiles, random_simhashes

COLLECTION = "default"
BATCH = 1000
HOT = 100_000
DISTANCES = (8, 3)
SEEDS = np.random.default_rng(3)
OURS = "pgsimhash"
PLANTED = 1000
PEER_ROWS = 100_000
"""Enough simhashes to compare libraries: one of them is pure Python."""


def write_new(job: tuple[str, int, int, int, int | None]) -> tuple[float, float]:
    """Add new pages in batches; return the times when half and all of them were stored."""
    dsn, seed, count, distance, memory = job
    values = random_simhashes(count, np.random.default_rng(seed))
    pages = ((f"https://w{seed}.example/{n}", int(v)) for n, v in enumerate(values))
    with connect(dsn, collection=COLLECTION, lookup_memory=memory) as store:
        added = store.add_many(pages, distance=distance)
        found = sum(verdict.verdict == "new" for verdict in islice(added, count // 2))
        half = time.monotonic()
        found += sum(verdict.verdict == "new" for verdict in added)
        # Some random ones are near by chance: 1.4% at 50 million and 8 bits.
        assert found > count * 0.97, f"{found} of {count} are new"
        return half, time.monotonic()


def measure_writers(
    dsn: str, writers: int, count: int, distance: int, memory: int | None
) -> tuple[float, float]:
    """Documents per second of writers, each in its own process: of all, and of the later halves."""
    seeds = SEEDS.integers(0, 2**31, writers).tolist()
    jobs = [(dsn, seed, count // writers, distance, memory) for seed in seeds]
    with get_context("spawn").Pool(writers) as pool:
        pool.map(abs, range(writers))
        started = time.monotonic()
        times = pool.map(write_new, jobs, chunksize=1)
    ends = max(end for _, end in times)
    return count / (ends - started), sum(count // writers / 2 / (end - half) for half, end in times)


def peer_input(values: Simhashes, distance: int) -> tuple[Simhashes, Simhashes]:
    """The input of every library: simhashes with planted near-duplicates, and queries."""
    known = values[:PEER_ROWS]
    planted = near_copies(known, PLANTED, distance, SEEDS)
    return np.unique(np.concatenate([known, planted])), near_copies(known, 1000, distance, SEEDS)


def run_library(task: str, library: str, folder: Path, given: Path, distance: int) -> Any:
    """Run one library in its own process; a peer is installed first."""
    target = folder / library
    if library != OURS and not target.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        subprocess.run([*pip, library], check=True, stdout=sys.stderr)
    script = str(Path(__file__).with_name("peers.py"))
    done = subprocess.run(
        [sys.executable, script, task, library, given, str(distance)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def measure_peers(values: Simhashes, folder: Path, table: Table) -> None:
    """Run all libraries on the same simhashes; their results must be equal."""
    for task, distance in product(TASKS, DISTANCES):
        known, queries = peer_input(values, distance)
        given = folder / "given.npz"
        np.savez(given, values=known, queries=queries)
        ours: Any = None
        for library in TASKS[task]:
            found = run_library(task, library, folder, given, distance)
            ours = ours or found
            check_same(task, library, ours, found)
            seconds = found["seconds"]
            ratio = seconds["search"] / ours["seconds"]["search"]
            others = [f"{step} {took:.2f} s" for step, took in seconds.items() if step != "search"]
            table.add_row(
                f"{task} among {len(known):,}, distance {distance}: {library}",
                f"{seconds['search']:.3f} s",
                f"{ratio:.1f} x ours; {', '.join(others)}; {found['answers']:,} answers, the same",
            )


def check_same(task: str, library: str, ours: Any, theirs: Any) -> None:
    """Refuse to compare the times of different or missing results."""
    if ours["digest"] != theirs["digest"] or ours["answers"] < PLANTED:
        raise click.ClickException(
            f"{task}: {library} gives {theirs['answers']:,} answers, and ours are "
            f"{ours['answers']:,}; they are not the same, or too few"
        )


def measure_hnsw(connection: psycopg.Connection, queries: Simhashes, table: Table) -> None:
    """pgvector's approximate index on the same rows: its latency and its recall."""
    if not connection.execute(
        "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone():
        return
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("SET maintenance_work_mem = '1GB'")
    started = time.perf_counter()
    connection.execute(
        "CREATE TABLE hnsw AS SELECT simhash::bit(64) AS bits FROM pgsimhash.simhashes"
    )
    connection.execute("CREATE INDEX ON hnsw USING hnsw (bits bit_hamming_ops)")
    built = time.perf_counter() - started
    found = 0

    def nearest(query: int) -> None:
        nonlocal found
        signed = query - 2**64 if query >= 2**63 else query
        row = connection.execute(
            "SELECT bits <~> %(q)s::bigint::bit(64) FROM hnsw "
            "ORDER BY bits <~> %(q)s::bigint::bit(64) LIMIT 1",
            {"q": signed},
        ).fetchone()
        found += row is not None and row[0] <= 3

    middle, slow = percentiles(nearest, queries)
    connection.execute("DROP TABLE hnsw")
    table.add_row("pgvector HNSW, build", f"{built:.1f} s", "")
    table.add_row(
        "pgvector HNSW, nearest one",
        f"{middle:.2f} ms (p99 {slow:.2f})",
        f"recall {found / len(queries):.3f}",
    )


def measure_real(store: Store, folder: str, table: Table) -> None:
    """Lookups of the simhashes of real pages with their near-duplicates."""
    records = extract_many(read_pages([folder]), jobs=os.cpu_count() or 1)
    known = np.array([made.simhash for made in records if isinstance(made, PageRecord)], np.uint64)
    store.add_simhashes(known)
    queries = np.random.default_rng(2).permutation(known)[:500]
    for distance in (3, 8):
        found = sum(len(store.find(int(query), distance)) for query in queries[:100])
        middle, slow = percentiles(partial(store.find, distance=distance), queries)
        table.add_row(
            f"find of {len(known):,} real pages, distance {distance}",
            f"{middle:.2f} ms (p99 {slow:.2f})",
            f"{found / 100:.1f} matches each",
        )


def measure_hot(store: Store, values: Simhashes, rng: np.random.Generator, table: Table) -> None:
    """Other lookups before and after many pages share one simhash, or simhashes one prefix."""
    queries = near_copies(values, 500, 3, rng)
    before, _ = percentiles(partial(store.find, distance=3), queries)
    hot = int(rng.integers(0, 2**64, dtype=np.uint64))
    list(store.add_many((f"https://hot.example/{n}", hot) for n in range(HOT)))
    after, _ = percentiles(partial(store.find, distance=3), queries)
    itself, _ = percentiles(partial(store.find, distance=3), np.full(100, hot, dtype=np.uint64))
    table.add_row(
        f"find beside {HOT:,} pages with one simhash",
        f"{after:.2f} ms",
        f"{after / before:.2f} x before; that simhash itself {itself:.2f} ms",
    )
    prefix = np.uint64(hot) & np.uint64(0xFFFF << 48)
    crowd = np.unique(rng.integers(0, 2**48, HOT, dtype=np.uint64)) | prefix
    store.add_simhashes(crowd)
    after, _ = percentiles(partial(store.find, distance=3), queries)
    itself, _ = percentiles(partial(store.find, distance=3), near_copies(crowd, 100, 3, rng))
    table.add_row(
        f"find beside {HOT:,} simhashes with 16 bits in common",
        f"{after:.2f} ms",
        f"{after / before:.2f} x before; those themselves {itself:.2f} ms",
    )


def measure_lookups(
    store: Store, values: Simhashes, scanned: float, when: str, table: Table
) -> None:
    """Single and batched lookups of near-duplicates of stored simhashes."""
    for distance in DISTANCES:
        queries = near_copies(values, 500, distance, SEEDS)
        missed = sum(not store.find(int(query), distance) for query in queries[:100])
        middle, slow = percentiles(partial(store.find, distance=distance), queries)
        table.add_row(
            f"find, distance {distance}, {when}",
            f"{middle:.2f} ms (p99 {slow:.2f})",
            f"{scanned / middle:,.0f} x the scan, {missed} missed",
        )
        many = near_copies(values, 4 * BATCH, distance, SEEDS)
        rate = many_a_second(store, many, distance)
        table.add_row(
            f"find_many, distance {distance}, {when}",
            f"{rate:,.0f} lookups/s",
            f"{rate * middle / 1e3:.1f} x one by one",
        )


def many_a_second(store: Store, queries: Simhashes, distance: int) -> float:
    started = time.perf_counter()
    for start in range(0, len(queries), BATCH):
        store.find_many(queries[start : start + BATCH], distance)
    return len(queries) / (time.perf_counter() - started)


def measure_memory(dsn: str, values: Simhashes, table: Table) -> None:
    """The same lookups by a store with a filled cache."""
    with connect(dsn, collection=COLLECTION) as store:
        started = time.perf_counter()
        with store.session.read() as connection:
            store.session.memory.take_in(connection, store.opened)
        read = time.perf_counter() - started
        rows = f"{len(values) / read:,.0f} rows/s"
        table.add_row("all simhashes read into memory", f"{read:.1f} s", rows)
        for distance in DISTANCES:
            many = near_copies(values, 10 * BATCH, distance, SEEDS)
            rate = many_a_second(store, many, distance)
            table.add_row(
                f"find_many, distance {distance}, in memory", f"{rate:,.0f} lookups/s", ""
            )


def measure_adding(dsn: str, added: int, table: Table) -> None:
    """Insert-if-new: one page at a time, and in batches by several writers."""
    few = random_simhashes(300, SEEDS)
    with connect(dsn, collection=COLLECTION) as store:
        urls = (f"https://one.example/{n}" for n in count_from(0))
        middle, slow = percentiles(lambda value: store.add(next(urls), value), few)
        table.add_row(
            "add, one page at a time", f"{1e3 / middle:,.0f} docs/s", f"p99 {slow:.2f} ms"
        )
    for distance in DISTANCES:
        asked, _ = measure_writers(dsn, 1, min(added, 5_000), distance, 0)
        table.add_row(f"add_many, distance {distance}, by SQL alone", f"{asked:,.0f} docs/s", "")
        base = 0.0
        for writers in (1, 2, 4):
            whole, later = measure_writers(dsn, writers, added, distance, None)
            base = base or later
            table.add_row(
                f"add_many, distance {distance}, {writers} writers",
                f"{later:,.0f} docs/s",
                f"{later / base:.2f} x one, {later / asked:.1f} x SQL; {whole:,.0f} from the start",
            )


@click.command()
@click.option("--rows", "sizes", multiple=True, default=[1_000_000], show_default=True)
@click.option("--dsn", help="An empty database; with one size only.")
@click.option("--added", default=80_000, show_default=True, help="Pages that writers add together.")
@click.option("--copy", is_flag=True, help="Load into indexes that are there, as a table grows.")
@click.option("--hnsw/--no-hnsw", default=True, help="Build pgvector's index for comparison.")
@click.option("--pages", type=click.Path(exists=True), help="Real pages to look up too.")
@click.option("--peers/--no-peers", default=False, help="Install and run peers from PyPI.")
def main(sizes: tuple[int, ...], **asked: Any) -> None:
    """Measure and print a table for each size."""
    for rows in sizes:
        table = Table("what", "measured", "compared", title=f"{rows:,} simhashes")
        try:
            measure(table, rows, **asked)
        finally:
            Console(width=110).print(table)


def measure(
    table: Table,
    rows: int,
    dsn: str | None,
    added: int,
    copy: bool,
    hnsw: bool,
    pages: str | None,
    peers: bool,
) -> None:
    rng = np.random.default_rng(1)
    values = random_simhashes(rows, rng)
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        connection = stack.enter_context(open_connection(dsn, autocommit=True))
        store = stack.enter_context(connect(dsn, collection=COLLECTION, lookup_memory=0))
        started = time.perf_counter()
        load(connection, values) if copy else store.add_simhashes(values)
        seconds = time.perf_counter() - started
        way = "COPY into indexes" if copy else "add_simhashes"
        table.add_row(f"load by {way}", f"{seconds:.1f} s", f"{rows / seconds:,.0f} rows/s")

        def scan(query: int) -> None:
            connection.execute(
                "SELECT simhash FROM pgsimhash.simhashes "
                "WHERE bit_count((simhash # %s)::bit(64)) <= 3",
                [query - 2**64 if query >= 2**63 else query],
            ).fetchall()

        scanned, _ = percentiles(scan, near_copies(values, 10, 3, rng))
        table.add_row("sequential scan", f"{scanned:.0f} ms", "the user's own query")
        measure_lookups(store, values, scanned, "just loaded", table)
        size = "SELECT pg_total_relation_size('pgsimhash.simhashes')"
        states = [("as loaded", "VACUUM ANALYZE"), ("indexes rebuilt", "REINDEX TABLE")]
        for what, statement in states[: 1 + copy]:
            connection.execute(f"{statement} pgsimhash.simhashes")
            (total,) = connection.execute(size).fetchone() or (0,)
            table.add_row(f"bytes a row, {what}", f"{total / rows:.0f}", "")
        measure_lookups(store, values, scanned, "after vacuum", table)
        measure_memory(dsn, values, table)
        queries = near_copies(values, 500, 3, rng)
        for what, some in (("known", queries), ("unknown", random_simhashes(500, rng))):
            middle, _ = percentiles(partial(store.exists, distance=3), some)
            table.add_row(f"exists, distance 3, {what}", f"{1e3 / middle:,.0f} /s", "")
        if pages is not None:
            measure_real(store, pages, table)
        if hnsw:
            measure_hnsw(connection, queries, table)
        measure_adding(dsn, added, table)
        measure_hot(store, values, rng, table)
        started = time.process_time()
        pairs = find_pairs(np.concatenate([values, near_copies(values, 1000, 3, rng)]), 3)
        ours = time.process_time() - started
        table.add_row("find_pairs, distance 3", f"{ours:.2f} s", f"{len(pairs.low):,} pairs")
        if peers:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            measure_peers(values, folder, table)


if __name__ == "__main__":
    main()
