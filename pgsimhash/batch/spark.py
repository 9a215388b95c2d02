"""Simhashes in Spark: fingerprint pages, find all pairs, search a corpus, build clusters.

It needs PySpark 4 and Java 17 or later (extra ``spark``), also on the workers. A simhash is a
``bigint``, as in PostgreSQL (``pgsimhash.hashing.bits.from_bigint``). The search for pairs is the
one in memory: simhashes that share a prefix go to one task, which compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.bits import BITS, NEAR_MAX, as_simhashes, check_distance, to_bigint
from pgsimhash.pages.selectors import Selectors
from pgsimhash.runtime import requires
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.schemes.registry import DEFAULT_SCHEME, TEXT_SCHEME, checked_selectors
from pgsimhash.search.clusters import cluster_simhashes
from pgsimhash.search.layout import COLLECTION_SHIFT, DISTANCE_MAX, Layout
from pgsimhash.search.memory_index import BlockIndex
from pgsimhash.search.pairs import Pairs, in_blocks, layout_for, pairs_by

with requires("pgsimhash.batch.spark", "PySpark 4", extra="spark"):
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.functions import pandas_udf

    from pgsimhash.batch.frames import Kind, check_added, read_cells

__all__ = ["clusters", "find", "fingerprint", "pairs", "read_simhashes"]

_PAIRS: Final = "low bigint, high bigint, distance int"
_MATCHES: Final = "query bigint, simhash bigint, distance int"
_CLUSTERS: Final = "simhash bigint, cluster bigint"
_READ: Final = "simhash bigint, reason string"
_SPREAD: Final = "key bigint, simhash bigint"
"""The key has the permutation's number above the bits of the largest prefix, and the prefix."""

_MOVING_NS: Final = 1_500.0  # measured core nanoseconds to send a simhash to another task

_Batches = Iterator[pa.RecordBatch]
_Simhashes = NDArray[np.uint64]


def fingerprint(
    frame: DataFrame,
    column: str,
    *,
    kind: Kind = "text",
    scheme: Scheme | str | None = None,
    url_column: str | None = None,
    content: str | None = None,
    ignore: str | None = None,
) -> DataFrame:
    """Return the frame with the columns ``simhash`` and ``reason``.

    ``reason`` is set if there is no simhash: ``null`` for a null cell, else a code of
    ``PageError.reasons``. ``column`` has plain texts (string), or for the kind ``html`` pages
    (string or binary), and ``url_column`` their URLs, which some schemes use. ``content`` and
    ``ignore`` are CSS selectors, as of pages in a store. The scheme is pickled for the workers.
    """
    check_added(kind, frame.columns, ("simhash", "reason"))
    default = TEXT_SCHEME if kind == "text" else DEFAULT_SCHEME
    recipe = get_scheme(default if scheme is None else scheme)
    reader = recipe if kind == "html" else TEXT_SCHEME
    selectors = checked_selectors(reader, Selectors(content, ignore))
    _check_column(frame, column, ("string",) if kind == "text" else ("string", "binary"))
    if url_column is not None:
        _check_column(frame, url_column, ("string",))

    def read_batch(cells: Any, urls: Any) -> Any:
        read = read_cells(_plain(cells), _plain(urls), kind, recipe, selectors=selectors)
        signed = [None if cell.simhash is None else to_bigint(cell.simhash) for cell in read]
        simhashes = pd.array(signed, dtype="Int64")
        return pd.DataFrame({"simhash": simhashes, "reason": [cell.reason for cell in read]})

    # Spark derives the calling convention from these types.
    read_batch.__annotations__ = {"cells": pd.Series, "urls": pd.Series, "return": pd.DataFrame}
    urls = sql.lit(None).cast("string") if url_column is None else sql.col(url_column)
    udf: Any = pandas_udf
    fingerprints = udf(read_batch, _READ)(sql.col(column), urls)
    return frame.withColumn("_read", fingerprints).select(*frame.columns, "_read.*")


def pairs(
    frame: DataFrame,
    distance: int = NEAR_MAX,
    *,
    column: str = "simhash",
    partitions: int | None = None,
) -> DataFrame:
    """Return every pair of distinct simhashes within ``distance`` bits, each once.

    It is exact, like :func:`pgsimhash.find_pairs`. For each permutation of the layout, a simhash
    goes to one task with all others that share its prefix; a pair is reported by the first task
    that finds it. A frequent prefix costs its task no quadratic time, and 60 bytes per simhash.
    There are as many tasks as ``partitions``, by default Spark's setting for shuffles.

    The column of simhashes is a bigint, of which duplicates and nulls are ignored. The result has
    ``low`` and ``high`` (bigint), ordered by their unsigned values, and ``distance``, 0 to 12.
    """
    limit = check_distance(distance, DISTANCE_MAX)
    known = _known(frame, column).distinct()
    # An upper bound, because counting distinct simhashes would read the pages twice.
    layout = layout_for(limit, frame.count(), moving=_MOVING_NS)
    spread = known.mapInArrow(partial(_spread, layout), _SPREAD)
    by_key = ("key",) if partitions is None else (partitions, "key")
    return spread.repartition(*by_key).mapInArrow(partial(_pairs_of, layout, limit), _PAIRS)


def find(
    batch: DataFrame, corpus: DataFrame, distance: int = NEAR_MAX, *, column: str = "simhash"
) -> DataFrame:
    """Return all simhashes of a corpus within ``distance`` of each of a batch, exactly.

    It is the paper's batch query (Manku, Jain, Das Sarma, WWW 2007, section 4): the batch, some
    millions at most, goes to all tasks, and each task reads its part of the corpus.

    Both have the simhashes in a column of bigint, of which duplicates and nulls are ignored. The
    result has ``query`` and ``simhash`` (bigint), and ``distance``, 0 to 12.
    """
    limit = check_distance(distance, DISTANCE_MAX)
    queries = _known(batch, column).distinct()
    known = _known(corpus, column).distinct()
    in_memory = as_simhashes(queries.toArrow()["simhash"])
    shared = corpus.sparkSession.sparkContext.broadcast(in_memory)

    def near(batches: _Batches) -> _Batches:
        index = BlockIndex(shared.value)
        for (simhashes,) in map(_columns, batches):
            numbers, matches = index.near(simhashes, limit)
            hits = simhashes[numbers]
            yield _batch(_MATCHES, matches, hits, np.bitwise_count(matches ^ hits))

    return known.mapInArrow(near, _MATCHES)


def clusters(pairs: DataFrame) -> DataFrame:
    """Return the clusters of the pairs of :func:`pairs`, by single linkage.

    Each task joins its pairs and passes on one pair per simhash. A final task joins these, with
    about 40 bytes per simhash and task. The result has each ``simhash`` of a pair, and ``cluster``,
    the smallest simhash of its cluster by its unsigned value.
    """
    edges = pairs.select(sql.col("low").alias("simhash"), sql.col("high").alias("cluster"))
    joined = edges.mapInArrow(_joined, _CLUSTERS).repartition(1)
    return joined.mapInArrow(partial(_joined, with_roots=True), _CLUSTERS)


def read_simhashes(session: SparkSession, path: str) -> DataFrame:
    """Return the simhashes of Parquet files that ``pgsimhash.batch.parquet`` wrote.

    Export a collection with ``parquet.save_simhashes(store, path)``.
    """
    # Spark has no unsigned integers, and reads them as decimals.
    signed = "IF(simhash < 9223372036854775808BD, simhash, simhash - 18446744073709551616BD)"
    return session.read.parquet(path).selectExpr(f"CAST({signed} AS bigint) AS simhash")


def _check_column(frame: DataFrame, column: str, types: tuple[str, ...]) -> None:
    dtype = dict(frame.dtypes).get(column)
    if dtype not in types:
        has = ", ".join(f"{name} {type_}" for name, type_ in frame.dtypes)
        raise invalid_argument(
            f"the frame has no column {column!r} of type {' or '.join(types)}; it has {has}"
        )


def _plain(cells: Any) -> list[Any]:
    """Return the cells with None for null."""
    return [None if null else cell for cell, null in zip(cells, cells.isna(), strict=True)]


def _known(frame: DataFrame, column: str) -> DataFrame:
    _check_column(frame, column, ("bigint",))
    simhashes = frame.select(sql.col(column).alias("simhash"))
    return simhashes.where(sql.col("simhash").isNotNull())


def _spread(layout: Layout, batches: _Batches) -> _Batches:
    """Yield each simhash for each permutation, with the key of its prefix."""
    for (simhashes,) in map(_columns, batches):
        for permutation in layout.permutations:
            prefixes = permutation.permute(simhashes) >> np.uint64(BITS - permutation.width)
            above = np.uint64(permutation.number << COLLECTION_SHIFT)
            yield _batch(_SPREAD, prefixes | above, simhashes)


def _pairs_of(layout: Layout, distance: int, batches: _Batches) -> _Batches:
    """Yield the pairs that share a prefix; all their simhashes are in the batches."""
    keys, simhashes = _whole(batches, 2)
    numbers = keys >> np.uint64(COLLECTION_SHIFT)
    for permutation in layout.permutations:
        values = simhashes[numbers == permutation.number]
        for low, high, distances in in_blocks(pairs_by(permutation, layout, values, distance)):
            yield _batch(_PAIRS, low, high, distances)


def _joined(batches: _Batches, *, with_roots: bool = False) -> _Batches:
    """Yield each simhash with the smallest simhash of its component; roots only ``with_roots``."""
    one, other = _whole(batches, 2)
    nodes = np.unique(np.concatenate([one, other]))
    edges = Pairs(np.minimum(one, other), np.maximum(one, other), np.empty(0, dtype=np.uint8))
    roots = cluster_simhashes(nodes, [edges])
    is_sent = np.ones(len(nodes), dtype=np.bool_) if with_roots else nodes != roots
    yield _batch(_CLUSTERS, nodes[is_sent], roots[is_sent])


def _columns(batch: pa.RecordBatch) -> list[_Simhashes]:
    return [column.to_numpy(zero_copy_only=False).view(np.uint64) for column in batch.columns]


def _whole(batches: _Batches, columns: int) -> list[_Simhashes]:
    """Return the columns of all batches, even if there are none."""
    nothing = [np.empty(0, dtype=np.uint64)] * columns
    return [np.concatenate(parts) for parts in zip(nothing, *map(_columns, batches), strict=True)]


def _batch(schema: str, *columns: NDArray[np.unsignedinteger]) -> pa.RecordBatch:
    names = [column.split()[0] for column in schema.split(", ")]
    signed = [
        pa.array(column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int32))
        for column in columns
    ]
    return pa.RecordBatch.from_arrays(signed, names)
