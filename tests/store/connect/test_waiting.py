"""Locks: a writer says that it waits, does not wait forever, and sees what others committed."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

import pgsimhash
from pgsimhash import connect, connect_async
from pgsimhash.db.connections import open_connection
from pgsimhash.errors import NoServerError, StoreError
from tests.conftest import ROOT
from tests.database import insert_page, run_sql, wait_for_a_lock, with_setting
from tests.manual import text_of
from tests.refusals import because, sqlstate
from tests.store.calls import CHANGES, LOOKUPS, A, B

LOCK = "SELECT pgsimhash._lock_collections_1(ARRAY[1], %s)"


@pytest.fixture
def filled(dsn: str) -> str:
    with connect(dsn) as store:
        list(store.add_pages([(A, 7), (B, 6)]))
    return dsn


@pytest.fixture
def held(filled: str) -> Iterator[psycopg.Connection]:
    """An idle writer that holds the lock of the collection."""
    with psycopg.connect(filled) as idle:
        idle.execute(LOCK, [3])
        yield idle


def test_all_writes_time_out_and_say_for_which_collection(
    held: psycopg.Connection, dsn: str
) -> None:
    with connect(with_setting(dsn, "lock_timeout=20ms")) as store:
        assert store.has_near(7)
        for name, change in CHANGES.items():
            with pytest.raises(StoreError, check=because("locked")) as raised:
                pytest.fail(f"{name}: {change(store)}")
            assert 's for collection "default", which another' in str(raised.value), name
            assert "or raise lock_timeout" in str(raised.value), name
        held.rollback()
        for change in CHANGES.values():
            change(store)


def test_a_long_wait_logs_how_to_find_the_holder(held: psycopg.Connection, dsn: str) -> None:
    class Release(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record)
            wait_for_a_lock(dsn)
            _, _, query = record.getMessage().partition("; ")
            holders.extend(run_sql(dsn, query.removesuffix(" tells for whom")))
            held.rollback()

    name = "'pgsimhash._lock_collections_1(integer[], integer)'::regprocedure"
    ((function,),) = run_sql(dsn, f"SELECT pg_get_functiondef({name})")
    assert function.count("piece interval := least(interval '5 s', patience)") == 1
    run_sql(dsn, function.replace("interval '5 s'", "interval '1 s'"))
    told: list[logging.LogRecord] = []
    holders: list[tuple[object, ...]] = []
    release = Release(logging.WARNING)
    logging.getLogger("pgsimhash").addHandler(release)
    try:
        # Two stores over one connection log it once.
        with psycopg.connect(dsn, autocommit=True) as connection:
            connect(connection)
            assert connect(connection).add_page(f"{A}2", 5).kind == "duplicate"
    finally:
        logging.getLogger("pgsimhash").removeHandler(release)
    (record,) = told
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith('waiting 1 s for collection "default"; SELECT')
    assert holders == [([held.info.backend_pid],)]


def test_writers_that_wait_for_a_swap_do_not_wait_for_each_other(filled: str) -> None:
    with (
        connect(filled) as first,
        connect(filled, collection="other", create=True) as second,
        psycopg.connect(filled) as connection,
        ThreadPoolExecutor(2) as pool,
    ):
        second.add_page(A, 1)
        connect(connection).rename("other", swap=True)
        deletions = [pool.submit(store.delete_page, A) for store in (first, second)]
        wait_for_a_lock(filled, 2)
        connection.commit()
        assert [deletion.result().deleted for deletion in deletions] == [1, 1]


def test_no_collection_is_locked_at_once(dsn: str) -> None:
    with psycopg.connect(dsn, options="-c statement_timeout=20s") as connection:
        connection.execute("SELECT pgsimhash._lock_collections_1(ARRAY[NULL::integer], 2)")


def test_loaders_share_the_lock_and_writers_and_deletions_do_not(dsn: str) -> None:
    with connect(dsn), psycopg.connect(dsn) as holder, psycopg.connect(dsn) as other:
        for held, wanted in product((1, 2, 3), repeat=2):
            holder.execute(LOCK, [held])
            other.execute("SET LOCAL lock_timeout = '50ms'")
            is_refused = held + wanted >= 4
            error = pytest.raises(psycopg.Error, check=sqlstate("PS032"))
            with error if is_refused else nullcontext():
                other.execute(LOCK, [wanted])
            holder.rollback()
            other.rollback()


def test_writers_go_on_while_a_deletion_waits_for_a_loader(filled: str) -> None:
    """Also the loader itself, which then adds pages in the same transaction."""
    with (
        psycopg.connect(filled) as loader,
        connect(with_setting(filled, "lock_timeout=20s")) as deleting,
        connect(with_setting(filled, "lock_timeout=500ms")) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        insert_page(loader, f"{A}loaded", 2**40)
        deletion = pool.submit(deleting.delete_page, A)
        wait_for_a_lock(filled)
        assert writer.add_page(f"{A}added", 2**41).page_id is not None
        loader.execute("SET LOCAL lock_timeout = '500ms'")
        assert connect(loader).add_page(f"{A}also", 2**42).page_id is not None
        assert not deletion.done()
        loader.commit()
        assert deletion.result(timeout=60).gone == [A]


def test_a_users_statement_takes_the_lock_of_writers(dsn: str) -> None:
    """As in docs/sql.md."""
    with psycopg.connect(dsn) as holder, connect(with_setting(dsn, "lock_timeout=100ms")) as store:
        holder.execute(
            "SELECT FROM pgsimhash.collections WHERE name IN ('default', 'other') "
            "ORDER BY collection_id FOR NO KEY UPDATE"
        )
        with pytest.raises(StoreError, match="another transaction", check=because("locked")):
            store.add_page(A, 5)
        assert connect(holder).add_page(A, 5).kind == "new"


def timeout(connection: psycopg.Connection, of: str = "lock") -> str:
    ((found,),) = connection.execute(f"SHOW {of}_timeout").fetchall()
    return str(found)


IDLE = "idle_in_transaction_session"


def test_statements_respect_the_statement_timeout(dsn: str) -> None:
    async def find() -> None:
        async with await connect_async(limited) as store:
            await store.find(7)

    limited = with_setting(dsn, "statement_timeout=150ms")
    calls = {**LOOKUPS}
    calls["asynchronous"] = lambda _: asyncio.run(find())
    with connect(dsn) as unlimited:
        unlimited.add_page(A, 7)
    with connect(limited) as store, psycopg.connect(dsn) as other:
        other.execute("LOCK TABLE pgsimhash.pages")
        for name, call in calls.items():
            with pytest.raises(
                StoreError, match="raise statement_timeout", check=because("gave_up")
            ):
                pytest.fail(f"{name}: {call(store)}")


def test_a_statement_that_writes_may_take_five_minutes_longer_than_a_lock(dsn: str) -> None:
    cases = [
        (dsn, "5min", "10min"),
        (with_setting(dsn, "lock_timeout=1h"), "1h", "0"),
        (with_setting(dsn, "statement_timeout=9s"), "5min", "9s"),
    ]
    for limited, lock, statement in cases:
        with connect(limited) as store, store._session.calls_to_write() as calls:
            connection = calls.connection
            bounds = timeout(connection), timeout(connection, "statement")
            assert bounds == (lock, statement), limited


def test_the_settings_of_sessions_are_restored(dsn: str) -> None:
    with connect(dsn) as store:
        with store._session.calls_to_write() as (connection, _):
            assert (timeout(connection), timeout(connection, IDLE)) == ("5min", "5min")
        store.add_page(A, 7)
        with store._session.connection_to_read() as connection:
            assert {timeout(connection, of) for of in ("lock", "statement", IDLE)} == {"0"}
    # In the caller's transaction there is no limit.
    with psycopg.connect(dsn) as connection:
        lent = connect(connection)
        lent.add_page(f"{A}2", 7)
        with lent._session.calls_to_write():
            assert {timeout(connection, of) for of in ("lock", "statement", IDLE)} == {"0"}


def test_settings_of_the_dsn_apply(
    dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def parameters(given: str) -> dict[str, str]:
        with open_connection(given) as connection:
            return connection.info.get_parameters()

    own = {"connect_timeout": "10", "application_name": "pgsimhash"}
    cut_networks_are_detected = {
        "tcp_user_timeout": "60000", "keepalives_idle": "30", "keepalives_interval": "10",
        "keepalives_count": "3",
    }  # fmt: skip
    assert parameters(dsn).items() >= {**own, **cut_networks_are_detected}.items()
    monkeypatch.setenv("PGAPPNAME", "mine")
    told = parameters(conninfo.make_conninfo(dsn, tcp_user_timeout=5000))
    assert (told["tcp_user_timeout"], told["application_name"]) == ("5000", "mine")
    file = tmp_path / "services"
    file.write_text("[served]\nkeepalives_idle=50\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    assert parameters(conninfo.make_conninfo(dsn, service="served"))["keepalives_idle"] == "50"
    monkeypatch.setenv("PGSERVICE", "served")
    told = parameters(dsn)
    assert (told["keepalives_idle"], told["tcp_user_timeout"]) == ("50", "60000")


def test_the_server_terminates_a_writer_that_stops_within_a_batch(dsn: str) -> None:
    bound = "-c idle_in_transaction_session_timeout=300ms"
    with connect(conninfo.make_conninfo(dsn, options=bound)) as store, connect(dsn) as other:
        with suppress(NoServerError), store._session.calls_to_write() as calls:
            calls.lock()
            # Not before the server terminated the holder of the lock.
            assert other.add_page(f"{A}2", 5).kind == "new"
        assert calls.connection.closed
        assert store.add_page(f"{A}3", 5).kind == "duplicate"


def test_the_error_of_a_deadlock_says_to_ingest_first(dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as late:
        late.execute("CREATE TABLE mine (url text PRIMARY KEY)")
        connect(late)
        late.commit()
        stores = {one: connect(one) for one in (late, first)}
        late.execute("SET deadlock_timeout = '10ms'")
        first.execute("SET deadlock_timeout = '60s'")
        late.commit()
        first.commit()
        own = "INSERT INTO mine VALUES ('https://a.example/') ON CONFLICT DO NOTHING"
        late.execute(own)
        assert stores[first].add_page(A, 5).keep
        writer = threading.Thread(target=first.execute, args=[own])
        writer.start()
        wait_for_a_lock(dsn)
        with pytest.raises(StoreError, match="ingest first", check=because("gave_up")):
            stores[late].add_page(f"{A}1", 6)
        late.rollback()
        writer.join()
        first.commit()
        # In this order there is no deadlock: one waits for the end of the other.
        assert stores[late].add_page(f"{A}1", 2**64 - 1).keep
        late.execute(own)


def test_the_manual_says_to_ingest_first_and_names_no_private_function() -> None:
    for name in ("ingest.md", "reliability.md", "sqlalchemy.md"):
        assert "ingest first" in text_of(name).lower()
    for path in (ROOT / "docs").glob("*.md"):
        assert "_lock_collection" not in path.read_text(encoding="utf-8")


FROM_SQL = [
    "SELECT pgsimhash._lock_collections_1(ARRAY[1], 2)",
    "SELECT pgsimhash._delete_pages_1('default', ARRAY[1], NULL)",
    "SELECT pgsimhash.delete_page('https://a.example/')",
    "SELECT pgsimhash.delete_host('a.example')",
    "SELECT pgsimhash._expire_batch_1('default', interval '1 day', 0, 10)",
    "CALL pgsimhash.expire(interval '1 day')",
    "SELECT pgsimhash.mark('https://a.example/1', 'https://a.example/2', true)",
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


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_isolation_levels_that_miss_other_writers_are_refused(filled: str, level: str) -> None:
    before = state(filled)
    with connect(at(filled, level)) as store:
        assert len(store.find(7, 0)) == 1
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
        assert store.delete_page(A).deleted == 1
