"""Recall and false matches by distance, the recommended distance, and where pages are found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgsimhash import Store, connect
from pgsimhash.analysis import evaluate
from pgsimhash.analysis.evaluation import (
    Evaluation,
    Print,
    find_pages,
    fingerprint_pages,
    stored_fingerprints,
)
from pgsimhash.analysis.pairs import Label, LabelledPair
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.records import PageFailure
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from pgsimhash.sources import SourcePage
from tests.html import texts
from tests.refusals import because

STORY, OTHER = texts.TEXT, texts.STORY


def bits(count: int) -> int:
    return (1 << count) - 1


Labels = list[tuple[Label, int]]


def evaluated(pairs: Labels, precision: float = 0.999) -> Evaluation:
    """Evaluate pairs at these distances, without signatures."""
    labelled = [LabelledPair("0", f"{i}", label) for i, (label, _) in enumerate(pairs, start=1)]
    prints: dict[str, Print | None] = {"0": Print(0)}
    prints |= {f"{i}": Print(bits(distance)) for i, (_, distance) in enumerate(pairs, start=1)}
    return evaluate(labelled, prints, precision=precision)


def test_recall_and_precision_are_of_the_pairs_within_the_distance() -> None:
    pairs: Labels = [("copy", 0), ("copy", 4), ("copy", 20), ("distinct", 4), ("distinct", 30)]
    curve = evaluated(pairs).curve
    assert [at.distance for at in curve] == list(range(17))
    assert curve[3].counts.recall == pytest.approx(1 / 3)
    assert curve[3].counts.precision == 1
    assert curve[4].counts == curve[4].unverified == (2, 3, 1, 2)
    assert curve[4].counts.recall == curve[4].counts.precision == pytest.approx(2 / 3)
    # Pages without a fingerprint count, and unread ones do not.
    copy, other = LabelledPair("1", "2", "copy"), LabelledPair("1", "3", "distinct")
    graded = LabelledPair("1", "3", "graded")
    unread = evaluate([copy, graded], {"1": Print(7)})
    assert unread.omitted == 1
    assert unread.curve[-1].counts.recall is None
    short = evaluate([copy, other], {"1": Print(7), "2": None, "3": None})
    assert short.curve[-1].counts == (0, 1, 0, 1)


def test_the_recommended_distance_is_the_one_that_ingest_can_use() -> None:
    """Different pages of one template are 6 bits apart; only their signatures tell them apart."""
    copy, sibling = Print(bits(8), bits(22)), Print(bits(6) << 20, bits(60))
    prints = {"original": Print(0, 0), "copy": copy, "sibling": sibling}
    pairs = [
        LabelledPair("original", "copy", "copy"),
        LabelledPair("original", "sibling", "distinct", "template"),
    ]
    best = evaluate(pairs, prints).best
    assert best is not None
    assert (best.distance, best.counts, best.unverified) == (8, (1, 1, 0, 1), (1, 1, 1, 1))
    assert best.kinds["template"] == (0, 0, 0, 1)
    # Without signatures, no distance is precise: the sibling is nearer than the copy.
    bare = {name: page._replace(signature=None) for name, page in prints.items()}
    assert evaluate(pairs, bare).best is None


RISING: Labels = [("copy", 2), ("copy", 5), ("distinct", 9), ("copy", 12)]


@pytest.mark.parametrize(("pairs", "precision", "distance"), [
    (RISING, 0.999, 5), (RISING, 0.7, 12),
    ([("distinct", 0), *[("copy", 3)] * 9], 0.9, 3),  # precision may recover
    ([("distinct", 0), ("copy", 0)], 0.999, None), ([("distinct", 40)], 0.999, None),
    ([("copy", 3), ("copy", 13)], 0.999, 3),  # a search has at most 12 bits
])  # fmt: skip
def test_the_recommended_distance(pairs: Labels, precision: float, distance: int | None) -> None:
    best = evaluated(pairs, precision).best
    assert (best and best.distance) == distance


def test_too_few_matches_and_an_impossible_precision() -> None:
    pairs: Labels = [("copy", 1), ("copy", 6), ("distinct", 40)]
    assert "too few matches to tell a precision of 0.999" in evaluated(pairs).sentence
    assert "too few" not in evaluated(pairs, precision=0.5).sentence
    never = "At no distance is the precision 0.999 or better."
    assert evaluated([("distinct", 0)]).sentence == never
    unread = evaluate([LabelledPair("0", "1", "copy")], {"0": Print(0)})
    assert unread.sentence == "Each of the 1 pairs misses a page; failures name them."
    with pytest.raises(
        ArgumentError, match="precision is a number from 0 to 1", check=because("invalid_argument")
    ):
        evaluated(RISING, 99)


@pytest.mark.parametrize("make", [
    dict, pd.DataFrame, lambda columns: pd.DataFrame(columns).convert_dtypes(), pl.DataFrame,
    pa.table,
])  # fmt: skip
def test_texts_of_a_data_frame_are_evaluated(make: Callable[[dict[str, Any]], Any]) -> None:
    columns = {
        "a": [STORY, STORY, "Two words", STORY],
        "b": [STORY.replace("calm", "quiet"), OTHER, OTHER, STORY],
        "label": ["duplicate", "different", "different", None],
        "kind": ["print", None, None, None], "note": [1, 2, 3, 4],
    }  # fmt: skip
    source = make(columns)
    evaluation = evaluate(source)
    assert evaluation.scheme == "pgsimhash-text-1"
    assert [(page.url, page.reason) for page in evaluation.failures] == [("Two words", "too_short")]
    assert evaluation.curve[16].counts == (1, 1, 0, 2)
    assert evaluation.curve[16].kinds == {"print": (1, 1, 0, 0), "": (0, 0, 0, 2)}
    with pytest.raises(ArgumentError, check=because("unknown_scheme")):
        evaluate(source, scheme="typo")
    with pytest.raises(ArgumentError, match="the data frame: the column label is missing"):
        evaluate({"a": ["1"], "b": ["2"]})
    with pytest.raises(ArgumentError, match="row 1: a and b are the same"):
        evaluate({"a": ["1", "2"], "b": ["2", "2"], "label": ["same", "same"]})


def test_pages_of_files_and_of_a_store_give_the_same_figures(store: Store, tmp_path: Path) -> None:
    names = {"one": STORY, "two": STORY.replace("calm", "quiet"), "three": OTHER}
    rows = ["a,b,label,kind", "one,two,duplicate,edit", "one,three,different,", "two,gone,graded,"]
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    for name, text in names.items():
        (tmp_path / f"{name}.html").write_text(f"<p>{text}")
        store.ingest(f"https://a.example/{name}", f"<p>{text}")
    of_files = evaluate(tmp_path / "pairs.csv")
    assert of_files.scheme == "pgsimhash-article-1"
    assert of_files.curve[16].kinds == {"": (0, 0, 0, 1), "edit": (1, 1, 0, 0)}
    assert evaluate(str(tmp_path / "pairs.csv"), tmp_path).curve == of_files.curve
    known = [
        LabelledPair("https://a.example/one", "https://a.example/two", "copy", "edit"),
        LabelledPair("https://a.example/one", "https://a.example/three", "distinct"),
        LabelledPair("https://a.example/one", "https://a.example/none", "distinct"),
    ]
    stored = evaluate(known, store)
    assert stored.curve == of_files.curve
    assert (stored.omitted, stored.failures[0].url) == (1, "https://a.example/none")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_scheme_for_texts_reads_the_texts_of_rows(tmp_path: Path, suffix: str) -> None:
    path, texts = (
        tmp_path / f"rows{suffix}",
        ["Red oak table, 80 cm", "RED oak table 80cm", "Lamp 3"],
    )
    rows = [{"url": f"sku {at}", "text": text} for at, text in enumerate(texts)]
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    pairs = [LabelledPair("sku 0", "sku 1", "copy"), LabelledPair("sku 0", "sku 2", "distinct")]
    evaluation = evaluate(pairs, path, scheme="pgsimhash-short-1")
    assert (evaluation.failures, evaluation.curve[8].counts) == ([], (1, 1, 0, 1))


TEXT = " ".join(f"w{number}x" for number in range(50))


def found(names: list[str], *places: Path) -> dict[str, str]:
    """The HTML of each page, or the reason of its failure."""
    told = {}
    for name, page in find_pages(names, places):
        text = page.detail if isinstance(page, PageFailure) else page.html
        told[name] = text if isinstance(text, str) else text.decode()
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "one.html").write_text("<p>one")
    (tmp_path / "pages" / "two.htm").write_text("<p>two")
    return tmp_path


def test_folders_paths_and_archives_know_pages(folder: Path) -> None:
    names = ["one", "one.html", "two", "pages/two.htm"]
    pages = ["<p>one", "<p>one", "<p>two", "<p>two"]
    assert [*found(names, folder).items()] == list(zip(names, pages, strict=True))
    path = folder / "one.html"
    assert found([path.as_uri(), str(path)]) == {path.as_uri(): "<p>one", str(path): "<p>one"}
    archive = folder / "crawl.jsonl"
    lines = [{"url": f"https://a.example/{n}", "html": f"<p>{n}"} for n in (1, 2, 2, 3)]
    archive.write_text("\n".join(map(json.dumps, lines)))
    urls = ["https://a.example/2", "https://a.example/3"]
    assert found(urls, archive) == dict(zip(urls, ["<p>2", "<p>3"], strict=True))
    # A missing page is a failure that names the fix.
    names = ["nowhere", "x" * 5000, "nul\0", "https://a.example/"]
    told = found(names, folder)
    assert list(told) == names
    assert all("--pages" in why for why in told.values())


def test_a_page_has_a_fingerprint_or_none_or_could_not_be_read() -> None:
    good = SourcePage("https://a.example/1", f"<p>{TEXT}")
    pages: dict[str, SourcePage | PageFailure] = {
        "good": good,
        "short": SourcePage("https://a.example/2", "<p>short"),
        "picture": SourcePage("https://a.example/3", b"\x89PNG\r\n\x1a\n"),
        "gone": PageFailure("https://a.example/4", "unreadable", "gone"),
    }
    done: list[tuple[int, int]] = []
    prints, failures = fingerprint_pages(
        pages.items(), DEFAULT_SCHEME, progress=lambda *counts: done.append(counts), total=4
    )
    assert done[-1] == (4, 4)
    vote = DEFAULT_SCHEME.vote(DEFAULT_SCHEME.extract(good.html, None, None))
    assert prints == {"good": (vote.simhash, vote.signature), "short": None, "picture": None}
    assert [(failure.url, failure.reason) for failure in failures] == [
        ("short", "too_short"), ("picture", "not_html"), ("gone", "unreadable"),
    ]  # fmt: skip


def test_stored_fingerprints(store: Store, dsn: str) -> None:
    known = {f"https://a.example/{n}": n << 50 for n in range(40)}
    list(store.add_pages([("https://a.example/7", 3), *known.items()], distance=0))
    with connect(dsn, collection="other", create=True) as other:
        other.add_page("https://b.example/", 1)
    unknown = ["https://b.example/", "", "a.html", "https://a.example/\0"]
    prints, failures = stored_fingerprints(store, [*known, *unknown])
    assert {url: page and page.simhash for url, page in prints.items()} == known
    assert [failure.url for failure in failures] == unknown
    (detail,) = {failure.detail for failure in failures}
    assert detail == "collection 'default' has no page with this URL"
    store.ingest("https://a.example/signed", f"<p>{TEXT}")
    prints, _ = stored_fingerprints(store, ["https://a.example/signed"])
    page = prints["https://a.example/signed"]
    assert page is not None
    assert page.signature is not None
