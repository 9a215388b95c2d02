"""Moments and ages as people write them, and as they mistype them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pgsimhash import InvalidTimeError
from pgsimhash.times import check_age, check_time, parse_age

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)


def test_a_time_in_another_zone_is_the_same_moment() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert check_time(there, now=NOW) == NOW


def test_clocks_may_differ_by_a_day() -> None:
    check_time(NOW + timedelta(hours=23), now=NOW)
    with pytest.raises(InvalidTimeError, match="in the future; correct it"):
        check_time(NOW + timedelta(hours=25), now=NOW)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidTimeError, match="names no zone; give it one"):
        check_time(datetime(2024, 2, 29, 12), now=NOW)


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("90d", timedelta(days=90)),
        (" 1.5 H ", timedelta(hours=1, minutes=30)),
        ("30m", timedelta(minutes=30)),
        ("45s", timedelta(seconds=45)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "0d", "1y", "9999999d", "9" * 400 + "d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InvalidTimeError):
        parse_age(text)


def test_an_age_is_more_than_nothing() -> None:
    with pytest.raises(InvalidTimeError, match="such as timedelta"):
        check_age(timedelta(0))


def test_an_age_is_no_number() -> None:
    with pytest.raises(InvalidTimeError, match="an age is a timedelta, such as"):
        check_age(30)  # type: ignore[arg-type]
