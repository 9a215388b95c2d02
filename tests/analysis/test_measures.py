"""Recall and precision by distance, and which distance is recommended."""

from __future__ import annotations

import pytest

from pgsimhash.analysis.labels import Label, LabelledPair
from pgsimhash.analysis.measures import NO_MATCH, Score, measure, recommendation


def bits(count: int) -> int:
    return (1 << count) - 1


def scored(pairs: list[tuple[Label, int]], precision: float = 0.999) -> Score:
    """Score pairs at these distances."""
    labelled = [LabelledPair("0", f"{i}", label) for i, (label, _) in enumerate(pairs, start=1)]
    simhashes: dict[str, int | None] = {"0": 0}
    simhashes.update((f"{i}", bits(distance)) for i, (_, distance) in enumerate(pairs, start=1))
    return measure("scheme", labelled, simhashes, precision=precision)


def test_recall_and_precision_are_of_the_pairs_within_k() -> None:
    score = scored([("copy", 0), ("copy", 4), ("copy", 20), ("distinct", 4), ("distinct", 30)])
    assert [at.distance for at in score.curve] == list(range(17))
    assert score.curve[3].recall == pytest.approx(1 / 3)
    assert score.curve[3].precision == 1
    assert score.curve[4].recall == pytest.approx(2 / 3)
    assert score.curve[4].precision == pytest.approx(2 / 3)
    assert (score.curve[4].found, score.curve[4].false_matches) == (2, 1)
    assert (score.curve[4].copies, score.curve[4].distinct) == (3, 2)


def test_the_largest_recall_that_is_precise_enough_is_recommended_and_the_smaller_k() -> None:
    pairs: list[tuple[Label, int]] = [("copy", 2), ("copy", 5), ("distinct", 9), ("copy", 12)]
    strict, loose = scored(pairs), scored(pairs, precision=0.7)
    assert strict.best is strict.curve[5]
    assert loose.best is loose.curve[12]


def test_precision_may_recover_at_a_larger_k() -> None:
    pairs: list[tuple[Label, int]] = [("distinct", 0)]
    pairs += [("copy", 3)] * 9
    best = scored(pairs, precision=0.9).best
    assert best is not None
    assert best.distance == 3


def test_nothing_is_recommended_if_nothing_is_precise_enough() -> None:
    assert scored([("distinct", 0), ("copy", 0)]).best is None
    assert scored([("distinct", 40)]).best is None


def test_a_page_without_a_fingerprint_matches_nothing_and_counts() -> None:
    pairs = [LabelledPair("1", "2", "copy"), LabelledPair("1", "3", "distinct")]
    score = measure("scheme", pairs, {"1": 7, "2": None, "3": None})
    assert score.measured.copies[NO_MATCH] == score.measured.distinct[NO_MATCH] == 1
    assert score.curve[-1].recall == 0


def test_pairs_of_unread_pages_and_graded_ones_do_not_count() -> None:
    pairs = [LabelledPair("1", "2", "copy"), LabelledPair("1", "3", "graded")]
    score = measure("scheme", pairs, {"1": 7})
    assert (score.measured.left_out, score.measured.graded) == (1, 1)
    assert score.curve[-1].recall is None


def test_recall_is_reported_for_each_kind_of_copies() -> None:
    pairs = [LabelledPair("1", "2", "copy", "print"), LabelledPair("1", "3", "copy", "edited")]
    score = measure("scheme", pairs, {"1": 0, "2": bits(1), "3": bits(6)})
    assert score.curve[3].kinds == {"edited": (0, 1), "print": (1, 1)}
    assert score.curve[6].kinds == {"edited": (1, 1), "print": (1, 1)}


def test_too_few_matches_for_the_precision_are_reported() -> None:
    score = scored([("copy", 1), ("copy", 6), ("distinct", 40)])
    assert "too few matches to tell a precision of 0.999" in recommendation(score, 0.999)
    assert "too few" not in recommendation(score, 0.5)
    nothing = scored([("distinct", 0)])
    assert recommendation(nothing, 0.999) == "At no distance is the precision 0.999 or better."
