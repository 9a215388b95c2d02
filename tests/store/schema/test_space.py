"""The size of a collection on disk: what status reports, and what the planner predicts."""

from __future__ import annotations

import psycopg
import pytest

from pgsimhash import Store, connect
from pgsimhash.pages.records import CollectionStatus
from pgsimhash.search import layout_costs as planner
from pgsimhash.search.layout import DEFAULT_LAYOUT
from tests.conftest import ON_CITUS


def size(dsn: str, *tables: str) -> int:
    function = "citus_total_relation_size" if ON_CITUS else "pg_total_relation_size"
    statement = f"SELECT sum({function}(t::regclass)) FROM unnest(%s::text[]) AS t"
    with psycopg.connect(dsn) as connection:
        row = connection.execute(statement.encode(), [list(tables)]).fetchone()
    assert row is not None
    return int(row[0])


def statuses(store: Store) -> dict[str, CollectionStatus]:
    return {status.collection: status for status in store.status()}


PAGES = "pgsimhash.pages", "pgsimhash.last_seen"


def test_the_bytes_of_shared_tables_are_shared_out_by_rows(dsn: str) -> None:
    counts = {"one": 600, "two": 200, "none": 0}
    for name, count in counts.items():
        with connect(dsn, collection=name) as store:
            pages = [(f"https://a.example/{n}", n // 2 << 40) for n in range(count)]
            list(store.add_many(pages, distance=0))
    with connect(dsn, collection="other", layout="32+32") as store:
        list(store.add_many([("https://a.example/1", 1), ("https://a.example/1", 1)]))
        found = statuses(store)
    for name in counts:
        assert found[name].simhash_table_bytes == size(dsn, "pgsimhash.simhashes")
        assert found[name].page_table_bytes == size(dsn, *PAGES)
    assert found["other"].simhash_table_bytes == size(dsn, "pgsimhash.simhashes_32_32")
    assert found["other"].simhash_share_bytes == found["other"].simhash_table_bytes > 0
    for name, count in counts.items():
        told = found[name]
        assert told.simhash_share_bytes == pytest.approx(
            told.simhash_table_bytes * count / 800, abs=1
        )
        assert told.page_share_bytes == pytest.approx(told.page_table_bytes * count / 801, abs=1)
        assert told.share_bytes == told.simhash_share_bytes + told.page_share_bytes
    assert found["none"].share_bytes == 0


@pytest.mark.parametrize("analysed", [True, False])
def test_the_rows_of_a_large_table_are_estimated_once_it_was_analysed(
    dsn: str, analysed: bool
) -> None:
    with connect(dsn) as store, psycopg.connect(dsn, autocommit=True) as connection:
        connect(dsn, collection="second").close()
        # Autovacuum might see allocated pages whose rows are not there yet.
        connection.execute("ALTER TABLE pgsimhash.pages SET (autovacuum_enabled = off)")
        insert = (
            "INSERT INTO pgsimhash.pages (collection_id, url, simhash, title) "
            "SELECT collection_id, 'https://a.example/' || n, n, repeat('x', 100) "
            "FROM pgsimhash.collections, generate_series(1, %s) AS n WHERE name = %s"
        )
        connection.execute(insert, [40_000, "default"])
        if analysed:
            connection.execute("ANALYZE pgsimhash.pages")
        # As dense as before, so it counts although it was added later.
        connection.execute(insert, [20_000, "second"])
        found = statuses(store)
        whole = size(dsn, *PAGES)
        for name, share in (("default", 2 / 3), ("second", 1 / 3)):
            told = found[name]
            assert told.page_table_bytes == whole
            within = 0.02 if analysed else 1e-6
            assert told.page_share_bytes == pytest.approx(whole * share, rel=within, abs=1)


def test_simhashes_take_what_is_predicted(store: Store, dsn: str) -> None:
    """Built at once, as bytes_a_row assumes; grown row by row it is a fourth larger."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pgsimhash.add_simhashes('default', array_agg(hashint8extended(n, 1))) "
            "FROM generate_series(1, 100000) AS n"
        )
        connection.execute("VACUUM FULL pgsimhash.simhashes")
    (told,) = store.status()
    predicted = planner.plan(DEFAULT_LAYOUT, 100_000, 8).simhash_bytes
    assert told.simhash_share_bytes == pytest.approx(predicted, rel=0.03)
