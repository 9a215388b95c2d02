"""Draw two pages for an HTML page: the skyline, the scale, the bits, and the blocks in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from pgsimhash.analysis.block_pairs import BlockPair
from pgsimhash.analysis.skyline import Bar, bars, larger_share, places
from pgsimhash.analysis.wording import counted, listed, percent, shortened
from pgsimhash.hashing.bits import BITS

if TYPE_CHECKING:
    from pgsimhash.analysis.block_pairs import Block, Piece

LINES: Final = 60  # rows before the rest is folded
_MIDDLE: Final = 400  # characters of equal text between changed words
BELL: Final = " ".join(
    f"{bits},{100 - 92 * comb(BITS, bits) / comb(BITS, BITS // 2):.1f}" for bits in range(14, 51)
)
"""The points of the distances of unrelated pages, as 64 coin tosses have them."""


class Cell(NamedTuple):
    """A block as it is shown."""

    kind: str
    name: str
    block: Block
    pieces: tuple[Piece, ...]

    @property
    def level(self) -> int:
        """The depth of its colour, 0 to 9."""
        return min(int(self.block.weight * 10), 9)

    @property
    def is_alone(self) -> bool:
        """Whether only this page has it."""
        return self.kind in ("only_a", "only_b", "apart")

    @property
    def note(self) -> str:
        """What its colour says, for those who do not see it."""
        if self.is_alone:
            return f"Only in {self.name}:"
        return "In both, elsewhere:" if self.kind == "moved" else ""

    @property
    def texts(self) -> list[tuple[str, bool]]:
        """Its text in pieces, with whether each is changed; long pieces without their middle."""
        if self.kind != "changed":
            return [(shortened(self.block.text, 600), False)]
        return [
            (piece.text if piece.changed else _without_middle(piece.text), piece.changed)
            for piece in self.pieces
        ]


class Fold(NamedTuple):
    """Rows that open at a click."""

    summary: str
    rows: list[BlockPair]


def cells(row: BlockPair) -> list[Cell | None]:
    """Return the two blocks of a row as they are shown."""
    sides = (("A", row.a, row.left), ("B", row.b, row.right))
    return [block and Cell(row.kind, name, block, pieces) for name, block, pieces in sides]


def path(drawn: Iterable[Bar], width: float, height: float, *, shared: bool) -> str:
    """Return the SVG path of the parts of bars that both pages have, or that one has alone."""
    steps = []
    for bar in drawn:
        left, wide = bar.left * width, bar.width * width
        start, end = (0.0, bar.shared) if shared else (bar.shared, 1.0)
        if end <= start:
            continue
        tall = max(height * bar.height, 0.75)
        top = height - tall if bar.is_a else height + 2
        across = max(wide * (end - start) - 0.6, 0.6)
        steps.append(f"M{left + wide * start:.1f} {top:.1f}h{across:.1f}v{tall:.1f}h-{across:.1f}z")
    return "".join(steps)


def skyline(pairs: Sequence[BlockPair], width: int, height: int) -> tuple[str, str]:
    """Return the paths of a skyline: what both pages have, and what one has alone."""
    drawn = list(bars(pairs))
    both, alone = (path(drawn, width, height, shared=shared) for shared in (True, False))
    return both, alone


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
    runs = [
        (kind, list(run))
        for kind, run in groupby(pairs, key=lambda pair: pair.kind.startswith("only") and pair.kind)
    ]
    at = 0
    while at < len(runs):
        kind, run = runs[at]
        at += 1
        if kind == "only_a" and at < len(runs) and runs[at][0] == "only_b":
            other = runs[at][1]
            at += 1
            for one, two in zip_longest(run, other):
                yield BlockPair("apart", one and one.a, two and two.b)
        else:
            yield from run


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


def _without_middle(text: str) -> str:
    half = _MIDDLE // 2
    return text if len(text) <= _MIDDLE else f"{text[:half]} … {text[-half:]}"
