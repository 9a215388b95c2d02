"""A record or a time that PostgreSQL cannot store fails alone; batches have bounded bytes."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from pgsimhash import Store, Verdict, analysis, connect, connect_async, maintenance
from pgsimhash.errors import PageError
from pgsimhash.pages.records import BITS_64, COUNTS, PageRecord
from pgsimhash.sources import SourcePage
from pgsimhash.store import batches
from tests.store.content import page_at, transactions
from tests.store.test_store import page, paragraph

A = "https://a.example/"
FAR = 0xFFFF_FFFF << 16
GOOD = PageRecord(A, 1, title="a", tokens=9, signature=5, html_digest=b"a", markdown="b")

WRONG: list[dict[str, Any]] = [
    {"url": A + "x" * 3000}, {"url": f"{A}\0"}, {"url": "https://\ud800/"}, {"url": None},
    {"simhash": 2**64}, {"simhash": "5"}, {"title": "a\0b"}, {"title": "\ud800"}, {"title": 5},
    {"canonical_url": f"{A}\0"}, {"language": "\ud800"}, {"markdown": "a\0b"},
    {"tokens": -1}, {"tokens": 1.5}, {"tokens": np.int64(5)}, {"text_digest": -1},
    {"signature": 2**128}, {"signature": "5"},
    *({name: 2**31} for name in COUNTS), *({name: 2**64} for name in BITS_64),
    {"html_digest": "a"}, {"fetched_at": datetime(2024, 1, 1)}, {"fetched_at": "2024-01-01"},
]  # fmt: skip


@pytest.fixture
def keeping(dsn: str) -> Iterator[Store]:
    """A store that keeps Markdown."""
    with connect(dsn, keep_markdown=True, retry_seconds=0) as store:
        yield store


def around(wrong: dict[str, Any]) -> list[PageRecord]:
    first, second = replace(GOOD, url=f"{A}1"), replace(GOOD, url=f"{A}2", simhash=FAR)
    return [first, replace(GOOD, **wrong), second]


def check(verdicts: list[Verdict]) -> None:
    assert len(verdicts) == 3 * len(WRONG)
    for failed in verdicts[1::3]:
        assert (failed.verdict, failed.reason in PageError.reasons) == ("failed", True), failed
        assert failed.detail
        assert failed.detail.encode()
    others = {verdict.verdict for verdict in (*verdicts[::3], *verdicts[2::3])}
    assert others <= {"new", "unchanged"}


def test_a_record_that_cannot_be_stored_fails_alone(keeping: Store, dsn: str) -> None:
    records = [record for wrong in WRONG for record in around(wrong)]

    async def use() -> list[Verdict]:
        async with await connect_async(dsn, retry_seconds=0) as store:
            return [verdict async for verdict in store.ingest_many(records)]

    check(list(keeping.ingest_many(records)))
    check(asyncio.run(use()))


def test_a_pair_that_cannot_be_stored_fails_alone(store: Store) -> None:
    pairs: list[Any] = [(A, 1), (f"{A}\0", 2), ("https://\ud800/", 3), (A + "x" * 3000, 4)]
    pairs += [(f"{A}{n}", simhash) for n, simhash in enumerate((-1, 2**64, 1.5, None))]
    *failed, last = list(store.add_many([*pairs, (f"{A}last", FAR)]))[1:]
    assert {verdict.verdict for verdict in failed} == {"failed"}
    reasons = [verdict.reason for verdict in failed]
    assert reasons == ["invalid_url"] * 3 + ["unreadable"] * 4
    assert last.verdict == "new"


def records(count: int, markdown: str) -> list[PageRecord]:
    return [PageRecord(f"{A}{n}", n << 40, markdown=markdown) for n in range(count)]


def test_a_batch_ends_at_its_bytes_and_a_larger_record_is_refused(
    keeping: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)
    given = records(12, "ä" * 200)
    given[5] = replace(given[5], markdown="ä" * 500)
    verdicts = list(keeping.ingest_many(given, distance=0))
    assert [verdict.reason for verdict in verdicts].count("too_large") == 1
    assert verdicts[5].reason == "too_large"
    # Three of 400 bytes reach the limit.
    assert transactions(dsn) == 4
    html = "<p>" + "".join(f"word{n} " for n in range(400))
    assert keeping.ingest(f"{A}large", html).reason == "too_large"


def test_concurrent_pages_end_a_batch_at_its_bytes(
    keeping: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1000)

    async def use() -> list[Verdict]:
        page = "<p>" + "".join(f"word{n} " for n in range(50))
        large = "<p>" + "".join(f"word{n} " for n in range(400))
        async with await connect_async(dsn) as store:
            calls = [store.ingest(f"{A}{n}", page) for n in range(12)]
            return await asyncio.gather(*calls, store.ingest(f"{A}large", large))

    *verdicts, refused = asyncio.run(use())
    assert "failed" not in {verdict.verdict for verdict in verdicts}
    assert refused.reason == "too_large"
    assert transactions(dsn) >= 4


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
    reasons = [verdict.reason for verdict in verdicts]
    assert reasons == ["first_seen", *["unreadable"] * 6, "first_seen", "first_seen"]
    assert all(verdict.detail for verdict in verdicts[1:7])
    assert page_at(store, "https://a.example/7").fetched_at == MOMENT
    assert store.decide("https://a.example/x", page(paragraph(7))).duplicate_of is not None
    maintenance.rebuild(store, replace=True)
    (version,) = analysis.versions(store, "https://a.example/0")
    assert version.fetched_at == MOMENT


def test_an_age_may_reach_back_before_all_pages(store: Store) -> None:
    first, second = pages(MOMENT, datetime(1970, 1, 2, tzinfo=UTC))
    age = timedelta(days=739_000)
    verdicts = store.ingest_many([first, second], max_age=age)
    assert [verdict.verdict for verdict in verdicts] == ["new", "new"]
    copy = SourcePage("https://a.example/copy", first.html, fetched_at=second.fetched_at)
    (verdict,) = store.ingest_many([copy], max_age=age)
    assert verdict.duplicate_of == first.url
