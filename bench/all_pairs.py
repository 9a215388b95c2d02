"""Measure all pairs in memory: time and peak memory; every planted pair must be found.

    python bench/all_pairs.py [--rows N]... [--distance K]

Simhashes are random, one in a hundred with a copy within the distance. Each size runs in its own
process, so its peak memory is its own.
"""

import multiprocessing
import resource
import sys
import time
from pathlib import Path

import click
import numpy as np

from pgsimhash import find_pairs

sys.path.append(str(Path(__file__).parents[1]))

from bench.workload import near_copies, random_simhashes

SHARE = 100


def measure(rows: int, distance: int) -> None:
    """Find the pairs and print the measurements."""
    rng = np.random.default_rng(rows)
    simhashes = np.empty(rows, dtype=np.uint64)
    copies = rows // SHARE
    simhashes[copies:] = random_simhashes(rows - copies, rng)
    simhashes[:copies] = near_copies(simhashes[copies:], copies, distance, rng)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    found = len(find_pairs(simhashes, distance).low)
    took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert found >= copies
    click.echo(
        f"{rows:,} simhashes, {distance} bits: {found:,} pairs ({copies:,} planted) in "
        f"{took:.0f} s; peak memory {peak / 1e3:,.0f} MB ({before / 1e3:,.0f} MB before)"
    )


@click.command()
@click.option("--rows", multiple=True, type=int, default=(1_000_000, 10_000_000))
@click.option("--distance", default=3, show_default=True)
def main(rows: tuple[int, ...], distance: int) -> None:
    """Measure each size in its own process."""
    for number in rows:
        process = multiprocessing.get_context("spawn").Process(
            target=measure, args=(number, distance)
        )
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)


if __name__ == "__main__":
    main()
