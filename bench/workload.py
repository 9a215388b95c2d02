"""Helpers of the benchmarks: a database, simhashes, loading them, and timing a call."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgsimhash.db import migrate
from pgsimhash.db.copy import copy_binary
from pgsimhash.embedded import server

Simhashes = NDArray[np.uint64]


@contextmanager
def database(dsn: str | None) -> Iterator[str]:
    """The DSN of a database with the schema; None starts a temporary embedded server."""
    # The server runs until the process ends, and may be writing when its folder is removed.
    with tempfile.TemporaryDirectory(prefix="pgsimhash-bench-", ignore_cleanup_errors=True) as home:
        where = server.start(Path(home)) if dsn is None else dsn
        migrate.upgrade(where)
        yield where


def random_simhashes(rows: int, rng: np.random.Generator) -> Simhashes:
    return rng.integers(0, 2**64, rows, dtype=np.uint64)


def near_copies(known: Simhashes, count: int, bits: int, rng: np.random.Generator) -> Simhashes:
    """``count`` simhashes, each ``bits`` away from one of ``known``."""
    copies = rng.choice(known, count)
    for number in range(count):
        for bit in rng.choice(64, bits, replace=False):
            copies[number] ^= np.uint64(1 << int(bit))
    return copies


def load(
    connection: psycopg.Connection,
    values: Simhashes,
    table: str = "simhashes",
    collection_id: int = 1,
) -> None:
    """COPY simhashes into a collection."""
    columns: dict[str, NDArray[np.signedinteger]] = {
        "collection_id": np.full(len(values), collection_id, dtype=np.int32),
        "simhash": values.view(np.int64),
    }
    copy_binary(connection.cursor(), ("pgsimhash", table), columns)


def percentiles(run: Callable[[int], object], queries: Simhashes) -> tuple[float, float]:
    """Milliseconds of one call: median and 99th percentile, after a warm-up."""
    seconds = []
    for number, query in enumerate(queries.tolist()):
        started = time.perf_counter()
        run(query)
        if number >= len(queries) // 10:
            seconds.append(time.perf_counter() - started)
    return float(np.median(seconds)) * 1e3, float(np.percentile(seconds, 99)) * 1e3
