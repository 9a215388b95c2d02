"""The versions of a page, the kinds of change, and two texts side by side."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis.changes import CHARS_MAX, Change, judge, side_by_side
from pgsimhash.errors import NotFoundError
from pgsimhash.sources import SourcePage
from tests.conftest import ROOT
from tests.refusals import because

URL = "https://a.example/x"


def page(name: str) -> bytes:
    return (ROOT / "examples" / "pages" / f"{name}.html").read_bytes()


@pytest.mark.parametrize(("same", "distance", "structure", "change"), [
    (True, 0, None, "same"), (True, 3, 12, "same"), (True, 9, 12, "same"),
    (True, 9, 13, "redesign"), (False, 0, None, "edited"), (False, 4, 0, "edited"),
    (False, 8, 12, "edited"), (False, 9, None, "rewritten"), (False, 9, 13, "rewritten"),
    (False, 8, 13, "redesign"), (False, 0, 13, "redesign"),
])  # fmt: skip
def test_text_content_and_structure_decide_the_kind_of_change(
    same: bool, distance: int, structure: int | None, change: Change
) -> None:
    assert judge(distance, structure, same=same) == change


def test_versions_come_oldest_first_with_what_changed(dsn: str) -> None:
    keeping = connect(dsn, collection="keeping", keep_markdown=True)
    for name in ("tide-pools", "tide-pools-redesign", "tide-pools-redesign", "night-train"):
        keeping.ingest(URL, page(name))
    found = analysis.versions(keeping, URL)
    assert [version.change for version in found] == [None, "redesign", "rewritten"]
    assert [version.number for version in found] == [1, 2, 3]
    assert (found[1].structure_distance or 0) > 12
    assert found[2].distance_to_first == (found[0].simhash ^ found[2].simhash).bit_count()
    assert all(version.markdown for version in found)
    assert not any(version.markdown for version in analysis.versions(keeping, URL, markdown=False))
    with pytest.raises(NotFoundError, check=because("unknown_page")):
        analysis.versions(keeping, f"{URL}/none")
    keeping.close()


def test_versions_keep_the_order_in_which_they_came(store: Store) -> None:
    newer, older = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    store.add(URL, 0, fetched_at=newer)
    store.add(URL, 255, fetched_at=older)
    store.add(URL, 3)
    first, second, third = analysis.versions(store, URL)
    assert (first.fetched_at, second.fetched_at) == (newer, older)
    assert (first.distance, first.distance_to_first, first.change) == (None, 0, None)
    assert (second.distance, second.structure_distance) == (8, None)
    assert (third.distance, third.distance_to_first) == (6, 2)
    assert first.as_json()["simhash"] == "0" * 16


def test_a_page_that_comes_again_unchanged_was_seen_then(store: Store) -> None:
    begin, day = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
    once, again = "https://a.example/once", "https://a.example/again"
    for address, time in ((once, begin), (again, begin), (again, begin + 60 * day)):
        html = page("tide-pools" if address == once else "night-train")
        (verdict,) = store.ingest_many([SourcePage(address, html, fetched_at=time)])
    assert verdict.verdict == "unchanged"
    (never_again,), (met,) = analysis.versions(store, once), analysis.versions(store, again)
    assert (never_again.seen_at, met.seen_at) == (begin, begin + 60 * day)


PARAGRAPHS = [f"Paragraph {n} speaks of {n * 7} other things at length." for n in range(12)]
OLD, NEW = PARAGRAPHS[5], PARAGRAPHS[5].replace("other", "better")


def same(text: str) -> dict[str, str]:
    return {"kind": "same", "a": text, "b": text}


def changed(a: str, only_a: str, b: str, only_b: str) -> dict[str, Any]:
    return {"kind": "changed", "a": a, "only_a": [only_a], "b": b, "only_b": [only_b]}


@pytest.mark.parametrize(("left", "right", "rows"), [
    ("\n\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS), [{"kind": "skipped", "paragraphs": 12}]),
    ("\n".join(PARAGRAPHS), "\n".join([*PARAGRAPHS[:5], NEW, *PARAGRAPHS[6:]]), [
        {"kind": "skipped", "paragraphs": 4}, same(PARAGRAPHS[4]),
        changed(OLD, "other", NEW, "better"),
        same(PARAGRAPHS[6]), {"kind": "skipped", "paragraphs": 5},
    ]),
    ("one\ntwo", "two\nthree", [
        {"kind": "removed", "a": "one"}, same("two"), {"kind": "added", "b": "three"},
    ]),
    ("", "a", [{"kind": "added", "b": "a"}]), ("", "", []),
    # Scripts without spaces are compared by characters.
    ("朝市は六時に始まる", "朝市は七時に始まる",
     [changed("朝市は六時に始まる", "六", "朝市は七時に始まる", "七")]),
])  # fmt: skip
def test_texts_differ_by_paragraphs_and_words(
    left: str, right: str, rows: list[dict[str, Any]]
) -> None:
    assert side_by_side(left, right).as_json() == {"cut": False, "rows": rows}


def test_a_changed_paragraph_beside_a_new_one_is_still_found() -> None:
    other = [*PARAGRAPHS[:5], "Quite another sentence.", "Paragraph 5 speaks of 35 odd things."]
    rows = side_by_side("\n".join(PARAGRAPHS[:6]), "\n".join(other), context=0).rows
    assert [row.kind for row in rows] == ["skipped", "added", "changed"]


def test_a_text_that_is_too_long_is_cut_and_marked() -> None:
    assert side_by_side("a " * CHARS_MAX, "b").cut
    assert side_by_side("a\n" * 3000, "b").cut
    assert side_by_side("\n".join(PARAGRAPHS), "x\n" * 9, rows=3).cut


def test_hostile_texts_end() -> None:
    rng = random.Random(1)
    one, other = (
        "\n".join(" ".join(rng.choices("ab", k=60)) for _ in range(1500)) for _ in range(2)
    )
    assert side_by_side(one, other).rows
    assert side_by_side("a " * 49_999, "b a " * 24_999).rows


lines = st.lists(st.text(alphabet="ab c", max_size=6), max_size=8).map("\n".join)


@given(lines, lines)
def test_the_rows_contain_both_texts(a: str, b: str) -> None:
    rows = side_by_side(f"{a}\nA", f"{b}\nB", context=20).rows
    for side, whole in (("left", f"{a}\nA"), ("right", f"{b}\nB")):
        pieces = [getattr(row, side) for row in rows]
        kept = ["".join(piece.text for piece in line) for line in pieces if line]
        assert kept == [line.strip() for line in whole.splitlines() if line.strip()]
