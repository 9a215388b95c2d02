"""The address of a page: its URL without the parameters that do not matter, in Python and SQL."""

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash import Store, connect, connect_async
from pgsimhash.errors import ArgumentError
from pgsimhash.pages.urls import page_address
from tests.database import database_examples, run_sql
from tests.refusals import because

SITE = "https://a.example/"

ADDRESSES = [
    # The parameters that do not matter go, whatever their values and their case.
    (SITE + "s?ref=a&id=7&sid=0f", "ref,sid", SITE + "s?id=7"),
    (SITE + "s?REF=a&Sid", "ref, sid", SITE + "s"),
    (SITE + "s?utm_source=x&utm=1&id=7", "utm_*", SITE + "s?id=7&utm=1"),
    (SITE + "s?a.c=1&abc=2", "a.c", SITE + "s?abc=2"),
    (SITE + "s?a_c=1&abc=2&a%25=3&ab=4", "a_c,a%", SITE + "s?ab=4&abc=2"),
    (SITE + "s?gr%C3%B6%C3%9Fe=4&id=7", "größe", SITE + "s?id=7"),
    (SITE + "s?a=1", "*", SITE + "s"),
    (SITE + "s?a=1&=2", "", SITE + "s?=2&a=1"),
    (SITE + "s?a=1&=2", "a,,", SITE + "s?=2"),
    # Order, repeats and empty values.
    (SITE + "s?b=1&a=2", "", SITE + "s?a=2&b=1"),
    (SITE + "s?a=2&b=1&a=1&a=2", "", SITE + "s?a=2&a=1&b=1"),
    (SITE + "s?a", "", SITE + "s?a="),
    (SITE + "s?&&a=&", "", SITE + "s?a="),
    (SITE + "s?", "", SITE + "s"),
    (SITE + "s?a=b=c", "", SITE + "s?a=b%3Dc"),
    # The parameters of a name keep their order, in which the last one may count.
    (SITE + "s?a=2&a=1", "", SITE + "s?a=2&a=1"),
    # An empty value is not an absent parameter: print may be a switch.
    (SITE + "s?print", "", SITE + "s?print="),
    # Percent-encoding.
    (SITE + "%7euser/%C3%a9t%c3%A9", "", SITE + "~user/%C3%A9t%C3%A9"),
    (SITE + "été?é=ü", "", SITE + "%C3%A9t%C3%A9?%C3%A9=%C3%BC"),
    (SITE + "a%2Fb/c,d%2ce", "", SITE + "a%2Fb/c,d,e"),
    (SITE + "s?q=a+b%20c&u=x/y%2Fz", "", SITE + "s?q=a%20b%20c&u=x%2Fy%2Fz"),
    (SITE + "100%?a=%zz%4", "", SITE + "100%25?a=%25zz%254"),
    (SITE + "a+b%00%7F%c3", "", SITE + "a+b%00%7F%C3"),
    (SITE + "\U0001f600", "", SITE + "%F0%9F%98%80"),
    # Case: of the scheme and the host only.
    ("HTTPS://A.Example/Story?ID=7", "", SITE + "Story?ID=7"),
    ("https://ÄRGER.example/", "", "https://Ärger.example/"),
    ("https://a.example", "", SITE),
    ("https://a.example?b=1#c", "", SITE + "?b=1"),
    (SITE + "s#a?b=1", "", SITE + "s"),
    # The route of a JavaScript-rendered page is part of it.
    (SITE + "?ref=1#!/b?ref=2", "ref", SITE + "#!/b?ref=2"),
    (SITE + "s?b#/%7e\n?", "", SITE + "s?b=#/%7e\n?"),
    (SITE + "?a=1?b=2", "b", SITE + "?a=1%3Fb%3D2"),
    ("http://a.example:80/", "", "http://a.example:80/"),
    # What is no address of the web, or too long, stays.
    ("file:///a?b=1&a=2", "a", "file:///a?b=1&a=2"),
    ("text 7?a=1", "a", "text 7?a=1"),
    (SITE + "é" * 1000, "", SITE + "é" * 1000),
]


@pytest.mark.parametrize(("url", "ignored", "address"), ADDRESSES)
def test_addresses_in_python(url: str, ignored: str, address: str) -> None:
    assert page_address(url, ignored) == address
    assert page_address(address, ignored) == address


def in_sql(connection: psycopg.Connection, urls: list[str], ignored: list[str]) -> list[str]:
    rows = connection.execute(
        "SELECT pgsimhash.page_address(u.url, u.ignored) FROM unnest(%s::text[], %s::text[]) "
        "WITH ORDINALITY AS u (url, ignored, number) ORDER BY u.number",
        [urls, ignored],
    )
    return [address for (address,) in rows]


def test_addresses_in_sql(connection: psycopg.Connection) -> None:
    urls, ignored, addresses = map(list, zip(*ADDRESSES, strict=True))
    assert in_sql(connection, urls, ignored) == addresses


PARTS = st.lists(
    st.sampled_from([*"aB?&=#/%+;é_~*.- ", "%41", "%2f", "%C3", "utm_a=1&", "a=1&", "\U0001f600"])
)


@database_examples(60)
@given(st.lists(st.tuples(PARTS, st.lists(st.sampled_from([*"aBé_%*., "]))), min_size=20))
def test_any_url_has_one_address(
    connection: psycopg.Connection, parts: list[tuple[list[str], list[str]]]
) -> None:
    urls = [SITE + "".join(path) for path, _ in parts]
    ignored = ["".join(names) for _, names in parts]
    addresses = list(map(page_address, urls, ignored))
    assert in_sql(connection, urls, ignored) == addresses
    assert list(map(page_address, addresses, ignored)) == addresses


A, B, C = (f"{SITE}item?id=7&sid={n}" for n in (1, 2, 3))
OTHER = f"{SITE}item?id=8&sid=1"
DAY = timedelta(days=1)
NEVER = 2**31 - 1


def ignore(
    store: Store, names: str = "sid", pattern: str = "a.example", every: int = NEVER
) -> None:
    store.set_policy(pattern, ignore_parameters=names, sample_every=every)


def addresses(dsn: str) -> list[str | None]:
    return [row[0] for row in run_sql(dsn, "SELECT address FROM pgsimhash.pages ORDER BY page_id")]


def test_one_fetch_answers_for_all_urls_of_an_address(dsn: str, store: Store) -> None:
    ignore(store)
    assert store.should_fetch(A)
    store.add_page(A, 1)
    store.add_page("https://b.example/?sid=1", 2)
    assert addresses(dsn) == [f"{SITE}item?id=7", None]
    assert not store.should_fetch(B)
    assert store.request_headers(B) is None
    assert store.should_fetch(OTHER)
    assert store.should_fetch("https://b.example/?sid=2")
    assert store.should_fetch(B, older_than=timedelta(0))
    assert not store.should_fetch(B, older_than=DAY)


def test_the_freshest_page_of_the_address_decides(store: Store) -> None:
    ignore(store)
    now = datetime.now(UTC)
    store.add_page(A, 1, fetched_at=now - 3 * DAY)
    store.add_page(B, 1, fetched_at=now - 5 * DAY)
    assert store.should_fetch(C, older_than=2 * DAY)
    assert not store.should_fetch(C, older_than=4 * DAY)
    store.seen(A, fetched_at=now - DAY)
    assert not store.should_fetch(C, older_than=2 * DAY)
    # B itself is older, but the page is known by A.
    assert not store.should_fetch(B, older_than=2 * DAY)
    store.set_policy("a.example", refetch_after=timedelta(hours=1))
    assert store.should_fetch(C)


def test_a_page_that_is_gone_does_not_count(store: Store) -> None:
    ignore(store)
    now = datetime.now(UTC)
    for days, simhash in ((3, 1), (2, 2**40 - 1)):
        store.add_page(A, simhash, fetched_at=now - days * DAY)
    store.gone(A)
    # Neither does its version before; A itself was seen to be gone.
    assert store.should_fetch(B)
    assert not store.should_fetch(A)
    store.seen(A)
    assert not store.should_fetch(B)


def test_many_urls_of_one_address_are_one_fetch(store: Store, dsn: str) -> None:
    ignore(store)
    store.add_page(OTHER, 1)
    plain = "https://b.example/?sid=1"
    asked = [OTHER, B, A, C, f"{OTHER}2", plain, plain]
    expected = [False, True, False, False, False, True, True]
    assert store.should_fetch_many(iter(asked)) == expected
    assert store.should_fetch_many([]) == []
    with pytest.raises(ArgumentError, match="urls are an iterable"):
        store.should_fetch_many(None)  # type: ignore[arg-type]
    assert store.should_fetch_many(asked, older_than=timedelta(0)) == [True] * len(asked)
    rows = run_sql(dsn, "SELECT url, is_due FROM pgsimhash.should_fetch_many(%s)", [asked])
    assert rows == list(zip(asked, expected, strict=True))

    async def ask() -> list[bool]:
        async with await connect_async(dsn) as opened:
            return await opened.should_fetch_many(asked)

    assert asyncio.run(ask()) == expected


def test_a_policy_finds_pages_that_were_stored_before(dsn: str, store: Store) -> None:
    store.add_page(A, 1)
    # In SQL, which does not set the addresses.
    policy = "SELECT pgsimhash.set_policy('a.example', ignore_parameters => %s, sample_every => %s)"
    run_sql(dsn, policy, ["sid", NEVER])
    assert store.should_fetch(B)
    ignore(store)
    assert not store.should_fetch(B)
    # With other parameters, or without the policy, the old addresses say nothing.
    run_sql(dsn, policy, ["ref", NEVER])
    assert store.should_fetch(f"{SITE}item?id=7")
    ignore(store, "id,sid", "a.example/item*")
    assert addresses(dsn) == [f"{SITE}item"]
    assert not store.should_fetch(f"{SITE}item")
    ignore(store, "", "a.example/item*")
    assert addresses(dsn) == [A]
    for pattern in ("a.example/item*", "a.example"):
        store.remove_policy(pattern)
    assert store.should_fetch(B)
    # By addresses, compare_crawls would take pages for one.
    assert addresses(dsn) == [None]


def test_addresses_are_filled_in_batches_of_one_collection(dsn: str, store: Store) -> None:
    with connect(dsn, collection="other", create=True) as other:
        other.add_page(A, 1)
        run_sql(
            dsn,
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash) "
            "SELECT collection_id, 'https://a.example/' || n || '?sid=1', n "
            "FROM pgsimhash.collections, generate_series(1, 4500) AS n WHERE name = 'default'",
        )
        ((first,),) = run_sql(dsn, "SELECT pgsimhash.fill_addresses()")
        ignore(store)
        ((again,),) = run_sql(dsn, "SELECT pgsimhash.fill_addresses()")
        assert first == again
        known = addresses(dsn)
        assert known[0] is None
        assert known[1:] == [f"{SITE}{n}" for n in range(1, 4501)]
        assert other.should_fetch(B)


def test_one_of_some_is_fetched_as_a_sample_once(store: Store) -> None:
    ignore(store, every=10)
    store.add_page(A, 1)
    asked = [f"{SITE}item?id=7&sid=x{n}" for n in range(500)]
    samples = [url for url in asked if store.should_fetch(url)]
    assert 20 <= len(samples) <= 90
    assert [url for url in asked if store.should_fetch(url)] == samples
    assert store.should_fetch_many(asked) == [url in samples for url in asked]
    store.add_page(samples[0], 1)
    assert not store.should_fetch(samples[0])


def test_another_page_at_a_known_address_is_kept_and_said(store: Store) -> None:
    ignore(store)
    far = 2**40 - 1
    assert store.add_page(A, 1).reason == "first_seen"
    assert store.add_page(B, 1).reason == "same_simhash"
    assert store.add_page(OTHER, far << 8).reason == "first_seen"
    assert store.add_page("https://b.example/item?id=7&sid=1", far << 20).reason == "first_seen"
    verdict = store.add_page(C, far)
    assert (verdict.kind, verdict.reason, verdict.keep) == ("new", "address_known", True)
    assert store.add_page(C, 2**63 - 1).reason == "changed"
    batch = [(f"{SITE}item?id=9&sid={n}", (2**30 - 1) << 30 * n) for n in (0, 1)]
    assert [each.reason for each in store.add_pages(batch)] == ["first_seen", "address_known"]


def test_a_redirect_leads_to_an_address(store: Store) -> None:
    ignore(store)
    store.add_redirects({"https://b.example/short": B})
    assert store.should_fetch("https://b.example/short")
    store.add_page(A, 1)
    assert not store.should_fetch("https://b.example/short")


@pytest.mark.parametrize("names", ["a=1", "a b", "a,,b", ",", "a&b", "x" * 1001])
def test_wrong_names_are_refused(dsn: str, store: Store, names: str) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        store.set_policy("a.example", ignore_parameters=names)
    with pytest.raises(psycopg.Error, match="out of range: policies_ignore_parameters_fits"):
        run_sql(
            dsn,
            "SELECT pgsimhash.set_policy('a.example', ignore_parameters => %s::text)",
            [names],
        )
