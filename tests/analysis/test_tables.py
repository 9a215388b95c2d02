"""Pairs and clusters as tables."""

from __future__ import annotations

import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis
from tests.store.test_groups import CHAIN, fill


def test_tables_of_pairs_and_clusters_for_sql(store: Store, dsn: str) -> None:
    fill(store, {**CHAIN, "a.example/negative": 2**63 | 1})
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA mine")
        assert analysis.save_pairs(store, "mine.pairs", 1) == 5
        rows = connection.execute("SELECT * FROM mine.pairs ORDER BY low, high").fetchall()
        assert rows == [(0, 1, 1), (1, -(2**63) + 1, 1), (1, 3, 1), (3, 7, 1), (7, 15, 1)]
        assert analysis.save_clusters(store, "my clusters", 1, canonical="newest") == 1
        canonical = connection.execute(
            'SELECT url, simhash FROM "my clusters" WHERE canonical'
        ).fetchall()
        assert canonical == [("https://a.example/negative", -(2**63) + 1)]
        pages = connection.execute(
            'SELECT count(*) FROM "my clusters" JOIN pgsimhash.pages USING (page_id, url)'
        ).fetchone()
        assert pages == (6,)


@pytest.mark.parametrize("table", ["taken", "nowhere.pairs", "", "a.b.c.d"])
def test_a_table_that_cannot_be_is_refused_and_nothing_is_written(
    store: Store, dsn: str, table: str
) -> None:
    fill(store, CHAIN)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE taken ()")
        for save in (analysis.save_pairs, analysis.save_clusters):
            with pytest.raises(pgsimhash.StoreError):
                save(store, table, 1)
        assert connection.execute("SELECT count(*) FROM taken").fetchone() == (0,)
    assert len(list(store.clusters(1))) == 1
