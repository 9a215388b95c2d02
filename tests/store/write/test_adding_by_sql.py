"""Pages added by SQL get the package's decisions, and are found like others."""

from typing import Any, LiteralString

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgsimhash
from pgsimhash import Store, maintenance
from pgsimhash.hashing.bits import from_bigint, to_bigint
from tests.database import database_examples

A, B = "https://a.example/", "https://b.example/"


Row = tuple[Any, ...]


def by_sql(connection: psycopg.Connection, statement: LiteralString, *values: object) -> list[Row]:
    return connection.execute(statement, values).fetchall()


def test_one_page(store: Store, connection: psycopg.Connection) -> None:
    (first,) = by_sql(connection, "SELECT * FROM pgsimhash.add_page(%s, 7)", A)
    yesterday: LiteralString = "fetched_at => now() - interval '1 d'"
    (copy,) = by_sql(connection, f"SELECT * FROM pgsimhash.add_page(%s, 5, {yesterday})", B)
    assert tuple(first[:6]) == (A, "new", "first_seen", None, None, True)
    assert tuple(copy[:6]) == (B, "duplicate", "within_distance", 1, A, False)
    connection.commit()
    assert maintenance.runs(store) == []
    assert [page.url for page in store.near_pages(7)] == [A, B]


UNSEEN = "\x01\x7f\x85\xa0\xad\u200b\u2028\u3000\ufeff\ufffb"
URLS_OR_NOT = [
    *("HTTP://a.example/", "FILE:///x", "file:/x", "https://a.example/%20?q#f", "http:/x", "", "x"),
    *("http://a.example\\x", "http://:80/", "http://user@/", "http://[::1", "http://[::1]/"),
    *("http:///x", "ftp://a/", "http://a.example/é\u0301\U0001f6a2"),
    *("http://a.example/" + "x" * 2048, *(f"http://a.example/{unseen}" for unseen in UNSEEN)),
]


def test_it_takes_the_urls_that_the_package_takes(
    store: Store, connection: psycopg.Connection
) -> None:
    by_package = [made.reason for made in store.add_many([(url, 1) for url in URLS_OR_NOT])]
    statement: LiteralString = "SELECT reason FROM pgsimhash.add_pages(%s, %s)"
    made = by_sql(connection, statement, URLS_OR_NOT, [1] * len(URLS_OR_NOT))
    failed = [reason == "invalid_url" for (reason,) in made]
    assert failed == [reason == "invalid_url" for reason in by_package]
    assert 15 < sum(failed) < len(URLS_OR_NOT) - 5


TIMES = ["infinity", "-infinity", "4000-01-01 BC", "1969-12-31", "10001-01-01", "9000-01-01"]


@pytest.mark.parametrize("time", TIMES)
def test_times_that_no_page_was_fetched_at_are_refused(
    store: Store, connection: psycopg.Connection, time: str
) -> None:
    statement: LiteralString = "pgsimhash.add_page(%s, 7, fetched_at => %s)"
    (made,) = by_sql(connection, f"SELECT verdict, reason FROM {statement}", A, time)
    assert made == ("failed", "unreadable")
    assert by_sql(connection, "SELECT FROM pgsimhash.pages") == []
    if time != "9000-01-01":
        with pytest.raises(psycopg.errors.CheckViolation, match="pages_fetched_at_fits"):
            connection.execute(
                "INSERT INTO pgsimhash.pages (collection_id, url, simhash, fetched_at) "
                "VALUES (pgsimhash._id_of('default'), 'https://a.example/', 1, %s)",
                [time],
            )


HASHES = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40)


@database_examples(40)
@given(hashes=HASHES, data=st.data())
def test_a_simhash_made_in_sql_is_the_one_of_python(
    connection: psycopg.Connection, hashes: list[int], data: st.DataObject
) -> None:
    signed = [to_bigint(value) for value in hashes]
    ((plain,),) = by_sql(connection, "SELECT pgsimhash.simhash(%s::bigint[])", signed)
    assert from_bigint(plain) == pgsimhash.simhash(np.array(hashes, np.uint64))
    weights = {value: data.draw(st.floats(0.001, 1e6)) for value in hashes}
    statement: LiteralString = "SELECT pgsimhash.simhash(%s::bigint[], %s)"
    signed = [to_bigint(value) for value in weights]
    ((weighted,),) = by_sql(connection, statement, signed, list(weights.values()))
    assert from_bigint(weighted) == pgsimhash.simhash(weights)
