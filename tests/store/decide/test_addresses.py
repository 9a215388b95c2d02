"""The address of a page: its URL without the parameters that do not matter, in Python and SQL."""

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.pages.urls import page_address
from tests.database import database_examples

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
