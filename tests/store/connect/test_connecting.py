"""The objects that a store can be opened over, and the owner of its transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg_pool import ConnectionPool
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

import pgsimhash
import pgsimhash.db.migrate
from pgsimhash import ArgumentError, CollectionError, NoServerError, StoreError, connect
from tests.database import end_others
from tests.refusals import because
from tests.store.content import urls

A, B = "https://a.example/", "https://b.example/"
FAR = 2**63


@pytest.fixture
def url(pgsimhash_url: str) -> sqlalchemy.URL:
    """The URL of the test's database."""
    return sqlalchemy.make_url(pgsimhash_url)


@pytest.fixture
def engine(url: sqlalchemy.URL) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(url, poolclass=QueuePool, pool_size=2)
    yield made
    made.dispose()


def pages(connection: sqlalchemy.Connection | orm.Session) -> int:
    return int(connection.scalar(sqlalchemy.text("SELECT count(*) FROM pgsimhash.pages")) or 0)


def test_a_url_of_sqlalchemy_and_its_text_with_a_driver(
    dsn: str, url: sqlalchemy.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = url.render_as_string(hide_password=False)
    assert text.startswith("postgresql+psycopg://")
    with connect(url) as store:
        store.add(A, FAR)
    for number, where in enumerate([text, text.replace("+psycopg", "+asyncpg")]):
        with connect(where) as store:
            store.add(f"{A}{number}", FAR)
    monkeypatch.setenv("PGSIMHASH_DSN", text)
    with connect() as store:
        assert store.status()[0].pages == 3


class TestEngine:
    def test_each_call_checks_out_a_connection(self, dsn: str, engine: sqlalchemy.Engine) -> None:
        pool = engine.pool
        assert isinstance(pool, QueuePool)
        with connect(engine) as store:
            store.add(A, 0)
            assert urls(dsn) == [A]
            assert pool.checkedout() == 0
            with store.session.read():
                assert pool.checkedout() == 1
        with pytest.raises(StoreError, match="store is closed", check=because("closed")):
            store.find(0)
        with engine.connect() as connection:
            found = connection.connection.driver_connection
            assert isinstance(found, psycopg.Connection)
            assert not found.autocommit


class TestConnection:
    def test_the_callers_rollback_and_commit_apply_to_our_rows(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        with engine.connect() as connection:
            store = connect(connection)
            connection.commit()
            assert store.add(A, 0).verdict == "new"
            assert pages(connection) == 1
            connection.rollback()
            assert store.get(A) is None
            store.add(B, 0)
            connection.commit()
            store.close()
            assert not connection.closed
            store.add(A, FAR)
        assert urls(dsn) == [B]

    def test_a_block_of_the_callers_is_one_transaction(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        with engine.connect() as connection:
            with connection.begin():
                store = connect(connection)
                list(store.add_many([(A, 0), (B, FAR)], batch_size=1))
                assert urls(dsn) == []
            assert urls(dsn) == [A, B]
            with suppress(ZeroDivisionError), connection.begin():
                store.delete(A)
                raise ZeroDivisionError
            assert urls(dsn) == [A, B]

    def test_with_autocommit_each_batch_is_visible_at_once(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connect(connection).add(A, 0)
            assert urls(dsn) == [A]

    def test_a_closed_connection_is_refused(self, engine: sqlalchemy.Engine) -> None:
        with engine.connect() as connection:
            store = connect(connection)
        for use in (lambda: connect(connection), lambda: store.find(0)):
            with pytest.raises(StoreError, match="is closed", check=because("closed")):
                use()


class TestSession:
    def test_its_transaction_is_the_callers(self, dsn: str, engine: sqlalchemy.Engine) -> None:
        with orm.Session(engine) as session:
            store = connect(session)
            session.commit()
            store.add(A, 0)
            assert pages(session) == 1
            session.rollback()
            assert store.add(B, 0).verdict == "new"
            session.commit()
            assert urls(dsn) == [B]
            # After each commit the session may use another connection.
            with engine.connect():
                store.add(A, FAR)
                session.commit()
        assert urls(dsn) == [B, A]

    def test_a_savepoint_of_the_callers(self, dsn: str, engine: sqlalchemy.Engine) -> None:
        with orm.Session(engine) as session:
            store = connect(session)
            store.add(A, 0)
            with suppress(ZeroDivisionError), session.begin_nested():
                store.add(B, FAR)
                raise ZeroDivisionError
            session.commit()
        assert urls(dsn) == [A]

    def test_another_connection_works_with_the_same_schema(self, url: sqlalchemy.URL) -> None:
        pgsimhash.db.migrate.upgrade(
            url.render_as_string(hide_password=False).replace("+psycopg", ""), schema="crawl"
        )
        engine = sqlalchemy.create_engine(url, poolclass=NullPool)
        with orm.Session(engine) as session:
            store = connect(session, schema="crawl")
            for number in range(3):
                store.add(f"{A}{number}", FAR)
                session.commit()
            assert pages(session) == 0
            assert store.status()[0].pages == 3

    def test_a_scoped_session_is_a_new_one_after_its_removal(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        scoped = orm.scoped_session(orm.sessionmaker(engine))
        store = connect(scoped)
        scoped.commit()
        scoped.remove()
        for url in (A, B):
            store.add(url, FAR)
            scoped.commit()
            scoped.remove()
        assert urls(dsn) == [A, B]
        pool = engine.pool
        assert isinstance(pool, QueuePool)
        assert pool.checkedout() == 0

    def test_threads_with_sessions_share_the_connections_of_an_engine(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        scoped = orm.scoped_session(orm.sessionmaker(engine))
        store = connect(scoped)
        scoped.commit()

        def add(url: str) -> None:
            connect(scoped).add(url, FAR)
            scoped.commit()
            scoped.remove()

        for number in range(3):
            thread = threading.Thread(target=add, args=[f"{A}{number}"])
            thread.start()
            thread.join()
            store.add(f"{B}{number}", FAR)
            scoped.commit()
        scoped.remove()
        assert len(urls(dsn)) == 6


class TestWhatSqlalchemySays:
    """Its errors become the package's, and it learns of lost connections."""

    def test_a_pool_whose_connections_are_all_in_use(self, dsn: str) -> None:
        engine = sqlalchemy.create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(dsn),
            pool_size=1,
            max_overflow=0,
            pool_timeout=0.1,
        )
        with engine.connect():
            for where in (engine, orm.Session(engine)):
                with pytest.raises(StoreError, match="in use", check=because("pool_exhausted")):
                    connect(where)
        connect(engine).close()
        engine.dispose()

    def test_a_connection_that_was_detached_from_its_pool(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        with engine.connect() as connection:
            store = connect(connection)
            connection.commit()
            connection.detach()
            store.add(A, 0)
            connection.commit()
        assert urls(dsn) == [A]

    def test_a_block_whose_transaction_ended(self, engine: sqlalchemy.Engine) -> None:
        with engine.connect() as connection:
            store = connect(connection)
            connection.commit()
            with connection.begin() as begun:
                begun.rollback()
                with pytest.raises(StoreError, check=because("wrong_transaction")):
                    store.find(0)
            assert store.find(0) == []

    def test_a_hook_after_the_commit(self, engine: sqlalchemy.Engine) -> None:
        with orm.Session(engine) as session:
            store = connect(session)

            @sqlalchemy.event.listens_for(session, "after_commit")
            def ask(_: orm.Session) -> None:
                with pytest.raises(StoreError, match="hook", check=because("wrong_transaction")):
                    store.find(0)

            session.commit()

    def test_a_session_that_is_closed_for_good(self, engine: sqlalchemy.Engine) -> None:
        session = orm.Session(engine, close_resets_only=False)
        store = connect(session)
        session.close()
        with pytest.raises(StoreError, match="session is closed", check=because("closed")):
            store.find(0)

    def test_the_only_connection_of_an_engine_amid_a_transaction(self, url: sqlalchemy.URL) -> None:
        engine = sqlalchemy.create_engine(url, poolclass=StaticPool)
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            with pytest.raises(StoreError, check=because("wrong_transaction")):
                connect(engine)
        engine.dispose()

    @pytest.mark.parametrize("kind", [sqlalchemy.Engine.connect, orm.Session])
    def test_after_a_lost_connection_the_caller_rolls_back_and_continues(
        self, dsn: str, engine: sqlalchemy.Engine, kind: Callable[[Any], Any]
    ) -> None:
        with kind(engine) as lender:
            store = connect(lender)
            lender.commit()
            store.add(A, 0)
            end_others(dsn)
            with pytest.raises(NoServerError, check=because("connection_lost")):
                store.add(B, FAR)
            with pytest.raises(StoreError, check=because("wrong_transaction")):
                store.find(0)
            lender.rollback()
            store.add(B, FAR)
            lender.commit()
        assert urls(dsn) == [B]


def test_nothing_is_printed_about_a_transaction_that_failed(
    connection: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    store = connect(connection)
    connection.commit()
    with suppress(psycopg.Error):
        connection.execute("SELECT nothing")
    for use in (lambda: store.find(0), lambda: store.add(A, 0)):
        with pytest.raises(StoreError, check=because("wrong_transaction")):
            use()
    assert caplog.messages == []


class TestPool:
    def test_each_call_checks_out_a_connection(self, dsn: str) -> None:
        with ConnectionPool(dsn, min_size=1, max_size=1, open=True) as pool:
            with connect(pool) as store:
                store.add(A, 0)
                assert urls(dsn) == [A]
                with pool.connection(timeout=5) as connection:
                    assert not connection.autocommit
            store.close()
            with pytest.raises(StoreError, check=because("closed")):
                store.find(0)
        with pytest.raises(StoreError, match="pool is closed", check=because("closed")):
            connect(pool)

    def test_a_pool_that_cannot_connect_reports_why(self) -> None:
        gone = "postgresql://127.0.0.1:1/none"
        with (
            ConnectionPool(gone, min_size=1, timeout=0.1, open=True) as pool,
            pytest.raises(NoServerError, match="refused", check=because("no_server")),
        ):
            connect(pool)


def test_a_collection_whose_creation_was_rolled_back(
    engine: sqlalchemy.Engine, connection: psycopg.Connection
) -> None:
    with engine.connect() as lent:
        for where in (connection, lent):
            store = connect(where)
            where.rollback()
            with pytest.raises(CollectionError, match="'default' does not exist") as refused:
                store.add(A, 0)
            assert because("unknown")(refused.value)
            where.rollback()
            with pytest.raises(CollectionError, match="'default' does not exist"):
                store.find(0)
            where.rollback()


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "another database": (
        lambda: sqlalchemy.create_engine("sqlite://"),
        StoreError,
        "postgresql\\+psycopg",
    ),
    "a connection to one": (
        lambda: sqlalchemy.create_engine("sqlite://").connect(),
        StoreError,
        "uses sqlite",
    ),
    "a session over one": (
        lambda: orm.Session(sqlalchemy.create_engine("sqlite://")),
        StoreError,
        "uses sqlite",
    ),
    "an asynchronous engine": (
        lambda: create_async_engine("postgresql+psycopg://"),
        ArgumentError,
        "asynchronous",
    ),
    "a class": (lambda: psycopg.AsyncConnection, ArgumentError, "a store needs a DSN"),
    "a maker": (lambda: orm.sessionmaker(), ArgumentError, "call it first"),
    "a session without an engine": (lambda: orm.Session(), ArgumentError, "Session\\(engine\\)"),
    "a number": (lambda: 5, ArgumentError, "not builtins.int"),
    "a URL of another server": (
        lambda: sqlalchemy.make_url("mysql://u@localhost/d"),
        NoServerError,
        "postgresql://",
    ),
}


@pytest.mark.parametrize("what", list(WRONG))
def test_invalid_sources_are_refused_with_the_valid_ones(what: str) -> None:
    make, kind, said = WRONG[what]
    with pytest.raises(kind, match=said):
        connect(make())


def test_a_closed_connection(dsn: str) -> None:
    connection = psycopg.connect(dsn)
    connection.close()
    with pytest.raises(StoreError, match="is closed", check=because("closed")):
        connect(connection)
