"""Find all pairs of near-duplicates as pages, and read labelled pairs."""

import csv
import io
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.pages.records import JsonRecord
from pgsimhash.runtime import no_progress
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared, Pairs, stream_pairs
from pgsimhash.store import Store
from pgsimhash.store.lookups import Calls

LARGEST: Final = 16
"""The largest distance that is evaluated; beyond it matches are random."""

_PAIRS: Final = 2_000  # per lookup of pages
_SHOWN: Final = 10

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


@dataclass(frozen=True, slots=True)
class PagePair(JsonRecord):
    """Two pages by their URLs, and their distance in bits."""

    a: str
    b: str
    distance: int
    a_title: str | None
    b_title: str | None
    a_simhash: int
    b_simhash: int


def page_pairs(
    store: Store, distance: int | None = None, *, progress: Compared = no_progress
) -> Generator[PagePair]:
    """Yield the pairs of ``Store.pairs`` as pages with their URLs, in bounded memory.

    Only current versions count. The first page of a simhash represents it in pairs with other
    simhashes. It also forms a pair at distance 0 with each page of the same simhash. So 10,000
    pages with one simhash give 9,999 pairs, from which the 50 million follow. ``distance`` and
    ``progress`` are as for ``Store.pairs``. The transaction stays open, as with ``Store.clusters``;
    pages added or deleted meanwhile may be missing.
    """
    store.collection.checked_distance(distance, DISTANCE_MAX)
    return _page_pairs(store, distance, progress)


def _page_pairs(store: Store, distance: int | None, progress: Compared) -> Generator[PagePair]:
    with store._session.calls_to_read(one_transaction=True) as calls:
        limit = calls.collection.checked_distance(distance, DISTANCE_MAX)
        simhashes = calls.simhashes()
        with closing(calls.stream("clusters", simhashes=[], clusters=[])) as rows:
            for simhash, members in groupby(rows, key=itemgetter(0)):
                value = from_bigint(simhash)
                pages = ((url, title) for _, _, url, _, _, title, *_ in members)
                first, first_title = next(pages)
                for url, title in pages:
                    yield PagePair(first, url, 0, first_title, title, value, value)
        for chunk in stream_pairs(simhashes, limit, progress=progress):
            yield from _as_pages(calls, chunk)


def _as_pages(calls: Calls, chunk: Pairs) -> Iterator[PagePair]:
    """Yield the pairs of a chunk as the first pages of their simhashes."""
    for start in range(0, len(chunk.low), _PAIRS):
        low, high, distances = (column[start : start + _PAIRS] for column in chunk)
        signed = np.unique(np.concatenate((low, high))).view(np.int64).tolist()
        rows = calls.fetch("first_pages", simhashes=signed)
        first = {from_bigint(simhash): page for simhash, *page in rows}
        for a, b, bits in zip(low.tolist(), high.tolist(), distances.tolist(), strict=True):
            if a in first and b in first:
                (url, title), (other, other_title) = first[a], first[b]
                yield PagePair(url, other, bits, title, other_title, a, b)


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two pages (URLs, names of files, or the texts themselves), and whether one is a copy.

    The label is ``graded`` if people would disagree. ``kind`` is that of the copy or difference.
    """

    a: str
    b: str
    label: Label
    kind: str = ""


def read_labels(source: object) -> list[LabelledPair]:
    """Return the pairs in a CSV file or a data frame, each once.

    ``source`` is the path of the file, a data frame of pandas, Polars or PyArrow, or a dictionary
    of columns. These are ``a``, ``b``, ``label`` and optionally ``kind``. A label is ``near-dup``,
    ``duplicate`` or ``same``, ``distinct`` or ``different``, or ``graded``, in any case. Rows
    without a label are omitted. A file is in UTF-8, with commas, semicolons or tabs.

    Raises:
        ArgumentError: the file cannot be read, no pair has a label, or rows are invalid; the
            message names the first lines and the fix.
    """
    if isinstance(source, str | Path):
        name, place, rows = str(source), "line", _file_rows(Path(source))
    else:
        name, place, rows = "the data frame", "row", _frame_rows(source)
    pairs: dict[frozenset[str], tuple[int, str, LabelledPair]] = {}
    problems: list[str] = []
    unlabelled = 0
    for line, row in rows:
        word = row["label"].lower()
        if not word:
            unlabelled += 1
            continue
        problem = _problem(row, word)
        if problem is None:
            pair = LabelledPair(row["a"], row["b"], _LABELS[word], row.get("kind", ""))
            key = frozenset((pair.a, pair.b))
            first_line, first_word, first = pairs.setdefault(key, (line, word, pair))
            if first.label != pair.label:
                other = f"{first_word} in {place} {first_line}"
                problem = f"the pair is {word} here and {other}; keep one of them"
        if problem is not None:
            problems.append(f"{place} {line}: {problem}")
    if len(problems) > _SHOWN:
        problems[_SHOWN:] = [f"and {len(problems) - _SHOWN} more"]
    if not problems and all(pair.label == "graded" for *_, pair in pairs.values()):
        left = f"{unlabelled} rows have no label yet"
        problems = [f"no pair is labelled duplicate or different ({left}); label some"]
    if problems:
        raise _invalid(name, "\n".join(problems))
    return [pair for *_, pair in pairs.values()]


def _invalid(name: object, problem: str) -> ArgumentError:
    return ArgumentError("invalid_file", f"{name}: {problem}")


def _problem(row: dict[str, str], word: str) -> str | None:
    for column in ("a", "b"):
        if not row[column]:
            return f"{column} is empty; write the URL or the path of a page, or a text"
    if row["a"] == row["b"]:
        return "a and b are the same; name two pages, or two texts"
    if word not in _LABELS:
        return f"{row['label']!r} is not a label; write one of {', '.join(_LABELS)}"
    return None


def _frame_rows(frame: Any) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each row, from 0, and its values as texts."""
    names = list(getattr(frame, "column_names", getattr(frame, "columns", frame)))
    _check_columns("the data frame", names)
    columns = [name for name in ("a", "b", "label", "kind") if name in names]
    for number, values in enumerate(zip(*(frame[name] for name in columns), strict=True)):
        yield number, dict(zip(columns, map(_text, values), strict=True))


def _text(value: object) -> str:
    value = value.as_py() if hasattr(value, "as_py") else value
    # Missing values are None, NaN, or pandas' NA, which has no truth value.
    missing = value is None or type(value).__name__ == "NAType" or value != value
    return "" if missing else str(value).strip()


def _check_columns(name: object, names: list[str]) -> None:
    for column in _COLUMNS:
        if column not in names:
            fix = f"name the columns {', '.join(_COLUMNS)} in the first line"
            raise _invalid(name, f"the column {column} is missing; {fix}")


def _file_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
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
        _check_columns(path, names)
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(names):
                problem = f"{len(cells)} values for {len(names)} columns"
                fix = "put a value that contains the delimiter in double quotes"
                raise _invalid(path, f"line {reader.line_num}: {problem}; {fix}")
            yield reader.line_num, dict(zip(names, map(str.strip, cells), strict=True))
    except csv.Error as error:
        fix = "close each double quote, and write one inside a value twice"
        raise _invalid(path, f"line {reader.line_num}: {error}; {fix}") from None
