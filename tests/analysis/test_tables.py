"""Pairs and clusters as tables."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import pgsimhash
from pgsimhash import Store, analysis, connect
from pgsimhash.errors import StoreError
from tests.conftest import wait_for_a_lock
from tests.refusals import because
from tests.store.read.test_groups import CHAIN, fill


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
def test_an_invalid_table_is_refused_and_nothing_is_written(
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


Save = Callable[..., int]
SAVES: list[Save] = [analysis.save_pairs, analysis.save_clusters]


def count(connection: psycopg.Connection, table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("save", SAVES)
def test_a_replaced_table_keeps_its_grants_indexes_and_views(
    store: Store, dsn: str, save: Save
) -> None:
    fill(store, CHAIN)
    with psycopg.connect(dsn, autocommit=True) as connection:
        made = save(store, "saved", 1, replace=True)
        connection.execute("CREATE VIEW seen AS SELECT * FROM saved")
        connection.execute("CREATE INDEX mine ON saved ((1))")
        connection.execute("GRANT SELECT ON saved TO PUBLIC")
        kept = connection.execute("SELECT oid, relacl::text FROM pg_class WHERE relname = 'saved'")
        before = kept.fetchone(), count(connection, "seen")
        fill(store, {"a.example/alike": 0b10})
        assert save(store, "public.saved", 1, replace=True) >= made
        assert count(connection, "seen") > before[1] > 0
        fresh = save(store, "fresh", 1)
        assert (
            connection.execute("TABLE saved ORDER BY 1, 2").fetchall()
            == connection.execute("TABLE fresh ORDER BY 1, 2").fetchall()
        )
        assert save(store, "saved", 1, replace=True) == fresh
        assert save(store, "saved", 0, replace=True) == 0
        assert count(connection, "seen") == 0
        kept = connection.execute("SELECT oid, relacl::text FROM pg_class WHERE relname = 'saved'")
        assert kept.fetchone() == before[0]
        assert connection.execute("SELECT to_regclass('mine') IS NULL").fetchone() == (False,)


@pytest.mark.parametrize("save", SAVES)
def test_readers_see_the_old_rows_or_the_new_ones(dsn: str, save: Save) -> None:
    """They also never wait or find it empty, not even in a transaction that began before."""
    with connect(dsn) as store, psycopg.connect(dsn) as long, psycopg.connect(dsn) as reader:
        fill(store, CHAIN)
        save(store, "saved", 1)
        reader.autocommit = True
        old = count(reader, "saved")
        reader.execute("SET statement_timeout = '5s'")
        long.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert count(long, "saved") == old
        fill(store, {f"a.example/more{n}": 1 << 40 | n for n in range(40)})
        seen: set[int] = set()
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                seen.add(count(reader, "saved"))

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for distance in (2, 1, 2):
                save(store, "saved", distance, replace=True)
        finally:
            done.set()
            thread.join()
        new = {distance: save(store, f"fresh{distance}", distance) for distance in (1, 2)}
        assert all(new.values())
        sizes = {count(reader, f"fresh{distance}") for distance in new}
        assert seen <= sizes | {old}
        assert count(reader, "saved") in sizes
        assert count(long, "saved") == old


@pytest.mark.parametrize("save", SAVES)
def test_a_replacement_that_fails_leaves_the_old_rows(store: Store, dsn: str, save: Save) -> None:
    fill(store, CHAIN)
    save(store, "saved", 1)

    def stop(done: int, total: int) -> None:
        raise InterruptedError

    with psycopg.connect(dsn, autocommit=True) as connection:
        before = count(connection, "saved")
        fill(store, {"a.example/alike": 0b10})
        with pytest.raises(InterruptedError):
            save(store, "saved", 1, replace=True, progress=stop)
        assert count(connection, "saved") == before
        assert save(store, "saved", 1, replace=True)
        assert count(connection, "saved") > before


def test_concurrent_replacements_wait_for_each_other(dsn: str) -> None:
    with connect(dsn) as store, psycopg.connect(dsn) as connection:
        fill(store, CHAIN)
        analysis.save_pairs(store, "saved", 1)
        held = connect(connection)
        analysis.save_pairs(held, "saved", 2, replace=True)
        thread_made: list[int] = []
        thread = threading.Thread(target=lambda: thread_made.append(_replace(dsn)))
        thread.start()
        wait_for_a_lock(dsn)
        connection.commit()
        thread.join()
        assert thread_made == [count(connection, "saved")] == [10]


def _replace(dsn: str) -> int:
    with connect(dsn) as store:
        return analysis.save_pairs(store, "saved", 4, replace=True)


OTHERS: dict[str, str] = {
    "one column less": "CREATE TABLE saved AS SELECT low, high FROM ours",
    "one more": "CREATE TABLE saved AS SELECT *, 1 AS mine FROM ours",
    "another type": "CREATE TABLE saved AS SELECT low, high, distance::text AS distance FROM ours",
    "no column": "CREATE TABLE saved ()",
    "a view": "CREATE VIEW saved AS SELECT * FROM ours",
    "a sequence": "CREATE SEQUENCE saved",
    "an index": "CREATE INDEX saved ON ours (low)",
}


@pytest.mark.parametrize("other", OTHERS)
def test_only_a_table_with_our_columns_is_replaced(store: Store, dsn: str, other: str) -> None:
    fill(store, CHAIN)
    analysis.save_pairs(store, "ours", 1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(OTHERS[other])
        before = count(connection, "ours")
        with pytest.raises(StoreError, match="not changed", check=because("other_table")):
            analysis.save_pairs(store, "saved", 2, replace=True)
        for name in ("ours", "pgsimhash.pages", "pgsimhash.simhashes"):
            with pytest.raises(StoreError, check=because("other_table")):
                analysis.save_clusters(store, name, 2, replace=True)
        assert count(connection, "ours") == before
        assert len(list(store.clusters(1))) == 1


def test_columns_in_another_order_and_a_partitioned_table_are_ours(store: Store, dsn: str) -> None:
    fill(store, CHAIN)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE saved (gone int, distance smallint, high bigint, low bigint) "
            "PARTITION BY LIST (distance)"
        )
        connection.execute("ALTER TABLE saved DROP COLUMN gone")
        connection.execute("CREATE TABLE saved_all PARTITION OF saved DEFAULT")
        assert analysis.save_pairs(store, "saved", 1, replace=True) == 4
        rows = connection.execute("SELECT low, high, distance FROM saved ORDER BY low").fetchall()
    assert rows == [(0, 1, 1), (1, 3, 1), (3, 7, 1), (7, 15, 1)]


@pytest.mark.parametrize(
    ("table", "reason"),
    [("nowhere.pairs", "no_such_schema"), ("", "invalid_table"), ("a.b.c", "invalid_table")],
)
def test_tables_that_cannot_be_replaced_or_created_are_refused(
    store: Store, table: str, reason: str
) -> None:
    fill(store, CHAIN)
    for save in SAVES:
        with pytest.raises(StoreError, check=because(reason)):
            save(store, table, 1, replace=True)


@pytest.mark.parametrize("table", ["public.a\0b", "a\0b", "n" * 64, f"{'n' * 64}.a", "é" * 32])
@pytest.mark.parametrize("replace", [False, True])
def test_a_name_that_would_be_truncated_is_refused(
    store: Store, dsn: str, table: str, replace: bool
) -> None:
    fill(store, CHAIN)
    for save in SAVES:
        with pytest.raises(StoreError, check=because("invalid_table")):
            save(store, table, 1, replace=replace)
    with psycopg.connect(dsn) as connection:
        made = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        ).fetchall()
    assert made == []


@pytest.mark.parametrize("own", [True, False], ids=["own connection", "callers"])
def test_the_callers_search_path_says_where_a_table_is(dsn: str, own: bool) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA first")
        connection.execute("CREATE SCHEMA second")
        connection.execute("CREATE TABLE second.saved (low bigint, high bigint, distance smallint)")
    where = make_conninfo(dsn, options="-csearch_path=first,second")
    with (
        psycopg.connect(where) as connection,
        connect(where if own else connection) as store,
    ):
        fill(store, CHAIN)
        assert analysis.save_pairs(store, "saved", 1, replace=True) == 4
        assert analysis.save_pairs(store, "saved", 1) == 4
        assert analysis.save_pairs(store, "saved", 2, replace=True) == 7
        assert connection.execute("SHOW search_path").fetchone() == ("first,second",)
        assert (count(connection, "first.saved"), count(connection, "second.saved")) == (7, 4)


def test_a_callers_transaction_may_replace_twice_and_roll_back(dsn: str) -> None:
    with psycopg.connect(dsn) as connection, connect(dsn) as other:
        fill(other, CHAIN)
        store = connect(connection)
        sizes: list[Any] = []
        for distance in (1, 2):
            for save in SAVES:
                save(store, save.__name__, distance, replace=True)
            sizes.append(count(connection, "save_pairs"))
        assert sizes == [4, 7]
        connection.rollback()
        with pytest.raises(psycopg.errors.UndefinedTable):
            count(connection, "save_pairs")
