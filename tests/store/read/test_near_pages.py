"""Near pages in Python and SQL; test_exactness.py compares them with all pages."""

from itertools import product

import psycopg
import pytest

from pgsimhash import Store, connect
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.hashing.signature import SAME_BITS_MAX, to_halves, verified
from pgsimhash.schema import migrate
from pgsimhash.search.layout import DISTANCE_MAX
from tests.database import explained, run_sql
from tests.refusals import because, sqlstate
from tests.store.content import page_at

URL = "https://a.example/"
LIKE = (1 << SAME_BITS_MAX) - 1
UNLIKE = (1 << (SAME_BITS_MAX + 1)) - 1


def test_a_page_has_its_url_and_time(store: Store) -> None:
    store.add(f"{URL}1", 0)
    added = store.add(f"{URL}2", 7)
    (found,) = store.near_pages(f"{URL}1")
    known = page_at(store, f"{URL}2")
    assert found.as_json() == {
        "url": f"{URL}2",
        "title": None,
        "simhash": "0000000000000007",
        "distance": 3,
        "similarity_percent": found.similarity_percent,
        "fetched_at": known.fetched_at.isoformat(),
        "page_id": added.page_id,
    }
    assert found.similarity_percent == pytest.approx(100 * 61 / 64, abs=0.1)


def test_without_a_distance_the_collections_applies(empty_dsn: str) -> None:
    dsn = empty_dsn
    migrate.upgrade(dsn, layout="32+32")
    with connect(dsn, collection="narrow") as store:
        for bits in range(12):
            store.add(f"{URL}{bits}", (1 << bits) - 1)
        assert len(store.near_pages(0)) == store.opened.default_distance + 1 == 8
        found = run_sql(
            dsn, "SELECT * FROM pgsimhash.near_pages(0::bigint, collection => 'narrow')"
        )
        assert len(found) == 8
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.near_pages(0, 8)


def test_a_url_that_is_not_known_is_an_error(store: Store, dsn: str) -> None:
    store.add(f"{URL}1", 0)
    with connect(dsn, collection="other") as other:
        other.add(f"{URL}2", 0)
    for url in (f"{URL}2", "", f"{URL}1/", "0"):
        with pytest.raises(NotFoundError, match="has no page at", check=because("unknown_page")):
            store.near_pages(url)
    store.delete(f"{URL}1")
    with pytest.raises(NotFoundError, check=because("unknown_page")):
        store.near_pages(f"{URL}1")
    with psycopg.connect(dsn, autocommit=True) as connection:
        for unknown in (f"{URL}1", f"{URL}2", "", None):
            with pytest.raises(psycopg.Error, check=sqlstate("PS020")):
                connection.execute("SELECT * FROM pgsimhash.near_pages(%s::text)", [unknown])


def test_verification_is_equal_in_python_and_sql(dsn: str) -> None:
    """The constants in sql/simhash.sql must equal those of pgsimhash/hashing/signature.py."""
    signatures = [None, 0, LIKE, UNLIKE, LIKE << 64, UNLIKE << 60, 2**128 - 1]
    cases = list(product(range(DISTANCE_MAX + 1), signatures, signatures))
    columns = zip(*((d, *to_halves(a), *to_halves(b)) for d, a, b in cases), strict=True)
    answers = run_sql(
        dsn,
        "SELECT pgsimhash._verified(q.d, q.ah, q.al, q.bh, q.bl) "
        "FROM unnest(%s::integer[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) "
        "WITH ORDINALITY AS q (d, ah, al, bh, bl, number) ORDER BY q.number",
        list(map(list, columns)),
    )
    assert [answer for (answer,) in answers] == [verified(*case) for case in cases]
    assert {answer for (answer,) in answers} == {True, False}


@pytest.mark.one_server("it reads a plan")
def test_verification_is_inlined(dsn: str) -> None:
    """PostgreSQL inlines its body into the surrounding statement."""
    plan = run_sql(
        dsn,
        "EXPLAIN (VERBOSE) SELECT FROM pgsimhash.pages AS p "
        "WHERE pgsimhash._verified(8, p.signature_high, p.signature_low, 1, 2)",
    )
    assert "bit_count" in str(plan)
    assert "_verified" not in str(plan)


@pytest.mark.long
@pytest.mark.one_server("it reads a plan")
def test_only_indexes_are_read_before_and_after_the_tables_are_analysed(
    store: Store, dsn: str
) -> None:
    """A hundred thousand pages, of which ten thousand share a simhash."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash) "
            "SELECT c.collection_id, 'https://b.example/' || n, "
            "CASE WHEN n <= 10000 THEN 0 ELSE hashint8extended(n, 7) END "
            "FROM pgsimhash.collections AS c, generate_series(1, 100000) AS n"
        )
        plans = explained(connection, log_analyze="on")
        for _ in range(2):
            for call, found in (
                ("near_pages('https://b.example/1', 8)", 9_999),
                ("near_pages('https://b.example/70000', 0)", 0),
                ("near_pages(0::bigint, 3)", 10_000),
                ("_find_pages('default', NULL, NULL, 0, 1, 2, 3, true, 5)", 5),
            ):
                plans.clear()
                rows = connection.execute(f"SELECT * FROM pgsimhash.{call}").fetchall()
                assert len(rows) == found
                plan = "\n".join(text for text in plans if "near_duplicates" in text)
                assert "using pages_simhash_idx" in plan, plan
                whole = "\n".join(plans)
                assert "Seq Scan" not in whole, whole
                assert "pages_pkey" not in whole, whole
                assert "pages_original_idx" not in whole, whole
            # The limit reaches down to the index scan.
            (scan,) = [line for line in plan.splitlines() if "using pages_simhash_idx" in line]
            assert "rows=5" in scan, scan
            connection.execute("VACUUM (ANALYZE)")
