"""Keep one of near-duplicate texts in a file of Parquet or JSON lines, without a database."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from pgsimhash.batch.originals import SAMPLE, Original, find_originals
from pgsimhash.errors import ArgumentError, PageError, invalid_argument
from pgsimhash.runtime import no_progress
from pgsimhash.runtime.output import check_output, replacing
from pgsimhash.schemes.texts import Cell, batches, read_texts, scheme_for_texts
from pgsimhash.search.pairs import Compared
from pgsimhash.sources.rows import IN_PARTS, line_fields
from pgsimhash.sources.streams import DamagedError, stream_of

ROWS: Final = 1 << 14  # rows in memory at once
BYTES: Final = 1 << 25  # about as many bytes of rows
_PACKED: Final = (".gz", ".zst", ".bz2", ".xz")

Progress = tuple[int, int]  # rows or bytes so far, and of the whole file


class Outcome(NamedTuple):
    """How many rows there were and were kept, and why; a cluster has two rows or more."""

    rows: int
    kept: int
    duplicates: int
    clusters: int
    too_short: int
    without_text: int
    scheme: str


def dedup(
    path: Path,
    output: Path,
    clusters: Path | None = None,
    *,
    text: str = "text",
    id_column: str | None = None,
    distance: int | None = None,
    jobs: int = 1,
    progress: Compared = no_progress,
) -> Outcome:
    """Write the rows of a file without near-duplicates of earlier rows.

    Rows without text, and texts that are too short, are kept, unless an earlier short text is
    equal. The file is read several times and in parts; about 600 bytes a row stay in memory.

    Args:
        path: a ``.parquet`` file, or else JSON lines, also in gzip or zstd.
        output: a file of the same form, not packed.
        clusters: a Parquet file or JSON lines with ``cluster`` (the id of its first row), ``id``
            and ``distance`` from its original, for each row that has a near-duplicate.
        text: the column with the texts.
        id_column: the column whose values name the rows; by default they are numbered from 0.
        distance: the largest number of differing bits, 0 to 12, by default as in
            :func:`~pgsimhash.batch.frames.mark_duplicates`.
        jobs: the number of threads.
        progress: is called with how much was read and how much there is, in rows or bytes.
    """
    if not path.is_file():
        raise invalid_argument(f"{path} is read several times; save it as a file first")
    changed = path.stat().st_mtime_ns
    for each in filter(None, (output, clusters)):
        check_output(each, path)
        if _is_parquet(path) != _is_parquet(each) or each.suffix.lower() in _PACKED:
            form = "Parquet" if _is_parquet(path) else "JSON lines that are not packed"
            raise invalid_argument(f"{each} must be {form}, as {path}; give it another name")
    if _is_parquet(path):
        _parquet(path, text, *filter(None, [id_column]))
    # The outputs are opened first: one that cannot be written is no news after hours.
    clusters_file = replacing(clusters) if clusters else nullcontext()
    with _writer(path, output) as write, clusters_file as file:
        # From all parts of the file: its short texts may come first.
        parts = _texts(path, text, SAMPLE)
        recipe = scheme_for_texts(one for texts, _ in parts for one in texts if one is not None)
        cells = list[Cell]()
        for texts, done in _texts(path, text):
            cells += read_texts(texts, recipe, jobs)
            progress(*done)
        reasons = Counter(cell.reason for cell in cells)
        if 0 < reasons["null"] == len(cells):
            raise _missing(path, text)
        originals = find_originals(cells, recipe, distance, jobs)
        kept = (one is None for one in originals)
        for rows, *_ in _chunks(path):
            write(rows, list(islice(kept, len(rows))))
        if path.stat().st_mtime_ns != changed:
            problem = f"{path} changed while it was read; name a copy that nothing writes"
            raise ArgumentError("invalid_file", problem)
        if file is not None:
            _write_clusters(file, path, id_column, originals)
    return Outcome(
        rows=len(cells),
        kept=originals.count(None),
        duplicates=len(cells) - originals.count(None),
        clusters=len({one.first for one in originals if one}),
        too_short=reasons["too_short"],
        without_text=reasons["null"],
        scheme=recipe.name,
    )


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _parquet(path: Path, *columns: str) -> tuple[Any, Any]:
    """Return the module and the open file, which has each of these columns once."""
    from pgsimhash.batch import parquet as module

    parquet: Any = module
    with parquet.translated_errors(path, "read as a Parquet file"):
        file = parquet.pq.ParquetFile(path, **IN_PARTS)
    names = file.schema_arrow.names
    for column in columns:
        if names.count(column) != 1:
            problem = f"{path} must have one column {column!r}; it has {', '.join(names)}"
            raise invalid_argument(problem)
    return parquet, file


def _texts(path: Path, column: str, most: int = ROWS) -> Iterator[tuple[list[Any], Progress]]:
    """Yield the texts of ``most`` of the rows of each part of a file, and the progress."""
    for _, texts, done in _chunks(path, column, most):
        wrong = next((one for one in texts if not isinstance(one, str | None)), None)
        if wrong is not None:
            problem = f"has a value of type {type(wrong).__name__}; cast it first"
            raise invalid_argument(f"{column!r} of {path} {problem}")
        yield texts, done


def _chunks(
    path: Path, column: str | None = None, most: int = ROWS
) -> Iterator[tuple[Any, list[Any], Progress]]:
    """Yield parts of a file: rows, their values in a column, the progress.

    If the first part has more than ``most`` rows, every nth row of all parts has a value.
    """
    step = 0
    if _is_parquet(path):
        parquet, file = _parquet(path)
        known = file.metadata
        done, total = 0, known.num_rows
        columns = None if column is None else [column]
        with parquet.translated_errors(path, "read"):
            for at in range(known.num_row_groups):
                group = known.row_group(at)
                share = BYTES * group.num_rows // max(group.total_byte_size, 1)
                for batch in file.iter_batches(max(1, min(ROWS, share)), [at], columns):
                    done += len(batch)
                    cells = batch.column(column).to_pylist() if columns else []
                    step = step or 1 + max(len(batch) - 1, 0) // most
                    yield batch, cells[::step], (done, total)
        if done != total:
            problem = f"{path} is damaged: it has {done:,} of {total:,} rows"
            raise ArgumentError("invalid_file", problem)
        return
    with path.open("rb") as file:
        lines, number = iter(partial(stream_of(file).readline, sys.maxsize), b""), 0
        try:
            for part in batches(lines, ROWS, BYTES):
                rows = [(at, line) for at, line in enumerate(part, number + 1) if line.strip()]
                number += len(part)
                step = step or 1 + max(len(rows) - 1, 0) // most
                picked = [] if column is None else rows[::step]
                values = [_fields(path, *numbered).get(str(column)) for numbered in picked]
                yield [line for _, line in rows], values, (file.tell(), path.stat().st_size)
        except DamagedError as error:
            raise ArgumentError("invalid_file", f"{path} cannot be read: {error}") from None


def _fields(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return line_fields(line)
    except PageError as error:
        problem = f"{path} cannot be read: line {number}: {error}; correct or remove it"
        raise invalid_argument(problem) from None


@contextmanager
def _writer(path: Path, output: Path) -> Iterator[Callable[[Any, Sequence[bool]], None]]:
    """Lend a function that writes those of the rows of a file that are kept."""
    with replacing(output) as file:
        if not _is_parquet(path):
            yield lambda rows, keep: file.writelines(
                line if line.endswith(b"\n") else line + b"\n" for line in compress(rows, keep)
            )
            return
        parquet, source = _parquet(path)

        def write(rows: Any, keep: Sequence[bool]) -> None:
            places = parquet.pa.array(compress(range(len(rows)), keep), parquet.pa.int64())
            with parquet.translated_errors(path, "filtered"):
                kept = [_taken(column, places) for column in rows.columns]
            writer.write_batch(parquet.pa.record_batch(kept, rows.schema))

        with parquet.pq.ParquetWriter(file, source.schema_arrow) as writer:
            yield write


def _taken(column: Any, places: Any) -> Any:
    """Return values of a column of pyarrow, which takes none of views."""
    kinds = {"string_view": "large_string", "binary_view": "large_binary"}
    kind = kinds.get(str(column.type))
    return column.cast(kind).take(places).cast(column.type) if kind else column.take(places)


def _write_clusters(
    file: IO[bytes], path: Path, id_column: str | None, originals: Sequence[Original | None]
) -> None:
    """Write the ids of rows and of their first originals, in the form of the file."""
    heads = {one.first for one in originals if one}
    members = [row for row, one in enumerate(originals) if one or row in heads]
    firsts = [one.first if (one := originals[row]) else row for row in members]
    distances = [one and one.distance for one in map(originals.__getitem__, members)]
    if _is_parquet(path):
        parquet, source = _parquet(path)
        pa = parquet.pa
        ids = pa.array(range(len(originals)), pa.int64())
        with parquet.translated_errors(path, "read"):
            if id_column:
                ids = source.read(columns=[id_column]).column(id_column)
            columns = {
                "cluster": _taken(ids, pa.array(firsts, pa.int64())),
                "id": _taken(ids, pa.array(members, pa.int64())),
                "distance": pa.array(distances, pa.uint8()),
            }
        parquet.pq.write_table(pa.table(columns), file)
        return
    names: Sequence[Any] = range(len(originals))
    if id_column:
        names = [name for _, values, _ in _chunks(path, id_column) for name in values]
        if 0 < names.count(None) == len(names):
            raise _missing(path, id_column)
    for row, first, distance in zip(members, firsts, distances, strict=True):
        member = {"cluster": names[first], "id": names[row], "distance": distance}
        line = f"{json.dumps(member, ensure_ascii=False)}\n"
        # Only half a character cannot be encoded; JSON has the same escapes as Python.
        file.write(line.encode(errors="backslashreplace"))


def _missing(path: Path, column: str) -> ArgumentError:
    return invalid_argument(f"no row of {path} has {column!r}; name another column")
