"""What differs between two texts, side by side, paragraph by paragraph and word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["same", "changed", "removed", "added", "skipped"]

CHARS_MAX: Final = 100_000
"""How much of each text is compared; longer ones are cut, and the difference says so."""

_LINES_MAX: Final = 2_000
_WORDS_MAX: Final = 2_000
_CELLS_MAX: Final = 2_500
_ALIKE: Final = 0.3

# Words with the space after them; scripts that write none between words go by characters.
_WORD: Final = re.compile(r"[^\W\u2e80-\U0003ffff]+\s*|.\s*", re.DOTALL)


class Piece(NamedTuple):
    """A run of text, and whether the other side does not have it."""

    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A paragraph of each text beside the other; an empty side has none.

    ``same`` and ``changed`` have both sides, ``removed`` the left, ``added`` the right;
    ``skipped`` stands for that many equal paragraphs.
    """

    kind: Kind
    left: tuple[Piece, ...] = ()
    right: tuple[Piece, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows of a comparison; ``cut`` says that there was more than was compared or kept."""

    rows: tuple[Row, ...]
    cut: bool

    def as_json(self) -> dict[str, Any]:
        """Return the rows as JSON values: both texts, and of ``changed`` what is not shared."""
        return {"cut": self.cut, "rows": [_row_json(row) for row in self.rows]}


def side_by_side(left: str, right: str, *, context: int = 1, rows: int = 1_000) -> Difference:
    """Return the difference of two texts, whose lines are taken for paragraphs.

    Paragraphs are matched first (Ratcliff and Metzener, "Pattern Matching: The Gestalt Approach",
    1988, as in Python's difflib), then, where both sides have others, those that share most
    words, and in these the words. Time is bounded: what exceeds ``CHARS_MAX`` is left out.

    Args:
        left: a text.
        right: another one.
        context: how many equal paragraphs to keep around those that differ.
        rows: how many rows to keep at most.
    """
    a, cut_a = _lines(left)
    b, cut_b = _lines(right)
    found = list(_collapsed(_rows(a, b), context))
    return Difference(tuple(found[:rows]), cut_a or cut_b or len(found) > rows)


def _row_json(row: Row) -> dict[str, Any]:
    if row.kind == "skipped":
        return {"kind": row.kind, "paragraphs": row.skipped}
    found: dict[str, Any] = {"kind": row.kind}
    for name, pieces in (("a", row.left), ("b", row.right)):
        if pieces:
            found[name] = "".join(piece.text for piece in pieces)
            if row.kind == "changed":
                found[f"only_{name}"] = [piece.text.strip() for piece in pieces if piece.changed]
    return found


def _lines(text: str) -> tuple[list[str], bool]:
    lines = [line.strip() for line in text[:CHARS_MAX].splitlines()]
    lines = [line for line in lines if line]
    return lines[:_LINES_MAX], len(text) > CHARS_MAX or len(lines) > _LINES_MAX


def _rows(a: Sequence[str], b: Sequence[str]) -> Iterator[Row]:
    for tag, a_start, a_end, b_start, b_end in SequenceMatcher(None, a, b).get_opcodes():
        if tag == "equal":
            for line in a[a_start:a_end]:
                yield Row("same", (Piece(line, False),), (Piece(line, False),))
            continue
        for one, other in _aligned(a[a_start:a_end], b[b_start:b_end]):
            if one is None or other is None:
                yield Row(
                    "added" if one is None else "removed",
                    () if one is None else (Piece(one, True),),
                    () if other is None else (Piece(other, True),),
                )
            else:
                yield _changed(one, other)


def _aligned(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Pair paragraphs in their order so that pairs share as much as possible."""
    if not a or not b or len(a) * len(b) > _CELLS_MAX:
        yield from zip_longest(a, b)
        return
    words_a, words_b = ([set(_words(line)) for line in lines] for lines in (a, b))
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    alike = [[_alike(one, other) for other in words_b] for one in words_a]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            paired = alike[i][j] + best[i + 1][j + 1] if alike[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and best[i][j] == best[i + 1][j]:
            yield a[i], None
            i += 1
        elif j < len(b) and best[i][j] == best[i][j + 1]:
            yield None, b[j]
            j += 1
        else:
            yield a[i], b[j]
            i, j = i + 1, j + 1


def _alike(a: set[str], b: set[str]) -> float:
    """Dice's coefficient, 0 where it is too small for two versions of one paragraph."""
    share = 2 * len(a & b) / (len(a) + len(b))
    return share if share >= _ALIKE else 0.0


def _changed(one: str, other: str) -> Row:
    a, b = _WORD.findall(one), _WORD.findall(other)
    if len(a) > _WORDS_MAX or len(b) > _WORDS_MAX:
        return Row("changed", (Piece(one, True),), (Piece(other, True),))
    left: list[Piece] = []
    right: list[Piece] = []
    matcher = SequenceMatcher(None, _words(one), _words(other))
    for tag, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        changed = tag != "equal"
        if a_end > a_start:
            left.append(Piece("".join(a[a_start:a_end]), changed))
        if b_end > b_start:
            right.append(Piece("".join(b[b_start:b_end]), changed))
    return Row("changed", tuple(left), tuple(right))


def _words(line: str) -> list[str]:
    return [word.rstrip() for word in _WORD.findall(line)]


def _collapsed(rows: Iterator[Row], context: int) -> Iterator[Row]:
    """Replace runs of equal paragraphs by their number, but for those near a difference."""
    run: list[Row] = []
    begun = False
    for row in rows:
        if row.kind == "same":
            run.append(row)
            continue
        yield from _skipped(run, context if begun else 0, context)
        run, begun = [], True
        yield row
    yield from _skipped(run, context if begun else 0, 0)


def _skipped(run: Sequence[Row], after: int, before: int) -> Iterator[Row]:
    # A single paragraph is no longer than the line that would stand for it.
    if len(run) <= after + before + 1:
        yield from run
        return
    yield from run[:after]
    yield Row("skipped", skipped=len(run) - after - before)
    yield from run[len(run) - before :]
