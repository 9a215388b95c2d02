"""The objects that a store can be opened over, and the owner of its transactions."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row, namedtuple_row, scalar_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from pgsimhash import Store, connect, connect_async
from pgsimhash.errors import ArgumentError, CollectionError, NoServerError, StoreError
from pgsimhash.pages.records import PageRecord
from pgsimhash.schema import migrate
from pgsimhash.sources import SourcePage
from pgsimhash.sqlalchemy import Page
from pgsimhash.testing import fresh_database
from tests.database import end_others, run_sql, with_setting
from tests.refusals import because
from tests.store.calls import CHANGES, READS, A, B
from tests.store.connect.conftest import LENT, OWN, Blocking, Opened, engine_of, lent, of
from tests.store.content import content, urls
from tests.store.pages import page, paragraph

FAR = 2**63
GONE = "postgresql://127.0.0.1:1/none"

# SQLAlchemy calls it before the first transaction.
SLOW = """
    CREATE FUNCTION public.current_schema() RETURNS name LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'timeout' USING ERRCODE = 'query_canceled'; END $$
"""

PAGES = [(f"https://c.example/{n}", page(paragraph(n % 4), paragraph(n % 4 + 9))) for n in range(6)]
WHEN = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def url(pgsimhash_url: str) -> sqlalchemy.URL:
    """The URL of the test's database."""
    return sqlalchemy.make_url(pgsimhash_url)


@pytest.fixture
def engine(url: sqlalchemy.URL) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(url, poolclass=QueuePool, pool_size=2)
    yield made
    made.dispose()


CALLS: dict[str, Callable[[Any], Any]] = {
    **READS,
    **CHANGES,
    "save_clusters": lambda store: store.save_clusters(),
    "start_run": lambda store: store.start_run("a test"),
}
# Their results have times or sizes, or the collection has another name afterwards.
OF_ONE_STORE = "status", "collections", "runs", "rename"
METHODS = {name: call for name, call in CALLS.items() if hasattr(Store, name.split()[0])}


def test_the_list_of_methods_is_complete() -> None:
    methods = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if name[0] != "_"}
    called = {name.split()[0] for name in METHODS} | {"close", "delete_collection"}
    assert methods == called


def everything(store: Any) -> list[object]:
    """Call each method; the results must be equal in all cases."""
    pages = [SourcePage(url, html, fetched_at=WHEN) for url, html in PAGES]
    seen: list[object] = [*store.ingest_many(pages), *store.decide_many(PAGES, jobs=2)]
    seen += store.ingest_many([PageRecord(A, 0, WHEN), PageRecord(B, 1, WHEN)])
    seen += store.add_pages([(f"{A}far", 0xFFFF << 32), ("none", 2)])
    seen += [call(store) for name, call in METHODS.items() if name not in OF_ONE_STORE]
    told: list[int] = []
    seen.append(store.expire(timedelta(days=400), progress=told.append).deleted)
    seen += [told, store.collection.name, store.collection.scheme]
    seen.append(store.status().pages)
    return seen


def stored(dsn: str) -> list[tuple[Any, ...]]:
    return [row[:2] for row in content(dsn, "default")]


@pytest.fixture(scope="module")
def expected(server_dsn: str, pgsimhash_template: str) -> tuple[list[object], list[Any]]:
    """What a blocking store over a DSN says and stores."""
    with fresh_database(server_dsn, pgsimhash_template) as dsn, connect(dsn) as store:
        return everything(store), stored(dsn)


@of([*OWN, *LENT])
def test_every_method_gives_the_same_results(
    opened: Opened, dsn: str, expected: tuple[list[object], list[Any]]
) -> None:
    made = everything(opened.store)
    with suppress(AttributeError):
        opened.lender.commit()
    assert (made, stored(dsn)) == expected


SETTINGS: dict[str, dict[str, Any]] = {
    "dicts": {"row_factory": dict_row},
    "tuples": {"row_factory": namedtuple_row},
    "scalars": {"row_factory": scalar_row},
    "client cursors": {"cursor_factory": psycopg.ClientCursor},
    "raw cursors": {"cursor_factory": psycopg.RawCursor},
    "prepared": {"prepare_threshold": 0},
    "async": {
        "row_factory": scalar_row,
        "cursor_factory": psycopg.AsyncClientCursor,
        "prepare_threshold": 0,
    },
}
"""Settings of the caller's connection."""


@pytest.mark.one_server("Citus sends notices of its own")
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_connection_do_not_matter(
    dsn: str, name: str, expected: tuple[list[object], list[Any]]
) -> None:
    told: list[str | None] = []
    with lent("connection", dsn, asynchronous=name == "async", **SETTINGS[name]) as opened:
        opened.lender.add_notice_handler(lambda notice: told.append(notice.message_primary))
        assert everything(opened.store) == expected[0]
        # Often enough that psycopg prepares the statements.
        for _ in range(7):
            assert opened.store.save_clusters(8) == len(list(opened.store.clusters(8))) > 0
    assert told == []


@of(LENT)
def test_the_callers_transaction_has_our_rows(opened: Opened, dsn: str) -> None:
    store, lender = opened.store, opened.lender
    lender.commit()
    assert store.add_page(A, 0).kind == "new"
    lender.rollback()
    assert store.get(A) is None
    store.add_page(B, 0)
    assert urls(dsn) == []
    lender.commit()
    assert urls(dsn) == [B]
    # A page is stored when its verdict is consumed.
    for verdict in store.add_pages([(A, 0), (f"{A}far", FAR)]):
        assert store.get(verdict.url) is not None
        break
    lender.commit()
    made = store.add_pages([(f"{A}1", 1 << 20), (f"{A}2", 1 << 40)], batch_size=2)
    next(made)
    lender.commit()
    with pytest.raises(StoreError, check=because("wrong_transaction")):
        next(made)
    # The connection stays open, and what is not committed is lost.
    store.close()
    assert not getattr(lender, "closed", False)
    store.add_page(f"{A}last", FAR)
    lender.rollback()
    assert urls(dsn) == [B, A, f"{A}1", f"{A}2"]


@of(OWN)
def test_a_store_of_its_own_transactions_is_closed(opened: Opened, dsn: str) -> None:
    opened.store.add_page(A, 0)
    assert urls(dsn) == [A]
    opened.store.close()
    with pytest.raises(StoreError, match="store is closed", check=because("closed")):
        opened.store.find(0)


@of([*LENT[:2], "pool"])
def test_a_closed_connection_or_pool_is_refused(opened: Opened) -> None:
    opened.lender.close()
    lender = opened.lender._made if isinstance(opened.lender, Blocking) else opened.lender
    open_another: Any = connect if lender is opened.lender else connect_async
    uses: list[Callable[[], Any]] = [
        lambda: opened.store.find(0), lambda: opened.run(open_another(lender)),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(StoreError, match="is closed", check=because("closed")):
            use()


@of(LENT)
def test_a_lost_connection_of_the_caller_is_not_replaced(opened: Opened, dsn: str) -> None:
    store, lender = opened.store, opened.lender
    lender.commit()
    store.add_page(A, 0)
    end_others(dsn)
    with pytest.raises(NoServerError, check=because("connection_lost")):
        store.add_page(B, FAR)
    is_alchemy = not hasattr(lender, "pgconn")
    with pytest.raises(StoreError, check=because("wrong_transaction" if is_alchemy else "closed")):
        store.find(0)
    if is_alchemy:
        lender.rollback()
        store.add_page(B, FAR)
        lender.commit()
    assert urls(dsn) == ([B] if is_alchemy else [])


@of(LENT)
def test_in_a_transaction_that_failed_it_says_to_roll_back(
    opened: Opened, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, lender = opened.store, opened.lender
    lender.commit()
    text = str if hasattr(lender, "pgconn") else sqlalchemy.text
    with pytest.raises((psycopg.Error, sqlalchemy.exc.ProgrammingError)):
        lender.execute(text("SELECT nothing"))
    calls = METHODS
    if opened.made is store:
        # An asynchronous store runs functions on such a store.
        calls = {**CALLS, "connect": lambda _: connect(lender)}
    for name, call in calls.items():
        refused = pytest.raises(StoreError, match="rollback", check=because("wrong_transaction"))
        with refused as raised:
            pytest.fail(f"{name}: {call(store)}")
        assert "\n" not in str(raised.value), name
    assert caplog.messages == []
    lender.rollback()
    store.add_page(A, 0)
    lender.commit()
    assert urls(dsn) == [A]


@of(["session"])
def test_after_a_flush_that_failed_too(opened: Opened) -> None:
    opened.lender.commit()
    opened.lender.add(Page(url=A))
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        opened.lender.flush()
    with pytest.raises(StoreError, check=because("wrong_transaction")):
        opened.store.find(0)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_pool_whose_connections_are_all_in_use(
    dsn: str, asynchronous: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It is raised immediately, without retries for a minute."""
    with lent("pool", dsn, asynchronous=asynchronous) as opened:
        kind = AsyncConnectionPool if asynchronous else ConnectionPool
        pool: Any = kind(dsn, min_size=1, max_size=1, timeout=0.3, open=False)
        limits = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.1}
        engine = engine_of(dsn, asynchronous=asynchronous, **limits)
        for value in (pool.open(), pool.wait()):
            opened.run(value)
        for where, take, put in (
            (pool, pool.getconn, pool.putconn),
            (engine, engine.connect, lambda taken: taken.close()),
        ):
            made: Any = (connect_async if asynchronous else connect)(where)
            store = Blocking(opened.run(made), opened.run)
            taken = opened.run(take())
            with pytest.raises(StoreError, match="in use", check=because("pool_exhausted")):
                store.find(0)
            opened.run(put(taken))
            assert store.find(0) == []
        for value in (pool.close(), engine.dispose()):
            opened.run(value)
    assert [one for one in caplog.messages if "again" in one] == []


def test_a_url_of_sqlalchemy_and_its_text_with_a_driver(
    url: sqlalchemy.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        async with await connect_async(url) as store:
            await store.add_page(B, FAR)

    text = url.render_as_string(hide_password=False)
    assert text.startswith("postgresql+psycopg://")
    sources: list[Any] = [url, text, text.replace("+psycopg", "+asyncpg")]
    for number, where in enumerate(sources):
        with connect(where) as store:
            store.add_page(f"{A}{number}", FAR)
    asyncio.run(use())
    monkeypatch.setenv("PGSIMHASH_DSN", text)
    with connect() as store:
        assert store.status().pages == 4


def test_a_connection_is_checked_out_for_each_call(dsn: str, engine: sqlalchemy.Engine) -> None:
    assert isinstance(engine.pool, QueuePool)
    with connect(engine) as store:
        store.add_page(A, 0)
        assert engine.pool.checkedout() == 0
        with store._session.connection_to_read():
            assert engine.pool.checkedout() == 1
    with engine.connect() as connection:
        found = connection.connection.driver_connection
        assert isinstance(found, psycopg.Connection)
        assert not found.autocommit
    with ConnectionPool(dsn, min_size=1, max_size=1, open=True) as pool, connect(pool) as store:
        store.add_page(A, 0)
        with pool.connection(timeout=5) as own:
            assert not own.autocommit


def test_a_block_of_the_callers_is_one_transaction(dsn: str, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        with connection.begin():
            store = connect(connection)
            list(store.add_pages([(A, 0), (B, FAR)], batch_size=1))
            assert urls(dsn) == []
        assert urls(dsn) == [A, B]
        with suppress(ZeroDivisionError), connection.begin():
            store.delete_page(A)
            raise ZeroDivisionError
    with psycopg.connect(dsn, autocommit=True) as own:
        store = connect(own)
        with own.transaction(force_rollback=True):
            store.delete_page(A)
        assert urls(dsn) == [A, B]
        store.delete_page(A)
    assert urls(dsn) == [B]


class TestSession:
    def test_a_savepoint_of_the_callers(self, dsn: str, engine: sqlalchemy.Engine) -> None:
        with orm.Session(engine) as session:
            store = connect(session)
            store.add_page(A, 0)
            with suppress(ZeroDivisionError), session.begin_nested():
                store.add_page(B, FAR)
                raise ZeroDivisionError
            session.commit()
        assert urls(dsn) == [A]

    def test_after_each_commit_it_uses_another_connection_with_the_same_schema(
        self, dsn: str, url: sqlalchemy.URL
    ) -> None:
        migrate.upgrade(dsn, schema="crawl")
        engine = sqlalchemy.create_engine(url, poolclass=NullPool)
        with orm.Session(engine) as session:
            store = connect(session, schema="crawl")
            for number in range(3):
                store.add_page(f"{A}{number}", FAR)
                session.commit()
            assert store.status().pages == 3
        assert urls(dsn) == []

    @of(["engine"])
    def test_a_scoped_session_is_a_new_one_after_its_removal(
        self, opened: Opened, dsn: str
    ) -> None:
        if opened.made is opened.store:
            scoped: Any = orm.scoped_session(orm.sessionmaker(opened.lender))
            store: Any = connect(scoped)
        else:
            maker = async_sessionmaker(opened.lender._made)
            own: Any = async_scoped_session(maker, scopefunc=int)
            scoped = Blocking(own, opened.run)
            store = Blocking(opened.run(connect_async(own)), opened.run)
        scoped.commit()
        scoped.remove()
        for url in (A, B):
            store.add_page(url, FAR)
            scoped.commit()
            scoped.remove()
        assert urls(dsn) == [A, B]
        assert opened.lender.pool.checkedout() == 0


class TestWhatSqlalchemySays:
    """Its errors become the package's."""

    def test_a_connection_that_was_detached_from_its_pool(
        self, dsn: str, engine: sqlalchemy.Engine
    ) -> None:
        with engine.connect() as connection:
            store = connect(connection)
            connection.commit()
            connection.detach()
            store.add_page(A, 0)
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

    @pytest.mark.one_server("its nodes do not use the search_path")
    def test_a_statement_of_its_own_that_times_out(self, dsn: str) -> None:
        run_sql(dsn, SLOW)
        engine = engine_of(with_setting(dsn, "search_path=public,pg_catalog"))
        with pytest.raises(StoreError, match="raise statement_timeout", check=because("gave_up")):
            connect(engine)

    def test_the_only_connection_of_an_engine_amid_a_transaction(self, url: sqlalchemy.URL) -> None:
        engine = sqlalchemy.create_engine(url, poolclass=StaticPool)
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            with pytest.raises(StoreError, check=because("wrong_transaction")):
                connect(engine)
        engine.dispose()


def test_a_callback_of_a_pool_that_begins_a_transaction(dsn: str, url: sqlalchemy.URL) -> None:
    def select(connection: Any, *_: object) -> None:
        connection.cursor().execute("SELECT 1")

    engine = sqlalchemy.create_engine(url)
    sqlalchemy.event.listen(engine, "checkout", select)
    with ConnectionPool(dsn, check=select) as pool:
        for source in (engine, pool):
            with pytest.raises(StoreError, match="checkout", check=because("wrong_transaction")):
                connect(source)
    engine.dispose()


def test_a_connection_that_was_closed_in_its_pool_is_replaced(dsn: str) -> None:
    engine = engine_of(dsn, pool_size=1, pool_reset_on_return=None)
    with ConnectionPool(dsn, min_size=1, max_size=1, timeout=3) as pool, connect(pool) as store:
        with pool.connection() as connection:
            pass
        connection.close()
        assert store.add_page(A, 0).kind == "new"
    with connect(engine) as store:
        with engine.connect() as checked_out:
            checked_out.connection.driver_connection.close()
        assert store.add_page(A, 0).kind == "unchanged"
    engine.dispose()


@of(LENT, asynchronous=False)
def test_a_collection_whose_creation_was_rolled_back(opened: Opened) -> None:
    opened.lender.rollback()
    uses: list[Callable[[], Any]] = [
        lambda: opened.store.add_page(A, 0),
        lambda: opened.store.find(0),
    ]
    for use in uses:
        with pytest.raises(CollectionError, match="'default' does not exist") as refused:
            use()
        assert because("unknown")(refused.value)
        opened.lender.rollback()


def sqlite() -> sqlalchemy.Engine:
    return sqlalchemy.create_engine("sqlite://")


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (sqlite, StoreError, "postgresql\\+psycopg"),
    (lambda: orm.Session(sqlite()), StoreError, "uses sqlite"),
    (lambda: create_async_engine("postgresql+psycopg://"), ArgumentError, "connect_async"),
    (lambda: AsyncConnectionPool(GONE, open=False), ArgumentError, "connect_async"),
    (lambda: psycopg.AsyncConnection, ArgumentError, "a store needs a DSN"),
    (lambda: orm.sessionmaker(), ArgumentError, "call it first"),
    (lambda: orm.Session(), ArgumentError, "Session\\(engine\\)"),
    (lambda: 5, ArgumentError, "not builtins.int"),
    (lambda: "", NoServerError, "the DSN is empty"),
    (lambda: sqlalchemy.make_url("mysql://u@localhost/d"), NoServerError, "postgresql://"),
]
WRONG_ASYNC: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: 5, ArgumentError, "not builtins.int"),
    (lambda: GONE, NoServerError, "no PostgreSQL server answers"),
    (lambda: engine_of(GONE, asynchronous=True), NoServerError, "no PostgreSQL server answers"),
    (sqlite, ArgumentError, "AsyncEngine"),
    (lambda: orm.Session(), ArgumentError, "AsyncSession"),
    (lambda: engine_of(GONE, asynchronous=True).connect(), ArgumentError, r"await engine\.connect"),
]


def test_invalid_sources_are_refused_with_the_valid_ones() -> None:
    engine = sqlite()
    with engine.connect() as foreign, pytest.raises(StoreError, match="uses sqlite"):
        connect(foreign)
    engine.dispose()
    for make, kind, said in WRONG:
        with pytest.raises(kind, match=said):
            connect(make())
    for make, kind, said in WRONG_ASYNC:
        with pytest.raises(kind, match=said):
            asyncio.run(connect_async(make()))
    with pytest.raises(ArgumentError, match="page_seconds is a number from"):
        asyncio.run(connect_async(GONE, page_seconds=0))


def test_a_pool_that_cannot_connect() -> None:
    with (
        ConnectionPool(GONE, min_size=1, timeout=0.1, open=True) as pool,
        pytest.raises(NoServerError, match="refused", check=because("no_server")),
    ):
        connect(pool)
