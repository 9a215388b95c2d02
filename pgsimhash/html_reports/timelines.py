"""Compute the timeline of a page's versions; ``templates/timeline.html`` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pgsimhash.analysis.history import Version

# Narrow, so that phones hardly shrink the text.
WIDTH: Final = 400
LEFT: Final = 30
RIGHT: Final = 388
TOP: Final = 12
BOTTOM: Final = 122
HEIGHT: Final = 158

SHOWN: Final = 500
"""How many of the newest versions of a page are drawn."""

_LOWEST_TOP: Final = 12
_SHORT: Final = timedelta(days=3)


class Point(NamedTuple):
    """A version: its place, the change of the page, and its tooltip."""

    x: float
    y: float
    change: str
    tooltip: str


class Tick(NamedTuple):
    """A label of an axis, and its place along that axis."""

    at: float
    label: str
    anchor: str = "end"


class Timeline(NamedTuple):
    """The versions by time (x) and by bits to the first version (y), as coordinates."""

    points: list[Point]
    line: str
    times: list[Tick]
    bits: list[Tick]


def timeline(versions: Sequence[Version]) -> Timeline:
    """Return the timeline of the newest :data:`SHOWN` versions of a page.

    Args:
        versions: one or more.
    """
    shown = versions[-SHOWN:]
    moments = [version.fetched_at for version in shown]
    begin, end = min(moments), max(moments)
    highest = max(_LOWEST_TOP, *(version.distance_to_first for version in shown))
    points = [
        Point(
            _place(version.fetched_at, begin, end),
            _height(version.distance_to_first, highest),
            version.change or "first",
            _tooltip(version),
        )
        for version in shown
    ]
    # As steps: a version holds until the next visit.
    line = f"M{points[0].x} {points[0].y}" + "".join(f"H{at.x}V{at.y}" for at in points[1:])
    bits = [Tick(_height(value, highest), str(value)) for value in (0, highest // 2, highest)]
    return Timeline(points, line, _times(begin, end), bits)


def _place(moment: datetime, begin: datetime, end: datetime) -> float:
    if begin == end:
        return (LEFT + RIGHT) / 2
    return round(LEFT + 8 + (RIGHT - LEFT - 16) * ((moment - begin) / (end - begin)), 1)


def _height(bits: int, highest: int) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * bits / highest, 1)


def _times(begin: datetime, end: datetime) -> list[Tick]:
    shape = "%m-%d %H:%M" if end - begin < _SHORT else "%Y-%m-%d"
    if begin == end:
        return [Tick((LEFT + RIGHT) / 2, begin.strftime("%Y-%m-%d %H:%M"), "middle")]
    middle = begin + (end - begin) / 2
    return [
        Tick(LEFT, begin.strftime(shape), "start"),
        Tick((LEFT + RIGHT) / 2, middle.strftime(shape), "middle"),
        Tick(RIGHT, end.strftime(shape), "end"),
    ]


def _tooltip(version: Version) -> str:
    when = version.fetched_at.isoformat(sep=" ", timespec="minutes")
    if version.change is None:
        return f"{when}: first version"
    moved = f"{version.distance} bits from the version before"
    return f"{when}: {version.change}, {moved}, {version.distance_to_first} from the first"
