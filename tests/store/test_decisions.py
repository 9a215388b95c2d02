"""The rules of a batch, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pgsimhash.matching import MatchSettings
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.store import decisions
from pgsimhash.store.decisions import ArrivedPage, Known, KnownVersion
from pgsimhash.store.verdicts import Decision, KnownMatch

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)


def decide(
    records: Sequence[PageRecord],
    page_ids: Sequence[int],
    present: Mapping[str, KnownVersion],
    nearest: Mapping[int, KnownMatch],
    arrived: Sequence[ArrivedPage],
    distance: int,
    *,
    verify: bool = True,
    keep_first: int = 1,
) -> list[Decision]:
    """Decide by the same settings for all; ``nearest`` is what the store has for each simhash."""
    settings = [MatchSettings(distance, verify, keep_first=keep_first)] * len(records)
    found = [nearest.get(record.simhash) for record in records]
    return decisions.decide(records, page_ids, settings, found, Known(present), arrived, NOW)


def batch(*pages: tuple[str, int]) -> list[PageRecord]:
    return [PageRecord(url, simhash) for url, simhash in pages]


def verdicts(decisions: list[Decision]) -> list[tuple[str, str, int | None, str | None]]:
    def short(verdict: Verdict) -> tuple[str, str, int | None, str | None]:
        return (verdict.verdict, verdict.reason, verdict.distance, verdict.duplicate_of)

    return [short(decision.verdict) for decision in decisions]


def test_the_earliest_of_several_near_copies_in_a_batch_is_the_new_one() -> None:
    made = decide(
        batch(("a", 0), ("b", 0), ("c", 0b11), ("d", 2**64 - 1)), [5, 6, 7, 8], {}, {}, [], 3
    )
    assert verdicts(made) == [
        ("new", "first_seen", None, None),
        ("identical", "same_simhash", 0, "a"),
        ("identical", "within_distance", 2, "a"),
        ("new", "first_seen", None, None),
    ]
    assert [(decision.page_id, decision.duplicate_of) for decision in made] == [
        (5, None),
        (6, 5),
        (7, 5),
        (8, None),
    ]


def test_the_bands_name_the_verdict() -> None:
    made = decide(batch(("a", 0), ("b", 0b1111), ("c", 0b111 << 40)), [1, 2, 3], {}, {}, [], 8)
    assert [decision.verdict.verdict for decision in made] == ["new", "near", "identical"]


def test_beyond_the_distance_a_page_is_new() -> None:
    made = decide(batch(("a", 0), ("b", 0b1111)), [1, 2], {}, {}, [], 3)
    assert [decision.verdict.verdict for decision in made] == ["new", "new"]


def test_the_nearest_wins_whether_from_the_store_or_from_the_batch() -> None:
    nearest = {0b111: KnownMatch(2, 40, "known"), 0b110: KnownMatch(3, 40, "known")}
    made = decide(batch(("a", 0b111), ("b", 0b110)), [50, 51], {}, nearest, [], 8)
    assert verdicts(made) == [
        ("identical", "within_distance", 2, "known"),
        ("identical", "within_distance", 1, "a"),
    ]


def test_at_equal_distance_what_was_known_first_wins() -> None:
    nearest = {0: KnownMatch(1, 40, "known"), 1: KnownMatch(1, 41, "known too")}
    made = decide(batch(("a", 0), ("b", 1), ("c", 0)), [50, 51, 52], {}, nearest, [], 8)
    assert [decision.verdict.duplicate_of for decision in made] == ["known", "known too", "a"]


def test_what_another_writer_stored_meanwhile_counts() -> None:
    arrived = [ArrivedPage(40, "meanwhile", 0b11), ArrivedPage(41, "later", 0b11)]
    made = decide(batch(("a", 0), ("b", 0b1)), [50, 51], {}, {}, arrived, 2)
    assert verdicts(made) == [
        ("identical", "within_distance", 2, "meanwhile"),
        ("identical", "within_distance", 1, "meanwhile"),
    ]


def test_a_match_with_a_simhash_that_has_no_page_names_no_original() -> None:
    made = decide(batch(("a", 0)), [50], {}, {0: KnownMatch(0, None, None)}, [], 3)
    assert verdicts(made) == [("identical", "same_simhash", 0, None)]
    assert made[0].page_id == 50
    assert made[0].duplicate_of is None


def test_a_page_comes_before_a_simhash_without_one_that_is_as_near() -> None:
    nearest = {number: KnownMatch(1, None, None) for number in (0b1, 0b10)}
    made = decide(batch(("a", 0b1), ("b", 0b10), ("c", 0b1)), [1, 2, 3], {}, nearest, [], 3)
    assert verdicts(made) == [
        ("identical", "within_distance", 1, None),
        ("identical", "within_distance", 1, None),
        ("identical", "same_simhash", 0, "a"),
    ]
    nearest[0b10] = KnownMatch(2, None, None)
    made = decide(batch(("a", 0b1), ("b", 0b10)), [1, 2], {}, nearest, [], 3)
    assert made[1].verdict.duplicate_of == "a"


def test_an_unchanged_page_is_not_stored_again() -> None:
    made = decide(
        batch(("a", 7)),
        [50],
        {"a": KnownVersion(3, 7, 3)},
        {7: KnownMatch(0, 3, "earlier")},
        [],
        3,
    )
    assert verdicts(made) == [("unchanged", "unchanged", 0, None)]
    assert made[0].page_id is None
    assert made[0].seen == 3


def test_a_changed_page_is_a_new_version_and_the_same_url_twice_is_unchanged() -> None:
    made = decide(
        batch(("a", 8), ("a", 8)),
        [50, 51],
        {"a": KnownVersion(3, 7, 3)},
        {},
        [],
        8,
    )
    assert verdicts(made) == [
        ("updated", "changed", 4, None),
        ("unchanged", "unchanged", 0, None),
    ]


def test_a_page_that_changes_and_changes_back_has_three_versions() -> None:
    far = 2**64 - 1
    made = decide(batch(("a", 0), ("a", far), ("a", 0)), [1, 2, 3], {}, {}, [], 3)
    assert [decision.page_id for decision in made] == [1, 2, 3]
    assert verdicts(made)[2] == ("updated", "changed", 64, None)


def test_a_match_needs_sketches_that_agree() -> None:
    """Sketches of near pages may differ in 28 bits; the original may be a page further away."""
    one, other = 0, 2**128 - 1
    pages = [
        PageRecord("a", 2**12 - 1, sketch=one),
        PageRecord("b", 2**9 - 1 << 40, sketch=other),
        PageRecord("near", 2**12 - 2, sketch=2**28 - 1),
        PageRecord("other", 2**12 - 2, sketch=other),
        PageRecord("c", 0, sketch=one),
    ]
    made = decide(pages, [1, 2, 3, 4, 5], {}, {}, [], 12)
    assert verdicts(made) == [
        ("new", "first_seen", None, None),
        ("new", "first_seen", None, None),
        ("identical", "within_distance", 1, "a"),
        ("new", "first_seen", None, None),
        ("near", "within_distance", 12, "a"),
    ]
    unverified = decide(pages, [1, 2, 3, 4, 5], {}, {}, [], 12, verify=False)
    originals = [decision.verdict.duplicate_of for decision in unverified]
    assert originals == [None, None, "a", "near", "b"]


def test_a_page_without_a_sketch_is_not_checked() -> None:
    pages = [PageRecord("a", 0), PageRecord("b", 2**10 - 1, sketch=5)]
    made = decide(pages, [1, 2], {}, {}, [], 10)
    assert verdicts(made)[1] == ("near", "within_distance", 10, "a")


def test_the_first_pages_of_a_kind_are_worth_keeping() -> None:
    pages = batch(("a", 0), ("b", 0b1), ("c", 0b11), ("d", 0b1), ("other", 2**64 - 1))
    made = decide(pages, [1, 2, 3, 4, 5], {}, {}, [], 3, keep_first=3)
    assert [decision.verdict.keep for decision in made] == [True, True, True, False, True]
    assert [decision.verdict.verdict for decision in made][:2] == ["new", "identical"]


def test_what_is_kept_counts_the_store_and_other_writers_too() -> None:
    known = {0: KnownMatch(1, 40, "known", copies=1)}
    arrived = [ArrivedPage(45, "arrived", 0b11), ArrivedPage(46, "far", 0b1111)]
    made = decide(batch(("a", 0), ("b", 0)), [50, 51], {}, known, arrived, 3, keep_first=3)
    assert [decision.verdict.keep for decision in made] == [True, False]
    assert [decision.verdict.duplicate_of for decision in made] == ["known", "a"]
