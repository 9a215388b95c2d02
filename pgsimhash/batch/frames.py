"""Mark near-duplicates in a data frame of pandas, Polars or PyArrow, in memory."""

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar, cast

from pgsimhash.batch.originals import SAMPLE, Original, find_originals
from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.bits import check_distance
from pgsimhash.pages.records import PageRecord
from pgsimhash.pages.selectors import NO_SELECTORS, Selectors
from pgsimhash.reading.workers import extract_many
from pgsimhash.runtime import requires
from pgsimhash.schemes import Scheme, get_scheme, scheme_for_texts
from pgsimhash.schemes.registry import DEFAULT_SCHEME, TEXT_SCHEME, checked_selectors
from pgsimhash.schemes.texts import Cell, read_texts, too_short
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.sources import SourcePage

with requires("pgsimhash.batch.frames", "narwhals", extra="frames"):
    import narwhals.stable.v2 as nw

__all__ = ["mark_duplicates"]

Kind = Literal["text", "html"]
Frame = TypeVar("Frame")

COLUMNS: Final = ("simhash", "is_duplicate", "duplicate_of", "distance", "reason", "cluster")
"""The added columns."""


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
    id_column: str | None = None,
    content: str | None = None,
    ignore: str | None = None,
) -> Frame:
    """Return the frame with columns that mark near-duplicates of earlier rows.

    Rows are decided like pages that a store receives in this order: the original of a row is the
    nearest earlier row within the distance. Of equally near rows it is the first, even if that is a
    duplicate itself. The search is exact. A row is named by ``id_column``, else by its label in the
    index of pandas, else by its position, counted from 0. The columns are

    - ``simhash``: 64 bits, unsigned; null if the row has none;
    - ``is_duplicate``: true or false;
    - ``duplicate_of``, the name of the original, and ``distance``: null if the row is no duplicate;
    - ``cluster``: the name of the first original, which is no duplicate itself. Copies of copies
      have it too, and an original has its own name;
    - ``reason``: ``first_seen``, ``same_simhash`` or ``within_distance``. Without a simhash it is
      ``null`` for a null cell, ``same_text`` if an earlier text is equal except for white space, or
      one of ``PageError.reasons``, such as ``too_short``.

    A ``UserWarning`` reports the number of rows that were too short.

    Args:
        frame: a ``pandas.DataFrame``, ``polars.DataFrame`` or ``pyarrow.Table``; it is not changed.
        column: the column with the texts (str) or pages (str or bytes).
        kind: ``text`` for plain texts, ``html`` for pages.
        distance: the largest number of differing bits, 0 to 12; by default the scheme's. But with
            "pgsimhash-text-1" and "pgsimhash-short-1", rows are near if their simhashes, or the
            second ones of their signatures, differ in at most 11 bits. So a row may have more.
        scheme: the default is "pgsimhash-article-1" for pages, and one choice of
            :func:`~pgsimhash.schemes.scheme_for_texts` for all texts.
        url_column: the column with the URLs of pages, which some schemes use.
        verify: whether the signatures must also agree; see :mod:`pgsimhash.hashing.signature`.
        jobs: the number of threads for texts, or of processes that read pages. With more than one
            process, the calling script needs the usual ``if __name__ == "__main__":`` guard.
        id_column: the column whose values name the rows.
        content: CSS selectors of the part of a page that counts.
        ignore: CSS selectors of what does not count.
    """
    native = _checked_frame(frame)
    check_added(kind, native.columns, COLUMNS)
    names = _names(native, id_column)
    named = None if scheme is None else get_scheme(scheme)
    if distance is not None:
        check_distance(distance, DISTANCE_MAX)
    cells = _cells(native, column, (str,) if kind == "text" else (str, bytes))
    sample = (cell for cell in cells[:: 1 + len(cells) // SAMPLE] if cell is not None)
    recipe = named or (DEFAULT_SCHEME if kind == "html" else scheme_for_texts(sample))
    reader = recipe if kind == "html" else TEXT_SCHEME
    selectors = checked_selectors(reader, Selectors(content, ignore))
    urls = [None] * len(cells) if url_column is None else _cells(native, url_column, (str,))
    labels: Sequence[Any] = range(len(cells)) if names is None else names.to_list()
    rows = read_cells(cells, urls, kind, recipe, jobs, selectors)
    counts = Counter(row.reason for row in rows)
    if short := counts["too_short"]:
        known = len(cells) - counts["null"]
        message = f"{short:,} of {known:,} pages have too few words for {recipe.name}"
        if kind == "text":
            message = f"{too_short(short, known, recipe)}; only equal ones are marked"
        warnings.warn(message, stacklevel=2)

    originals = find_originals(rows, recipe, distance, jobs, verify=verify)
    firsts = [one.first if one else row for row, one in enumerate(originals)]
    label = nw.Int64() if names is None else names.dtype
    columns: dict[str, tuple[Any, list[Any]]] = {
        "simhash": (nw.UInt64(), [row.simhash for row in rows]),
        "is_duplicate": (nw.Boolean(), [one is not None for one in originals]),
        "duplicate_of": (label, [one and labels[one.row] for one in originals]),
        "distance": (nw.Int64(), [one and one.distance for one in originals]),
        "reason": (nw.String(), list(map(_reason, originals, rows))),
        "cluster": (label, [labels[row] for row in firsts]),
    }
    series = (_series(native, name, *column) for name, column in columns.items())
    return cast(Frame, native.with_columns(*series).to_native())


def check_added(kind: str, columns: Sequence[str], added: Sequence[str]) -> None:
    """Raise unless cells of this kind can be read, and the frame lacks the columns to add."""
    if kind not in ("text", "html"):
        raise invalid_argument(f"kind must be text or html, not {kind!r}")
    if clashes := [name for name in added if name in columns]:
        raise invalid_argument(f"the frame already has a column {clashes[0]!r}; rename it first")


def read_cells(
    cells: Sequence[Any],
    urls: Sequence[str | None],
    kind: Kind,
    scheme: Scheme,
    jobs: int = 1,
    selectors: Selectors = NO_SELECTORS,
) -> list[Cell]:
    """Return the cells of a column, read; they may be None."""
    if kind == "text":
        return list(read_texts(cells, scheme, jobs))
    # A page can be read without a URL.
    pages = (
        SourcePage(cast(str, url), page, **selectors._asdict())
        for page, url in zip(cells, urls, strict=True)
        if page is not None
    )
    results = (
        Cell(record.simhash, record.signature)
        if isinstance(record, PageRecord)
        else Cell(reason=record.reason)
        for record in extract_many(pages, jobs, scheme, markdown=False)
    )
    return [Cell(reason="null") if cell is None else next(results) for cell in cells]


def _reason(original: Original | None, cell: Cell) -> str:
    if original is None:
        return cell.reason or "first_seen"
    if cell.reason is not None:
        return "same_text"
    return "within_distance" if original.distance else "same_simhash"


def _names(frame: nw.DataFrame[Any], id_column: str | None) -> nw.Series[Any] | None:
    """Return the names of rows, or None if these are their positions."""
    index: Any = nw.maybe_get_index(frame)
    if id_column is not None:
        _cells(frame, id_column, (object,))
        names, advice = frame.get_column(id_column), ""
    elif index is None:
        return None
    else:
        names = nw.from_native(index.to_series(), series_only=True)
        advice = ": pass id_column, or frame.reset_index(drop=True)"
    what = "the index" if id_column is None else f"the column {id_column!r}"
    are_distinct, dtype = not names.is_null().any(), names.dtype
    try:
        are_distinct = are_distinct and names.is_unique().all()
        # Python's times have no nanoseconds, for example.
        are_kept = dtype == nw.String or (_series(frame, "", dtype, names.to_list()) == names).all()
    except Exception:  # each library has its own for types that it cannot compare
        are_kept = False
    if not are_distinct:
        raise invalid_argument(f"{what} has equal or missing values, which name no row{advice}")
    if not are_kept:
        raise invalid_argument(f"{what} has values that Python cannot keep; cast them to strings")
    return names


def _series(frame: nw.DataFrame[Any], name: str, dtype: Any, values: list[Any]) -> nw.Series[Any]:
    if frame.implementation.is_pandas_like() and dtype not in (nw.Boolean, nw.String):
        # NumPy integers have no null, and floats, the choice of pandas, have too few bits.
        kind = str(dtype) if dtype.is_integer() else None
        kind = "object" if dtype in (nw.Object, nw.Categorical, nw.Enum) else kind
        pandas: Any = frame.implementation.to_native_namespace()
        series = pandas.Series(values, dtype=kind, name=name, index=nw.maybe_get_index(frame))
        return nw.from_native(series, series_only=True)
    return nw.new_series(name, values, dtype, backend=frame.implementation)


def _checked_frame(frame: object) -> nw.DataFrame[Any]:
    try:
        known = nw.from_native(cast(Any, frame), pass_through=True, allow_series=True)
        if isinstance(known, nw.Series):
            raise TypeError("this one is a single column: make a frame with it")
        if isinstance(known, nw.LazyFrame):
            raise TypeError("this one is lazy, so its rows have no order yet: pass its collect()")
        return nw.from_native(cast(Any, frame), eager_only=True)
    except Exception as error:  # narwhals has a class for each
        raise invalid_argument(
            "a frame must be a collected DataFrame of pandas or Polars, or a PyArrow Table, with "
            f"distinct column names: {error}"
        ) from error


def _cells(frame: nw.DataFrame[Any], column: str, types: tuple[type, ...]) -> list[Any]:
    """Return the cells of a column, with None for null."""
    if column not in frame.columns:
        raise invalid_argument(
            f"the frame has no column {column!r}; it has {', '.join(map(repr, frame.columns))}"
        )
    series = frame.get_column(column)
    nulls = series.is_null().to_list()
    cells = [None if null else cell for cell, null in zip(series.to_list(), nulls, strict=True)]
    for row, cell in enumerate(cells):
        if cell is not None and not isinstance(cell, types):
            expected = " or ".join(type_.__name__ for type_ in types)
            raise invalid_argument(
                f"row {row} of column {column!r} must be {expected} or null, not "
                f"{type(cell).__name__}"
            )
    return cells
