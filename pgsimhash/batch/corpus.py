"""Keep one of near-duplicate texts in a file of Parquet or JSON lines, without a database."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import compress, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from pgsimhash.batch.originals import (
    SAMPLE,
    Cell,
    default_distance,
    find_originals,
    first_originals,
    read_texts,
)
from pgsimhash.errors import invalid_argument
from pgsimhash.runtime import no_progress, requires
from pgsimhash.runtime.output import replacing
from pgsimhash.schemes.texts import scheme_for_texts
from pgsimhash.search.pairs import Compared

ROWS: Final = 1 << 14  # rows in memory at once


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
    equal. The texts are read twice and in parts; about 400 bytes a row stay in memory.

    Args:
        path: a ``.parquet`` file, or else JSON lines.
        output: a file of the same form.
        clusters: a Parquet file or JSON lines with ``cluster`` (the id of its first row), ``id``
            and ``distance`` from its original, for each row that has a near-duplicate.
        text: the column with the texts.
        id_column: the column whose values name the rows; by default they are numbered from 0.
        distance: the largest number of differing bits, 0 to 12; by default 12, and 11 for short
            texts.
        jobs: the number of threads.
        progress: is called with how much was read and how much there is, in rows or bytes.
    """
    if (path.suffix == ".parquet") != (output.suffix == ".parquet"):
        raise invalid_argument(f"{output} must be of the form of {path}: Parquet, or JSON lines")
    names = [text] if id_column is None else [text, id_column]
    ids, cells = list[Any](), list[Cell | None]()
    recipe = None
    for _, (texts, *others), done in _chunks(path, names, only=True):
        present = [one for one in texts if one is not None]
        if wrong := next((one for one in present if not isinstance(one, str)), None):
            raise invalid_argument(f"{text!r} has a {type(wrong).__name__}, not only texts")
        recipe = recipe or (scheme_for_texts(present[:SAMPLE]) if present else None)
        read = read_texts(present, recipe, jobs) if recipe else iter(())
        cells += [None if one is None else next(read) for one in texts]
        ids += others[0] if others else range(len(ids), len(ids) + len(texts))
        progress(*done)
    if recipe is None:
        raise invalid_argument(f"no row of {path} has {text!r}; name the column of the texts")
    limit = default_distance(recipe) if distance is None else distance
    originals = find_originals([cell or Cell() for cell in cells], limit, jobs)
    firsts = first_originals(originals)
    keep = [original is None for original in originals]
    with _writer(path, output) as write:
        kept = iter(keep)
        for rows, *_ in _chunks(path, ()):
            write(rows, list(islice(kept, len(rows))))
    sizes = Counter(firsts)
    members = [
        {"cluster": ids[first], "id": ids[row], "distance": original and original.distance}
        for row, (first, original) in enumerate(zip(firsts, originals, strict=True))
        if sizes[first] > 1
    ]
    if clusters is not None:
        _write_clusters(clusters, members)
    return Outcome(
        rows=len(cells),
        kept=sum(keep),
        duplicates=len(keep) - sum(keep),
        clusters=sum(size > 1 for size in sizes.values()),
        too_short=sum(cell is not None and cell.simhash is None for cell in cells),
        without_text=cells.count(None),
        scheme=recipe.name,
    )


def _parquet() -> Any:
    with requires("Parquet", "pyarrow", extra="parquet"):
        import pyarrow.parquet as pq
    return pq


def _chunks(
    path: Path, names: Sequence[str], *, only: bool = False
) -> Iterator[tuple[Any, list[list[Any]], tuple[int, int]]]:
    """Yield rows, or only these columns of them, the values of the columns, and the progress."""
    if path.suffix == ".parquet":
        file = _parquet().ParquetFile(path)
        for name in names:
            if name not in file.schema_arrow.names:
                columns = ", ".join(file.schema_arrow.names)
                raise invalid_argument(f"{path} has no column {name!r}; it has {columns}")
        done, total = 0, file.metadata.num_rows
        for batch in file.iter_batches(ROWS, columns=names if only else None):
            done += len(batch)
            yield batch, [batch.column(name).to_pylist() for name in names], (done, total)
        return
    with path.open("rb") as file:
        while lines := list(islice(file, ROWS)):
            rows = [_fields(line, path) for line in lines] if names else []
            values = [[row.get(name) for row in rows] for name in names]
            yield lines, values, (file.tell(), path.stat().st_size)


def _fields(line: bytes, path: Path) -> Mapping[str, Any]:
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise invalid_argument(f"{path} has a line that is no JSON object: {line[:80]!r}")
    return fields


@contextmanager
def _writer(path: Path, output: Path) -> Iterator[Callable[[Any, Sequence[bool]], None]]:
    """Lend a function that writes those of the rows of a file that are kept."""
    with ExitStack() as stack:
        file = stack.enter_context(replacing(output))
        if path.suffix != ".parquet":
            yield lambda rows, keep: file.writelines(
                line if line.endswith(b"\n") else line + b"\n" for line in compress(rows, keep)
            )
            return
        pq = _parquet()
        schema = pq.ParquetFile(path).schema_arrow
        writer = stack.enter_context(pq.ParquetWriter(file, schema))
        yield lambda rows, keep: writer.write_batch(rows.filter(keep))


def _write_clusters(path: Path, members: Sequence[dict[str, Any]]) -> None:
    with replacing(path) as file:
        if path.suffix != ".parquet":
            lines = (json.dumps(member, ensure_ascii=False, default=str) for member in members)
            file.writelines(f"{line}\n".encode() for line in lines)
            return
        import pyarrow as pa

        columns = {name: [one[name] for one in members] for name in ("cluster", "id", "distance")}
        _parquet().write_table(pa.table(columns), file)
