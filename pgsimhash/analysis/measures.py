"""Compute recall and precision of labelled pairs by distance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.analysis.labels import LabelledPair
from pgsimhash.analysis.limits import LARGEST
from pgsimhash.hashing.bits import BITS, hamming_distance

NO_MATCH: Final = BITS + 1
"""The place in a histogram for pairs with a page without a fingerprint."""

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
    """The distances of labelled pairs under one scheme.

    Attributes:
        scheme: the scheme's name.
        copies: the number of copies at each distance; shape (66,), dtype int64, the last place for
            pairs with a page without a fingerprint.
        distinct: the same for pairs of different pages.
        kinds: the same for each kind of copies.
        graded: the number of pairs labelled ``graded``.
        left_out: the number of pairs with a missing or unreadable page.
        unseen: the share of words in low-weight blocks; None if no page was read.
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
        """The number of pairs with a page without a fingerprint."""
        return int(self.copies[NO_MATCH] + self.distinct[NO_MATCH])


@dataclass(frozen=True, slots=True)
class AtDistance:
    """The result of a search up to ``distance`` bits among the labelled pairs.

    Attributes:
        distance: the largest number of differing bits of a match.
        found: the number of copies that match.
        copies: the number of copies.
        false_matches: the number of pairs of different pages that match.
        distinct: the number of pairs of different pages.
        recall: found / copies; None without copies.
        precision: found / (found + false_matches), 1.0 without matches.
        kinds: for each kind of copies, the number of matches and of copies.
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
    """A scheme's curve from distance 0 on, and the recommended point, if any."""

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
    """Return the score of ``scheme`` on labelled pairs.

    Args:
        scheme: the scheme's name.
        pairs: the labelled pairs.
        simhashes: the simhash of each page by name. None if the page has no fingerprint: it matches
            nothing. No entry if the page could not be read: its pairs are left out.
        largest: the last distance of the curve.
        precision: the required precision, see :func:`recommend`.
        unseen: the share of words in low-weight blocks, if known.
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
    """Return the point with the largest recall at a precision of at least ``precision``.

    Among equals it is the one with the smallest distance. None if no point with a match is as
    precise.
    """
    precise = [at for at in curve if at.found and at.precision >= precision]
    return max(precise, key=lambda at: (at.found, -at.distance), default=None)


def recommendation(score: Score, precision: float) -> str:
    """Return a sentence with the recommended distance, or that no distance is."""
    best = score.best
    if best is None:
        return f"At no distance is the precision {precision:g} or better."
    matches = best.found + best.false_matches
    sentence = (
        f"Distance {best.distance}: recall {best.recall:.4f}, precision {best.precision:.4f} "
        f"({best.false_matches:,} false of {matches:,} matches)."
    )
    if matches * (1 - precision) < 1:
        sentence += (
            f" That is too few matches to tell a precision of {precision:g}: "
            f"label {1 / max(1 - precision, 1e-6):,.0f} or more."
        )
    return sentence


def _histogram() -> Histogram:
    return np.zeros(NO_MATCH + 1, dtype=np.int64)


def _distance(a: int | None, b: int | None) -> int:
    return NO_MATCH if a is None or b is None else hamming_distance(a, b)


def _at(distance: int, measured: Measured) -> AtDistance:
    found_pairs, copies = _within(distance, measured.copies)
    false_matches, distinct = _within(distance, measured.distinct)
    matches = found_pairs + false_matches
    return AtDistance(
        distance=distance,
        found=found_pairs,
        copies=copies,
        false_matches=false_matches,
        distinct=distinct,
        recall=found_pairs / copies if copies else None,
        precision=found_pairs / matches if matches else 1.0,
        kinds={kind: _within(distance, histogram) for kind, histogram in measured.kinds.items()},
    )


def _within(distance: int, histogram: Histogram) -> tuple[int, int]:
    return int(histogram[: distance + 1].sum()), int(histogram.sum())
