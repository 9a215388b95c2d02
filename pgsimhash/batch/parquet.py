"""Write simhashes, verdicts and clusters as Parquet files, and search files of simhashes.

The schemas are :data:`SIMHASHES`, :data:`VERDICTS` and :data:`CLUSTERS`. Files are written and read
by row groups, in bounded memory. A file of simhashes to read may have more columns.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import NEAR_MAX, as_simhashes, check_distance
from pgsimhash.pages.records import Matches, Verdict
from pgsimhash.runtime import requires
from pgsimhash.runtime.output import replacing
from pgsimhash.search.clusters import Cluster
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.memory_index import BlockIndex
from pgsimhash.search.pairs import distinct
from pgsimhash.sources.rows import IN_PARTS
from pgsimhash.store import Store

with requires("pgsimhash.batch.parquet", "pyarrow", extra="parquet"):
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = [
    "find_many",
    "read_simhashes",
    "save_simhashes",
    "write_archive",
    "write_clusters",
    "write_verdicts",
]

ROWS: Final = 1 << 16
"""Rows per row group of text; this bounds the memory."""

SIMHASH_ROWS: Final = 1 << 20
"""Simhashes per row group, 8 MB, and per transaction."""

SIMHASHES: Final = pa.schema([pa.field("simhash", pa.uint64(), nullable=False)])

_KINDS: Final = {
    **{"simhash": pa.uint64(), "distance": pa.uint8()},
    **{"int": pa.int64(), "bool": pa.bool_(), "datetime": pa.timestamp("us", "UTC")},
}
"""The types of columns by the name of the field, or else its type; others are strings."""


def _column(own: Field[Any]) -> pa.Field:
    kind, *optional = str(own.type).split(" | ")
    arrow = _KINDS.get(own.name) or _KINDS.get(kind) or pa.string()
    return pa.field(own.name, arrow, nullable=bool(optional))


VERDICTS: Final = pa.schema([_column(own) for own in fields(Verdict) if own.name != "markdown"])
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


def write_archive(path: str | Path, simhashes: Iterable[SupportsIndex]) -> int:
    """Write the distinct simhashes in ascending order, and return their number.

    It is the paper's compressed table of one permutation (Manku, Jain, Das Sarma, WWW 2007, section
    3.2) as a regular Parquet file. The more simhashes there are, the fewer bits the differences
    take. The simhashes, an array, a column of a data frame or integers, are sorted in memory, three
    times 8 bytes each.
    """
    return _write_simhashes(path, [distinct(as_simhashes(simhashes))])


def find_many(
    path: str | Path, simhashes: Iterable[SupportsIndex], distance: int = NEAR_MAX
) -> Matches:
    """Return all simhashes of a file within ``distance`` (0 to 12) of each of a batch, exactly.

    Like the paper's batch queries (section 4), it reads the file once and compares it with the
    batch in memory, some millions at most: an array, a column of a data frame, or integers. The
    matches are by query, nearest first, like those of ``Store.find_many``.
    """
    batch = as_simhashes(simhashes)
    limit = check_distance(distance, DISTANCE_MAX)
    index = BlockIndex(batch)
    parts = [np.empty((2, 0), dtype=np.uint64)]
    for known in read_simhashes(path):
        numbers, near = index.near(known, limit)
        parts.append(np.stack([near, known[numbers]]))
    queries, matches = np.concatenate(parts, axis=1)
    # Each match belongs to every query with this simhash.
    order = np.argsort(batch, kind="stable")
    starts, ends = (np.searchsorted(batch, queries, side, order) for side in ("left", "right"))
    sizes = ends - starts
    places = np.repeat(ends - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
    by = order[places].astype(np.int64)
    values = np.repeat(matches, sizes)
    distances = np.bitwise_count(batch[by] ^ values)
    sort = np.lexsort((values, distances, by))
    return Matches(by[sort], values[sort], distances[sort])


def read_simhashes(path: str | Path) -> Iterator[NDArray[np.uint64]]:
    """Yield the column ``simhash`` of a file, in arrays of at most ``SIMHASH_ROWS``."""
    with (
        translated_errors(path, "read as a Parquet file"),
        pq.ParquetFile(path, **IN_PARTS) as file,
    ):
        names = file.schema_arrow.names
        if names.count("simhash") != 1:
            raise _invalid(f"{path} must have one column 'simhash'; it has {', '.join(names)}")
        if (kind := file.schema_arrow.field("simhash").type) != pa.uint64():
            raise _invalid(f"column 'simhash' of {path} is {kind}, not uint64; cast it first")
        missing = file.metadata.num_rows
        for batch in file.iter_batches(SIMHASH_ROWS, columns=["simhash"]):
            if batch.column(0).null_count:
                raise _invalid(f"column 'simhash' of {path} has a null; leave such rows out first")
            missing -= len(batch)
            yield batch.column(0).to_numpy(zero_copy_only=False)
        if missing:
            # No checksum protects the page headers.
            raise _invalid(f"{path} is damaged: the number of rows differs from its footer")


def save_simhashes(store: Store, path: str | Path) -> int:
    """Write the distinct simhashes of a collection as an archive, and return their number.

    See :func:`write_archive`; each slice of the collection is a row group.
    """
    with store._session.calls_to_read() as calls:
        return _write_simhashes(path, calls.simhash_slices())


def _write_simhashes(path: str | Path, arrays: Iterable[NDArray[np.uint64]]) -> int:
    written = 0
    with _writing(path, SIMHASHES, delta=True) as write:
        for array in arrays:
            for start in range(0, len(array), SIMHASH_ROWS):
                write([pa.array(array[start : start + SIMHASH_ROWS])])
            written += len(array)
    return written


def write_verdicts(path: str | Path, verdicts: Iterable[Verdict]) -> Generator[Verdict]:
    """Write verdicts to a new file while yielding them.

    When the iteration ends or is closed for any reason, the file has all yielded verdicts. A file
    that exists may have other verdicts or the pages, so it is an ArgumentError before the first.
    """
    with _writing_rows(path, VERDICTS, is_new=True) as write:
        for verdict in verdicts:
            # Without the Markdown, which would take much memory.
            write([getattr(verdict, name) for name in VERDICTS.names])
            yield verdict


def write_clusters(path: str | Path, clusters: Iterable[Cluster]) -> int:
    """Write a row for each page of the clusters, and return the number of clusters.

    ``clusters`` are for example those of ``Store.clusters``. The rows of a cluster are consecutive.
    """
    count = 0
    with _writing_rows(path, CLUSTERS) as write:
        for cluster in clusters:
            count += 1
            for page in cluster.pages:
                is_canonical = page is cluster.canonical
                write([cluster.cluster_id, page.page_id, page.url, page.simhash, is_canonical])
    return count


@contextmanager
def _writing_rows(
    path: str | Path, schema: pa.Schema, *, is_new: bool = False
) -> Iterator[Callable[[list[Any]], None]]:
    """Lend a function that writes a row; see :func:`_writing`."""
    rows: list[list[Any]] = []

    def flush() -> None:
        columns = zip(schema.types, *rows, strict=True)
        write([pa.array(map(_writable, values), kind) for kind, *values in columns])
        rows.clear()

    def add(row: list[Any]) -> None:
        rows.append(row)
        if len(rows) == ROWS:
            flush()

    with _writing(path, schema, is_new=is_new) as write:
        try:
            yield add
        finally:
            flush()


def _writable(value: Any) -> Any:
    # The name of a file may not be valid Unicode.
    is_text = isinstance(value, str)
    return value.encode("utf-8", "backslashreplace").decode() if is_text else value


@contextmanager
def _writing(
    path: str | Path, schema: pa.Schema, *, is_new: bool = False, delta: bool = False
) -> Iterator[Callable[[list[pa.Array]], None]]:
    """Lend a function that writes a row group; the file appears, or is replaced, at the end.

    A file that ``is_new`` must not exist, and keeps what was written before an exception. ``delta``
    stores numbers as differences and disables compression, which would not help.
    """
    coding: dict[str, Any] = {}
    if delta:
        encodings = dict.fromkeys(schema.names, "DELTA_BINARY_PACKED")
        coding = {"compression": "none", "use_dictionary": False, "column_encoding": encodings}
    complete = is_new
    with ExitStack() as stack:
        with translated_errors(path, "written"):
            file = stack.enter_context(replacing(Path(path), is_new=is_new))
            writer = pq.ParquetWriter(file, schema, write_page_checksum=True, **coding)

        def write(columns: list[pa.Array]) -> None:
            nonlocal complete
            if len(columns[0]):
                complete = False
                with translated_errors(path, "written"):
                    writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                complete = is_new

        try:
            yield write
            complete = True
        finally:
            with translated_errors(path, "written"):
                writer.close()
                if complete:
                    stack.close()


@contextmanager
def translated_errors(path: str | Path, what: str) -> Iterator[None]:
    """Turn what pyarrow raises in the block into "the file cannot be" read or written."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = " ".join(str(error).split())
        raise _invalid(f"{path} cannot be {what}: {message}") from error


def _invalid(problem: str) -> ArgumentError:
    return ArgumentError("invalid_file", problem)
