"""Near-duplicates marked in a data frame of pandas, Polars or PyArrow, in memory, no database."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

import numpy as np

from pgsimhash.bits import check_distance
from pgsimhash.errors import ArgumentError, MissingPackageError, install_command
from pgsimhash.html import Article
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.pairs import find_pairs
from pgsimhash.records import PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, TEXT_SCHEME, Scheme, get_scheme, simhash_texts
from pgsimhash.sketch import verified
from pgsimhash.sources import SourcePage
from pgsimhash.workers import extract_many

try:
    import narwhals.stable.v2 as nw
except ImportError as error:
    raise MissingPackageError(
        "not_installed", f"pgsimhash.frames needs narwhals; install it {install_command('frames')}"
    ) from error

Kind = Literal["text", "html"]

Frame = TypeVar("Frame")

COLUMNS: Final = ("simhash", "is_duplicate", "duplicate_of", "distance", "reason")
"""The columns that are added."""


class Read(NamedTuple):
    """What was read in the cells of a column: simhashes, and reasons of those that have none.

    ``sketch`` gives the sketch of a row that has a simhash.
    """

    simhashes: list[int | None]
    reasons: list[str | None]
    sketch: Callable[[int], int | None]


class _Original(NamedTuple):
    """How far the row is that a row duplicates, and which: of two, the lesser counts."""

    distance: int
    row: int


def mark_duplicates(
    frame: Frame,
    column: str,
    *,
    kind: Kind = "text",
    distance: int | None = None,
    scheme: Scheme | str | None = None,
    url_column: str | None = None,
    verify: bool = True,
    jobs: int = 1,
) -> Frame:
    """Return the frame with columns that say which rows are near-duplicates of earlier ones.

    Decided as a store decides about pages that come in the order of the rows: the original of a row
    is the nearest earlier row within the distance, of equally near ones the first, whether that is
    a duplicate itself or not. Exact: none is missed. ``duplicate_of`` is the number of that row,
    counted from 0, whatever the index of the frame is. The columns are

    - ``simhash``: 64 bits, unsigned; null where the row has none;
    - ``is_duplicate``: true or false;
    - ``duplicate_of`` and ``distance``: integers, null where the row is no duplicate;
    - ``reason``: ``first_seen``, ``same_simhash`` or ``within_distance``; of a row that has no
      simhash ``null`` if the cell is, else one of ``PageError.reasons``, such as ``too_short``.

    Args:
        frame: a ``pandas.DataFrame``, ``polars.DataFrame`` or ``pyarrow.Table``; it stays as it is.
        column: the name of the column with the texts (str) or pages (str or bytes).
        kind: ``text`` takes each cell for plain text, ``html`` for a page.
        distance: the largest number of differing bits; by default the scheme's.
        scheme: the recipe, or the name of a registered one; by default "pgsimhash-text-1" for
            texts and "pgsimhash-article-1" for pages.
        url_column: the name of the column with the URLs of pages, which some schemes read.
        verify: whether a match more than 5 bits away counts only if the sketches agree as well.
        jobs: in how many processes pages are read; with more than one, the calling script needs
            the usual ``if __name__ == "__main__":`` guard.

    Warns if no cell has a simhash, as when all texts are too short.

    Raises:
        ArgumentError: ``frame`` is no such frame, or has no such column, or something else in it,
            or has a column of a name that is added; there is no such kind or scheme; ``distance``
            is not in 0..12.
    """
    native = _checked_frame(frame)
    if kind not in ("text", "html"):
        raise ArgumentError("invalid_frame", f"kind is text or html, not {kind!r}")
    default = TEXT_SCHEME if kind == "text" else DEFAULT_SCHEME
    recipe = get_scheme(default if scheme is None else scheme)
    limit = check_distance(recipe.distance if distance is None else distance, DISTANCE_MAX)
    cells = _cells(native, column, (str,) if kind == "text" else (str, bytes))
    urls = [None] * len(cells) if url_column is None else _cells(native, url_column, (str,))
    read = read_cells(cells, urls, kind, recipe, jobs)
    _warn_if_all_failed(column, read, recipe)
    originals = _originals(read, limit, verify=verify)
    return cast(Frame, native.with_columns(*_columns(native, read, originals)).to_native())


def _warn_if_all_failed(column: str, read: Read, scheme: Scheme) -> None:
    reasons = Counter(reason for reason in read.reasons if reason != "null")
    if reasons and None not in reasons:
        ((reason, _),) = reasons.most_common(1)
        warnings.warn(
            f"no row is marked: none of the {reasons.total():,} cells of column {column!r} has a "
            f"simhash, mostly because of {reason!r}. If the texts are short, give a scheme for "
            f"fewer than {scheme.min_tokens} words: scheme=dataclasses.replace("
            f"pgsimhash.schemes.get_scheme({scheme.name!r}), name='short', min_tokens=1)",
            stacklevel=3,
        )


def read_cells(
    cells: Sequence[Any], urls: Sequence[str | None], kind: Kind, scheme: Scheme, jobs: int = 1
) -> Read:
    """Return what was read in the cells of a column, of which some may be None."""
    if kind == "text":
        return _read_texts(cells, scheme)
    return _read_pages(cells, urls, scheme, jobs)


def _read_texts(cells: Sequence[str | None], scheme: Scheme) -> Read:
    made = simhash_texts((cell for cell in cells if cell is not None), scheme)
    simhashes = [None if cell is None else next(made) for cell in cells]
    reasons = [
        "null" if cell is None else "too_short" if simhash is None else None
        for cell, simhash in zip(cells, simhashes, strict=True)
    ]

    def sketch(row: int) -> int:
        # Few rows are asked for, and reading all of them would take many times as long.
        text = cells[row] or ""
        return scheme.vote(Article(text, text, None, None, None)).sketch

    return Read(simhashes, reasons, sketch)


def _read_pages(
    cells: Sequence[str | bytes | None], urls: Sequence[str | None], scheme: Scheme, jobs: int
) -> Read:
    # A page is read without a URL as well.
    pages = (
        SourcePage(cast(str, url), cell)
        for cell, url in zip(cells, urls, strict=True)
        if cell is not None
    )
    made = extract_many(pages, jobs, scheme, markdown=False)
    records = [None if cell is None else next(made) for cell in cells]
    return Read(
        [record.simhash if isinstance(record, PageRecord) else None for record in records],
        [
            "null" if record is None else None if isinstance(record, PageRecord) else record.reason
            for record in records
        ],
        lambda row: getattr(records[row], "sketch", None),
    )


def _originals(read: Read, limit: int, *, verify: bool) -> list[_Original | None]:
    """Return for each row the earlier one that it duplicates."""
    originals: list[_Original | None] = [None] * len(read.simhashes)
    rows_of: dict[int, list[int]] = {}
    for row, simhash in enumerate(read.simhashes):
        if simhash is None:
            continue
        alike = rows_of.setdefault(simhash, [])
        if alike:
            originals[row] = _Original(0, alike[0])
        alike.append(row)
    sketches = _Sketches(read.sketch)
    for later, others, distance in _near_firsts(rows_of, limit):
        best = originals[later]
        if best is not None and (distance, others[0]) >= best:
            continue
        for row in others:
            if row > later:
                break
            if not verify or sketches.agree(distance, later, row):
                found = _Original(distance, row)
                originals[later] = found if best is None else min(best, found)
                break
    return originals


def _near_firsts(
    rows_of: Mapping[int, list[int]], limit: int
) -> Iterator[tuple[int, list[int], int]]:
    """Yield the first row of a simhash, the rows of a near one met before, and how near it is."""
    pairs = find_pairs(np.fromiter(rows_of, dtype=np.uint64, count=len(rows_of)), limit)
    # The nearest ones first: then hardly any other needs a look at its sketch.
    order = np.argsort(pairs.distances, kind="stable")
    for low, high, distance in zip(
        pairs.low[order].tolist(),
        pairs.high[order].tolist(),
        pairs.distances[order].tolist(),
        strict=True,
    ):
        one, other = rows_of[low], rows_of[high]
        earlier, later = (one, other) if one[0] < other[0] else (other, one)
        yield later[0], earlier, distance


class _Sketches:
    """The sketches of rows, each made once, when it is asked for."""

    def __init__(self, sketch: Callable[[int], int | None]) -> None:
        self._sketch = sketch
        self._made: dict[int, int | None] = {}

    def agree(self, distance: int, one: int, other: int) -> bool:
        return verified(distance, self._of(one), self._of(other))

    def _of(self, row: int) -> int | None:
        if row not in self._made:
            self._made[row] = self._sketch(row)
        return self._made[row]


def _columns(
    frame: nw.DataFrame[Any], read: Read, originals: Sequence[_Original | None]
) -> Iterator[nw.Series[Any]]:
    pairs = zip(originals, read.reasons, strict=True)
    yield _series(frame, "simhash", read.simhashes, nw.UInt64)
    yield _series(frame, "is_duplicate", [one is not None for one in originals], nw.Boolean)
    yield _series(frame, "duplicate_of", [one and one.row for one in originals], nw.Int64)
    yield _series(frame, "distance", [one and one.distance for one in originals], nw.Int64)
    yield _series(frame, "reason", [reason or _said(one) for one, reason in pairs], nw.String)


def _said(original: _Original | None) -> str:
    if original is None:
        return "first_seen"
    return "within_distance" if original.distance else "same_simhash"


def _series(
    frame: nw.DataFrame[Any], name: str, values: Sequence[Any], dtype: Any
) -> nw.Series[Any]:
    if frame.implementation.is_pandas_like() and issubclass(dtype, nw.dtypes.IntegerType):
        # The integers of NumPy have no null, and floats have not all 64 bits.
        pandas: Any = frame.implementation.to_native_namespace()
        index = nw.maybe_get_index(frame)
        series = pandas.Series(values, dtype=dtype.__name__, name=name, index=index)
        return nw.from_native(series, series_only=True)
    return nw.new_series(name, values, dtype, backend=frame.implementation)


def _checked_frame(frame: object) -> nw.DataFrame[Any]:
    try:
        native: nw.DataFrame[Any] = nw.from_native(cast(Any, frame), eager_only=True)
        names = native.columns
    except Exception as error:  # narwhals has classes of its own for each
        raise ArgumentError(
            "invalid_frame",
            "a frame is a DataFrame of pandas or Polars, collected, or a Table of PyArrow, with "
            f"columns of different names: {error}",
        ) from error
    taken = [name for name in COLUMNS if name in names]
    if taken:
        raise ArgumentError(
            "invalid_frame",
            f"the frame has a column {taken[0]!r} already, and one of that name is to be added; "
            "rename it first",
        )
    return native


def _cells(frame: nw.DataFrame[Any], column: str, types: tuple[type, ...]) -> list[Any]:
    """Return the cells of a column, None where one is null."""
    if column not in frame.columns:
        raise ArgumentError(
            "invalid_frame",
            f"the frame has no column {column!r}; it has {', '.join(map(repr, frame.columns))}",
        )
    series = frame[column]
    nulls = series.is_null().to_list()
    cells = [None if null else cell for cell, null in zip(series.to_list(), nulls, strict=True)]
    for row, cell in enumerate(cells):
        if cell is not None and not isinstance(cell, types):
            wanted = " or ".join(one.__name__ for one in types)
            raise ArgumentError(
                "invalid_frame",
                f"row {row} of column {column!r} is {wanted} or null, not {type(cell).__name__}",
            )
    return cells
