"""A call that locks a collection sees all committed changes, or does nothing."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import IsolationLevel, conninfo

import pgsimhash
from pgsimhash import connect
from tests.database import run_sql
from tests.refusals import sqlstate
from tests.store.calls import CHANGES, A, B

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
    return run_sql(
        dsn,
        "SELECT name, (SELECT count(*) FROM pgsimhash.pages), "
        "(SELECT count(*) FROM pgsimhash.marks), (SELECT count(*) FROM pgsimhash.runs) "
        "FROM pgsimhash.collections",
    )


@pytest.fixture
def filled(dsn: str) -> str:
    with connect(dsn) as store:
        list(store.add_many([(A, 1), (B, 2**60)]))
    return dsn


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_isolation_levels_that_miss_other_writers_are_refused(filled: str, level: str) -> None:
    before = state(filled)
    with connect(at(filled, level)) as store:
        assert len(store.find(1, 0)) == 1
        for name, change in CHANGES.items():
            with pytest.raises(pgsimhash.StoreError, match=f"level is {level}.*READ COMMITTED"):
                pytest.fail(f"{name}: {change(store)}")
    with psycopg.connect(at(filled, level), autocommit=True) as connection:
        for statement in FROM_SQL:
            with pytest.raises(psycopg.Error, check=sqlstate("PS030"), match="READ COMMITTED"):
                connection.execute(statement)
    assert state(filled) == before


def test_read_uncommitted_is_read_committed(filled: str) -> None:
    with connect(at(filled, "read uncommitted")) as store:
        assert store.delete(A).versions == 1


def test_a_simhash_that_a_writer_just_used_stays_findable(filled: str) -> None:
    """The caller's transaction has its snapshot before the writer commits, and deletes later."""
    with psycopg.connect(filled) as old, connect(filled) as writer:
        old.isolation_level = IsolationLevel.REPEATABLE_READ
        store = connect(old)
        writer.add("https://b.example/1", 1)
        with pytest.raises(pgsimhash.StoreError, match="misses changes of other writers"):
            store.delete(A)
        old.rollback()
        old.isolation_level = IsolationLevel.READ_COMMITTED
        assert store.delete(A).versions == 1
        old.commit()
        assert [match.url for match in writer.find(1, 0)] == ["https://b.example/1"]
