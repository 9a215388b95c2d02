"""Measure archives: bytes per simhash, the theoretical minimum, and the search by a batch.

python bench/archive.py [--rows N]...
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from pgsimhash.batch import parquet

if TYPE_CHECKING:
    from bench.workload import Simhashes, near_copies, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import Simhashes, near_copies, random_simhashes

SEARCHED = 10_000_000


def with_copies(originals: Simhashes, rng: np.random.Generator) -> Simhashes:
    """Simhashes, each with a copy in which 1 to 3 bits are flipped."""
    copies, changed = originals.copy(), rng.integers(1, 4, len(originals))
    for bit in range(3):
        flips = np.uint64(1) << rng.integers(0, 64, len(originals), dtype=np.uint64)
        copies ^= np.where(changed > bit, flips, np.uint64(0))
    return np.concatenate([originals, copies])


@click.command()
@click.option("--rows", multiple=True, type=int, default=(1_000_000, SEARCHED))
def main(rows: tuple[int, ...]) -> None:
    """Write archives, search one, and print."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.parquet"
        for count in rows:
            values = random_simhashes(count, rng)
            started = time.perf_counter()
            parquet.write_archive(path, values)
            took = time.perf_counter() - started
            size = path.stat().st_size / count
            least = (64 - math.log2(count) + math.log2(math.e)) / 8
            click.echo(
                f"{count:,} simhashes: {size:.2f} bytes each, at least {least:.2f}; {took:.1f} s"
            )
            if count != SEARCHED:
                continue
            halves = with_copies(values[: count // 2], rng)
            written = parquet.write_archive(path, halves)
            size = path.stat().st_size / written
            click.echo(f"  half of them copies of the others: {size:.2f} bytes each")
            parquet.write_archive(path, values)
            for batch in (1, 1_000, 100_000):
                asked = near_copies(values, batch, 1, rng)
                for distance in (0, 1, 3, 8):
                    started = time.perf_counter()
                    found = len(parquet.find_many(path, asked, distance).queries)
                    took = time.perf_counter() - started
                    click.echo(f"  {batch:,} of them, {distance} bits: {found:,} in {took:.2f} s")


if __name__ == "__main__":
    main()
