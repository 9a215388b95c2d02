"""Moments and ages, checked: with a time zone, from 1970 to now, not negative."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from pgsimhash.errors import ArgumentError

_CLOCKS_DIFFER: Final = timedelta(days=1)
"""How far ahead of ours another machine's clock may be before its times count as mistakes."""

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""No page was fetched before; such times are those of clocks and programs that know none."""

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


def check_time(time: datetime, *, now: datetime | None = None) -> datetime:
    """Return ``time`` in UTC, if it names its zone and is from 1970 to now (a day is forgiven).

    Raises:
        ArgumentError: it does not, or it is not.
    """
    moment = check_zone(time)
    if moment > (now or datetime.now(UTC)) + _CLOCKS_DIFFER:
        raise ArgumentError(
            "invalid_time",
            f"the time {time.isoformat()} is in the future; correct it, or leave it out for now",
        )
    if moment < EARLIEST:
        raise ArgumentError(
            "invalid_time",
            f"the time {time.isoformat()} is before 1970; correct it, or leave it out for now",
        )
    return moment


def check_zone(time: datetime) -> datetime:
    """Return ``time`` in UTC, if it names its zone.

    PostgreSQL knows fewer zones than Python (none 16 hours or more from UTC), and other years.

    Raises:
        ArgumentError: it does not, is no ``datetime``, or is outside the years 1 to 9999 in UTC.
    """
    if not isinstance(time, datetime):
        raise ArgumentError(
            "invalid_time",
            f"a time is a datetime with a zone, such as datetime.now(UTC), not {time!r:.80}",
        )
    if time.utcoffset() is None:
        raise ArgumentError(
            "invalid_time",
            f"the time {time.isoformat()} names no zone; give it one, such as tzinfo=datetime.UTC",
        )
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ArgumentError(
            "invalid_time", f"the time {time.isoformat()} is in no year from 1 to 9999; correct it"
        ) from None


def back(moment: datetime, age: timedelta) -> datetime | None:
    """Return the time so long before ``moment``; None if no page can be from before that."""
    return moment - age if age < moment - EARLIEST else None


def check_age(age: timedelta) -> timedelta:
    """Return ``age``, if it is more than nothing and reaches no further back than the year 1.

    Raises:
        ArgumentError: it is not, or does.
    """
    if not isinstance(age, timedelta):
        raise ArgumentError(
            "invalid_age", f"an age is a timedelta, such as timedelta(days=90), not {age!r}"
        )
    longest = datetime.now(UTC) - datetime.min.replace(tzinfo=UTC)
    if not timedelta(0) < age < longest:
        raise ArgumentError(
            "invalid_age",
            f"an age, such as 90 days, is more than nothing and reaches no further back than the "
            f"year 1, unlike {age}",
        )
    return age


def parse_age(text: str) -> timedelta:
    """Return the age written as a number and a unit: 90d, 12h, 30m, 45s or 2w.

    Raises:
        ArgumentError: the text is none.
    """
    found = _AGE.fullmatch(text.strip().lower())
    try:
        if found is not None:
            return check_age(timedelta(**{_UNITS[found[2]]: float(found[1])}))
    except OverflowError:
        pass
    raise ArgumentError(
        "invalid_age", f"{text!r} is no age; write a number and a unit: 90d, 12h, 30m, 45s, 2w"
    )
