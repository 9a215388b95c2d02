"""Read labelled pairs from a CSV file or a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pgsimhash.errors import ArgumentError

Label = Literal["copy", "distinct", "graded"]

_LABELS: Final[dict[str, Label]] = {
    "near-dup": "copy",
    "duplicate": "copy",
    "same": "copy",
    "distinct": "distinct",
    "different": "distinct",
    "graded": "graded",
}
_COLUMNS: Final = ("a", "b", "label")
_DELIMITERS: Final = (",", ";", "\t")
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two pages and whether one is a copy of the other.

    Attributes:
        a: one page: a URL, a path, an id, or the text itself.
        b: the other page.
        label: ``copy``, ``distinct``, or ``graded`` if people would disagree.
        kind: the kind of copy or difference; empty if not given.
    """

    a: str
    b: str
    label: Label
    kind: str = ""


def read_labels(source: object) -> list[LabelledPair]:
    """Return the pairs in a CSV file or a data frame, each once.

    The columns are ``a``, ``b``, ``label`` and optionally ``kind``. A label is ``near-dup``,
    ``duplicate`` or ``same``, ``distinct`` or ``different``, or ``graded``, in any case. Rows
    without a label are omitted. In a file, the delimiter is a comma, a semicolon or a tab; the
    encoding is UTF-8.

    Args:
        source: the path of the file; or a data frame of pandas, Polars or PyArrow, or a dictionary
            of columns.

    Raises:
        ArgumentError: the file cannot be read, no pair has a label, or rows are invalid; the
            message names the first lines and the fix.
    """
    is_file = isinstance(source, str | Path)
    name, place = (str(source), "line") if is_file else ("the data frame", "row")
    rows = file_rows(Path(source)) if isinstance(source, str | Path) else _frame_rows(source)
    pairs: dict[frozenset[str], tuple[int, LabelledPair]] = {}
    unlabelled = 0
    problems: list[str] = []
    for line, row in rows:
        word = row["label"].lower()
        if not word:
            unlabelled += 1
            continue
        problem = _problem(row, word)
        if problem is None:
            pair = LabelledPair(row["a"], row["b"], _LABELS[word], row.get("kind", ""))
            first_line, first = pairs.setdefault(frozenset((pair.a, pair.b)), (line, pair))
            if first.label != pair.label:
                problem = (
                    f"the pair is {pair.label} here and {first.label} in {place} {first_line}; "
                    "keep one of them"
                )
        if problem is not None:
            problems.append(f"{place} {line}: {problem}")
    if problems:
        more = len(problems) - _SHOWN
        shown = [*problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise _invalid(name, "\n".join(shown))
    if all(pair.label == "graded" for _, pair in pairs.values()):
        raise _invalid(
            name,
            f"no pair is labelled duplicate or different ({unlabelled} rows have no label yet); "
            "label some",
        )
    return [pair for _, pair in pairs.values()]


def _invalid(name: object, problem: str) -> ArgumentError:
    return ArgumentError("invalid_file", f"{name}: {problem}")


def _problem(row: dict[str, str], word: str) -> str | None:
    for column in ("a", "b"):
        if not row[column]:
            return f"{column} is empty; write the URL, the path or the id of a page, or a text"
    if row["a"] == row["b"]:
        return "a and b are the same; name two pages, or two texts"
    if word not in _LABELS:
        return f"{row['label']!r} is not a label; write one of {', '.join(_LABELS)}"
    return None


def _frame_rows(frame: Any) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each row, from 0, and its values as texts."""
    names = getattr(frame, "column_names", None)  # of PyArrow
    names = list(getattr(frame, "columns", frame) if names is None else names)
    _check_columns("the data frame", names)
    columns = [name for name in ("a", "b", "label", "kind") if name in names]
    cells = (_as_list(frame[name]) for name in columns)
    for number, values in enumerate(zip(*cells, strict=True)):
        yield number, dict(zip(columns, map(_text, values), strict=True))


def _as_list(column: Any) -> Iterable[object]:
    return column.to_pylist() if hasattr(column, "to_pylist") else column  # type: ignore[no-any-return]


def _text(value: object) -> str:
    # Missing values are None, NaN, or pandas' NA, which has no truth value.
    missing = value is None or type(value).__name__ == "NAType" or value != value
    return "" if missing else str(value).strip()


def _check_columns(name: object, names: list[str], required: Sequence[str] = _COLUMNS) -> None:
    for column in required:
        if column not in names:
            raise _invalid(
                name,
                f"the column {column} is missing; name the columns {', '.join(required)} in the "
                "first line",
            )


def file_rows(
    path: Path, required: Sequence[str] = _COLUMNS
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of the last line and the stripped values of each row that is not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _invalid(path, f"the file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _invalid(path, f"line {line}: not UTF-8; save the file as UTF-8") from None
    head = text.partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True
    )
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        _check_columns(path, names, required)
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(names):
                raise _invalid(
                    path,
                    f"line {reader.line_num}: {len(cells)} values for {len(names)} columns; put a "
                    "value that contains the delimiter in double quotes",
                )
            values = (cell.strip() for cell in cells)
            yield reader.line_num, dict(zip(names, values, strict=True))
    except csv.Error as error:
        raise _invalid(
            path,
            f"line {reader.line_num}: {error}; close each double quote, and write one inside a "
            "value twice",
        ) from None
