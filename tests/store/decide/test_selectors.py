"""Policies that say which part of a page counts, and the first crawl after a change of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from itertools import product
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import ArgumentError, Store, connect, connect_async
from pgsimhash.db import statements
from pgsimhash.html import read_article
from pgsimhash.pages.selectors import Selectors, check_selectors, policy_selectors
from pgsimhash.sources import SourcePage
from tests.database import database_examples, run_sql
from tests.html.made_streams import Stream, kept_each_day
from tests.store.content import page_at
from tests.store.decide.test_policies import settings_for

A = "https://a.example/"
STREAM = Stream(0)
TEMPLATE = list(STREAM.template(250, 20, 12, " id=own"))
"""Pages with 20 own words in a template."""
OWN = "#own"


def story(ad: str, text: str = STREAM.words(60)) -> str:
    return f"<body><div class=z9><p>{text}</p><div class=q7><p>{ad}</p></div></div></body>"


def set_policy(store: Store, pattern: str = "a.example", **settings: Any) -> None:
    store.set_policy(pattern, **settings)


def own_parts() -> list[tuple[str, str]]:
    return [(f"{A}{number}", page) for number, page in enumerate(TEMPLATE)]


def test_content_tells_short_pages_in_a_template_apart(store: Store) -> None:
    assert sum(verdict.keep for verdict in store.decide_many(own_parts())) < 12
    set_policy(store, content=OWN)
    assert all(verdict.keep for verdict in store.ingest_many(own_parts()))


def test_a_story_under_rotating_advertisements_is_kept_once(store: Store) -> None:
    set_policy(store, ignore=".q7")
    pages = [(f"{A}{number}", story(STREAM.words(30))) for number in range(12)]
    assert sum(verdict.keep for verdict in store.ingest_many(pages)) == 1


def test_a_block_that_is_new_at_each_fetch_is_no_change(store: Store) -> None:
    set_policy(store, pattern="n.example", ignore=".c7")
    assert kept_each_day(store, Stream(1).days("blocks of their own", urls=4)) == [1, 0, 0]


def test_the_page_wins_over_the_call_and_the_call_over_the_policy(store: Store) -> None:
    url, page = own_parts()[0]
    set_policy(store, content="#none", ignore="#nothing")
    verdicts = [
        store.decide(url, page),
        store.decide(url, page, content=OWN),
        *store.decide_many([SourcePage(url, page, content=OWN)], content="#no"),
    ]
    assert [verdict.content_missing for verdict in verdicts] == [True, False, False]
    assert verdicts[1].simhash == verdicts[2].simhash != verdicts[0].simhash
    # A page of its own that is invalid fails alone.
    pages = [SourcePage(url, page, content="a + b"), SourcePage(url, page)]
    assert [one.kind for one in store.decide_many(pages, content=OWN)] == ["failed", "new"]
    for call in (store.ingest, store.decide):
        with pytest.raises(ArgumentError, match="selector 1"):
            call(url, page, ignore="a + b")


def test_an_empty_selector_is_none_below_a_policy_that_has_some(store: Store, dsn: str) -> None:
    url, page = own_parts()[0]
    whole = store.decide(url, page).simhash
    run_sql(dsn, "SELECT pgsimhash.set_policy('a.example/0*', content => '')")
    set_policy(store, content=OWN, ignore="h1")
    set_policy(store, "a.example/0", ignore="")
    for settings in (store.decide(url, page), store.decide(f"{A}1", page, content="", ignore="")):
        assert (settings.simhash, settings.content_missing) == (whole, False)
    (other,) = store.decide_many([SourcePage(f"{A}1", page, ignore="")], content="")
    assert other.simhash == whole
    # It is read whole, as if no policy had selectors.
    store.ingest(url, page)
    assert page_at(store, url).selectors is None
    assert store.count_reread() == 0


def test_processes_read_by_selectors_too(store: Store) -> None:
    set_policy(store, content=OWN)
    alone = [verdict.simhash for verdict in store.decide_many(own_parts()[:2])]
    assert [one.simhash for one in store.decide_many(own_parts()[:2], jobs=2)] == alone


def test_an_asynchronous_store_reads_by_selectors(store: Store, dsn: str) -> None:
    set_policy(store, content=OWN)
    url, page = own_parts()[0]

    async def decide() -> list[int | None]:
        async with await connect_async(dsn) as other:
            return [
                (await other.decide(url, page)).simhash,
                (await other.decide(url, page, content="body")).simhash,
            ]

    assert asyncio.run(decide()) == [
        store.decide(url, page).simhash, store.decide(url, page, content="body").simhash
    ]  # fmt: skip


def test_missing_content_is_told_and_counted(store: Store) -> None:
    set_policy(store, content="#gone", ignore="p, h1, div")
    set_policy(store, "b.example", content="#gone")
    (url, page), *_ = own_parts()
    short, whole = store.ingest_many([(url, page), ("https://b.example/", page)])
    assert (short.kind, short.reason) == ("too_short", "cut_short")
    assert short.detail is not None
    assert "ignore 'p, h1, div'" in short.detail
    assert (whole.kind, whole.content_missing) == ("new", True)
    (run,) = store.runs()
    assert (run.content_missing, run.cut_short, run.pages) == (1, 1, 1)
    assert (store.status().content_missing, store.status().cut_short) == (1, 1)
    # A run of nothing else is counted too.
    list(store.ingest_many([(url, page)]))
    assert (store.status().content_missing, store.status().cut_short) == (0, 1)


def test_the_first_crawl_after_a_change(store: Store, dsn: str) -> None:
    pages = [(f"{A}{number}", story("advert " * number)) for number in range(3)]
    list(store.ingest_many(pages))
    set_policy(store, ignore=".q7")
    assert store.count_reread("a.example") == 3
    assert store.count_reread("b.example") == 0
    # Equal bytes: read again, and nothing is kept. The third page was changed.
    changed = [*pages[:2], (pages[2][0], story("other " * 9, STREAM.words(60)))]
    verdicts = list(store.ingest_many(changed))
    assert [verdict.keep for verdict in verdicts] == [False, False, True]
    assert (verdicts[2].kind, verdicts[2].reason) == ("updated", "selectors_changed")
    assert store.count_reread() == 0
    digest = Selectors(None, ".q7").digest
    assert {page_at(store, url).selectors for url, _ in pages} == {digest}
    assert {one.kind for one in store.ingest_many(changed)} == {"unchanged"}
    # An equal text: the row only records by which selectors it was read.
    set_policy(store, ignore=".q7, .q8")
    assert store.count_reread("*") == 3
    assert {one.kind for one in store.ingest_many(changed)} == {"unchanged"}
    assert store.count_reread() == 0
    store.remove_policy("a.example")
    assert store.count_reread() == 3


def test_a_new_text_of_the_same_bytes_is_updated_and_not_kept(store: Store) -> None:
    url, page = A, story(STREAM.words(60))
    assert store.ingest(url, page).keep
    verdict = store.ingest(url, page, ignore=".q7")
    assert (verdict.kind, verdict.reason, verdict.keep) == ("updated", "selectors_changed", False)
    # Its text counts as kept: a copy at another URL is not kept either.
    copy = store.ingest(f"{A}copy", page.replace("z9", "z8"), ignore=".q7")
    assert (copy.kind, copy.keep, page_at(store, url).covered) == ("duplicate", False, True)


def test_a_page_that_will_be_read_differently_is_fetched_whole(store: Store) -> None:
    url, page = own_parts()[0]

    def headers() -> dict[str, str] | None:
        return store.request_headers(url, older_than=timedelta(0))

    store.ingest(url, page, etag='"1"', content="body")
    assert headers() == {"If-None-Match": '"1"'}
    set_policy(store, content=OWN)
    # After an answer 304, it would stay as it was read.
    assert headers() == {}
    store.ingest(url, page, etag='"1"')
    assert headers() == {"If-None-Match": '"1"'}


def test_another_process_follows_from_its_second_batch(store: Store, dsn: str) -> None:
    with connect(dsn) as other:
        set_policy(store, content="#none")
        pages = own_parts()
        assert [other.decide(*page).content_missing for page in pages[:2]] == [False, True]
        set_policy(store, content="#none", ignore="*")
        # Failures alone refresh it too.
        reasons = [other.ingest(*page).reason for page in pages[:3]]
        store.remove_policy("a.example")
        reasons += [other.ingest(*page).reason for page in pages[3:6]]
        assert reasons == [
            "first_seen", "cut_short", "cut_short", "cut_short", "first_seen", reasons[5]
        ]  # fmt: skip


def test_an_idle_process_follows_after_a_minute(
    store: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgsimhash.store.session.ROW_SECONDS", 0.0)
    with connect(dsn) as other:
        set_policy(store, content="#none")
        assert other.decide(*own_parts()[0]).content_missing


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_batch_is_read_by_one_version_of_the_policies(
    store: Store, dsn: str, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr("pgsimhash.store.session.ROW_SECONDS", 0.0)

    def pages() -> Iterator[tuple[str, str]]:
        for number, page in enumerate(own_parts()):
            if number == 5:
                set_policy(store, content="#none")
            yield page

    with connect(dsn) as other:
        missing = []
        for verdict in other.ingest_many(pages(), jobs=jobs):
            missing.append(verdict.content_missing)
            # Those before the change alone, although a batch has room for all.
            assert (store.runs()[0].pages > 5) == verdict.content_missing
        assert missing == [False] * 5 + [True] * 7


def test_without_such_policies_nothing_is_added(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four statements for a page, with and without selectors; without them no call either."""
    sent: list[str] = []
    execute = statements.execute

    def noted(connection: Any, statement: Any, *arguments: Any) -> Any:
        sent.append(statement)
        return execute(connection, statement, *arguments)

    monkeypatch.setattr(statements, "execute", noted)
    url, page = own_parts()[0]
    set_policy(store, distance=5)

    def count(**options: Any) -> int:
        sent.clear()
        store.ingest(url, page, **options)
        return len(sent)

    with monkeypatch.context() as patch:
        for name in ("pgsimhash.store.store.policy_selectors", "pgsimhash.html.article.cut"):
            patch.setattr(name, None)
        before = count()
    set_policy(store, content=OWN)
    assert count() == before == count(content="body")


def test_a_rebuild_goes_on_from_markdown(store: Store) -> None:
    url, page = own_parts()[0]
    store.ingest(url, page, content=OWN)
    with pytest.raises(ArgumentError, match="reads Markdown"):
        store.rebuild(content=OWN)
    set_policy(store, "b.example", content=OWN)
    rules = store.collection.selectors
    store.rebuild()
    assert store.collection.selectors == rules is not None
    assert page_at(store, url).selectors == Selectors(OWN).digest
    assert store.count_reread() == 1


def test_texts_take_no_selectors(dsn: str) -> None:
    with connect(dsn, collection="texts", scheme="pgsimhash-text-1", create=True) as store:
        with pytest.raises(ArgumentError, match="takes no selectors"):
            set_policy(store, content="main")
        with pytest.raises(ArgumentError, match="takes no selectors"):
            store.ingest("1", "text " * 30, ignore="p")


PIECES = st.sampled_from(
    ["a", "main", ".x", "#y", "[z]", "[z=1]", '[z="1 2"]', ":not(.x)", ":not(a b)", "*", " ",
     ":not( a)", ":not(a )", "\v", "\f", "\x85",
     ">", ",", ", ", "+", "~", ":", "::", "(", ")", "\\", "\\:", "\n", "ü", "-", "--", "1", '"',
     "[", "]", "|", "$", "a" * 499, "\\\\", "\x01", "\\\x01", "\ufffe", '[z="\x0b"]']
)  # fmt: skip


@database_examples(200)
@given(st.lists(PIECES, max_size=6).map("".join) | st.text(max_size=9).filter(str.isprintable))
def test_sql_accepts_the_selectors_that_python_does(
    connection: psycopg.Connection, text: str
) -> None:
    connection.autocommit = True
    state = None
    try:
        connection.execute("SELECT pgsimhash._check_selectors_1('content', %s)", [text])
    except psycopg.Error as error:
        state = error.sqlstate
    refused = pytest.raises(ArgumentError) if state == "PS010" else nullcontext()
    with refused:
        check_selectors("content", text)
        # What is accepted can be applied.
        read_article("<p>text", selectors=Selectors(text))
    row = connection.execute("SELECT pgsimhash._selectors_digest_1(%s, NULL)", [text]).fetchone()
    assert row == (Selectors(text).digest if text else None,)


PATTERNS = [
    host + path
    for host, path in product(
        ("*", "a.example", "www.a.example", "example", "b.example"),
        ("", "/*", "/x", "/x*y", "/*x*", "/_%", "/x/*/y", "/*?p=*"),
    )
]
URLS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["https://", "http://u@", "file:"]),
    st.sampled_from(["a.example", "www.a.example", "WWW.A.example:8080", "b.example", "[::1]"]),
    st.lists(st.sampled_from(["/", "x", "y", "?p=", "_%", "#f"]), max_size=5).map("".join),
)


@database_examples(60)
@given(
    st.dictionaries(
        st.sampled_from(PATTERNS),
        st.sampled_from([("a", None), (None, "b"), ("c", "d"), (None, None)]),
        min_size=1, max_size=6,
    ),
    st.lists(URLS, min_size=1, max_size=5),
)  # fmt: skip
def test_selectors_of_a_url_are_those_that_sql_decides(
    store: Store, policies: dict[str, tuple[str | None, str | None]], urls: list[str]
) -> None:
    for policy in store.policies():
        store.remove_policy(policy.pattern)
    for pattern, (content, ignore) in policies.items():
        set_policy(store, pattern, content=content, ignore=ignore, distance=3)
    rules = store.collection.selectors
    by_sql = [Selectors(one.content, one.ignore) for one in settings_for(store, urls)]
    assert [
        Selectors() if rules is None else policy_selectors(rules, url) for url in urls
    ] == by_sql


def test_selectors_are_those_of_the_normalized_url(dsn: str) -> None:
    with connect(dsn, collection="spelled", create=True, normalize_urls=True) as store:
        set_policy(store, "a.example/?p=1", content="#none")
        url, page = own_parts()[0]
        verdict = store.decide("HTTPS://A.example:443/?utm_source=x&p=1#top", page)
        assert verdict.content_missing
        assert not store.decide(url, page).content_missing


def test_sql_refuses_an_unsupported_selector(store: Store, dsn: str) -> None:
    query = "SELECT pgsimhash.set_policy('a.example', ignore => 'main, p:has(b)')"
    refused = pytest.raises(psycopg.Error, match=r'ignore: selector 2 .* at ":has')
    with psycopg.connect(dsn) as connection, refused:
        connection.execute(query)
