"""When to fetch a page again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pgsimhash.pages.recrawl import FIRST, LONGEST, SHORTEST, Visit, recrawl_hint

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
OTHER = 0xFFFF


def versions(*days: float, simhashes: tuple[int, ...] = ()) -> list[Visit]:
    """Versions at these days, each with different content by default."""
    contents = simhashes or tuple(OTHER * (n % 2) for n in range(len(days)))
    return [
        Visit(simhash, BEGIN + day * DAY, BEGIN + day * DAY)
        for day, simhash in zip(days, contents, strict=True)
    ]


def test_a_page_without_known_changes_waits_the_first_interval() -> None:
    hint = recrawl_hint(versions(0))
    assert (hint.interval, hint.changes) == (FIRST, 0)
    assert hint.due_at == BEGIN + FIRST
    noise = recrawl_hint(versions(0, 1, simhashes=(0, 0b111)))
    assert (noise.interval, noise.changes) == (FIRST, 0)
    assert noise.known_until == BEGIN + DAY


@pytest.mark.parametrize(
    ("texts", "bits", "changes"),
    [((1, 2), 0, 1), ((1, 1), 9, 0), ((1, None), 3, 0), ((1, None), 4, 1), ((None, None), 3, 0)],
)
def test_another_text_is_a_change_at_any_distance(
    texts: tuple[int | None, int | None], bits: int, changes: int
) -> None:
    known = versions(0, 1, simhashes=(0, 2**bits - 1))
    pages = [page._replace(text_digest=text) for page, text in zip(known, texts, strict=True)]
    assert recrawl_hint(pages).changes == changes


def test_a_page_that_changes_daily_is_visited_about_daily() -> None:
    hint = recrawl_hint(versions(*range(100)))
    assert 0.6 * DAY < hint.interval < 1.6 * DAY
    assert hint.changes == 99


def test_changes_shorten_the_interval_and_unchanged_visits_lengthen_it() -> None:
    # Visits at 1 (changed), 1.8 (not), 2.92 (not), 4.488 (not); the next would be after day 5.
    expected = 1.0 * 0.8 * 1.4 * 1.4 * 1.4
    assert recrawl_hint(versions(0, 1, 5)).interval / DAY == pytest.approx(expected)
    # Visits at 1 and 1.8, both changed; the next would be at 2.44.
    assert recrawl_hint(versions(0, 1, 1.5, 2)).interval / DAY == pytest.approx(0.64)


def test_time_after_the_newest_version_counts_only_if_someone_looked() -> None:
    known = versions(0, 1)
    assert recrawl_hint(known).interval / DAY == pytest.approx(0.8)
    seen = recrawl_hint(known, BEGIN + 60 * DAY)
    assert seen.interval > 10 * DAY
    assert seen.known_until == BEGIN + 60 * DAY
    naive = datetime(2026, 3, 2)
    assert recrawl_hint(known, naive).interval == seen.interval


def test_the_interval_stays_between_its_bounds() -> None:
    often = versions(*(n / 100_000 for n in range(500)))
    assert recrawl_hint(often).interval >= SHORTEST
    assert recrawl_hint(often, shortest=DAY, longest=2 * DAY).interval == DAY
    assert recrawl_hint(versions(0), BEGIN + 9000 * DAY).interval == LONGEST


@pytest.mark.parametrize(
    ("days", "told"), [(30, "30.0 days"), (1.5, "36.0 hours"), (1 / 24, "60.0 minutes")]
)
def test_the_interval_has_a_suitable_unit(days: float, told: str) -> None:
    assert recrawl_hint(versions(0), first=days * DAY).wait == told


def test_times_without_order_or_beyond_the_calendar_are_no_error() -> None:
    assert recrawl_hint(versions(5, 0, 5, 1)).known_from == BEGIN
    assert recrawl_hint(versions(0, 0, 0)).interval == FIRST
    end = datetime.max.replace(tzinfo=UTC)
    assert recrawl_hint([Visit(0, end, end)]).due_at == end


def test_invalid_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="one version"):
        recrawl_hint([])
    with pytest.raises(ValueError, match="shortest"):
        recrawl_hint(versions(0), shortest=timedelta(0))
