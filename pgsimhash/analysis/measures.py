"""Recall and precision by distance, of labelled pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.analysis.labels import LabelledPair
from pgsimhash.analysis.limits import LARGEST
from pgsimhash.bits import BITS, hamming_distance

NO_MATCH: Final = BITS + 1
"""The place in a histogram of pairs in which a page has no fingerprint."""

Histogram = NDArray[np.int64]


class Unseen(NamedTuple):
    """The share of a page's words in low-weight blocks: the mean, the largest, and its page.

    See :attr:`pgsimhash.html.WeightedWords.unseen`.
    """

    mean: float
    worst: float
    page: str

    @property
    def sentence(self) -> str:
        """Both shares in a sentence."""
        return (
            f"On average, {self.mean:.1%} of a page's words are in low-weight blocks; at worst, "
            f"{self.worst:.1%}: {self.page}"
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """How far apart the pages of labelled pairs are, under one scheme.

    Attributes:
        scheme: the scheme's name.
        copies: how many copies are at each distance; shape (66,), dtype int64, the last place
            for pairs in which a page has no fingerprint.
        distinct: the same of the pairs of different pages.
        kinds: for each kind of copies, the same.
        graded: how many pairs are labelled neither.
        left_out: how many pairs have a page that was not found or could not be read.
        unseen: the share of words in low-weight blocks; None if no page was read for it.
    """

    scheme: str
    copies: Histogram
    distinct: Histogram
    kinds: dict[str, Histogram]
    graded: int
    left_out: int
    unseen: Unseen | None = None

    @property
    def unmatchable(self) -> int:
        """How many pairs have a page without a fingerprint."""
        return int(self.copies[NO_MATCH] + self.distinct[NO_MATCH])


@dataclass(frozen=True, slots=True)
class AtDistance:
    """What a search up to ``distance`` bits finds among the labelled pairs.

    Attributes:
        distance: the largest number of differing bits that makes a match.
        found: how many copies match.
        copies: how many copies there are.
        false_matches: how many pairs of different pages match.
        distinct: how many pairs of different pages there are.
        recall: found / copies; None without copies.
        precision: found / (found + false_matches), 1.0 where nothing matches.
        kinds: for each kind of copies, how many match and how many there are.
    """

    distance: int
    found: int
    copies: int
    false_matches: int
    distinct: int
    recall: float | None
    precision: float
    kinds: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Score:
    """A scheme's curve, distances from 0 to 16, and the point on it to use, if there is one."""

    measured: Measured
    curve: list[AtDistance]
    best: AtDistance | None


def measure(
    scheme: str,
    pairs: Iterable[LabelledPair],
    simhashes: Mapping[str, int | None],
    largest: int = LARGEST,
    precision: float = 0.999,
    unseen: Unseen | None = None,
) -> Score:
    """Score ``scheme`` on labelled pairs.

    Args:
        scheme: its name.
        pairs: the labelled pairs.
        simhashes: the simhash of each page by its name; None where a page was read and has no
            fingerprint, so that it matches nothing; no entry where the page could not be read,
            so that its pairs are left out.
        largest: the last distance of the curve.
        precision: what :func:`recommend` asks for.
        unseen: the share of words in low-weight blocks, if it is known.
    """
    copies, distinct = _histogram(), _histogram()
    kinds: dict[str, Histogram] = {}
    graded = left_out = 0
    for pair in pairs:
        if pair.label == "graded":
            graded += 1
        elif pair.a not in simhashes or pair.b not in simhashes:
            left_out += 1
        else:
            place = _distance(simhashes[pair.a], simhashes[pair.b])
            if pair.label == "distinct":
                distinct[place] += 1
            else:
                copies[place] += 1
                kinds.setdefault(pair.kind, _histogram())[place] += 1
    by_kind = dict(sorted(kinds.items()))
    measured = Measured(scheme, copies, distinct, by_kind, graded, left_out, unseen)
    curve = [_at(distance, measured) for distance in range(largest + 1)]
    return Score(measured, curve, recommend(curve, precision))


def recommend(curve: Sequence[AtDistance], precision: float) -> AtDistance | None:
    """Return the point to use: the largest recall at a precision of ``precision`` or better.

    Of points with the same recall it is the one with the smallest distance. None where no
    point with a match is as precise.
    """
    precise = [at for at in curve if at.found and at.precision >= precision]
    return max(precise, key=lambda at: (at.found, -at.distance), default=None)


def recommendation(score: Score, precision: float) -> str:
    """Return the recommended distance in a sentence, or that there is none."""
    best = score.best
    if best is None:
        return f"At no distance is the precision {precision:g} or better."
    matches = best.found + best.false_matches
    told = (
        f"Distance {best.distance}: recall {best.recall:.4f}, precision {best.precision:.4f} "
        f"({best.false_matches:,} false of {matches:,} matches)."
    )
    if matches * (1 - precision) < 1:
        told += (
            f" That is too few matches to tell a precision of {precision:g}: "
            f"label {1 / max(1 - precision, 1e-6):,.0f} or more."
        )
    return told


def _histogram() -> Histogram:
    return np.zeros(NO_MATCH + 1, dtype=np.int64)


def _distance(a: int | None, b: int | None) -> int:
    return NO_MATCH if a is None or b is None else hamming_distance(a, b)


def _at(distance: int, measured: Measured) -> AtDistance:
    found, copies = _within(distance, measured.copies)
    false_matches, distinct = _within(distance, measured.distinct)
    matches = found + false_matches
    return AtDistance(
        distance=distance,
        found=found,
        copies=copies,
        false_matches=false_matches,
        distinct=distinct,
        recall=found / copies if copies else None,
        precision=found / matches if matches else 1.0,
        kinds={kind: _within(distance, histogram) for kind, histogram in measured.kinds.items()},
    )


def _within(distance: int, histogram: Histogram) -> tuple[int, int]:
    return int(histogram[: distance + 1].sum()), int(histogram.sum())
