"""Compare the search with peers from PyPI, on the same simhashes with planted near-duplicates.

    python bench/peers.py [--rows N]

simhash-pybind and simhash install the same module, so each peer is installed into its own temporary
folder and runs in its own process. The results must be equal.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

if TYPE_CHECKING:
    from bench.workload import Simhashes, near_copies, random_simhashes
else:  # A script finds its neighbours under their own names.
    from workload import Simhashes, near_copies, random_simhashes

OURS = "pgsimhash"
PLANTED = 1000
Rows = Iterable[tuple[int, int]]


class Clock:
    """CPU seconds, by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()

    def done(self, step: str) -> None:
        now = time.process_time()
        self.seconds[step], self._last = now - self._last, now


Measure = Callable[[Clock, Simhashes, Simhashes, int], Rows]
"""Returns pairs of near values, or for each query its index and a near value."""


def pgsimhash_pairs(clock: Clock, values: Simhashes, queries: Simhashes, distance: int) -> Rows:
    """All pairs by pgsimhash."""
    from pgsimhash import find_pairs

    clock.done("conversion")
    pairs = find_pairs(values, distance)
    clock.done("search")
    return zip(pairs.low.tolist(), pairs.high.tolist(), strict=True)


def pybind_pairs(clock: Clock, values: Simhashes, queries: Simhashes, distance: int) -> Rows:
    """All pairs by seomoz's C++ (find_all with one more block than the distance)."""
    from simhash import find_all

    numbers = values.tolist()
    clock.done("conversion")
    pairs = find_all(numbers, distance + 1, distance)
    clock.done("search")
    return ((min(pair), max(pair)) for pair in pairs)


def pgsimhash_lookups(clock: Clock, values: Simhashes, queries: Simhashes, distance: int) -> Rows:
    """Lookups in memory by pgsimhash."""
    from pgsimhash.search.memory_index import BlockIndex

    clock.done("conversion")
    index = BlockIndex(values)
    clock.done("build")
    numbers, near = index.near(queries, distance)
    clock.done("search")
    return zip(numbers.tolist(), near.tolist(), strict=True)


def leonsim_lookups(clock: Clock, values: Simhashes, queries: Simhashes, distance: int) -> Rows:
    """Lookups in the index of leonsim's pure Python simhash."""
    from simhash import Simhash, SimhashIndex

    known = [(str(value), Simhash(value)) for value in values.tolist()]
    asked = [Simhash(query) for query in queries.tolist()]
    clock.done("conversion")
    index = SimhashIndex(known, k=distance)
    clock.done("build")
    found = [index.get_near_dups(query) for query in asked]
    clock.done("search")
    return ((number, int(value)) for number, values in enumerate(found) for value in values)


def faiss_lookups(clock: Clock, values: Simhashes, queries: Simhashes, distance: int) -> Rows:
    """Range search in a multi-index hash of three hashes of 21 bits."""
    import faiss

    codes, asked = (array.view(np.uint8).reshape(-1, 8) for array in (values, queries))
    clock.done("conversion")
    index = faiss.IndexBinaryMultiHash(64, 3, 21)
    index.add(codes)
    clock.done("build")
    # One of the three hashes has at most a third of the differing bits.
    index.nflip = distance // 3
    limits, _, ids = index.range_search(asked, distance + 1)
    clock.done("search")
    numbers = np.repeat(np.arange(len(queries)), np.diff(limits.astype(np.int64)))
    return zip(numbers.tolist(), values[ids].tolist(), strict=True)


TASKS: dict[str, dict[str, Measure]] = {
    "all pairs": {"pgsimhash": pgsimhash_pairs, "simhash-pybind": pybind_pairs},
    "lookups": {
        "pgsimhash": pgsimhash_lookups,
        "simhash": leonsim_lookups,
        "faiss-cpu": faiss_lookups,
    },
}
"""The libraries for each task, pgsimhash first, by their names on PyPI."""


def measured(measure: Measure, values: Simhashes, queries: Simhashes, distance: int) -> Any:
    """The seconds of each step, the number of results, and their digest."""
    clock = Clock()
    rows = sorted(set(measure(clock, values, queries, distance)))
    digest = hashlib.sha256(np.array(rows, dtype=np.uint64).tobytes()).hexdigest()
    return {"seconds": clock.seconds, "answers": len(rows), "digest": digest}


def peer_input(values: Simhashes, distance: int, rng: np.random.Generator) -> list[Simhashes]:
    """The input of every library: simhashes with planted near-duplicates, and queries."""
    planted = near_copies(values, PLANTED, distance, rng)
    return [np.unique(np.concatenate([values, planted])), near_copies(values, 1000, distance, rng)]


def run_library(task: str, library: str, folder: Path, given: Path, distance: int) -> Any:
    """Run one library in its own process; a peer is installed first."""
    target = folder / library
    if library != OURS and not target.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        subprocess.run([*pip, library], check=True, stdout=sys.stderr)
    done = subprocess.run(
        [sys.executable, __file__, "--task", task, library, str(given), str(distance)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


@click.command()
@click.option("--rows", default=100_000, show_default=True, help="One of the peers is pure Python.")
@click.option("--task", nargs=4, hidden=True)
def main(rows: int, task: tuple[str, str, str, str] | None) -> None:
    """Compare libraries on the same simhashes; fails if one gives other results."""
    if task is not None:
        name, library, path, distance = task
        loaded = np.load(path)
        made = measured(TASKS[name][library], loaded["values"], loaded["queries"], int(distance))
        print(json.dumps(made))
        return
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as home:
        given = Path(home) / "given.npz"
        for name, bits in product(TASKS, (8, 3)):
            known, queries = peer_input(random_simhashes(rows, rng), bits, rng)
            np.savez(given, values=known, queries=queries)
            found = {
                library: run_library(name, library, Path(home), given, bits)
                for library in TASKS[name]
            }
            ours = found[OURS]
            for library, theirs in found.items():
                if theirs["digest"] != ours["digest"] or ours["answers"] < PLANTED:
                    raise click.ClickException(f"{name}: {library} gives other results, or few")
                steps = ", ".join(
                    f"{step} {took:.3f} s" for step, took in theirs["seconds"].items()
                )
                ratio = theirs["seconds"]["search"] / ours["seconds"]["search"]
                print(f"{name}, {bits} bits, {library}: {ratio:.1f} x ours; {steps}", flush=True)


if __name__ == "__main__":
    main()
