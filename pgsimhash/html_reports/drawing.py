"""What the pages draw: two pages side by side, shares as squares and bars, and URLs that differ."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, groupby, zip_longest
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from pgsimhash.analysis.block_pairs import BlockPair, equal_ends
from pgsimhash.analysis.skyline import bars, larger_share, places
from pgsimhash.analysis.wording import (
    counted,
    listed,
    percent,
    readable,
    shortened,
    without_middle,
)
from pgsimhash.hashing.bits import BITS

if TYPE_CHECKING:
    from pgsimhash.analysis.block_pairs import Block, Piece
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
    "same": "the same text",
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
    "not_visited": "not visited: not due, or the crawl omitted more of the host",
    "unchanged": "unchanged",
}
"""What became of pages between two crawls, and what it means."""

VERSIONS: Final = 50
"""How many versions of a page are shown."""

LINES: Final = 60  # rows before the rest is folded
_END: Final = 200  # characters of equal text next to changed words
BELL: Final = " ".join(
    f"{bits},{100 - 92 * comb(BITS, bits) / comb(BITS, BITS // 2):.1f}" for bits in range(14, 51)
)
"""The points of the distances of unrelated pages, as 64 coin tosses have them."""

_PLACES: Final = 3  # of a change that are shown
_RUNS: Final = 20  # of a place
_CHARS: Final = 300  # characters of a run of words
_PLACE_CHARS: Final = 1_500  # of all runs of a place
_URL: Final = 60  # characters of a part of a URL
_NAMES: Final = re.compile(r"[/?&=;._-]|[^/?&=;._-]+")  # of a URL, and what is between them


class Cell(NamedTuple):
    """A block as it is shown.

    ``level`` is the depth of its colour, 0 to 9, and ``note`` says what the colour says, for those
    who do not see it. ``texts`` are its pieces, with whether each is changed.
    """

    block: Block
    level: int
    is_alone: bool
    note: str
    texts: list[tuple[str, bool]]


class Fold(NamedTuple):
    """Rows that open at a click."""

    summary: str
    rows: list[BlockPair]


def cells(row: BlockPair) -> list[Cell | None]:
    """Return the two blocks of a row as they are shown; long texts without their middle."""

    def cell(name: str, block: Block | None, pieces: Sequence[Piece]) -> Cell | None:
        if block is None:
            return None
        is_alone = row.kind in ("only_a", "only_b", "apart")
        note = "In both, elsewhere:" if row.kind == "moved" else ""
        texts = [(shortened(block.text, 600), False)]
        if pieces:
            texts = [
                (text if changed else without_middle(text, _END, _END, " … "), changed)
                for text, changed in pieces
            ]
        level = min(int(block.weight * 10), 9)
        return Cell(block, level, is_alone, f"Only in {name}:" if is_alone else note, texts)

    return [cell("A", row.a, row.left), cell("B", row.b, row.right)]


def skyline(pairs: Sequence[BlockPair], width: int, height: int) -> tuple[str, str]:
    """Return the SVG paths of a skyline: what both pages have, and what one has alone."""
    both: list[str] = []
    alone: list[str] = []
    for bar in bars(pairs):
        left, wide = bar.left * width, bar.width * width
        tall = max(height * bar.height, 0.75)
        top = height - tall if bar.is_a else height + 2
        for steps, start, end in ((both, 0.0, bar.shared), (alone, bar.shared, 1.0)):
            if end > start:
                x, across = left + wide * start, max(wide * (end - start) - 0.6, 0.6)
                steps.append(f"M{x:.1f} {top:.1f}h{across:.1f}v{tall:.1f}h-{across:.1f}z")
    return "".join(both), "".join(alone)


def folded(pairs: Sequence[BlockPair]) -> list[BlockPair | Fold]:
    """Return the rows of a comparison; runs of quiet or equal blocks become one line each."""
    shown: list[BlockPair | Fold] = []
    for (quiet, kind), run in groupby(
        _side_by_side(pairs), key=lambda row: (row.is_quiet, "" if row.is_quiet else row.kind)
    ):
        rows = list(run)
        keep, tail = len(rows), 0
        if quiet and len(rows) > 1:
            keep = 0
        elif kind in ("same", "moved") and len(rows) > 3:
            keep = tail = 1
        elif kind != "changed" and len(rows) > 6:
            keep = 4
        hidden = rows[keep : len(rows) - tail]
        shown += rows[:keep]
        if hidden:
            shown.append(Fold(_fold_summary(hidden, quiet), hidden))
        shown += rows[len(rows) - tail :] if tail else []
    return shown


def _side_by_side(pairs: Sequence[BlockPair]) -> Iterator[BlockPair]:
    """Yield the pairs; a run of blocks only in B stands beside the run only in A before it."""
    waiting: list[BlockPair] = []  # only in A
    for kind, run in groupby(pairs, key=lambda pair: pair.kind.startswith("only") and pair.kind):
        if kind == "only_a":
            waiting = list(run)
            continue
        if waiting and kind == "only_b":
            for one, two in zip_longest(waiting, run):
                yield BlockPair("apart", one.a, two.b) if one and two else one or two
        else:
            yield from chain(waiting, run)
        waiting = []
    yield from waiting


_WHERE: Final = {
    "same": "equal on both pages",
    "changed": "changed",
    "moved": "on both pages, in another order",
    "only_a": "only in A",
    "only_b": "only in B",
    "apart": "different on each page",
}


def _fold_summary(rows: Sequence[BlockPair], quiet: bool) -> str:
    vote = f"{percent(larger_share(rows))} of the vote"
    if not quiet:
        return f"{counted(len(rows), 'more block')}, {_WHERE[rows[0].kind]}: {vote}"
    kinds = Counter(row.kind for row in rows if row.kind not in ("same", "moved"))
    whose = listed(f"{count} {_WHERE[kind]}" for kind, count in kinds.items()) if kinds else ""
    where = ", ".join(places(rows)).capitalize()
    return f"{where}: {counted(len(rows), 'quiet block')}, {whose or 'on both pages'}, {vote}"


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
    a, b = (
        _NAMES.findall(re.sub("^(?:https|file)://", "", readable(each))) for each in (url, other)
    )
    head, tail = equal_ends(a, b)
    end = len(a) - tail
    parts = map("".join, (a[:head], a[head:end], a[end:]))
    before, own, behind = (without_middle(part, _URL // 2, _URL // 2) for part in parts)
    return before, own, behind


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


def first_places(change: WithWords) -> tuple[list[list[tuple[str, str]]], int]:
    """Return the first places that changed, shortened, and the number of the others."""
    places = change.words or []
    shown = []
    for place in places[:_PLACES]:
        runs = [(shortened(text, _CHARS), kind) for text, kind in place[:_RUNS]]
        sizes = accumulate(len(text) for text, _ in runs)
        shown.append([run for run, size in zip(runs, sizes, strict=True) if size <= _PLACE_CHARS])
    return shown, len(places) - len(shown)
