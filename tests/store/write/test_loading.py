"""Bulk loads of simhashes; the indexes of an empty table are built afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Thread

import numpy as np
import psycopg
import pytest

from pgsimhash import ArgumentError, Store, StoreError, analysis, connect, maintenance
from pgsimhash.db import migrate
from pgsimhash.db.schema_names import SCHEMA
from pgsimhash.search.layout import DEFAULT_LAYOUT, get_layout
from pgsimhash.store import loading
from tests.conftest import wait_for_a_lock
from tests.refusals import because
from tests.roles import as_role, dropped_afterwards
from tests.store.write.test_memory import hold

RNG = np.random.default_rng(5)
MANY = np.unique(RNG.integers(0, 2**64, 2_000, dtype=np.uint64))
MANY[[0, -1]] = 0, 2**64 - 1


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "LARGE", 1_000)
    monkeypatch.setattr(loading, "TOGETHER", 1_000)


def indexes(dsn: str, table: str = DEFAULT_LAYOUT.table) -> dict[str, int]:
    """The valid indexes of a table by name, with a value that changes when they are rebuilt."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT c.relname, c.oid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = %s::regclass AND i.indisvalid",
            [f"{SCHEMA}.{table}"],
        )
        return dict(rows.fetchall())


def assert_holds(store: Store, expected: np.ndarray) -> None:
    assert np.sort(analysis.simhashes(store)).tolist() == np.unique(expected).tolist()
    for distance in (0, 3, 8):
        asked = expected[:50] ^ np.uint64((1 << distance) - 1)
        found = store.find_many(asked, distance)
        assert set(found.queries[found.simhashes == expected[:50][found.queries]]) == set(range(50))
    assert list(maintenance.check(store)) == []


@pytest.mark.parametrize("name", [DEFAULT_LAYOUT.name, "16+16+16+16"])
def test_an_empty_table_is_filled_before_its_indexes_are_built(dsn: str, name: str) -> None:
    layout = get_layout(name)
    with connect(dsn, collection="loaded", layout=name) as store:
        before = indexes(dsn, layout.table)
        assert store.add_simhashes(np.concatenate([MANY[::-1], MANY[:9]])) == len(MANY)
        after = indexes(dsn, layout.table)
        assert after.keys() == before.keys()
        assert len(before.items() - after.items()) == len(layout.permutations) - 1
        assert_holds(store, MANY)
        assert store.add_simhashes(MANY) == 0


def test_a_missing_index_exists_afterwards(dsn: str, store: Store) -> None:
    before = indexes(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP INDEX pgsimhash.simhashes_prefix_3_idx")
    store.add_simhashes(MANY)
    assert indexes(dsn).keys() == before.keys()
    assert_holds(store, MANY)


@pytest.mark.one_server("Citus copies rows without FREEZE")
def test_lookups_need_no_vacuum_afterwards(dsn: str, store: Store) -> None:
    store.add_simhashes(MANY)
    with psycopg.connect(dsn) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(
            "EXPLAIN (ANALYZE) SELECT prefix_2, simhash FROM pgsimhash.simhashes WHERE prefix_2 > 0"
        ).fetchall()
    assert any("Heap Fetches: 0" in line for (line,) in plan)


class TestArrays:
    """Arrays may overlap and come in any order, and are one load."""

    @pytest.mark.parametrize(
        "order",
        [
            lambda parts: parts,
            lambda parts: parts[::-1],
            lambda parts: [parts[1], parts[0], MANY[:900], parts[2]],
            lambda parts: [*parts, MANY[:0], MANY],
            lambda parts: np.array_split(parts[2], 99) + parts,
        ],
        ids=["ascending", "descending", "overlapping", "twice", "small"],
    )
    def test_each_simhash_is_counted_once(
        self, store: Store, order: Callable[[list[np.ndarray]], list[np.ndarray]]
    ) -> None:
        parts = [MANY[:1_000], MANY[1_000:1_500], MANY[1_500:]]
        given = order([np.concatenate([part, part]) for part in parts])
        assert store.add_simhashes(iter(given)) == len(MANY)
        assert_holds(store, MANY)

    def test_a_closed_store_refuses_even_none(self, store: Store) -> None:
        store.close()
        with pytest.raises(StoreError, check=because("closed")):
            store.add_simhashes(MANY[:0])

    def test_an_invalid_array_leaves_an_empty_table_unchanged_and_keeps_earlier_transactions(
        self, dsn: str, store: Store
    ) -> None:
        before = indexes(dsn)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.add_simhashes([MANY, np.array([0.5])])
        assert indexes(dsn) == before
        assert len(analysis.simhashes(store)) == 0
        store.add("https://a.example/", 1)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.add_simhashes([MANY, np.array([0.5])])
        assert_holds(store, np.append(MANY, np.uint64(1)))


@contextmanager
def some_rows(dsn: str) -> Iterator[str]:
    with connect(dsn, collection="other") as other:
        other.add("https://a.example/", 77)
    yield dsn


@contextmanager
def someone_at_it(dsn: str) -> Iterator[str]:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT FROM pgsimhash.simhashes")
        yield dsn


@contextmanager
def not_its_owner(dsn: str) -> Iterator[str]:
    made = migrate.create_roles(dsn, f"test {uuid.uuid4().hex[:12]}")
    with dropped_afterwards(dsn, made):
        yield as_role(dsn, next(name for name in made if name.endswith("writer")))


class TestWhereIndexesStay:
    @pytest.mark.parametrize(
        "where", [some_rows, someone_at_it, not_its_owner], ids=lambda where: where.__name__
    )
    def test_tables_in_use_or_of_other_owners_are_loaded_with_indexes(
        self, dsn: str, where: Callable[[str], AbstractContextManager[str]]
    ) -> None:
        before = indexes(dsn)
        with where(dsn) as there, connect(there) as store:
            assert store.add_simhashes(MANY) == len(MANY)
            assert indexes(dsn) == before
            assert_holds(store, MANY)

    def test_a_callers_transaction_keeps_the_indexes(self, dsn: str, store: Store) -> None:
        before = indexes(dsn)
        with psycopg.connect(dsn) as connection:
            own = connect(connection)
            assert own.add_simhashes(MANY) == len(MANY)
            # Other sessions look it up meanwhile.
            with connect(dsn, lookup_memory=0) as other:
                assert not other.exists(5)
            connection.rollback()
        # So do few simhashes.
        assert store.add_simhashes(MANY[:999]) == 999
        assert indexes(dsn) == before


@pytest.mark.one_server("Citus copies rows without FREEZE")
def test_lookups_wait_for_the_end_of_a_load(dsn: str, store: Store) -> None:
    found: list[bool] = []

    def arrays() -> Iterator[np.ndarray]:
        yield MANY
        asking.start()
        wait_for_a_lock(dsn)
        yield MANY[:5]

    def ask() -> None:
        with connect(dsn, lookup_memory=0) as other:
            found.append(other.exists(int(MANY[1_500]), 0))

    asking = Thread(target=ask)
    assert store.add_simhashes(arrays()) == len(MANY)
    asking.join()
    assert found == [True]


def test_caches_notice_a_load(dsn: str, store: Store) -> None:
    hold(store)
    with connect(dsn) as other:
        other.add_simhashes(MANY)
    assert store.find_many(MANY[:5], 0).simhashes.tolist() == MANY[:5].tolist()
