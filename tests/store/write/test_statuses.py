"""Answers without a page: 304, 404 and 410, and the validators of conditional requests."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from pgsimhash import Store, connect, connect_async
from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.pages.records import PageRecord, PageStatus, StoredPage
from pgsimhash.sources import SourcePage
from pgsimhash.store.lookups import names_of
from tests.database import run_sql
from tests.refusals import because, sqlstate
from tests.store.content import page_at
from tests.store.pages import page, paragraph

A, B = "https://a.example/", "https://b.example/"
DAY = timedelta(days=1)
NOW = datetime.now(UTC)
WEEK = 7 * DAY


def versions(store: Store, url: str) -> list[StoredPage]:
    """All versions of a page, without their runs and ids."""
    with store._session.calls_to_read() as calls:
        pages = calls.stored_pages([url], names_of(StoredPage), versions=None)
    return [replace(StoredPage(**each), run_id=None) for each in pages]


def ago(days: float) -> datetime:
    return NOW - days * DAY


def test_a_page_that_is_unmodified_for_100_days_does_not_expire(store: Store) -> None:
    store.add_page(A, 0, fetched_at=ago(200))
    store.add_page(B, 1 << 40, fetched_at=ago(200))
    for days in range(200, 0, -1):
        assert store.seen(A, fetched_at=ago(days))
    assert store.expire(90 * DAY).gone == [B]
    assert page_at(store, A).seen_at == ago(1)
    assert page_at(store, A).fetched_at == ago(200)


def test_a_gone_page_is_gone_until_the_next_page(store: Store) -> None:
    def gone_at() -> tuple[datetime | None, datetime | None]:
        (near,) = store.near_pages(0, distance=0)
        return page_at(store, A).gone_at, near.gone_at

    store.add_page(A, 0, fetched_at=ago(9))
    assert gone_at() == (None, None)
    assert store.gone(A, fetched_at=ago(8))
    assert gone_at() == (ago(8), ago(8))
    assert page_at(store, A).seen_at == ago(9)
    assert store.gone(A, fetched_at=ago(7))
    assert gone_at() == (ago(7), ago(7))
    assert store.seen(A, fetched_at=ago(6))
    assert gone_at() == (None, None)
    store.gone(A)
    assert store.add_page(A, 0, fetched_at=ago(5)).kind == "unchanged"
    assert gone_at() == (None, None)
    store.gone(A, fetched_at=ago(4))
    assert store.add_page(A, 1 << 40, fetched_at=ago(3)).kind == "updated"
    assert page_at(store, A).gone_at is None
    # The version before it was gone.
    assert [each.gone_at for each in versions(store, A)] == [ago(4), None]


def test_an_unknown_url_stores_nothing(store: Store, dsn: str) -> None:
    assert not store.seen(A)
    assert not store.gone(A)
    assert store.get(A) is None
    assert store.should_fetch(A)
    for table in ("pages", "last_seen", "runs"):
        assert run_sql(dsn, f"SELECT count(*) FROM pgsimhash.{table}") == [(0,)]


@pytest.mark.parametrize("call", [Store.seen, Store.gone])
def test_wrong_arguments_are_refused(store: Store, call: Any) -> None:
    store.add_page(A, 0)
    for url in ("no url", f"{A}\0", "https://\ud800/", 5, A + "x" * 3000):
        with pytest.raises(PageError, check=because("invalid_url")):
            call(store, url)
    for time in (datetime(2024, 1, 1), NOW + 9 * DAY, "2024-01-01"):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            call(store, A, fetched_at=time)
    assert page_at(store, A).seen_at == page_at(store, A).fetched_at


def test_a_gone_page_is_fetched_again_like_others(store: Store) -> None:
    store.set_policy("a.example", refetch_after=WEEK)
    store.add_page(A, 0, fetched_at=ago(30))
    assert store.should_fetch(A)
    store.gone(A, fetched_at=ago(6))
    assert not store.should_fetch(A)
    assert store.request_headers(A) is None
    store.gone(A, fetched_at=ago(8))
    assert store.should_fetch(A)
    assert store.request_headers(A) == {}
    assert not store.should_fetch(A, older_than=9 * DAY)


def test_a_gone_page_expires_by_when_it_was_last_seen(store: Store) -> None:
    for url, simhash in ((A, 0), (B, 1 << 40)):
        store.add_page(url, simhash, fetched_at=ago(100))
    store.seen(B, fetched_at=ago(50))
    for url in (A, B):
        store.gone(url, fetched_at=ago(1))
    assert store.expire(90 * DAY).gone == [A]
    assert page_at(store, B).gone_at == ago(1)


def test_a_run_counts_them_and_its_undo_reverts_versions(store: Store) -> None:
    store.add_page(A, 0)
    store.start_run("one")
    store.gone(A, fetched_at=ago(1))
    store.gone(A, fetched_at=ago(1))
    store.seen(A)
    store.gone(B)
    store.gone(A, fetched_at=ago(1))
    store.add_page(A, 1 << 40)
    (run,) = store.runs()
    assert (run.pages, run.gone, run.unchanged, run.updated, run.new) == (5, 3, 1, 1, 0)


def test_they_survive_a_rebuild(store: Store) -> None:
    store.ingest(A, page(paragraph(1)), fetched_at=ago(9), etag='"1"', last_modified="Monday")
    store.ingest(A, page(paragraph(1)), fetched_at=ago(8), etag='"2"')
    store.gone(A, fetched_at=ago(7))
    before = page_at(store, A)
    store.rebuild(replace=True)
    assert page_at(store, A) == before
    assert before.gone_at == ago(7)


def test_answers_in_a_batch_are_stored_in_order(store: Store) -> None:
    first, second = (SourcePage(A, page(paragraph(n)), fetched_at=ago(9 - n)) for n in (1, 2))
    gone, seen = (PageStatus(A, is_gone, ago(5)) for is_gone in (True, False))
    other = SourcePage(B, page(paragraph(3)))
    verdicts = store.ingest_many([gone, first, gone, other, second, seen, PageStatus(B, True)])
    assert [(each.url, each.kind, each.reason) for each in verdicts] == [
        (A, "unknown", "gone"), (A, "new", "first_seen"), (A, "gone", "gone"),
        (B, "new", "first_seen"), (A, "updated", "changed"), (A, "unchanged", "not_modified"),
        (B, "gone", "gone"),
    ]  # fmt: skip
    assert [each.gone_at for each in versions(store, A)] == [ago(5), None]
    assert page_at(store, A).seen_at == ago(5)
    assert page_at(store, B).gone_at is not None
    orders: list[tuple[list[SourcePage | PageStatus], bool]] = [
        ([seen, gone], True), ([gone, seen], False), ([gone, second], False),
    ]  # fmt: skip
    for order, is_gone in orders:
        list(store.ingest_many(order))
        assert (page_at(store, A).gone_at is not None) is is_gone


def test_a_batch_is_stored_as_its_items_one_by_one(store: Store, dsn: str) -> None:
    pages = [SourcePage(f"{A}{n % 2}", page(paragraph(n % 3)), fetched_at=ago(n)) for n in range(9)]
    statuses = [PageStatus(f"{A}{n % 3}", n % 4 == 0, ago(n)) for n in range(9)]
    items = [item for pair in zip(statuses, pages, strict=True) for item in pair]

    def content(opened: Store) -> list[Any]:
        return [version for n in range(2) for version in versions(opened, f"{A}{n}")]

    together = list(store.ingest_many(items))
    with connect(dsn, collection="single", create=True) as single:
        alone = list(single.ingest_many(items, batch_size=1))
        assert [each.as_json() | {"page_id": 0, "original_page_id": 0} for each in together] == [
            each.as_json() | {"page_id": 0, "original_page_id": 0} for each in alone
        ]
        assert content(store) == content(single)


def test_decide_stores_none(store: Store) -> None:
    store.add_page(A, 0, fetched_at=ago(9))
    before = page_at(store, A)
    items = [PageStatus(A, True), PageStatus(A, False), PageStatus(B, True)]
    verdicts = list(store.decide_many(items))
    assert [each.kind for each in verdicts] == ["gone", "unchanged", "unknown"]
    assert not any(each.keep for each in verdicts)
    assert page_at(store, A) == before


def test_urls_are_normalized(dsn: str) -> None:
    with connect(dsn, normalize_urls=True) as store:
        store.add_page("https://a.example/?a=1&utm_source=x", 0)
        assert store.gone("https://a.example:443/?utm_medium=y&a=1")
        assert page_at(store, "https://a.example/?a=1").gone_at is not None
        twins = "https://A.example/en https://a.example:443/de?utm_source=x"
        record = PageRecord(url="https://a.example/en", simhash=1, alternates=twins)
        list(store.ingest_many([record]))
        known = page_at(store, "https://a.example/en")
        assert known.alternates == "https://a.example/en https://a.example/de"


def test_the_asynchronous_store_has_the_same(dsn: str) -> None:
    async def use() -> None:
        async with await connect_async(dsn) as store:
            await store.add_page(A, 0, fetched_at=ago(9))
            assert await asyncio.gather(*map(store.seen, (A, B))) == [True, False]
            assert await asyncio.gather(*map(store.gone, (A, B))) == [True, False]
            known = await store.get(A)
            assert known is not None
            assert known.gone_at is not None
            assert known.seen_at > ago(1)
            assert await store.request_headers(B) == {}

    asyncio.run(use())


def test_the_functions_of_sql(store: Store, dsn: str) -> None:
    store.ingest(A, page(paragraph(1)), fetched_at=ago(9), etag='"1"')
    assert run_sql(dsn, f"SELECT pgsimhash.seen('{A}', %s)", [ago(8)]) == [(True,)]
    assert page_at(store, A).seen_at == ago(8)
    assert run_sql(dsn, f"SELECT pgsimhash.gone('{A}', %s)", [ago(7)]) == [(True,)]
    assert page_at(store, A).gone_at == ago(7)
    assert run_sql(dsn, f"SELECT pgsimhash.seen('{A}')") == [(True,)]
    assert page_at(store, A).gone_at is None
    for function in ("seen", "gone"):
        for url in (f"'{B}'", "NULL", "''"):
            assert run_sql(dsn, f"SELECT pgsimhash.{function}({url})") == [(False,)]
        with pytest.raises(psycopg.Error, check=sqlstate("PS010")):
            run_sql(dsn, f"SELECT pgsimhash.{function}('{A}', '2999-01-01')")
        with pytest.raises(psycopg.Error, check=sqlstate("PS001")):
            run_sql(dsn, f"SELECT pgsimhash.{function}('{A}', NULL, 'typo')")
    (conditions,) = run_sql(dsn, f"SELECT * FROM pgsimhash.fetch_conditions('{A}')")
    assert conditions == (False, '"1"', None, None)


class TestValidators:
    """The ETag and Last-Modified of the last response with the present version."""

    def test_they_are_those_of_the_last_page(self, store: Store) -> None:
        def headers() -> tuple[str | None, str | None]:
            found = store.request_headers(A, older_than=DAY)
            assert found is not None
            known = page_at(store, A)
            pair = found.get("If-None-Match"), found.get("If-Modified-Since")
            assert pair == (known.etag, known.last_modified)
            return pair

        first, second = page(paragraph(1)), page(paragraph(2))
        for html, etag, modified, expected in (
            (first, None, None, (None, None)), (first, '"1"', None, ('"1"', None)),
            (first, None, "Monday", (None, "Monday")), (first, None, None, (None, "Monday")),
            (first, '"2"', "Tuesday", ('"2"', "Tuesday")), (second, '"3"', None, ('"3"', None)),
            (second, '"4"', None, ('"4"', None)), (second, '"3"', None, ('"3"', None)),
            (first, None, None, (None, None)),
        ):  # fmt: skip
            store.ingest(A, html, fetched_at=ago(9), etag=etag, last_modified=modified)
            assert headers() == expected
        store.ingest(A, first, fetched_at=ago(9), etag='"5"')
        store.seen(A, fetched_at=ago(8))
        store.gone(A, fetched_at=ago(7))
        assert headers() == ('"5"', None)

    def test_what_no_request_can_send_is_dropped(self, store: Store) -> None:
        wrong: list[Any] = ["x" * 513, "a\r\nb", "a\0b", "\ud800", "ä", "", 5, b"x", "a\x7f"]
        for number, etag in enumerate(wrong):
            url = f"{A}{number}"
            pages: list[SourcePage | PageRecord] = [
                SourcePage(url, page(paragraph(number)), etag=etag, last_modified="Monday"),
                PageRecord(f"{url}/record", number << 40, etag="x" * 512, last_modified=etag),
            ]
            verdicts = list(store.ingest_many(pages, distance=0))
            assert "failed" not in {each.kind for each in verdicts}
            first, second = (page_at(store, each.url) for each in pages)
            assert (first.etag, first.last_modified) == (None, "Monday")
            assert (second.etag, second.last_modified) == ("x" * 512, None)
