"""The mirrored skyline: two pages in one picture.

Page A stands above a line, page B is mirrored below it. A bar is a block of text. Its width is its
number of words and its height its weight, so its area is its share of the vote.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from pgsimhash.analysis.block_pairs import BlockPair

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


def bars(pairs: Sequence[BlockPair]) -> Iterator[Bar]:
    """Yield the bars of two pages, from left to right."""
    whole = sum(pair.words for pair in pairs)
    at = 0.0
    for group in _merged(pairs, whole):
        width = sum(pair.words for pair in group) / whole
        for is_a in (True, False):
            own = [(pair, block) for pair in group if (block := pair.a if is_a else pair.b)]
            if words := sum(block.words for _, block in own):
                mass = sum(block.words * block.weight for _, block in own)
                alone = sum(block.words * pair.unshared(block) for pair, block in own)
                yield Bar(is_a, at, width, mass / words, 1.0 - alone / words)
        at += width


def _merged(pairs: Sequence[BlockPair], whole: int) -> list[list[BlockPair]]:
    """Return what is drawn as one: a pair, or narrow neighbours of the same kind."""
    groups: list[list[BlockPair]] = []
    before, words = None, 0
    for pair in pairs:
        kind = pair.kind == "moved", pair.a is None, pair.b is None
        is_narrow = min(words, pair.words) < _NARROW * whole and words < _MERGED_MAX * whole
        if kind == before and is_narrow:
            groups[-1].append(pair)
            words += pair.words
        else:
            groups.append([pair])
            before, words = kind, pair.words
    return groups


def parts(pairs: Sequence[BlockPair]) -> Iterator[Part]:
    """Yield the parts of a skyline: the loud text, and what is around it."""
    whole = sum(pair.words for pair in pairs)
    quiet = [pair.is_quiet for pair in pairs]
    loud = [at for at, is_quiet in enumerate(quiet) if not is_quiet]
    for left, right in pairwise(loud):
        if sum(pair.words for pair in pairs[left + 1 : right]) < _GAP * whole:
            quiet[left:right] = [False] * (right - left)
    for is_quiet, run in groupby(zip(quiet, pairs, strict=True), key=itemgetter(0)):
        own = [pair for _, pair in run]
        words = sum(pair.words for pair in own)
        yield Part(is_quiet, words / whole, larger_share(own), places(own))


def larger_share(pairs: Iterable[BlockPair]) -> float:
    """Return the larger share of a page's vote that these blocks have."""
    shares = [(pair.a.share if pair.a else 0, pair.b.share if pair.b else 0) for pair in pairs]
    return max(map(sum, zip(*shares, strict=True)))


def places(pairs: Sequence[BlockPair]) -> tuple[str, ...]:
    """Return the first three places of blocks outside the main text, or "small print"."""
    found = dict.fromkeys(block.place for pair in pairs for block in pair.blocks)
    return tuple(place for place in found if place != "text")[:3] or (SMALL_PRINT,)


def drawn_in_text(pairs: Sequence[BlockPair], width: int) -> list[list[tuple[str, bool]]]:
    """Return four lines of ``width`` characters, each with whether one page alone has it.

    Two are page A, two page B below. Unicode's blocks grow up in eighths, down in few steps.
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
