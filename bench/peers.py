"""Run one library on one task; search.py starts this in a separate process.

    python bench/peers.py TASK LIBRARY FILE.npz DISTANCE    prints a JSON object with measurements

The file has ``values``, which are distinct, and ``queries``. simhash-pybind and simhash install the
same module, so each peer is installed into its own folder, which search.py adds to PYTHONPATH.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Simhashes = NDArray[np.uint64]
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
    near = index.near(queries, distance)
    clock.done("search")
    return zip(near.queries.tolist(), near.simhashes.tolist(), strict=True)


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


def main(task: str, library: str, path: str, distance: str) -> None:
    given = np.load(path)
    found = measured(TASKS[task][library], given["values"], given["queries"], int(distance))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
