"""Measure Spark on this machine: all pairs and a batch, with the results of the search in memory.

    python bench/spark.py [--rows N] [--hot N] [--distance K] [--cores N]

Simhashes are random, one in a hundred with a copy within the distance; ``--hot`` of them share
their first 24 bits. Needs the extra ``spark``, and Java.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from pyspark.sql import SparkSession

from pgsimhash import find_pairs
from pgsimhash.batch import parquet, spark
from pgsimhash.search.memory_index import BlockIndex

if TYPE_CHECKING:
    from bench.workload import near_copies, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import near_copies, random_simhashes

BATCH = 10_000


@click.command()
@click.option("--rows", default=5_000_000, show_default=True)
@click.option("--hot", default=200_000, show_default=True)
@click.option("--distance", default=3, show_default=True)
@click.option("--cores", default=2, show_default=True)
def main(rows: int, hot: int, distance: int, cores: int) -> None:
    """Generate simhashes, find pairs, matches and clusters, and compare."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    rng = np.random.default_rng(1)
    values = random_simhashes(rows, rng)
    values[:hot] = values[:hot] >> np.uint64(24) | np.uint64(0xABCDEF << 40)
    rng.shuffle(values)
    values = np.concatenate([values, near_copies(values, rows // 100, distance, rng)])
    started = time.perf_counter()
    expected = find_pairs(values, distance)
    click.echo(f"memory: {len(expected.low):,} pairs in {time.perf_counter() - started:.1f} s")

    started = time.perf_counter()
    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "32")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    click.echo(f"Spark {session.version} starts in {time.perf_counter() - started:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "simhashes.parquet")
        parquet.write_simhashes(path, values)
        corpus = spark.read_simhashes(session, path)

        started = time.perf_counter()
        pairs = spark.pairs(corpus, distance)
        pairs.write.parquet(f"{folder}/pairs")
        took = time.perf_counter() - started
        written = session.read.parquet(f"{folder}/pairs")
        sides = [
            np.concatenate(list(spark.arrays(written, column=side))) for side in ("low", "high")
        ]
        found = np.stack(sides)
        order = np.lexsort((found[1], found[0]))
        same = np.array_equal(found[:, order], np.stack([expected.low, expected.high]))
        click.echo(f"Spark: {found.shape[1]:,} pairs in {took:.1f} s; the same: {same}")

        started = time.perf_counter()
        joined = spark.clusters(written)
        count = joined.select("cluster").distinct().count()
        click.echo(f"Spark: {count:,} clusters in {time.perf_counter() - started:.1f} s")

        batch = np.unique(near_copies(values, BATCH, 2, rng))
        parquet.write_simhashes(f"{folder}/batch.parquet", batch)
        started = time.perf_counter()
        matches = spark.find(
            spark.read_simhashes(session, f"{folder}/batch.parquet"), corpus, distance
        ).count()
        took = time.perf_counter() - started
        near = len(BlockIndex(values).near(batch, distance).queries)
        click.echo(
            f"Spark: {matches:,} matches of {len(batch):,} in {took:.1f} s; "
            f"the same: {matches == near}"
        )
    session.stop()
    if not same or matches != near:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
