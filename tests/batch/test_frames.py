"""Frames of pandas, Polars and PyArrow get the decisions of a store."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pgsimhash import ArgumentError, Store, connect
from pgsimhash.batch.frames import COLUMNS, mark_duplicates
from pgsimhash.batch.originals import find_originals
from pgsimhash.hashing.signature import verified
from pgsimhash.html import Article
from pgsimhash.schemes import Scheme, ShingleWeights, read_text
from pgsimhash.schemes.registry import DEFAULT_SCHEME, SHORT_SCHEME, TEXT_SCHEME
from pgsimhash.schemes.texts import Cell
from pgsimhash.sources import SourcePage, read_pages
from tests.conftest import ROOT
from tests.html.made_streams import Stream
from tests.refusals import because

Maker = Callable[[dict[str, Any]], Any]
MAKERS: list[Maker] = [pd.DataFrame, pl.DataFrame, pa.table]

PAGES = [page for page in read_pages([ROOT / "examples" / "pages"]) if isinstance(page, SourcePage)]

WORDS = [f"word{number}" for number in range(500)]


def made_texts(count: int) -> list[str]:
    """Texts of 60 words: most are copies of others with some words changed."""
    rng = random.Random(3)
    texts = [rng.choices(WORDS, k=60) for _ in range(5)]
    while len(texts) < count:
        text = list(rng.choice(texts))
        for _ in range(rng.randrange(6)):
            text[rng.randrange(60)] = rng.choice(WORDS)
        texts.append(text)
    return [" ".join(text) for text in texts]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame, with None for null."""
    if isinstance(frame, pd.DataFrame):
        rows: list[dict[str, Any]] = frame.astype(object).to_dict("records")  # type: ignore[assignment]
        return [{k: None if v is pd.NA else v for k, v in row.items()} for row in rows]
    return frame.rows(named=True) if isinstance(frame, pl.DataFrame) else frame.to_pylist()


def marked_texts(texts: list[str], **options: Any) -> pl.DataFrame:
    return mark_duplicates(pl.DataFrame({"text": texts}), "text", **options)


def added(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in COLUMNS[:5]) for row in rows_of(frame)]


def by_store(store: Store, pages: Sequence[str | bytes], **options: Any) -> list[tuple[Any, ...]]:
    """A store's verdicts on the same rows."""
    urls = [f"https://example.com/{row}" for row in range(len(pages))]
    row_of = dict(zip(urls, range(len(pages)), strict=True))
    return [
        (
            verdict.simhash,
            verdict.duplicate_of is not None,
            None if verdict.duplicate_of is None else row_of[verdict.duplicate_of],
            verdict.distance,
            verdict.reason if verdict.reason != "same_bytes" else "same_simhash",
        )
        for verdict in store.ingest_many(zip(urls, pages, strict=True), **options)
    ]


@pytest.mark.filterwarnings("ignore:1 of 24 pages have too few words")
def test_pages_are_marked_as_a_store_decides(store: Store) -> None:
    pages = [page.html for page in PAGES]
    urls = [f"https://example.com/{row}" for row in range(len(pages))]
    verdicts = by_store(store, pages)
    options: list[dict[str, Any]] = [{}, {"url_column": "url"}, {"jobs": 2}]
    for make, some in zip(MAKERS, options, strict=True):
        frame = make({"page": pages, "url": urls})
        marked = mark_duplicates(frame, "page", kind="html", **some)
        assert type(marked) is type(frame)
        assert added(marked) == verdicts


def test_pages_are_cut_by_selectors() -> None:
    pages = list(Stream(0).template(250, 20, 12, " id=own"))
    frame = pl.DataFrame({"html": pages})
    copies = mark_duplicates(frame, "html", kind="html")["is_duplicate"].sum()
    assert (
        copies > mark_duplicates(frame, "html", kind="html", content="#own")["is_duplicate"].sum()
    )
    with pytest.raises(ArgumentError, match="takes no selectors"):
        mark_duplicates(pl.DataFrame({"text": ["a b"]}), "text", content="p")
    with pytest.raises(ArgumentError, match="need HTML"):
        mark_duplicates(frame, "html", scheme=DEFAULT_SCHEME, content="p")
    with pytest.raises(ArgumentError, match="selector 1"):
        mark_duplicates(frame, "html", kind="html", ignore="a + b")


@pytest.mark.parametrize(
    "options",
    [{"distance": 8}, {"distance": 8, "verify": False}, {"distance": 3}, {"distance": 12}],
)
def test_texts_are_marked_as_a_store_decides(options: dict[str, Any], dsn: str) -> None:
    texts = made_texts(400)
    with connect(dsn, scheme=TEXT_SCHEME) as store:
        verdicts = by_store(store, texts, **options)
    for make in MAKERS:
        assert added(mark_duplicates(make({"text": texts}), "text", **options)) == verdicts
    distances = {distance for _, _, _, distance, _ in verdicts if distance}
    assert len(distances) > 2


@pytest.mark.parametrize("make", MAKERS)
def test_no_row_is_lost(make: Maker) -> None:
    text = made_texts(5)[0]
    texts = [None, "too little", text, "", text, None]
    frame = make({"text": texts, "number": list(range(6))})
    with pytest.warns(UserWarning, match="2 of 4 texts have fewer than the 20 words"):
        marked = rows_of(mark_duplicates(frame, "text", scheme=TEXT_SCHEME))
    assert [row["number"] for row in marked] == list(range(6))
    assert [row["reason"] for row in marked] == [
        "null", "too_short", "first_seen", "too_short", "same_simhash", "null",
    ]  # fmt: skip
    assert [row["duplicate_of"] for row in marked] == [None, None, None, None, 2, None]
    assert [row["simhash"] is None for row in marked] == [1, 1, 0, 1, 0, 1]
    with pytest.warns(UserWarning, match="1 of 2 pages have too few words"):
        pages = mark_duplicates(make({"page": [b"%PDF-1.7", b"<p>" * 9]}), "page", kind="html")
    assert [row["reason"] for row in rows_of(pages)] == ["not_html", "too_short"]


def test_rows_are_named_by_labels_or_ids() -> None:
    text, other, *_ = made_texts(5)
    frame = pd.DataFrame({"text": [text, other, text], "id": [7, 8, 9]}, index=["x", "y", "z"])
    marked = mark_duplicates(frame, "text")
    assert (list(marked.index), list(frame.columns)) == (["x", "y", "z"], ["text", "id"])
    assert str(marked.dtypes) == str(mark_duplicates(frame[:0], "text").dtypes)
    assert marked["simhash"].dtype == "UInt64"
    assert marked["duplicate_of"]["z"] == "x"
    assert marked[~marked["is_duplicate"]]["text"].tolist() == [text, other]
    # Equal labels cannot name rows, but a column can.
    frame.index = pd.Index(["x", "x", "y"])
    with pytest.raises(ArgumentError, match="equal or missing", check=because("invalid_argument")):
        mark_duplicates(frame, "text")
    marked = mark_duplicates(frame, "text", id_column="id")
    assert list(marked.index) == ["x", "x", "y"]
    assert marked["duplicate_of"].tolist() == [pd.NA, pd.NA, 7]
    for make in MAKERS:
        for ids in ([7, 8, 9], ["a", "b", "c"], [datetime(2024, 5, day) for day in (1, 2, 3)]):
            named = make({"text": [text, other, text], "id": ids})
            rows = rows_of(mark_duplicates(named, "text", id_column="id"))
            assert [row["cluster"] for row in rows] == [ids[0], ids[1], ids[0]]
            assert rows[2]["duplicate_of"] == ids[0]
            assert pd.isna(rows[0]["duplicate_of"])
    # Floats, in which pandas keeps integers with gaps, have too few bits.
    exact = [2**60 + 1, 2**60 + 3, 2**60 + 5]
    ordered = pd.CategoricalDtype(exact, ordered=True)
    for dtype in ("int64", "object", "category", ordered):
        named = pd.DataFrame({"text": [text, other, text], "id": pd.Series(exact, dtype=dtype)})
        marked = mark_duplicates(named, "text", id_column="id")
        assert marked["duplicate_of"].tolist()[2] == exact[0]
    # Columns of any name, and labels of several levels.
    for column in (0, ("shop", "title")):
        marked = mark_duplicates(pd.DataFrame({column: ["red oak table"] * 2}), column)  # type: ignore[arg-type]
        assert marked["duplicate_of"].tolist()[1] == 0
    frame.index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    assert mark_duplicates(frame, "text")["cluster"].tolist() == [("a", 1), ("a", 2), ("a", 1)]


@pytest.mark.parametrize("make", MAKERS)
def test_clusters(make: Maker) -> None:
    texts = made_texts(300)
    rows = rows_of(mark_duplicates(make({"text": texts}), "text"))
    clusters = [row["cluster"] for row in rows]
    for at, row in enumerate(rows):
        of = row["duplicate_of"]
        assert clusters[at] == (at if of is None else clusters[of])
    assert 5 <= len({*clusters}) < 150


def test_most_texts_decide_the_scheme_for_all() -> None:
    long, other, *_ = made_texts(2)
    titles = ["Tide clock, 8 cm, brass", "Tide clock, 9 cm, brass", "TIDE CLOCK, 8CM, brass"]
    assert marked_texts(titles)["duplicate_of"].to_list() == [None, None, 0]
    assert marked_texts([long, *titles[:2]])["simhash"][0] == SHORT_SCHEME.simhash(long)
    with pytest.warns(UserWarning, match="1 of 3 texts"):
        marked = marked_texts([long, titles[0], other])
    assert marked["simhash"].to_list() == [
        TEXT_SCHEME.simhash(long), None, TEXT_SCHEME.simhash(other),
    ]  # fmt: skip
    # Or it is given.
    scheme = Scheme("words", read_text, ShingleWeights((1,)), min_tokens=1, distance=0)
    marked = marked_texts(["one two", "two one", "three"], scheme=scheme)
    assert marked["duplicate_of"].to_list() == [None, 0, None]
    near = [long, f"{long} more"]
    assert marked_texts(near, scheme=TEXT_SCHEME)["distance"].to_list()[1] > 0
    assert marked_texts(near, scheme=scheme)["duplicate_of"].to_list() == [None, None]


def test_equal_texts_are_marked_whatever_their_length() -> None:
    texts = ["Ferry", " Ferry\n", "", "", "ferry", "a  b", "a b"]
    said = "7 of 7 texts .* scheme for short texts is 'pgsimhash-short-1'; only equal ones"
    with pytest.warns(UserWarning, match=said):
        marked = marked_texts(texts, scheme=TEXT_SCHEME)
    assert marked["duplicate_of"].to_list() == [None, 0, None, None, None, None, 5]
    assert marked["distance"].to_list() == [None, 0, None, None, None, None, 0]
    equal, short = "same_text", "too_short"
    assert marked["reason"].to_list() == [short, equal, short, short, short, short, equal]


@dataclass(frozen=True)
class FirstWords:
    """The first word decides the simhash, all words the signature."""

    def __call__(self, tokens: Sequence[str], article: Article) -> dict[str, float]:
        first, *others = tokens
        return {first: 1e6} | dict.fromkeys(others, 1.0)


def test_different_texts_of_one_simhash_are_verified() -> None:
    scheme = Scheme("first", read_text, FirstWords(), min_tokens=1)
    bay, pier = " ".join(WORDS[:30]), " ".join([WORDS[0], *WORDS[100:130]])
    texts = [bay, pier, f"{pier}.", f"{bay}!", f"{WORDS[200]} {bay}"]
    assert scheme.simhash(bay) == scheme.simhash(pier)
    for verify, originals in ((True, [None, None, 1, 0, None]), (False, [None, 0, 0, 0, None])):
        marked = marked_texts(texts, scheme=scheme, verify=verify)
        assert marked["duplicate_of"].to_list() == originals


@pytest.mark.parametrize("jobs", [1, 2])
def test_texts_are_near_by_default_if_one_of_both_simhashes_is(jobs: int) -> None:
    votes = [TEXT_SCHEME.vote(read_text(text)) for text in made_texts(400)]
    nearest: list[tuple[int, int] | None] = []
    for own in votes:
        found = []
        for row, other in enumerate(votes[: len(nearest)]):
            bits = (own.simhash ^ other.simhash).bit_count()
            second = ((own.signature ^ other.signature) >> 64).bit_count()
            if min(bits, second) <= 11 and verified(bits, own.signature, other.signature):
                found.append((bits, row))
        nearest.append(min(found, default=None))
    assert sum(one is not None and one[0] > 11 for one in nearest) > 2
    cells = [Cell(vote.simhash, vote.signature) for vote in votes]
    originals = find_originals(cells, TEXT_SCHEME, jobs=jobs)
    assert [one and (one.distance, one.row) for one in originals] == nearest
    for options in ({"distance": 11}, {"verify": False}):
        originals = find_originals(cells, TEXT_SCHEME, jobs=jobs, **options)
        assert max(one.distance for one in originals if one) <= 11


TEXTS = {"text": ["a b", "c d"]}
LOST: list[Any] = [
    pl.DataFrame({**TEXTS, "id": pl.Series([1, 2]).cast(pl.Datetime("ns"))}),
    pl.DataFrame({**TEXTS, "id": pl.Series([object(), object()], dtype=pl.Object)}),
    pa.table({**TEXTS, "id": [{"a": 1}, {"a": 2}]}),
    pa.table({**TEXTS, "id": pa.array([b"a", b"b"], pa.binary(1))}),
]
INVALID: list[tuple[Any, str, dict[str, Any], str]] = [
    (TEXTS, "text", {}, "a frame must be a collected DataFrame"),
    (pl.LazyFrame(TEXTS), "text", {}, r"is lazy, .* pass its collect\(\)"),
    (pl.DataFrame(TEXTS), "text", {"id_column": "id"}, "no column 'id'"),
    (pl.DataFrame({**TEXTS, "id": [1, 1]}), "text", {"id_column": "id"}, "equal or missing values"),
    (pd.DataFrame({**TEXTS, "id": [1, None]}), "text", {"id_column": "id"}, "equal or missing"),
    (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "text", {}, "distinct column names"),
    (pl.DataFrame(TEXTS), "html", {}, "no column 'html'; it has 'text'"),
    (pd.DataFrame(TEXTS), "text", {"url_column": "url"}, "no column 'url'"),
    (pd.DataFrame({"text": ["a", 5]}), "text", {}, "row 1 of column 'text' must be str or null"),
    (pl.DataFrame({"text": [b"a"]}), "text", {}, "must be str or null, not bytes"),
    (pl.DataFrame({"text": [1.5]}), "text", {"kind": "html"}, "must be str or bytes or null"),
    (pl.DataFrame({**TEXTS, "reason": ["", ""]}), "text", {}, "already has a column 'reason'"),
    (pl.Series("text", ["a"]), "text", {}, "a single column: make a frame with it"),
    (pl.DataFrame(TEXTS), "text", {"kind": "pdf"}, "kind must be text or html, not 'pdf'"),
    (pl.DataFrame(TEXTS), "text", {"distance": 13}, "0 to 12"),
    (pl.DataFrame(TEXTS), "text", {"jobs": 0}, "jobs is a number from 1"),
    (pd.DataFrame(TEXTS, index=["x", None]), "text", {}, "equal or missing"),
    *((frame, "text", {"id_column": "id"}, "cast them to strings") for frame in LOST),
]


def test_an_invalid_frame_or_option_is_refused() -> None:
    for frame, column, options, message in INVALID:
        with pytest.raises(ArgumentError, match=message, check=because("invalid_argument")):
            mark_duplicates(frame, column, **options)
