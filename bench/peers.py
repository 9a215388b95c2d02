"""One peer from PyPI on one task; run by search.py in a process of its own.

python bench/peers.py PEER FILE.npy DISTANCE    prints a JSON object with what was measured

simhash-pybind and simhash install the same module, so each peer is installed into a folder of its
own, which search.py puts on PYTHONPATH.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Simhashes = NDArray[np.uint64]


def simhash_pybind(values: Simhashes, distance: int) -> dict[str, float]:
    """All pairs by seomoz's C++ (find_all with one block more than the distance)."""
    from simhash import find_all

    started = time.process_time()
    pairs = find_all(values.tolist(), distance + 1, distance)
    return {"all pairs s": time.process_time() - started, "pairs": len(pairs)}


def leonsim(values: Simhashes, distance: int) -> dict[str, float]:
    """Build and ask the index of leonsim's pure Python simhash."""
    from simhash import Simhash, SimhashIndex

    kept = values[:100_000]
    started = time.process_time()
    index = SimhashIndex(
        [(str(number), Simhash(int(value))) for number, value in enumerate(kept)], k=distance
    )
    built = time.process_time() - started
    queries = [Simhash(int(value)) for value in kept[:1000]]
    started = time.process_time()
    for query in queries:
        index.get_near_dups(query)
    seconds = time.process_time() - started
    return {"rows": len(kept), "load s": built, "lookup ms": seconds}


def faiss(values: Simhashes, distance: int) -> dict[str, float]:
    """Range search in a multi-index hash with as many hashes as our columns."""
    import faiss

    codes = values.view(np.uint8).reshape(-1, 8)
    index = faiss.IndexBinaryMultiHash(64, 3, 21)
    started = time.process_time()
    index.add(codes)
    built = time.process_time() - started
    index.nflip = max(0, -(-(distance + 1) // 3) - 1)
    started = time.process_time()
    limits, _, _ = index.range_search(codes[:1000], distance + 1)
    seconds = time.process_time() - started
    return {"load s": built, "lookup ms": seconds, "matches": int(limits[-1])}


PEERS: dict[str, Callable[[Simhashes, int], dict[str, float]]] = {
    "simhash-pybind": simhash_pybind,
    "leonsim": leonsim,
    "faiss": faiss,
}


def main(peer: str, path: str, distance: str) -> None:
    measured: dict[str, Any] = dict(PEERS[peer](np.load(path), int(distance)))
    print(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])
