"""Measure the search on random simhashes with planted near-copies, against its alternatives.

python bench/search.py [--rows N] [--dsn DSN] [--pages FOLDER] [--peers]

Without --dsn an embedded server is started in a temporary folder. --peers installs the peers
from PyPI into a temporary folder and runs them as well. Every ratio is taken within the run.
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
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import psycopg
from rich.console import Console
from rich.table import Table

from pgsimhash import Store, connect, find_pairs
from pgsimhash.connection import open_connection
from pgsimhash.records import PageRecord
from pgsimhash.sources import read_pages
from pgsimhash.workers import extract_many

if TYPE_CHECKING:
    from bench.workload import Simhashes, database, load, near_copies, percentiles, random_simhashes
else:
    from workload import Simhashes, database, load, near_copies, percentiles, random_simhashes

COLLECTION = "default"
BATCH = 1000
HOT = 100_000
PEERS = {"simhash-pybind": "simhash-pybind", "leonsim": "simhash", "faiss": "faiss-cpu"}
"""What bench/peers.py knows, and what to install for each."""


def write_new(job: tuple[str, int, int, int]) -> int:
    """Add pages that are new, in batches; the work of one writer."""
    dsn, writer, count, seed = job
    values = random_simhashes(count, np.random.default_rng(seed))
    with open_connection(dsn, autocommit=True) as connection:
        store = connect(connection, collection=COLLECTION)
        pages = ((f"https://w{writer}.example/{n}", int(v)) for n, v in enumerate(values))
        return sum(verdict.verdict == "new" for verdict in store.add_many(pages, distance=3))


def measure_writers(dsn: str, writers: int, count: int, seed: int) -> float:
    """Documents a second of several writers together, each in a process of its own."""
    jobs = [(dsn, seed * 10 + n, count // writers, seed * 10 + n) for n in range(writers)]
    with get_context("spawn").Pool(writers) as pool:
        pool.map(abs, range(writers))
        started = time.perf_counter()
        pool.map(write_new, jobs, chunksize=1)
        return count / (time.perf_counter() - started)


def run_peer(peer: str, folder: Path, values: Path, distance: int) -> dict[str, float]:
    """Install a peer and run it in a process of its own."""
    target = folder / peer
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    subprocess.run([*pip, PEERS[peer]], check=True, stdout=sys.stderr)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("peers.py"), peer, values, str(distance)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure_hnsw(connection: psycopg.Connection, queries: Simhashes, table: Table) -> None:
    """pgvector's approximate index on the same rows: its latency and what it finds."""
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
    """Lookups of the simhashes of pages, whose near-copies are what they are."""
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


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--dsn")
@click.option("--hnsw/--no-hnsw", default=True, help="Build pgvector's index for comparison.")
@click.option("--pages", type=click.Path(exists=True), help="Real pages to look up too.")
@click.option("--peers/--no-peers", default=False, help="Install and run peers from PyPI.")
def main(rows: int, dsn: str | None, hnsw: bool, pages: str | None, peers: bool) -> None:
    """Measure and print one table."""
    rng = np.random.default_rng(1)
    values = random_simhashes(rows, rng)
    table = Table("what", "measured", "compared", title=f"{rows:,} simhashes")
    with ExitStack() as stack:
        dsn = stack.enter_context(database(dsn))
        connection = stack.enter_context(open_connection(dsn, autocommit=True))
        store = connect(connection, collection=COLLECTION)
        started = time.perf_counter()
        load(connection, values)
        seconds = time.perf_counter() - started
        table.add_row("load by COPY", f"{seconds:.1f} s", f"{rows / seconds:,.0f} rows/s")
        size = "SELECT pg_total_relation_size('pgsimhash.simhashes')"
        for what, statement in (("grown", "VACUUM ANALYZE"), ("indexes rebuilt", "REINDEX TABLE")):
            connection.execute(f"{statement} pgsimhash.simhashes")
            (total,) = connection.execute(size).fetchone() or (0,)
            table.add_row(f"bytes a row, {what}", f"{total / rows:.0f}", "")

        def scan(query: int) -> None:
            connection.execute(
                "SELECT simhash FROM pgsimhash.simhashes "
                "WHERE bit_count((simhash # %s)::bit(64)) <= 3",
                [query - 2**64 if query >= 2**63 else query],
            ).fetchall()

        scanned, _ = percentiles(scan, near_copies(values, 10, 3, rng))
        table.add_row("sequential scan", f"{scanned:.0f} ms", "the user's own query")
        for distance in (3, 5, 8):
            queries = near_copies(values, 500, distance, rng)
            missed = sum(not store.find(int(q), distance) for q in queries[:100])
            middle, slow = percentiles(partial(store.find, distance=distance), queries)
            table.add_row(
                f"find, distance {distance}",
                f"{middle:.2f} ms (p99 {slow:.2f})",
                f"{scanned / middle:,.0f} x the scan, {missed} missed",
            )
        queries = near_copies(values, 10 * BATCH, 3, rng)
        one_by_one, _ = percentiles(partial(store.find, distance=3), queries[:500])
        for distance in (3, 8):
            started = time.perf_counter()
            for start in range(0, len(queries), BATCH):
                store.find_many(queries[start : start + BATCH], distance)
            rate = len(queries) / (time.perf_counter() - started)
            compared = f"{rate * one_by_one / 1e3:.1f} x one by one" if distance == 3 else ""
            table.add_row(f"find_many, distance {distance}", f"{rate:,.0f} lookups/s", compared)
        for what, some in (("known", queries[:500]), ("unknown", random_simhashes(500, rng))):
            middle, _ = percentiles(partial(store.exists, distance=3), some)
            table.add_row(f"exists, distance 3, {what}", f"{1e3 / middle:,.0f} /s", "")
        if pages is not None:
            measure_real(store, pages, table)
        measure_hot(store, values, rng, table)
        if hnsw:
            measure_hnsw(connection, near_copies(values, 500, 3, rng), table)
        base = 0.0
        for writers in (1, 2, 4):
            rate = measure_writers(dsn, writers, 20_000, writers)
            base = base or rate
            table.add_row(
                f"add_many, {writers} writers", f"{rate:,.0f} docs/s", f"{rate / base:.2f} x one"
            )
        started = time.process_time()
        pairs = find_pairs(np.concatenate([values, near_copies(values, 1000, 3, rng)]), 3)
        ours = time.process_time() - started
        table.add_row("find_pairs, distance 3", f"{ours:.2f} s", f"{len(pairs.low):,} pairs")
        if peers:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            path = folder / "values.npy"
            np.save(path, values)
            for peer in PEERS:
                for what, figure in run_peer(peer, folder, path, 3).items():
                    ratio = f"{figure / ours:.1f} x ours" if what == "all pairs s" else ""
                    table.add_row(f"{peer}: {what}", f"{figure:,.3f}", ratio)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
