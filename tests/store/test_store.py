"""The store in an ingest job."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, connect
from pgsimhash.errors import ArgumentError, NotFoundError, StoreError
from pgsimhash.sources import SourcePage
from tests.database import run_sql
from tests.refusals import because
from tests.store.content import page_at
from tests.store.pages import ARTICLE, page, paragraph


def test_ingest_is_lazy_and_releases_stored_pages(store: Store) -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield (f"https://a.example/{taken}", page(paragraph(taken, 40)))

    verdicts = store.ingest_many(endless())  # type: ignore[arg-type]
    assert taken == 0
    for _ in range(1100):
        next(verdicts)
    assert taken <= 2000


def test_a_page_should_be_fetched_if_it_is_unknown_or_due(store: Store) -> None:
    url = "https://a.example/x"
    now, day = datetime.now(UTC), timedelta(days=1)
    store.add_page(url, 0, fetched_at=now - 50 * day)
    assert store.should_fetch("https://a.example/unknown", older_than=99 * day)
    assert not store.should_fetch(url)
    assert store.should_fetch(url, older_than=49 * day)
    assert not store.should_fetch(url, older_than=51 * day)
    store.add_page(url, 0, fetched_at=now - 30 * day)  # unchanged, and last seen
    assert not store.should_fetch(url, older_than=49 * day)
    store.add_page(url, 1 << 40, fetched_at=now - 20 * day)  # a new version
    assert not store.should_fetch(url, older_than=21 * day)
    for age, fetch in ((21, False), (19, True)):
        store.set_policy("a.example", refetch_after=age * day)
        assert store.should_fetch(url) is fetch
        assert not store.should_fetch(url, older_than=21 * day)
    assert store.should_fetch(url, older_than=timedelta(0))
    for invalid in (-day, 30, 0):
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.should_fetch(url, older_than=cast("timedelta", invalid))


def test_a_url_that_redirects_is_due_as_the_pages_to_which_it_leads(store: Store) -> None:
    a, b, c = (f"https://a.example/{name}" for name in "abc")
    store.add_redirects({a: b, b: c, c: a})
    assert store.should_fetch(a)
    now, day = datetime.now(UTC), timedelta(days=1)
    store.add_page(c, 0, fetched_at=now - 9 * day)
    assert not store.should_fetch(a)
    for url in (a, b, c):
        assert store.should_fetch(url, older_than=8 * day)
        assert not store.should_fetch(url, older_than=10 * day)
    # Its own page, if it has one, must be due too.
    store.add_page(a, 1 << 40, fetched_at=now - 2 * day)
    assert not store.should_fetch(a, older_than=8 * day)
    assert store.should_fetch(a, older_than=day)
    # The present target counts; what no page can have is dropped.
    store.add_redirects({b: f"{c}2", a: f"{c}2", f"{c}1": f"{c}1", f"{c}3": c + "x" * 2048})
    assert store.should_fetch(b)
    store.rebuild(replace=True)
    store.add_page(f"{c}2", 1 << 50)
    assert not store.should_fetch(b)
    assert store.delete_collection() == 3


def test_a_url_that_redirected_is_asked_again_however_fresh_its_target_is(
    store: Store, dsn: str
) -> None:
    page, home = "https://a.example/page", "https://a.example/"
    day = timedelta(days=1)
    store.add_page(home, 0)
    store.add_redirects({page: home})
    run_sql(dsn, "UPDATE pgsimhash.redirects SET seen_at = now() - interval '9 days'")
    assert not store.should_fetch(page)
    assert not store.should_fetch(page, older_than=10 * day)
    store.set_policy("a.example", refetch_after=8 * day)
    assert store.should_fetch(page)
    # It redirects still.
    store.add_redirects({page: home})
    assert not store.should_fetch(page)


def test_the_headers_of_one_page_count_as_in_a_stream(store: Store, dsn: str) -> None:
    url, charset = "https://a.example/", "iso-8859-5"
    words = "слова без заголовка читаются иначе если сервер назвал другую кодировку страницы"
    html = f"<p>{words}, таких слов никто не поймёт".encode("koi8-r")
    (streamed,) = store.ingest_many([SourcePage(url, html, charset, noindex=True)])
    for verdict in (
        store.decide(f"{url}b", html, charset=charset),
        store.ingest(f"{url}b", html, charset=charset, noindex=True),
    ):
        assert (verdict.simhash, verdict.reason) == (streamed.simhash, "same_bytes")
    assert store.decide(f"{url}c", html).simhash != streamed.simhash
    assert run_sql(dsn, "SELECT noindex FROM pgsimhash.pages") == [(True,), (True,)]


def test_a_near_page_has_its_url_and_time(store: Store) -> None:
    store.add_page("https://a.example/1", 0)
    added = store.add_page("https://a.example/2", 7)
    (found,) = store.near_pages("https://a.example/1")
    known = page_at(store, "https://a.example/2")
    assert found.as_json() == {
        "url": "https://a.example/2",
        "title": None,
        "simhash": "0000000000000007",
        "distance": 3,
        "fetched_at": known.fetched_at.isoformat(),
        "page_id": added.page_id,
        "gone_at": None,
    }


def test_pages_near_an_unknown_url_are_an_error(store: Store, dsn: str) -> None:
    store.add_page("https://a.example/1", 0)
    with connect(dsn, collection="other", create=True) as other:
        other.add_page("https://a.example/2", 0)
    for url in ("https://a.example/2", "", "https://a.example/1/", "0"):
        with pytest.raises(NotFoundError, match="has no page at", check=because("unknown_page")):
            store.near_pages(url)
    store.delete_page("https://a.example/1")
    with pytest.raises(NotFoundError, check=because("unknown_page")):
        store.near_pages("https://a.example/1")


@pytest.mark.long
def test_a_batch_of_a_million_is_answered(store: Store) -> None:
    list(store.add_pages([("https://a.example/", 5), ("https://b.example/", 2**64 - 1)]))
    queries = np.arange(1, 1_000_001, dtype=np.uint64) << np.uint64(12)
    queries[123_456] = 4
    queries[999_999] = 2**64 - 4
    matches = store.find_many(queries, 3)
    near = np.bitwise_count(queries ^ np.uint64(5)) <= 3
    assert {123_456, 999_999} <= set(matches.queries.tolist())
    assert len(matches.queries) == near.sum() + 1
    assert len(store.find_many(queries[:0]).queries) == 0


def test_status_counts_versions_urls_duplicates_and_their_bytes(store: Store) -> None:
    html = page(*ARTICLE)
    store.ingest("https://a.example/1", html)
    store.ingest("https://a.example/2", html)
    store.ingest("https://a.example/2", page(paragraph(3)))
    row = store.status()
    assert (row.pages, row.urls, row.simhashes) == (3, 2, 2)
    assert (row.duplicates, row.duplicate_bytes) == (1, len(html))


@pytest.mark.one_server("its nodes count the bytes")
def test_status_has_the_bytes_of_the_whole_schema(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store:
        text = " ".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(2_000))
        store.ingest("https://a.example/", f"<p>{text}</p>")
        connect(dsn, collection="other", create=True).close()
        first, second = store.collections()
    ((count, size),) = run_sql(
        dsn,
        "SELECT count(*), sum(pg_total_relation_size((schemaname || '.' || tablename)::regclass)) "
        "FROM pg_tables WHERE schemaname = 'pgsimhash'",
    )
    assert count > 7
    assert first.schema_bytes == second.schema_bytes == size > len(text) / 2


def test_an_error_leaves_the_callers_transaction_usable(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        store.add_page("https://a.example/1", 1)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.find(1, distance=13)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.add_page("https://a.example/2", -1)
        assert len(store.find(1)) == 1
        with (
            pytest.raises(StoreError, match="leave that first", check=because("gave_up")),
            connection.pipeline(),
        ):
            list(store.clusters())


def test_an_unregistered_scheme_can_be_searched_but_not_ingested(dsn: str) -> None:
    run_sql(
        dsn, "INSERT INTO pgsimhash.collections (name, scheme) VALUES ('old', 'other-scheme-1')"
    )
    with pytest.raises(pgsimhash.CollectionError, match=r"other-scheme-1.*such as old-2"):
        connect(dsn, collection="old", scheme="pgsimhash-article-1")
    with pytest.raises(ArgumentError, match="there is no scheme 'mine'"):
        connect(dsn, collection="new", create=True, scheme="mine")
    with pytest.raises(
        pgsimhash.CollectionError, match=r"the nearest names: old\); check the name$"
    ):
        connect(dsn, collection="typo", create=False)
    with connect(dsn, collection="old") as store:
        assert store.collection.scheme == "other-scheme-1"
        assert store.add_page("https://a.example/", 1).kind == "new"
        assert store.has_near(1)
        with pytest.raises(ArgumentError, match="register yours"):
            store.ingest("https://a.example/2", "<p>")
