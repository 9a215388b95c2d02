"""What the pages draw: shares as squares and bars, different URLs, and words that changed."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, takewhile
from operator import eq
from typing import TYPE_CHECKING, Final

from pgsimhash.analysis.wording import readable, shortened, without_middle

if TYPE_CHECKING:
    from pgsimhash.analysis.changes import WithWords
    from pgsimhash.analysis.reports import Cause, Report

KINDS: Final = {
    "new": "new",
    "updated": "updated",
    "duplicates": "copies",
    "unchanged": "unchanged",
}
"""The kinds of pages of a run, in the order of their colours, and their names."""

CHANGES: Final = {
    None: "first seen",
    "same": "the same words, but numbers or order differ",
    "edited": "edited",
    "rewritten": "rewritten",
    "redesign": "a new template",
}

MEANINGS: Final = {
    "changed": "changed",
    "moved": "moved to another address",
    "new": "new",
    "gone": "gone (404 or 410)",
    "missing": "missing: the crawl ended without them",
    "not_visited": "not visited: the crawl omitted more of the host",
    "unchanged": "unchanged",
}
"""What became of pages between two crawls, and what it means."""

VERSIONS: Final = 50
"""How many versions of a page are shown."""

_PLACES: Final = 3  # of a change that are shown
_RUNS: Final = 20  # of a place
_CHARS: Final = 300  # characters of a run of words
_PLACE_CHARS: Final = 1_500  # of all runs of a place
_URL: Final = 60  # characters of a part of a URL
_BETWEEN: Final = "/?&=;-._"


def squares(report: Report) -> Iterator[tuple[int, int, str]]:
    """Yield 100 squares, each a hundredth of the pages: place, and class by cause of copies."""
    causes = [*(cause.copies for cause in report.causes)]
    causes.append(report.copies - sum(causes))
    until = [round(100 * copies / report.pages) for copies in accumulate(causes)]
    for place in range(100):
        rank = bisect(until, place)
        yield place // 5 * 22, place % 5 * 22, f"c{rank}" if rank < len(until) else "o"


def stacked(counts: Mapping[str, int], whole: int) -> Iterator[tuple[str, float, float]]:
    """Yield the name, left and width of the parts of a bar, in per cent of ``whole``."""
    at = 0.0
    for name, count in counts.items():
        if count:
            width = 100 * count / whole
            yield name, at, max(width - 0.3, 0.2)
            at += width


def marked(url: str, other: str) -> tuple[str, str, str]:
    """Return a URL without https:// in three parts, of which the middle is not in the other.

    Whole names are in the middle, and long parts are shortened.
    """
    a, b = (re.sub("^(?:https|file)://", "", readable(each)) for each in (url, other))
    head = _equal(a, b)
    while 0 < head < len(a) and a[head - 1] not in _BETWEEN and a[head] not in _BETWEEN:
        head -= 1
    tail = min(_equal(a[::-1], b[::-1]), len(a) - head, len(b) - head)
    end = len(a) - tail
    while 0 < end < len(a) and a[end] not in _BETWEEN and a[end - 1] not in _BETWEEN:
        end += 1
    parts = (a[:head], a[head:end], a[end:])
    before, own, behind = (without_middle(part, _URL // 2, _URL // 2) for part in parts)
    return before, own, behind


def _equal(a: str, b: str) -> int:
    """Return the number of equal characters at the beginning."""
    return sum(takewhile(bool, map(eq, a, b)))


def example(cause: Cause) -> tuple[str, str]:
    """Return the URLs of a copy and its original, first the one that has the cause."""
    url, other = cause.example
    name = "" if cause.name.startswith("//") else cause.name.strip("/?=")
    if other and (name not in url or not marked(url, other)[1]):
        return other, url
    return url, other or url


def cut(text: str, limit: int = 2 * _URL) -> str:
    """Return the beginning of a title."""
    return shortened(" ".join(text.split()), limit)


def highest(counts: Iterable[int]) -> float:
    """Return the count that fills a column; that of equal pages may be cut."""
    return 1.6 * max([*counts][1:], default=0) or 1.0


def first_places(change: WithWords) -> tuple[list[list[tuple[str, str]]], int]:
    """Return the first places that changed, shortened, and the number of the others."""
    places = change.words or []
    shown = []
    for place in places[:_PLACES]:
        runs = [(shortened(text, _CHARS), kind) for text, kind in place[:_RUNS]]
        sizes = accumulate(len(text) for text, _ in runs)
        shown.append([run for run, size in zip(runs, sizes, strict=True) if size <= _PLACE_CHARS])
    return shown, len(places) - len(shown)
