"""Measure all pairs on disk: time, memory and growth; every planted pair must be found.

    python bench/all_pairs.py [--rows N]... [--distance K] [--memory MB] [--folder FOLDER]
        [--duckdb]

Simhashes are random, one in a hundred with a copy within the distance. Each size runs in its own
process, so its peak memory is its own. With ``--duckdb``, which must be installed, DuckDB joins
them by the same blocks.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import numpy as np
from numpy.typing import NDArray

from pgsimhash.batch.pairs_on_disk import pairs_on_disk
from pgsimhash.search.prefix_pairs import layout_for

if TYPE_CHECKING:
    from bench.workload import near_copies, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import near_copies, random_simhashes

CHUNK = 1_000_000
SHARE = 100


def arrays(rows: int, distance: int) -> Iterator[NDArray[np.uint64]]:
    """The simhashes; the copies are at the end of each array."""
    for start in range(0, rows, CHUNK):
        rng = np.random.default_rng(start)
        originals = random_simhashes(min(CHUNK, rows - start), rng)
        bits = [0, distance, max(1, distance - 1)]
        copies = [near_copies(originals, len(originals) // SHARE // 3, bit, rng) for bit in bits]
        yield np.concatenate([originals, *copies])


def measure(rows: int, distance: int, memory: int, folder: str | None) -> None:
    """Find the pairs and print the measurements."""
    sizes = [min(CHUNK, rows - start) for start in range(0, rows, CHUNK)]
    planted = sum(2 * (size // SHARE // 3) for size in sizes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            click.echo(f"{rows:,}: {done / total:.0%}", err=True)

    with tempfile.TemporaryDirectory(dir=folder) as home:
        started = time.perf_counter()
        pairs = pairs_on_disk(
            arrays(rows, distance), home, distance, memory=memory, progress=progress
        )
        prepared = time.perf_counter() - started
        found = sum(len(block.low) for block in pairs)
        took = time.perf_counter() - started
        started = time.perf_counter()
        again = sum(
            len(block.low)
            for block in pairs_on_disk(arrays(rows, distance), home, distance, memory=memory)
        )
        assert again == found
        repeated = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    click.echo(
        f"{rows:,} simhashes, {distance} bits: {found:,} pairs ({planted:,} planted) in "
        f"{took:.0f} s, {prepared:.0f} s of it to make and sort them; from the folder again "
        f"{repeated:.0f} s; peak memory {peak / 1e3:.0f} MB ({before / 1e3:.0f} MB before)"
    )


def measure_duckdb(rows: int, distance: int, memory: int, folder: str | None) -> None:
    """Join simhashes by the prefixes of the same permutations, and print the measurements."""
    import duckdb
    import pyarrow as pa

    layout = layout_for(distance, rows)
    found = 0
    with tempfile.TemporaryDirectory(dir=folder) as home:
        connection = duckdb.connect(f"{home}/simhashes.db")
        connection.execute(f"SET memory_limit = '{memory >> 20}MiB'; SET threads = 1")
        connection.execute("SET preserve_insertion_order = false; CREATE TABLE t (s UBIGINT)")
        for array in arrays(rows, distance):
            connection.register("arrived", pa.table({"s": np.unique(array)}))
            connection.execute("INSERT INTO t SELECT s FROM arrived")
        started = time.perf_counter()
        for permutation in layout.permutations:
            last = min(block.shift for block in permutation.leading)
            key = " | ".join(
                f"(((s >> {block.shift}) & {block.mask}) << {place})"
                for block, place in permutation.places
            )
            new = "".join(
                f" AND (xor(x.s, y.s) & {block.mask << block.shift}::UBIGINT) <> 0"
                for block in layout.blocks
                if block.shift > last and block not in permutation.leading
            )
            query = (
                f"WITH k AS (SELECT s, {key} AS key FROM t) SELECT count(*) "
                "FROM k AS x JOIN k AS y ON x.key = y.key AND x.s < y.s "
                f"WHERE bit_count(xor(x.s, y.s)) <= {distance}{new}"
            )
            (count,) = connection.execute(query).fetchone() or (0,)
            found += count
        took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    click.echo(f"{rows:,} in DuckDB: {found:,} pairs in {took:.0f} s; {peak / 1e3:.0f} MB")


@click.command()
@click.option("--rows", multiple=True, type=int, default=(1_000_000, 10_000_000))
@click.option("--distance", default=3, show_default=True)
@click.option("--memory", default=4096, show_default=True, help="Megabytes for simhashes.")
@click.option("--folder", help="Where the work is kept meanwhile.")
@click.option("--duckdb", is_flag=True, help="By DuckDB, to compare.")
def main(
    rows: tuple[int, ...], distance: int, memory: int, folder: str | None, duckdb: bool
) -> None:
    """Measure each size in its own process."""
    for number in rows:
        process = multiprocessing.get_context("spawn").Process(
            target=measure_duckdb if duckdb else measure,
            args=(number, distance, memory << 20, folder),
        )
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)


if __name__ == "__main__":
    main()
