"""The kinds of change of a page; versions are in test_known_pages.py."""

from __future__ import annotations

import pytest

from pgsimhash.analysis.history import Change, judge


@pytest.mark.parametrize(
    ("same", "distance", "structure", "change"),
    [
        (True, 0, None, "same"),
        (True, 3, 12, "same"),
        (True, 9, 12, "same"),
        (True, 9, 13, "redesign"),
        (False, 0, None, "edited"),
        (False, 4, 0, "edited"),
        (False, 8, 12, "edited"),
        (False, 9, None, "rewritten"),
        (False, 9, 13, "rewritten"),
        (False, 8, 13, "redesign"),
        (False, 0, 13, "redesign"),
    ],
)
def test_text_content_and_structure_decide_the_kind_of_change(
    same: bool, distance: int, structure: int | None, change: Change
) -> None:
    assert judge(distance, structure, same=same) == change
