"""Transient faults are invisible: a call is retried, and takes effect once."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.transaction import BaseTransaction
from sqlalchemy import event

from pgsimhash import NoServerError, Store, StoreError, connect, connect_async
from pgsimhash.store import session
from tests.database import end_others, run_sql
from tests.programs import wait_until
from tests.refusals import because
from tests.store.connect.conftest import OWN, Opened, behind_proxy, engine_of, lent, of
from tests.store.content import content

PAGES = [(f"https://a.example/{n}", n << 40) for n in range(20)]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_FIRST_PAUSE", 0.005)


@contextmanager
def raising_at_a_lock(raised: type[BaseException], dsn: str) -> Iterator[None]:
    """Raise it in the block, from a signal, as soon as a statement of it waits for a lock."""
    ((began,),) = run_sql(dsn, "SELECT clock_timestamp()")

    def handler(*_: object) -> None:
        raise raised

    def alarm() -> None:
        waits = "wait_event_type = 'Lock' AND query_start > %s AND datname = current_database()"
        statement = f"SELECT count(*) FROM pg_stat_activity WHERE {waits}"
        wait_until(lambda: run_sql(dsn, statement, [began]) == [(1,)])
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, handler)
    waiting = threading.Thread(target=alarm)
    waiting.start()
    try:
        with pytest.raises(raised):
            yield
    finally:
        waiting.join()
        signal.signal(signal.SIGALRM, before)


class TestLostConnections:
    @of(OWN)
    def test_lookups_are_retried_and_a_batch_is_stored_once(
        self, opened: Opened, dsn: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = opened.store
        caplog.set_level(logging.INFO, "pgsimhash")
        for start in (0, 10):
            end_others(dsn)
            pages = PAGES[start : start + 10]
            assert [one.kind for one in store.add_pages(pages, distance=0)] == ["new"] * 10
            end_others(dsn)
            caplog.clear()
            assert store.has_near(start << 40)
            assert "the connection to the database was lost" in caplog.text
            end_others(dsn)
            assert [match.url for match in store.find(start << 40, 0)] == [PAGES[start][0]]
        assert sorted(row[0] for row in content(dsn, "default")) == sorted(url for url, _ in PAGES)

    @of(OWN, asynchronous=False)
    @pytest.mark.parametrize("raised", [TimeoutError, KeyboardInterrupt])
    def test_a_connection_left_within_a_statement_is_replaced(
        self, opened: Opened, dsn: str, raised: type[BaseException]
    ) -> None:
        """Like Celery's soft time limit."""

        store = opened.store
        with psycopg.connect(dsn) as other:
            other.execute("LOCK pgsimhash.pages, pgsimhash.collections")
            for ask in (lambda: store.get("https://a.example/"), store.status):
                with raising_at_a_lock(raised, dsn):
                    ask()
        assert store.get("https://a.example/") is None
        assert [one.kind for one in store.add_pages(PAGES, distance=0)] == ["new"] * 20
        assert len(content(dsn, "default")) == 20

    @of(OWN, asynchronous=False)
    def test_a_connection_interrupted_before_a_begin_is_replaced(
        self, opened: Opened, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        # psycopg then counts one transaction too few.
        monkeypatch.setattr(BaseTransaction, "_push_savepoint", interrupt)
        with pytest.raises((KeyboardInterrupt, StoreError)):
            opened.store.add_page(*PAGES[0])
        monkeypatch.undo()
        assert opened.store.add_page(*PAGES[0]).kind == "new"

    def test_other_connections_of_the_engine_stay_open(self, dsn: str) -> None:
        made: list[psycopg.Connection] = []
        engine = engine_of(dsn)
        event.listen(engine, "connect", lambda connection, _: made.append(connection))
        with engine.connect() as first, engine.connect() as second:
            theirs = [second.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()]
            first.exec_driver_sql("SELECT 1")
            second.commit()
            with connect(engine) as store:
                first.close()
                end_others(dsn, theirs)
                assert not store.has_near(5)
            assert second.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() == theirs[0]
        engine.dispose()
        assert {one.closed for one in made} == {True}

    def test_retries_can_be_disabled(self, dsn: str) -> None:
        with connect(dsn, retry_seconds=0) as store:
            end_others(dsn)
            with pytest.raises(
                NoServerError, match="run again to continue", check=because("connection_lost")
            ):
                store.has_near(5)
            # The next call has a connection.
            assert not store.has_near(5)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("kind", OWN)
def test_a_server_that_restarts_is_waited_for(dsn: str, kind: str, asynchronous: bool) -> None:
    with (
        behind_proxy(dsn) as (between, there),
        lent(kind, there, asynchronous=asynchronous) as opened,
    ):
        store = opened.store
        list(store.add_pages(PAGES[:5], distance=0))
        between.refusing = True
        end_others(dsn)
        back = threading.Timer(0.3, setattr, (between, "refusing", False))
        back.start()
        assert [one.kind for one in store.add_pages(PAGES[5:], distance=0)] == ["new"] * 15
        back.join()
        assert store.has_near(5 << 40)


class TestUnsureCommits:
    @pytest.mark.parametrize("asynchronous", [False, True])
    @pytest.mark.parametrize("kind", OWN)
    def test_after_a_lost_commit_answer_the_verdicts_are_right(
        self, dsn: str, kind: str, asynchronous: bool
    ) -> None:
        with (
            behind_proxy(dsn) as (between, there),
            lent(kind, there, asynchronous=asynchronous) as opened,
        ):
            store = opened.store
            store.start_run("mine")
            list(store.add_pages(PAGES[:5], distance=0))
            between.cut_after = between.commits + 1
            # Not unchanged, as the pages would be if they were read again.
            assert [one.kind for one in store.add_pages(PAGES[5:], distance=0)] == ["new"] * 15
            assert between.cuts == 1
            # A batch without a new page is counted once too.
            between.cut_after = between.commits + 1
            assert {one.kind for one in store.add_pages(PAGES, distance=0)} == {"unchanged"}
            assert between.cuts == 2
            status = store.status()
        assert status.pages == 20
        runs = run_sql(dsn, "SELECT pages, new, unchanged FROM pgsimhash.runs")
        assert runs == [(40, 20, 20)]

    def test_without_a_run_the_pages_show_the_commit(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there), connect(there) as store:
            store.add_page(*PAGES[0])
            between.cut_after = between.commits + 1
            assert store.add_page(*PAGES[1], distance=0).kind == "new"
            between.cut_after = between.commits + 1
            assert store.add_page(*PAGES[1]).kind == "unchanged"
            assert between.cuts == 2
            assert [row.pages for row in store.collections()] == [2]

    def test_without_retries_the_next_batch_is_independent(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there), connect(there, retry_seconds=0) as store:
            between.cut_after = between.commits + 1
            with pytest.raises(NoServerError, check=because("connection_lost")):
                list(store.add_pages(PAGES[:5], distance=0))
            made = [one.kind for one in store.add_pages(PAGES[:10], distance=0)]
        assert made == ["unchanged"] * 5 + ["new"] * 5


REFUSE_FIRST = """
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
    def test_an_aborted_batch_is_decided_again(self, store: Store, dsn: str, code: str) -> None:
        run_sql(dsn, REFUSE_FIRST.format(times=3, code=code))
        assert [one.kind for one in store.add_pages(PAGES, distance=0)] == ["new"] * 20
        assert run_sql(dsn, "SELECT pages FROM pgsimhash.runs") == [(20,)]

    def test_in_the_caller_s_transaction_it_is_an_error(self, dsn: str, code: str) -> None:
        with psycopg.connect(dsn) as connection:
            store = connect(connection)
            connection.commit()
            run_sql(dsn, REFUSE_FIRST.format(times=1, code=code))
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            with pytest.raises(StoreError, check=because("gave_up")):
                list(store.add_pages(PAGES, distance=0))


def is_disconnected(dsn: str) -> bool:
    others = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgsimhash'"
    return run_sql(dsn, f"{others} AND datname = current_database()") == [(True,)]


class TestInterruptedClose:
    """It closes the connections."""

    def test_while_it_ends_a_run(self, dsn: str) -> None:
        store = connect(dsn)
        store.start_run("mine")
        store.add_page(*PAGES[0])
        with psycopg.connect(dsn) as other:
            other.execute("LOCK pgsimhash.runs")
            with raising_at_a_lock(KeyboardInterrupt, dsn):
                store.close()
            wait_until(lambda: is_disconnected(dsn))

    def test_while_it_ends_processes(self, dsn: str) -> None:
        async def cancel() -> None:
            store = await connect_async(dsn)
            closing = asyncio.create_task(store.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await asyncio.to_thread(wait_until, lambda: is_disconnected(dsn))

        asyncio.run(cancel())
