"""Write and read Parquet files of one schema by row groups, with this package's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from pgsimhash.errors import ArgumentError, MissingPackageError, install_command
from pgsimhash.runtime.files import replacing

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingPackageError(
        "not_installed",
        f"pgsimhash.batch.parquet needs pyarrow; install it {install_command('parquet')}",
    ) from error

__all__ = ["batches", "pa", "writing"]

_BATCH_BYTES: Final = 1 << 24
"""Approximate bytes of text in memory."""

_GROUP_BYTES: Final = 1 << 29
"""Maximum bytes of text in a row group, in memory if few rows have all of it."""

Write = Callable[[list[pa.Array]], None]
"""Writes columns as a row group."""

Wanted = Callable[[int, int], bool]
"""Returns whether to read a row group, given its smallest and largest value."""


@contextmanager
def writing(
    path: str | Path, schema: pa.Schema, *, keep: bool = False, delta: bool = False
) -> Iterator[Write]:
    """Lend a function that writes a row group; the file appears, or is replaced, at the end.

    ``keep`` keeps what was written before an exception. ``delta`` stores numbers as differences
    and disables compression, which would not help.
    """
    coding: dict[str, Any] = {}
    if delta:
        encodings = dict.fromkeys(schema.names, "DELTA_BINARY_PACKED")
        coding = {"compression": "none", "use_dictionary": False, "column_encoding": encodings}
    complete = keep
    with ExitStack() as stack:
        with _as_ours(path, "written"):
            file = stack.enter_context(replacing(Path(path)))
            writer = pq.ParquetWriter(file, schema, write_page_checksum=True, **coding)

        def write(columns: list[pa.Array]) -> None:
            nonlocal complete
            if len(columns[0]):
                complete = False
                with _as_ours(path, "written"):
                    writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                complete = keep

        try:
            yield write
            complete = True
        finally:
            with _as_ours(path, "written"):
                writer.close()
                if complete:
                    stack.close()


@contextmanager
def _as_ours(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        message = " ".join(str(error).split())
        raise _invalid(f"{path} cannot be {what}: {message}") from error


def batches(
    path: str | Path, schema: pa.Schema, at_once: int, wanted: Wanted | None = None
) -> Iterator[list[pa.Array]]:
    """Yield the columns of a schema, up to ``at_once`` rows at a time, fewer of long texts.

    ``wanted`` skips row groups by the statistics of their first column.
    """
    with ExitStack() as stack:
        with _as_ours(path, "read as a Parquet file"):
            file = stack.enter_context(pq.ParquetFile(path, page_checksum_verification=True))
            _check_columns(path, file.schema_arrow, schema)
            groups = [
                group
                for group in range(file.metadata.num_row_groups)
                if wanted is None or _is_wanted(file, group, schema.names[0], wanted)
            ]
            missing = sum(file.metadata.row_group(group).num_rows for group in groups)
            if wanted is None:
                missing = file.metadata.num_rows
            at_once = min([at_once, *(_rows_at_once(path, file, one, schema) for one in groups)])
            record_batches = file.iter_batches(at_once, columns=schema.names, row_groups=groups)
        while True:
            with _as_ours(path, "read as a Parquet file"):
                batch = next(record_batches, None)
                if batch is None:
                    break
                columns = [batch.column(field.name).cast(field.type) for field in schema]
            _check_nulls(path, columns, schema)
            missing -= len(batch)
            yield columns
        if missing:
            # No checksum protects the page headers.
            raise _invalid(f"{path} is damaged: the number of rows differs from its footer")


def _rows_at_once(path: str | Path, file: pq.ParquetFile, group: int, schema: pa.Schema) -> int:
    """Return how many rows of a row group have :data:`_BATCH_BYTES` of text.

    Few bytes of a file can be much text: compressed, or one dictionary entry in many rows.
    """
    texts = [field.name for field in schema if field.type == pa.string()]
    known = file.metadata.row_group(group)
    columns = map(known.column, range(known.num_columns))
    size = sum(one.total_uncompressed_size for one in columns if one.path_in_schema in texts)
    if size > _GROUP_BYTES:
        raise _invalid(
            f"{path} has a row group with {size:,} bytes of text, more than the limit of "
            f"{_GROUP_BYTES:,}; write it again with smaller row groups"
        )
    row_bytes: int = size // max(1, known.num_rows) + 1
    if texts:
        with pq.ParquetFile(path, read_dictionary=texts, metadata=file.metadata) as stored:
            # The first row loads the whole dictionary of each column.
            first = next(stored.iter_batches(1, row_groups=[group], columns=texts), None)
            for column in first.columns if first is not None else []:
                if isinstance(column, pa.DictionaryArray):
                    row_bytes += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    return max(1, _BATCH_BYTES // row_bytes)


def _is_wanted(file: pq.ParquetFile, group: int, name: str, wanted: Wanted) -> bool:
    known = (
        file.metadata.row_group(group).column(file.schema_arrow.get_field_index(name)).statistics
    )
    return known is None or not known.has_min_max or wanted(known.min, known.max)


def _check_columns(path: str | Path, present: pa.Schema, schema: pa.Schema) -> None:
    for field in schema:
        if present.names.count(field.name) != 1:
            raise _invalid(
                f"{path} must have one column {field.name!r}; it has {', '.join(present.names)}"
            )
        type_ = present.field(field.name).type
        if type_ != field.type and not (_is_text(type_) and field.type == pa.string()):
            raise _invalid(
                f"column {field.name!r} of {path} is {type_}, not {field.type}; cast it first"
            )


def _check_nulls(path: str | Path, columns: Sequence[pa.Array], schema: pa.Schema) -> None:
    for field, column in zip(schema, columns, strict=True):
        if column.null_count and not field.nullable:
            raise _invalid(f"column {field.name!r} of {path} has a null; leave such rows out first")


def _invalid(problem: str) -> ArgumentError:
    return ArgumentError("invalid_file", problem)


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(type_) for is_kind in kinds)
