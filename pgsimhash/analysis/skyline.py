"""The mirrored skyline: two pages in one picture.

Page A stands above a line, page B is mirrored below it. A bar is a block of text. Its width is its
number of words and its height its weight, so its area is its share of the vote.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from pgsimhash.analysis.block_pairs import Block, BlockPair

_NARROW: Final = 0.004  # narrower neighbours of a kind are one bar of their mean height
_MERGED_MAX: Final = 0.05
_GAP: Final = 0.05  # loud blocks with fewer words between them are one part


SMALL_PRINT: Final = "small print"
"""The name of quiet blocks of the main text."""


class Bar(NamedTuple):
    """A bar of a skyline; all sizes are shares, 0 to 1.

    Its left ``shared`` part is on both pages, the rest on this one alone.
    """

    is_a: bool
    left: float
    width: float
    height: float
    shared: float


class Part(NamedTuple):
    """A part of a skyline with loud blocks, or with quiet ones, and the places of these."""

    is_quiet: bool
    width: float
    share: float
    places: tuple[str, ...]


class _Item(NamedTuple):
    kind: str
    words: int
    a: tuple[float, float, float] | None
    b: tuple[float, float, float] | None


def bars(pairs: Sequence[BlockPair]) -> Iterator[Bar]:
    """Yield the bars of two pages, from left to right."""
    whole = sum(pair.words for pair in pairs)
    at = 0.0
    for item in _merged(pairs, whole):
        width = item.words / whole
        for is_a, sums in ((True, item.a), (False, item.b)):
            if sums is not None:
                words, mass, off = sums
                yield Bar(is_a, at, width, mass / words, 1.0 - off / words)
        at += width


def _merged(pairs: Sequence[BlockPair], whole: int) -> Iterator[_Item]:
    """Yield what is drawn as one: a pair, or narrow neighbours of the same kind."""
    before: _Item | None = None
    for pair in pairs:
        kind = "".join(name for name, block in (("a", pair.a), ("b", pair.b)) if block)
        kind += " moved" if pair.kind == "moved" else ""
        own = _Item(kind, pair.words, _sums(pair, pair.a), _sums(pair, pair.b))
        if (
            before is not None
            and before.kind == kind
            and min(before.words, own.words) < _NARROW * whole
            and before.words < _MERGED_MAX * whole
        ):
            words = before.words + own.words
            before = _Item(kind, words, _added(before.a, own.a), _added(before.b, own.b))
            continue
        if before is not None:
            yield before
        before = own
    if before is not None:
        yield before


def _sums(pair: BlockPair, block: Block | None) -> tuple[float, float, float] | None:
    if block is None:
        return None
    return block.words, block.words * block.weight, block.words * pair.unshared(block)


def _added(
    one: tuple[float, float, float] | None, other: tuple[float, float, float] | None
) -> tuple[float, float, float] | None:
    if one is None or other is None:
        return None
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def parts(pairs: Sequence[BlockPair]) -> Iterator[Part]:
    """Yield the parts of a skyline: the loud text, and what is around it."""
    whole = sum(pair.words for pair in pairs)
    for is_quiet, run in groupby(_smoothed(pairs, whole), key=lambda item: item[0]):
        own = [pair for _, pair in run]
        share = max(
            sum(pair.a.share for pair in own if pair.a), sum(pair.b.share for pair in own if pair.b)
        )
        yield Part(is_quiet, sum(pair.words for pair in own) / whole, share, places(own))


def _smoothed(pairs: Sequence[BlockPair], whole: int) -> Iterator[tuple[bool, BlockPair]]:
    loud = [at for at, pair in enumerate(pairs) if not pair.is_quiet]
    quiet = [True] * len(pairs)
    for at in loud:
        quiet[at] = False
    for left, right in pairwise(loud):
        if sum(pair.words for pair in pairs[left + 1 : right]) < _GAP * whole:
            quiet[left : right + 1] = [False] * (right - left + 1)
    yield from zip(quiet, pairs, strict=True)


def places(pairs: Sequence[BlockPair]) -> tuple[str, ...]:
    """Return the first three places of blocks outside the main text, or "small print"."""
    found = dict.fromkeys(block.place for pair in pairs for block in pair.blocks)
    return tuple(place for place in found if place != "text")[:3] or (SMALL_PRINT,)


def drawn_in_text(pairs: Sequence[BlockPair], width: int) -> list[list[tuple[str, bool]]]:
    """Return four lines of ``width`` characters, each with whether one page alone has it.

    Two lines are page A, two page B below it. Unicode's blocks grow upwards in eighths, but
    downwards in few steps only.
    """
    up, down = " ▁▂▃▄▅▆▇█", " ▔▔▀▀▀▀██"
    lines: list[list[tuple[str, bool]]] = [[], [], [], []]
    drawn = list(bars(pairs))
    for at in range(width):
        for first, is_a in ((0, True), (2, False)):
            height, alone = 0, False
            for bar in drawn:
                left, right = bar.left * width, (bar.left + bar.width) * width
                own = max(round(16 * bar.height), 1)
                if bar.is_a == is_a and left < at + 1 and right > at and own >= height:
                    middle = (max(left, at) + min(right, at + 1)) / 2
                    height, alone = own, middle - left >= bar.shared * (right - left)
            near, far = min(height, 8), max(height - 8, 0)
            steps = (up[far], up[near]) if is_a else (down[near], down[far])
            for line, step in zip(lines[first : first + 2], steps, strict=True):
                line.append((step, alone))
    return lines
