"""Read labelled pairs from a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pgsimhash.errors import ArgumentError

Label = Literal["copy", "distinct", "graded"]

COLUMNS: Final = ("a", "b", "label")
"""The required columns of a file of pairs; ``kind`` is optional, others are ignored."""

_LABELS: Final[dict[str, Label]] = {
    "near-dup": "copy",
    "duplicate": "copy",
    "distinct": "distinct",
    "different": "distinct",
    "graded": "graded",
}
_DELIMITERS: Final = (",", ";", "\t")
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two pages and whether one is a copy of the other.

    Attributes:
        a: the name of one page: a URL, a path, or an id.
        b: the name of the other page.
        label: ``copy``, ``distinct``, or ``graded`` if people would disagree.
        kind: the kind of copy or difference; empty if not given.
    """

    a: str
    b: str
    label: Label
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """The contents of a file of pairs.

    Attributes:
        pairs: the labelled pairs in the file's order, each once.
        unlabelled: the number of rows with an empty label.
        repeated: the number of rows that repeat a pair with the same label.
    """

    pairs: list[LabelledPair]
    unlabelled: int
    repeated: int


def read_labels(path: Path) -> Labels:
    """Return the pairs in a CSV file with the columns ``a``, ``b``, ``label``, optionally ``kind``.

    The delimiter is a comma, a semicolon or a tab; the encoding is UTF-8. A label is
    ``near-dup`` or ``duplicate``, ``distinct`` or ``different``, or ``graded``, in any case. Rows
    with an empty label are only counted.

    Raises:
        ArgumentError: the file cannot be read, or rows are invalid; the message names the first
            lines and the fix.
    """
    pairs: dict[frozenset[str], tuple[int, LabelledPair]] = {}
    unlabelled = repeated = 0
    problems: list[str] = []
    for line, row in _rows(path):
        word = row["label"].lower()
        if not word:
            unlabelled += 1
            continue
        problem = _problem(row, word)
        if problem:
            problems.append(f"line {line}: {problem}")
            continue
        pair = LabelledPair(row["a"], row["b"], _LABELS[word], row.get("kind", ""))
        first_line, first = pairs.setdefault(frozenset((pair.a, pair.b)), (line, pair))
        if first is pair:
            continue
        if first.label == pair.label:
            repeated += 1
        else:
            problems.append(
                f"line {line}: the pair is {pair.label} here and {first.label} in line "
                f"{first_line}; keep one of them"
            )
    if problems:
        more = len(problems) - _SHOWN
        shown = [*problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise ArgumentError("invalid_labels", f"{path}: " + "\n".join(shown))
    return Labels([pair for _, pair in pairs.values()], unlabelled, repeated)


def _problem(row: dict[str, str], word: str) -> str | None:
    for column in ("a", "b"):
        if not row[column]:
            return f"{column} is empty; write the URL, the path or the id of a page"
    if row["a"] == row["b"]:
        return "a and b are the same page; name two pages"
    if word not in _LABELS:
        return f"{row['label']!r} is not a label; write one of {', '.join(_LABELS)}"
    return None


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of the last line and the stripped values of each row that is not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ArgumentError("invalid_labels", f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ArgumentError(
            "invalid_labels", f"{path}: line {line}: not UTF-8; save the file as UTF-8"
        ) from None
    head = text.partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=head.count), strict=True
    )
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise ArgumentError(
                "invalid_labels",
                f"{path}: line 1: the column {missing[0]} is missing; the first line names the "
                "columns: a,b,label and optionally kind",
            )
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(names):
                raise ArgumentError(
                    "invalid_labels",
                    f"{path}: line {reader.line_num}: {len(cells)} values for {len(names)} "
                    "columns; put a value that contains the delimiter in double quotes",
                )
            values = (cell.strip() for cell in cells)
            yield reader.line_num, dict(zip(names, values, strict=True))
    except csv.Error as error:
        raise ArgumentError(
            "invalid_labels",
            f"{path}: line {reader.line_num}: {error}; close each double quote, and write one "
            "inside a value twice",
        ) from None
