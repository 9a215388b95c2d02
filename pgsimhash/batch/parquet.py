"""Write and read simhashes, verdicts and clusters as Parquet files, by row groups.

The schemas are :data:`SIMHASHES`, :data:`VERDICTS` and :data:`CLUSTERS`. Input files may have more
columns, and any string type for texts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from pgsimhash.batch.parquet_files import batches, pa, writing
from pgsimhash.hashing.bits import (
    NEAR_MAX,
    as_simhashes,
    check_distance,
    hamming_distances,
    range_distances,
    simhash_arrays,
)
from pgsimhash.pages.records import Matches, Verdict
from pgsimhash.search.clusters import Cluster
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.memory_index import BlockIndex
from pgsimhash.search.pairs import distinct
from pgsimhash.store import Store
from pgsimhash.store.lookups import simhash_slices

ROWS: Final = 1 << 16
"""Rows per row group of text; this bounds the memory."""

SIMHASH_ROWS: Final = 1 << 20
"""Simhashes per row group, 8 MB, and per transaction."""

_FEW: Final = 64
_SOME: Final = 1_000
"""With up to this many simhashes, some row groups can be skipped."""

SIMHASHES: Final = pa.schema([pa.field("simhash", pa.uint64(), nullable=False)])

VERDICTS: Final = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        ("simhash", pa.uint64()),
        ("distance", pa.uint8()),
        ("duplicate_of", pa.string()),
        ("detail", pa.string()),
        ("html_bytes", pa.int64()),
        pa.field("keep", pa.bool_(), nullable=False),
        ("page_id", pa.int64()),
        ("original_page_id", pa.int64()),
        ("title", pa.string()),
    ]
)
"""The fields of :class:`~pgsimhash.pages.records.Verdict` without the Markdown."""

CLUSTERS: Final = pa.schema(
    [
        pa.field("cluster_id", pa.int64(), nullable=False),
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("simhash", pa.uint64(), nullable=False),
        pa.field("canonical", pa.bool_(), nullable=False),
    ]
)
"""A row for each page of a cluster."""


class ClusterRow(NamedTuple):
    """A page of a cluster; ``canonical`` says whether it represents the cluster."""

    cluster_id: int
    page_id: int
    url: str
    simhash: int
    canonical: bool


def write_simhashes(
    path: str | Path, simhashes: Iterable[SupportsIndex] | Iterable[Iterable[SupportsIndex]]
) -> int:
    """Write simhashes, an array or an iterable of arrays, and return their number.

    Raises:
        ArgumentError: the file cannot be written, or a row is not a simhash.
    """
    arrays = simhash_arrays(simhashes)
    written = 0
    with writing(path, SIMHASHES, delta=True) as write:
        for array in arrays:
            for start in range(0, len(array), SIMHASH_ROWS):
                write([pa.array(array[start : start + SIMHASH_ROWS])])
            written += len(array)
    return written


def write_archive(
    path: str | Path, simhashes: Iterable[SupportsIndex] | Iterable[Iterable[SupportsIndex]]
) -> int:
    """Write the distinct simhashes in ascending order, and return their number.

    It is the paper's compressed table of one permutation (Manku, Jain, Das Sarma, WWW 2007, section
    3.2) as a regular Parquet file. The more simhashes there are, the fewer bits the differences
    take. All simhashes are sorted in memory, three times 8 bytes each.

    Args:
        path: the file.
        simhashes: an array or an iterable of arrays, in any order.

    Raises:
        ArgumentError: the file cannot be written, or a row is not a simhash.
    """
    arrays = list(simhash_arrays(simhashes))
    return write_simhashes(path, distinct(np.concatenate([np.empty(0, np.uint64), *arrays])))


def find_many(
    path: str | Path, simhashes: Iterable[SupportsIndex], distance: int = NEAR_MAX
) -> Matches:
    """Return all simhashes of a file within ``distance`` of each of a batch, exactly.

    Like the paper's batch queries (section 4), it reads the file once and compares it with the
    batch in memory. For a small batch, it skips row groups whose range is too far away.

    Args:
        path: a file of simhashes, such as an archive.
        simhashes: the batch, some millions at most: an array, a column of a data frame, or
            integers.
        distance: the largest number of differing bits, 0 to 12.

    Returns:
        The matches by query, nearest first, like ``Store.find_many``.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, or the array or the file is invalid.
    """
    batch = as_simhashes(simhashes)
    asked, numbers = np.unique(batch, return_inverse=True)
    limit = check_distance(distance, DISTANCE_MAX)
    is_small = len(asked) <= _FEW
    index = BlockIndex(asked[:0] if is_small else asked)
    if is_small:  # few simhashes added to an index are compared one by one
        index.add(asked)

    def wanted(least: int, most: int) -> bool:
        return len(asked) > _SOME or bool((range_distances(asked, least, most) <= limit).any())

    found = [np.empty((2, 0), dtype=np.uint64)]
    for (column,) in batches(path, SIMHASHES, SIMHASH_ROWS, wanted):
        known = column.to_numpy(zero_copy_only=False)
        near = index.near(known, limit)
        found.append(np.stack([near.simhashes, known[near.queries]]))
    queries, matches = np.concatenate(found, axis=1)
    order = np.argsort(numbers, kind="stable")
    firsts = np.searchsorted(numbers[order], np.arange(len(asked) + 1))
    ranks = np.searchsorted(asked, queries)
    sizes = np.diff(firsts)[ranks]
    # Each match belongs to every query with this simhash.
    places = np.repeat(firsts[ranks] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    by = order[places].astype(np.int64)
    values = np.repeat(matches, sizes)
    distances = hamming_distances(batch[by], values)
    sort = np.lexsort((values, distances, by))
    return Matches(by[sort], values[sort], distances[sort])


def read_simhashes(path: str | Path) -> Iterator[NDArray[np.uint64]]:
    """Yield the column ``simhash`` of a file, in arrays of at most ``SIMHASH_ROWS``.

    Raises:
        ArgumentError: the file does not exist, or is not a file of simhashes.
    """
    for (column,) in batches(path, SIMHASHES, SIMHASH_ROWS):
        yield column.to_numpy(zero_copy_only=False)


def save_simhashes(store: Store, path: str | Path) -> int:
    """Write the distinct simhashes of a collection as an archive, and return their number.

    See :func:`write_archive`; each slice of the collection is a row group.

    Raises:
        ArgumentError: the file cannot be written.
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        return write_simhashes(path, simhash_slices(connection, collection))


def write_verdicts(path: str | Path, verdicts: Iterable[Verdict]) -> Generator[Verdict]:
    """Write verdicts to a file while yielding them.

    When the iteration ends or is closed for any reason, the file has all yielded verdicts.

    Raises:
        ArgumentError: the file cannot be written; this is raised before the first verdict.
    """
    with writing(path, VERDICTS, keep=True) as write:
        rows: list[tuple[Any, ...]] = []
        try:
            for verdict in verdicts:
                # Without the Markdown, which would take much memory.
                rows.append(tuple(getattr(verdict, name) for name in VERDICTS.names))
                if len(rows) == ROWS:
                    write(_columns(rows, VERDICTS))
                    rows = []
                yield verdict
        finally:
            write(_columns(rows, VERDICTS))


def read_verdicts(path: str | Path) -> Iterator[Verdict]:
    """Yield the verdicts of a file.

    Raises:
        ArgumentError: the file does not exist, or is not a file of verdicts.
    """
    for columns in batches(path, VERDICTS, ROWS):
        for row in zip(*(column.to_pylist() for column in columns), strict=True):
            yield Verdict(**dict(zip(VERDICTS.names, row, strict=True)))


def write_clusters(path: str | Path, clusters: Iterable[Cluster]) -> int:
    """Write a row for each page of the clusters, and return the number of clusters.

    ``clusters`` are for example those of ``Store.clusters``. The rows of a cluster are consecutive.

    Raises:
        ArgumentError: the file cannot be written.
    """
    written = 0

    def rows() -> Iterator[tuple[int, int, str, int, bool]]:
        nonlocal written
        for cluster in clusters:
            written += 1
            for page in cluster.pages:
                canonical = page is cluster.canonical
                yield cluster.cluster_id, page.page_id, page.url, page.simhash, canonical

    with writing(path, CLUSTERS) as write:
        every = rows()
        while chunk := list(islice(every, ROWS)):
            write(_columns(chunk, CLUSTERS))
    return written


def read_clusters(path: str | Path) -> Iterator[ClusterRow]:
    """Yield the rows of a file of clusters.

    Raises:
        ArgumentError: the file does not exist, or is not a file of clusters.
    """
    for columns in batches(path, CLUSTERS, ROWS):
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        yield from map(ClusterRow._make, rows)


def _columns(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> list[pa.Array]:
    def writable(value: Any) -> Any:
        # The name of a file may not be valid Unicode.
        is_text = isinstance(value, str)
        return value.encode("utf-8", "backslashreplace").decode() if is_text else value

    columns = ([writable(row[place]) for row in rows] for place in range(len(schema)))
    return [pa.array(values, type_) for values, type_ in zip(columns, schema.types, strict=True)]
