"""Simhashes, verdicts and clusters in Parquet files, a row group at a time, out and in again.

The schemas are :data:`SIMHASHES`, :data:`VERDICTS` and :data:`CLUSTERS`. A file that is read may
have more columns, and its texts may be of any type of text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import check_simhashes
from pgsimhash.clusters import Cluster
from pgsimhash.errors import ArgumentError, MissingPackageError
from pgsimhash.records import Verdict
from pgsimhash.store import Store
from pgsimhash.store.reader import simhash_slices

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingPackageError(
        "not_installed", "pgsimhash.parquet needs pyarrow: pip install 'pgsimhash[parquet]'"
    ) from error

ROWS: Final = 1 << 16
"""How many rows of text make a row group; these and no more are in memory."""

SIMHASH_ROWS: Final = 1 << 20
"""The same for simhashes alone, which are 8 MB; so many are added in one transaction."""

SIMHASHES: Final = pa.schema([pa.field("simhash", pa.uint64(), nullable=False)])

_VERDICT_TYPES: Final[Mapping[str, pa.DataType]] = {
    "url": pa.string(),
    "verdict": pa.string(),
    "reason": pa.string(),
    "simhash": pa.uint64(),
    "distance": pa.uint8(),
    "duplicate_of": pa.string(),
    "detail": pa.string(),
    "html_bytes": pa.int64(),
    "keep": pa.bool_(),
    "page_id": pa.int64(),
}

_ALWAYS: Final = ("url", "verdict", "reason", "keep")

VERDICTS: Final = pa.schema(
    pa.field(one.name, _VERDICT_TYPES[one.name], nullable=one.name not in _ALWAYS)
    for one in fields(Verdict)
)
"""The fields of :class:`~pgsimhash.records.Verdict`."""

CLUSTERS: Final = pa.schema(
    [
        pa.field("cluster_id", pa.int64(), nullable=False),
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("simhash", pa.uint64(), nullable=False),
        pa.field("canonical", pa.bool_(), nullable=False),
    ]
)
"""A row for each page of a cluster, as ``analysis.save_clusters`` has them in a table."""


class ClusterRow(NamedTuple):
    """A page of a cluster; ``canonical`` says whether it stands for the cluster."""

    cluster_id: int
    page_id: int
    url: str
    simhash: int
    canonical: bool


def write_simhashes(
    path: str | Path, simhashes: NDArray[np.uint64] | Iterable[NDArray[np.uint64]]
) -> int:
    """Write simhashes, an array or several one after the other, and return how many there are.

    Raises:
        ArgumentError: the file cannot be written (``invalid_file``); an array is none of simhashes.
    """
    arrays = [simhashes] if isinstance(simhashes, np.ndarray) else simhashes
    written = 0
    with _writing(path, SIMHASHES) as write:
        for array in arrays:
            for start in range(0, len(check_simhashes(array)), SIMHASH_ROWS):
                write([pa.array(array[start : start + SIMHASH_ROWS])])
            written += len(array)
    return written


def read_simhashes(path: str | Path) -> Iterator[NDArray[np.uint64]]:
    """Yield the column ``simhash`` of a file, in arrays of at most ``SIMHASH_ROWS``.

    Raises:
        ArgumentError: the file is not there, or is none of simhashes (``invalid_file``).
    """
    for (column,) in _batches(path, SIMHASHES, SIMHASH_ROWS):
        yield column.to_numpy(zero_copy_only=False)


def save_simhashes(store: Store, path: str | Path) -> int:
    """Write the distinct simhashes of a collection, slice by slice, and return their number.

    Raises:
        ArgumentError: the file cannot be written.
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        return write_simhashes(path, simhash_slices(connection, collection))


def load_simhashes(store: Store, path: str | Path) -> int:
    """Add the simhashes of a file to a collection, and return how many were not known.

    See ``Store.add_simhashes``. ``SIMHASH_ROWS`` of them are one transaction: if one fails those
    before stay, and the same call again adds the rest.

    Raises:
        ArgumentError: the file is not there, or is none of simhashes (``invalid_file``).
        StoreError: as ``Store.add_simhashes``.
    """
    return sum(store.add_simhashes(array) for array in read_simhashes(path))


def write_verdicts(path: str | Path, verdicts: Iterable[Verdict]) -> Generator[Verdict]:
    """Yield verdicts as they come, and write them on the way.

    What was yielded is in the file once this ends or is closed, whatever ended it.

    Raises:
        ArgumentError: the file cannot be written; not one verdict was asked for before.
    """
    with _writing(path, VERDICTS, keep=True) as write:
        rows: list[Verdict] = []
        try:
            for verdict in verdicts:
                rows.append(verdict)
                if len(rows) == ROWS:
                    write(_verdict_columns(rows))
                    rows = []
                yield verdict
        finally:
            write(_verdict_columns(rows))


def read_verdicts(path: str | Path) -> Iterator[Verdict]:
    """Yield the verdicts of a file.

    Raises:
        ArgumentError: the file is not there, or is none of verdicts (``invalid_file``).
    """
    for columns in _batches(path, VERDICTS, ROWS):
        for row in zip(*(column.to_pylist() for column in columns), strict=True):
            yield Verdict(**dict(zip(VERDICTS.names, row, strict=True)))


def write_clusters(path: str | Path, clusters: Iterable[Cluster]) -> int:
    """Write a row for each page of the clusters, and return how many clusters there are.

    ``clusters`` are for example those that ``Store.clusters`` yields. The rows of one stand
    together.

    Raises:
        ArgumentError: the file cannot be written (``invalid_file``).
    """
    written = 0
    with _writing(path, CLUSTERS) as write:
        rows: list[ClusterRow] = []
        for cluster in clusters:
            written += 1
            for page in cluster.pages:
                is_canonical = page is cluster.canonical
                rows.append(
                    ClusterRow(
                        cluster.cluster_id, page.page_id, page.url, page.simhash, is_canonical
                    )
                )
                if len(rows) == ROWS:
                    write(_columns(rows, CLUSTERS))
                    rows = []
        write(_columns(rows, CLUSTERS))
    return written


def read_clusters(path: str | Path) -> Iterator[ClusterRow]:
    """Yield the rows of a file of clusters.

    Raises:
        ArgumentError: the file is not there, or is none of clusters (``invalid_file``).
    """
    for columns in _batches(path, CLUSTERS, ROWS):
        yield from map(
            ClusterRow._make, zip(*(column.to_pylist() for column in columns), strict=True)
        )


_Write = Callable[[list[pa.Array]], None]


@contextmanager
def _writing(path: str | Path, schema: pa.Schema, *, keep: bool = False) -> Iterator[_Write]:
    """Give what writes a row group; a file that is not finished stays only with ``keep``."""
    with _as_ours(path, "written"):
        file = Path(path).open("wb")  # noqa: SIM115
        writer = pq.ParquetWriter(file, schema)

    def write(columns: list[pa.Array]) -> None:
        if len(columns[0]):
            with _as_ours(path, "written"):
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))

    finished = False
    try:
        yield write
        finished = True
    finally:
        try:
            with _as_ours(path, "written"), file:
                writer.close()
        finally:
            if not finished and not keep and Path(path).is_file() and not Path(path).is_symlink():
                Path(path).unlink()


@contextmanager
def _as_ours(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise ArgumentError("invalid_file", f"{path} cannot be {what}: {said}") from error


def _verdict_columns(rows: Sequence[Verdict]) -> list[pa.Array]:
    return _columns(
        [tuple(getattr(row, name) for name in VERDICTS.names) for row in rows], VERDICTS
    )


def _columns(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> list[pa.Array]:
    return [
        pa.array([_writable(row[place]) for row in rows], field.type)
        for place, field in enumerate(schema)
    ]


def _writable(value: Any) -> Any:
    # The name of a file may be no Unicode.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _batches(path: str | Path, schema: pa.Schema, rows: int) -> Iterator[list[pa.Array]]:
    """Yield the columns of a schema, of at most so many rows at a time."""
    with ExitStack() as stack:
        with _as_ours(path, "read as a Parquet file"):
            file = stack.enter_context(pq.ParquetFile(path))
            _check_columns(path, file.schema_arrow, schema)
            batches = file.iter_batches(rows, columns=schema.names)
        while True:
            with _as_ours(path, "read as a Parquet file"):
                batch = next(batches, None)
                if batch is None:
                    return
                columns = [batch.column(field.name).cast(field.type) for field in schema]
            _check_nulls(path, columns, schema)
            yield columns


def _check_columns(path: str | Path, found: pa.Schema, schema: pa.Schema) -> None:
    for field in schema:
        if found.names.count(field.name) != 1:
            raise ArgumentError(
                "invalid_file",
                f"{path} has no column {field.name!r}, or two; it has {', '.join(found.names)}",
            )
        type_ = found.field(field.name).type
        if type_ != field.type and not (_is_text(type_) and field.type == pa.string()):
            raise ArgumentError(
                "invalid_file",
                f"column {field.name!r} of {path} is {type_}, not {field.type}; cast it first",
            )


def _check_nulls(path: str | Path, columns: Sequence[pa.Array], schema: pa.Schema) -> None:
    for field, column in zip(schema, columns, strict=True):
        if column.null_count and not field.nullable:
            raise ArgumentError(
                "invalid_file",
                f"column {field.name!r} of {path} has a null; leave such rows out first",
            )


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(type_) for is_kind in kinds)
