"""Times and ages, valid and invalid."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.pages.values import EARLIEST, back, check_age, check_time, parse_age
from tests.refusals import because

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize("hours", [-23, -16, 9, 16, 23])
def test_a_time_in_another_zone_is_the_same_moment(hours: int) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=hours, minutes=59)))
    checked = check_time(there, now=NOW)
    assert (checked, checked.tzinfo) == (NOW, UTC)
    assert checked.isoformat() == NOW.isoformat()
    for time in (EARLIEST, NOW + timedelta(hours=23)):
        assert check_time(time, now=NOW) == time


@pytest.mark.parametrize(("time", "reason"), [
    (datetime(1, 1, 1, tzinfo=UTC), "before 1970"),
    (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), "before 1970"),
    (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "no year from 1"),
    (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), "no year from 1"),
    ("2024-02-29T12:00:00Z", "a time is a datetime"), (date(2024, 2, 29), "a time is a datetime"),
    (1709208000, "a time is a datetime"), (datetime(2024, 2, 29, 12), "names no zone; give it one"),
    (NOW + timedelta(hours=25), "in the future; correct it"),
])  # fmt: skip
def test_an_impossible_time_of_fetching_is_refused(time: Any, reason: str) -> None:
    with pytest.raises(ArgumentError, match=reason):
        check_time(time, now=NOW)


def test_an_age_before_all_pages_excludes_none() -> None:
    assert back(NOW, timedelta(days=1)) == NOW - timedelta(days=1)
    assert back(NOW, timedelta(days=366 * 60)) is None
    assert back(EARLIEST, timedelta(days=700_000)) is None


@pytest.mark.parametrize(("text", "age"), [
    *(("90d", timedelta(days=90)), (" 1.5 H ", timedelta(minutes=90))),
    *(("30m", timedelta(minutes=30)), ("45s", timedelta(seconds=45))), ("2w", timedelta(weeks=2)),
])  # fmt: skip
def test_an_age_is_a_number_and_a_unit(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


TEXTS = ["", "90", "d", "-1d", "0d", "1y", "9999999d", "9" * 400 + "d"]


@pytest.mark.parametrize(("check", "age"), [
    *((parse_age, text) for text in TEXTS), (check_age, timedelta(0)), (check_age, 30),
])  # fmt: skip
def test_an_invalid_age_is_refused(check: Any, age: Any) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        check(age)
