"""Invalid times, or times that PostgreSQL does not accept: one page fails, not the job."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from pgsimhash import Store, analysis, maintenance
from pgsimhash.errors import ArgumentError
from pgsimhash.sources import SourcePage
from tests.refusals import because
from tests.store.content import page_at
from tests.store.test_store import page, paragraph

EAST = timezone(timedelta(hours=23))
MOMENT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def pages(*times: Any) -> list[SourcePage]:
    return [
        SourcePage(f"https://a.example/{number}", page(paragraph(number)), fetched_at=time)
        for number, time in enumerate(times)
    ]


def test_an_invalid_time_fails_its_page_alone(store: Store) -> None:
    times = [
        MOMENT, "2024-05-06T07:08:09Z", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        datetime(1, 1, 1, tzinfo=UTC), date(2024, 5, 6), datetime(2024, 5, 6, 7, 8, 9),
        datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=23))), MOMENT.astimezone(EAST),
        None,
    ]  # fmt: skip
    verdicts = list(store.ingest_many(pages(*times)))
    assert [verdict.reason for verdict in verdicts] == [
        "first_seen",
        *["unreadable"] * 6,
        "first_seen",
        "first_seen",
    ]
    assert all(verdict.detail for verdict in verdicts[1:7])
    assert page_at(store, "https://a.example/7").fetched_at == MOMENT
    assert store.decide("https://a.example/x", page(paragraph(7))).duplicate_of is not None
    maintenance.rebuild(store, replace=True)
    (version,) = analysis.versions(store, "https://a.example/0")
    assert version.fetched_at == MOMENT


def test_the_invalid_time_of_a_single_page_is_an_error(store: Store) -> None:
    times: list[Any] = ["2024-05-06", datetime(1, 1, 1, tzinfo=EAST), 0]
    for time in (*times, datetime(2024, 2, 29), datetime(2999, 1, 1, tzinfo=UTC)):
        for add in (store.ingest, store.should_store, store.decide):
            with pytest.raises(ArgumentError, check=because("invalid_argument")):
                add("https://a.example/", page(paragraph(1)), fetched_at=time)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.add("https://a.example/", 5, fetched_at=time)
    assert store.add("https://a.example/", 5, fetched_at=MOMENT.astimezone(EAST))
    assert page_at(store, "https://a.example/").fetched_at == MOMENT


def test_an_age_may_reach_back_before_all_pages(store: Store) -> None:
    first, second = pages(MOMENT, datetime(1970, 1, 2, tzinfo=UTC))
    age = timedelta(days=739_000)
    verdicts = store.ingest_many([first, second], max_age=age)
    assert [verdict.verdict for verdict in verdicts] == ["new", "new"]
    copy = SourcePage("https://a.example/copy", first.html, fetched_at=second.fetched_at)
    (verdict,) = store.ingest_many([copy], max_age=age)
    assert verdict.duplicate_of == first.url
