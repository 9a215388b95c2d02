"""A call that locks a collection sees all committed changes, or does nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from psycopg import IsolationLevel, conninfo

import pgsimhash
from pgsimhash import Store, connect, maintenance
from tests.refusals import sqlstate

DAY = timedelta(days=1)

FROM_PYTHON: dict[str, Callable[[Store], object]] = {
    "add": lambda store: store.add("https://a.example/3", 3),
    "delete": lambda store: store.delete("https://a.example/1"),
    "delete_host": lambda store: store.delete_host("a.example"),
    "delete_run": lambda store: maintenance.delete_run(store, maintenance.runs(store)[0].run_id),
    "undo": lambda store: maintenance.undo(store),
    "expire": lambda store: store.expire(DAY),
    "mark": lambda store: maintenance.mark(
        store, "https://a.example/1", "https://a.example/2", same=True
    ),
    "rename": lambda store: maintenance.rename(store, "other"),
    "rebuild": lambda store: maintenance.rebuild(store),
}

FROM_SQL = [
    "SELECT pgsimhash._lock_collections(ARRAY[1], 2)",
    "SELECT pgsimhash._delete_pages('default', ARRAY[1], NULL)",
    "SELECT pgsimhash.delete_url('default', 'https://a.example/')",
    "SELECT pgsimhash.delete_host('default', 'a.example')",
    "SELECT pgsimhash._expire_batch('default', interval '1 day', 0, 10)",
    "CALL pgsimhash.expire('default', interval '1 day')",
    "SELECT pgsimhash.mark('default', 'https://a.example/1', 'https://a.example/2', true)",
    "SELECT pgsimhash.rename_collection('default', 'other')",
]


def at(dsn: str, level: str) -> str:
    """A DSN whose transactions have this isolation level."""
    escaped = level.replace(" ", "\\ ")
    return conninfo.make_conninfo(dsn, options=f"-c default_transaction_isolation={escaped}")


def state(dsn: str) -> list[tuple[object, ...]]:
    """All rows that these calls would change."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT name, (SELECT count(*) FROM pgsimhash.pages), "
            "(SELECT count(*) FROM pgsimhash.marks), (SELECT count(*) FROM pgsimhash.runs) "
            "FROM pgsimhash.collections"
        ).fetchall()


@pytest.fixture
def filled(dsn: str) -> str:
    with connect(dsn) as store:
        list(store.add_many([("https://a.example/1", 1), ("https://a.example/2", 2**60)]))
    return dsn


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_isolation_levels_that_miss_other_writers_are_refused(filled: str, level: str) -> None:
    before = state(filled)
    with connect(at(filled, level)) as store:
        assert len(store.find(1, 0)) == 1
        for name, change in FROM_PYTHON.items():
            with pytest.raises(pgsimhash.StoreError, match=f"level is {level}.*READ COMMITTED"):
                pytest.fail(f"{name}: {change(store)}")
    with psycopg.connect(at(filled, level), autocommit=True) as connection:
        for statement in FROM_SQL:
            with pytest.raises(psycopg.Error, check=sqlstate("PS030"), match="READ COMMITTED"):
                connection.execute(statement)
    assert state(filled) == before


def test_read_uncommitted_is_read_committed(filled: str) -> None:
    with connect(at(filled, "read uncommitted")) as store:
        assert store.delete("https://a.example/1").versions == 1


def test_a_simhash_that_a_writer_just_used_stays_findable(filled: str) -> None:
    """The caller's transaction has its snapshot before the writer commits, and deletes later."""
    with psycopg.connect(filled) as old, connect(filled) as writer:
        old.isolation_level = IsolationLevel.REPEATABLE_READ
        store = connect(old)
        writer.add("https://b.example/1", 1)
        with pytest.raises(pgsimhash.StoreError, match="misses changes of other writers"):
            store.delete("https://a.example/1")
        old.rollback()
        old.isolation_level = IsolationLevel.READ_COMMITTED
        assert store.delete("https://a.example/1").versions == 1
        old.commit()
        assert [match.url for match in writer.find(1, 0)] == ["https://b.example/1"]
