"""Two texts side by side."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.analysis.differences import CHARS_MAX, Difference, Row, side_by_side

PARAGRAPHS = [f"Paragraph {n} speaks of {n * 7} other things at length." for n in range(12)]


def kinds(difference: Difference) -> list[str]:
    return [row.kind for row in difference.rows]


def text(row: Row, side: str) -> str:
    return "".join(piece.text for piece in getattr(row, side))


def test_equal_texts_have_no_difference() -> None:
    found = side_by_side("\n\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS))
    assert kinds(found) == ["skipped"]
    assert found.rows[0].skipped == 12
    assert not found.cut


def test_a_changed_word_is_marked_in_its_paragraph() -> None:
    other = PARAGRAPHS.copy()
    other[5] = other[5].replace("other things", "better things")
    found = side_by_side("\n".join(PARAGRAPHS), "\n".join(other))
    assert kinds(found) == ["skipped", "same", "changed", "same", "skipped"]
    assert [piece.text for piece in found.rows[2].left if piece.changed] == ["other "]
    assert [piece.text for piece in found.rows[2].right if piece.changed] == ["better "]
    assert found.as_json()["rows"][2]["only_b"] == ["better"]
    assert found.as_json()["rows"][0] == {"kind": "skipped", "paragraphs": 4}


def test_a_changed_paragraph_beside_a_new_one_is_still_found() -> None:
    other = [*PARAGRAPHS[:5], "Quite another sentence.", "Paragraph 5 speaks of 35 odd things."]
    found = side_by_side("\n".join(PARAGRAPHS[:6]), "\n".join(other), context=0)
    assert kinds(found) == ["skipped", "added", "changed"]


def test_text_on_one_side_only_is_removed_or_added() -> None:
    found = side_by_side("one\ntwo", "two\nthree")
    assert [(row.kind, text(row, "left"), text(row, "right")) for row in found.rows] == [
        ("removed", "one", ""),
        ("same", "two", "two"),
        ("added", "", "three"),
    ]
    assert kinds(side_by_side("", "a")) == ["added"]
    assert kinds(side_by_side("", "")) == []


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    (row,) = side_by_side("朝市は六時に始まる", "朝市は七時に始まる").rows
    assert [piece.text for piece in row.left if piece.changed] == ["六"]


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
        kept = [text(row, side) for row in rows if getattr(row, side)]
        assert kept == [line.strip() for line in whole.splitlines() if line.strip()]
