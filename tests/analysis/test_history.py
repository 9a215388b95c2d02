"""The changes of a page from version to version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgsimhash.analysis.history import Change, Snapshot, as_versions, judge

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


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


def test_a_version_is_compared_with_the_one_before_and_with_the_first() -> None:
    first, second, third = as_versions(
        [
            Snapshot("https://a.example/", 0b0000, BEGIN, structure=0),
            Snapshot("https://a.example/", 0b1111, BEGIN, structure=2**13 - 1),
            Snapshot("https://a.example/", 0b0011, BEGIN),
        ]
    )
    assert (first.number, first.distance, first.distance_to_first, first.change) == (
        1,
        None,
        0,
        None,
    )
    assert (second.distance, second.structure_distance, second.change) == (4, 13, "redesign")
    assert (third.distance, third.distance_to_first, third.structure_distance) == (2, 2, None)
    assert first.as_json()["simhash"] == "0" * 16


def test_a_version_has_the_time_when_it_was_last_seen() -> None:
    page = Snapshot("https://a.example/", 0, BEGIN)
    (never_again,) = as_versions([page])
    assert never_again.seen_at == BEGIN
    (met,) = as_versions([page._replace(seen_at=BEGIN + 60 * DAY)])
    assert met.as_json()["seen_at"] == "2026-03-02T00:00:00+00:00"
