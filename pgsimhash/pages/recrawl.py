"""Compute when to fetch a page again, by how often it changed.

The rule is that of Apache Nutch (class ``org.apache.nutch.crawl.AdaptiveFetchSchedule``, with the
defaults of its ``nutch-default.xml``). A visit to an unchanged page multiplies the interval by 1.4,
a visit to a changed page by 0.8, within a minute and a year. Nutch's ``sync_delta``, which moves
visits towards the times of changes, is left out: it needs the time of modification.

Nutch counts every fetch. A collection stores no visit that finds the page unchanged, except the
last one (``seen_at``). So the rule is simulated on the times of the versions. Visits begin at the
first version, with the interval to the first change, and follow the rule until the last
``seen_at``. A visit finds the page changed if a version was added since the visit before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol

from pgsimhash.hashing.bits import band, hamming_distance
from pgsimhash.pages.times import check_zone

GROWTH: Final = 0.4
SHRINKAGE: Final = 0.2
SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=365)
FIRST: Final = timedelta(days=30)
"""The interval of a page without known changes."""


class Content(Protocol):
    """The content of a version."""

    @property
    def simhash(self) -> int:
        """The simhash of its content."""

    @property
    def text_digest(self) -> int | None:
        """The digest of its text, if known."""


class Visited(Content, Protocol):
    """A version of a page, as the rule needs it."""

    @property
    def fetched_at(self) -> datetime:
        """When it was first fetched."""

    @property
    def seen_at(self) -> datetime:
        """When it was last seen."""


class Visit(NamedTuple):
    """A version of a page, with the values that the rule needs."""

    simhash: int
    fetched_at: datetime
    seen_at: datetime
    text_digest: int | None = None


@dataclass(frozen=True, slots=True)
class RecrawlHint:
    """How long to wait for the next visit.

    ``changes`` is the number of versions with different content between ``known_from`` and
    ``known_until``. ``due_at`` is ``interval`` after ``known_until``.
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
    """Whether to fetch a page: it is unknown, and has no ``hint``, or it is due."""

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
        url: the page's URL.
        versions: its versions; empty if the page is unknown.
        now: the time of the decision, with a time zone; by default the current time.

    Raises:
        ArgumentError: ``now`` has no zone.
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
    """Return when to fetch a page again, by the rule of this module.

    A version is a change if its text differs from the version before; without text digests, if its
    content differs by more than 3 bits. A new template around the same text is not a change.

    Args:
        versions: the versions of one page in order, as ``pgsimhash.analysis.versions`` returns
            them.
        seen_at: a later time at which the page was fetched and unchanged, if any; UTC without a
            time zone.
        first: the interval without known changes.
        shortest: the shortest interval.
        longest: the longest interval.

    Raises:
        ValueError: ``versions`` is empty, or ``shortest`` is above ``longest`` or not above 0.
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
        if not is_same_content(before, after)
    }
    changes = sorted(moved - {begin})
    interval = changes[0] - begin if changes else first
    interval = min(max(interval, shortest), longest)
    visited, seen = begin, 0
    while until - visited >= interval:
        visited += interval
        past = bisect_right(changes, visited)
        interval *= 1 - SHRINKAGE if past > seen else 1 + GROWTH
        interval = min(max(interval, shortest), longest)
        seen = past
    return RecrawlHint(interval, _later(until, interval), len(changes), begin, until)


def is_same_content(before: Content, after: Content) -> bool:
    """Return whether two versions have the same text; if that is unknown, 0 to 3 differing bits."""
    if before.text_digest is not None and after.text_digest is not None:
        return before.text_digest == after.text_digest
    return band(hamming_distance(before.simhash, after.simhash)) == "duplicate"


def _later(moment: datetime, interval: timedelta) -> datetime:
    try:
        return moment + interval
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
