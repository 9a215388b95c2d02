"""When to fetch a page again, by how often it changed.

The rule is that of Apache Nutch's AdaptiveFetchSchedule (class
``org.apache.nutch.crawl.AdaptiveFetchSchedule``, with the defaults of its ``nutch-default.xml``): a
visit that finds the page unchanged makes the interval 1.4 times as long, one that finds it changed
0.8 times, between a minute and a year. (Nutch's ``sync_delta``, which moves visits towards the
times of changes, is left out: it takes the time of modification, which nobody knows here.)

Nutch counts every fetch, also the ones that find the page unchanged. A collection has no record of
every visit: a page that comes again unchanged adds no version, and only the last time at which the
version was met is kept (its ``seen_at``). So the rule is played back against the times of the
versions, until the last of them was last met: a visitor begins at the first version with the
interval to the first change, comes again whenever the rule says, and finds the page changed where
a version came between. What came later nobody saw, and nothing is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol

from pgsimhash.bits import band, hamming_distance
from pgsimhash.times import check_zone

GROWTH: Final = 0.4
SHRINKAGE: Final = 0.2
SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=365)
FIRST: Final = timedelta(days=30)
"""The interval of a page of which no change is known."""


class Visited(Protocol):
    """A version of a page: when it came and when it was last met, as the rule sees it."""

    @property
    def simhash(self) -> int:
        """The simhash of its content."""

    @property
    def fetched_at(self) -> datetime:
        """When it first came."""

    @property
    def seen_at(self) -> datetime:
        """When it was last met."""


class Visit(NamedTuple):
    """A version of a page, with nothing but what the rule needs."""

    simhash: int
    fetched_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class RecrawlHint:
    """How long to wait for the next visit.

    ``changes`` versions brought other content, between ``known_from`` and ``known_until``;
    ``due_at`` is ``interval`` after the latter.
    """

    interval: timedelta
    due_at: datetime
    changes: int
    known_from: datetime
    known_until: datetime

    @property
    def wait(self) -> str:
        """The interval in words: minutes, hours or days."""
        minutes = self.interval.total_seconds() / 60
        for name, length in (("days", 1440), ("hours", 60)):
            if minutes >= 2 * length:
                return f"{minutes / length:,.1f} {name}"
        return f"{minutes:,.1f} minutes"

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the interval in seconds."""
        return {
            "interval_seconds": round(self.interval.total_seconds()),
            "due_at": self.due_at.isoformat(),
            "changes": self.changes,
            "known_from": self.known_from.isoformat(),
            "known_until": self.known_until.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class FetchAdvice:
    """Whether to fetch a page: it is not known, and has no ``hint``, or it is due."""

    url: str
    fetch: bool
    hint: RecrawlHint | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        hint = {} if self.hint is None else {"recrawl": self.hint.as_json()}
        return {"url": self.url, "fetch": self.fetch, **hint}


def fetch_advice(
    url: str, versions: Sequence[Visited], *, now: datetime | None = None
) -> FetchAdvice:
    """Return whether to fetch a page.

    Args:
        url: the page.
        versions: its versions, none if it is not known.
        now: the time to decide for, with a time zone; by default the present.

    Raises:
        ArgumentError: ``now`` names no zone.
    """
    moment = datetime.now(UTC) if now is None else check_zone(now)
    if not versions:
        return FetchAdvice(url, True, None)
    hint = recrawl_hint(versions)
    return FetchAdvice(url, hint.due_at <= moment, hint)


def recrawl_hint(
    versions: Sequence[Visited],
    seen_at: datetime | None = None,
    *,
    first: timedelta = FIRST,
    shortest: timedelta = SHORTEST,
    longest: timedelta = LONGEST,
) -> RecrawlHint:
    """Return when to fetch a page again; the module says by which rule.

    A version counts as a change if its content moved by more than 3 bits; another template around
    the same content does not.

    Args:
        versions: the versions of one page in the order in which they came, as
            ``pgsimhash.analysis.versions`` returns them.
        seen_at: a later time than theirs at which it was fetched and found unchanged, if there
            was one; without a time zone, in UTC.
        first: the interval where no change is known.
        shortest: no interval is shorter.
        longest: no interval is longer.

    Raises:
        ValueError: there is no version, or ``shortest`` is above ``longest`` or not above 0.
    """
    if not versions:
        raise ValueError("a hint takes one version or more; pgsimhash.analysis.versions() has them")
    if not timedelta(0) < shortest <= longest:
        raise ValueError("the shortest interval is above 0 and not above the longest")
    begin = min(version.fetched_at for version in versions)
    until = max(version.seen_at for version in versions)
    if seen_at is not None:
        until = max(until, seen_at if seen_at.tzinfo else seen_at.replace(tzinfo=UTC))
    moved = {
        after.fetched_at
        for before, after in pairwise(versions)
        if band(hamming_distance(before.simhash, after.simhash)) != "identical"
    }
    changes = sorted(moved - {begin})
    interval = changes[0] - begin if changes else first
    interval = min(max(interval, shortest), longest)
    visited, seen = begin, 0
    while until - visited >= interval:
        visited += interval
        found = seen
        while found < len(changes) and changes[found] <= visited:
            found += 1
        interval *= 1 - SHRINKAGE if found > seen else 1 + GROWTH
        interval = min(max(interval, shortest), longest)
        seen = found
    return RecrawlHint(interval, _later(until, interval), len(changes), begin, until)


def _later(moment: datetime, interval: timedelta) -> datetime:
    try:
        return moment + interval
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
