"""Transient faults are invisible: a call is retried, and takes effect once."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool
from sqlalchemy import create_engine

from pgsimhash import NoServerError, Store, StoreError, connect
from tests.database import end_others, run_sql
from tests.proxy import Proxy, proxy
from tests.refusals import because
from tests.store.content import content

PAGES = [(f"https://a.example/{n}", n << 40) for n in range(20)]


def opened_in(made: list[psycopg.Connection], dsn: str) -> psycopg.Connection:
    """Return a new connection, which is recorded."""
    made.append(psycopg.connect(dsn))
    return made[-1]


@contextmanager
def by_dsn(dsn: str) -> Iterator[Store]:
    with connect(dsn) as store:
        yield store


@contextmanager
def by_pool(dsn: str) -> Iterator[Store]:
    with ConnectionPool(dsn, min_size=5, timeout=3) as pool:
        pool.wait()
        with connect(pool) as store:
            yield store


@contextmanager
def by_engine(dsn: str) -> Iterator[Store]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with connect(engine) as store:
        yield store
    engine.dispose()


WAYS = [by_dsn, by_pool, by_engine]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def opened(request: pytest.FixtureRequest, dsn: str) -> Iterator[Store]:
    """A store over a source that can replace a lost connection."""
    with request.param(dsn) as store:
        yield store


class TestLostConnections:
    def test_lookups_are_retried(self, opened: Store, dsn: str) -> None:
        list(opened.add_many(PAGES, distance=0))
        for _ in range(3):
            end_others(dsn)
            assert opened.exists(5 << 40)
            end_others(dsn)
            (match,) = opened.find(5 << 40, 0)
            assert match.url == PAGES[5][0]

    def test_a_batch_is_stored_once(self, opened: Store, dsn: str) -> None:
        for start in range(0, 20, 5):
            end_others(dsn)
            made = [
                verdict.verdict for verdict in opened.add_many(PAGES[start : start + 5], distance=0)
            ]
            assert made == ["new"] * 5
        assert sorted(row[0] for row in content(dsn, "default")) == sorted(url for url, _ in PAGES)

    @pytest.mark.parametrize("raised", [TimeoutError, KeyboardInterrupt])
    def test_a_connection_left_within_a_statement_is_replaced(
        self, opened: Store, dsn: str, raised: type[BaseException]
    ) -> None:
        """Like Celery's soft time limit."""

        def handler(*_: object) -> None:
            raise raised

        before = signal.signal(signal.SIGALRM, handler)
        with psycopg.connect(dsn) as other:
            other.execute("LOCK pgsimhash.pages, pgsimhash.collections")
            try:
                for ask in (lambda: opened.get("https://a.example/"), opened.status):
                    signal.setitimer(signal.ITIMER_REAL, 0.3)
                    with pytest.raises(raised):
                        ask()
            finally:
                signal.signal(signal.SIGALRM, before)
        assert opened.get("https://a.example/") is None
        assert [one.verdict for one in opened.add_many(PAGES, distance=0)] == ["new"] * 20
        assert len(content(dsn, "default")) == 20

    def test_retries_are_logged(self, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
        with connect(dsn) as store, caplog.at_level(logging.INFO, "pgsimhash"):
            end_others(dsn)
            store.exists(5)
        assert any("the connection to the database was lost" in one for one in caplog.messages)

    def test_the_callers_connections_are_not_replaced(self, dsn: str) -> None:
        with closing(psycopg.connect(dsn, autocommit=True)) as connection:
            store = connect(connection)
            end_others(dsn)
            with pytest.raises(NoServerError, check=because("connection_lost")):
                store.exists(5)

    def test_other_connections_of_the_engine_stay_open(self, dsn: str) -> None:
        made: list[psycopg.Connection] = []
        engine = create_engine("postgresql+psycopg://", creator=lambda: opened_in(made, dsn))
        with engine.connect() as first, engine.connect() as second:
            theirs = [second.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()]
            first.exec_driver_sql("SELECT 1")
            second.commit()
            with connect(engine) as store:
                first.close()
                end_others(dsn, theirs)
                assert not store.exists(5)
            assert second.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() == theirs[0]
        engine.dispose()
        assert [one.closed for one in made] == [True] * len(made)

    def test_retries_can_be_disabled(self, dsn: str) -> None:
        with connect(dsn, retry_seconds=0) as store:
            end_others(dsn)
            with pytest.raises(
                NoServerError, match="run again to continue", check=because("connection_lost")
            ):
                store.exists(5)
            # The next call has a connection.
            assert not store.exists(5)


@contextmanager
def behind_proxy(dsn: str) -> Iterator[tuple[Proxy, str]]:
    given = conninfo_to_dict(dsn)
    with proxy(int(given.get("port") or 5432), str(given["host"])) as between:
        yield between, between.dsn(dsn)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_server_that_restarts_is_waited_for(
    dsn: str, way: Callable[[str], AbstractContextManager[Store]]
) -> None:
    with behind_proxy(dsn) as (between, there), way(there) as store:
        list(store.add_many(PAGES[:5], distance=0))
        between.refusing = True
        end_others(dsn)
        back = threading.Timer(1.5, setattr, (between, "refusing", False))
        back.start()
        assert [one.verdict for one in store.add_many(PAGES[5:], distance=0)] == ["new"] * 15
        back.join()
        assert store.exists(5 << 40)


class TestUnsureCommits:
    def test_after_a_lost_commit_answer_the_verdicts_are_right(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there), connect(there) as store:
            store.start_run("mine")
            list(store.add_many(PAGES[:5], distance=0))
            between.cut_after = between.commits + 1
            # Not unchanged, as the pages would be if they were read again.
            assert [one.verdict for one in store.add_many(PAGES[5:], distance=0)] == ["new"] * 15
            assert between.cuts == 1
            (status,) = store.status()
        assert status.pages == 20
        runs = run_sql(dsn, "SELECT pages, new FROM pgsimhash.runs")
        assert runs == [(20, 20)]

    def test_without_a_run_the_pages_show_the_commit(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there), connect(there) as store:
            store.add(*PAGES[0])
            between.cut_after = between.commits + 1
            assert store.add(*PAGES[1], distance=0).verdict == "new"
            between.cut_after = between.commits + 1
            assert store.add(*PAGES[1]).verdict == "unchanged"
            assert between.cuts == 2
            assert [row.pages for row in store.status()] == [2]

    def test_a_batch_without_a_new_page_is_counted_once(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there), connect(there) as store:
            store.start_run("mine")
            list(store.add_many(PAGES, distance=0))
            between.cut_after = between.commits + 1
            assert {one.verdict for one in store.add_many(PAGES, distance=0)} == {"unchanged"}
            assert between.cuts == 1
        runs = run_sql(dsn, "SELECT pages, unchanged FROM pgsimhash.runs")
        assert runs == [(40, 20)]

    def test_without_retries_the_next_batch_is_independent(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there), connect(there, retry_seconds=0) as store:
            between.cut_after = between.commits + 1
            with pytest.raises(NoServerError, check=because("connection_lost")):
                list(store.add_many(PAGES[:5], distance=0))
            made = [one.verdict for one in store.add_many(PAGES[:10], distance=0)]
        assert made == ["unchanged"] * 5 + ["new"] * 5


REFUSE_ONCE = """
    CREATE SEQUENCE tries;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('public.tries') <= {times} THEN
            RAISE EXCEPTION 'for others' USING ERRCODE = '{code}';
        END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER refusing AFTER INSERT ON pgsimhash.runs
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()
"""


@pytest.mark.one_server("it adds a trigger")
@pytest.mark.parametrize("code", ["40001", "40P01"], ids=["serialization", "deadlock"])
class TestAbortedTransactions:
    def refuse(self, dsn: str, code: str, times: int) -> None:
        run_sql(dsn, REFUSE_ONCE.format(times=times, code=code))

    def test_an_aborted_batch_is_decided_again(self, store: Store, dsn: str, code: str) -> None:
        self.refuse(dsn, code, 3)
        assert [one.verdict for one in store.add_many(PAGES, distance=0)] == ["new"] * 20
        assert run_sql(dsn, "SELECT pages FROM pgsimhash.runs") == [(20,)]

    def test_in_the_caller_s_transaction_it_is_an_error(self, dsn: str, code: str) -> None:
        with psycopg.connect(dsn) as connection:
            store = connect(connection)
            connection.commit()
            self.refuse(dsn, code, 1)
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            with pytest.raises(StoreError, check=because("gave_up")):
                list(store.add_many(PAGES, distance=0))
