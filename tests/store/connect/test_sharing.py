"""Threads share a store, a forked child has its own connections, and no page is lost."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from pgsimhash import Store, Verdict, connect
from pgsimhash.errors import StoreError
from tests.database import end_others, run_sql
from tests.programs import python
from tests.refusals import because
from tests.store.connect.conftest import OWN, Opened, lent, of
from tests.store.connect.test_retries import REFUSE_FIRST
from tests.store.content import urls

URL = "https://a.example/"
FAR = 0xFFFF << 48
HTML = "<p>" + "one two three four " * 20
THREADS = 4


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """Return the results of ``work`` in several threads that begin together."""
    barrier = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def near_copies(store: Store, count: int = 6) -> None:
    assert len(list(store.add_pages((f"{URL}{n}", n) for n in range(count)))) == count


@pytest.mark.parametrize("kind", [*OWN, "connection"])
class TestThreads:
    def test_all_stored_pages_exist(self, dsn: str, kind: str) -> None:
        with lent(kind, dsn, autocommit=True) as opened:
            store = opened.store

            def work(number: int) -> list[str]:
                verdicts = [store.add_page(f"{URL}{number}/{n}", n << 40) for n in range(8)]
                pages = [(f"{URL}{number}/m{n}", n << 20) for n in range(20)]
                verdicts += store.add_pages(pages, batch_size=5)
                assert all(store.get(verdict.url) is not None for verdict in verdicts)
                assert all(store.find(n << 40) for n in range(8))
                return [verdict.kind for verdict in verdicts]

            told = Counter(verdict for made in in_threads(work) for verdict in made)
            assert told["failed"] == told["unchanged"] == 0
            assert sum(told.values()) == len(urls(dsn)) == THREADS * 28
            assert [run.pages for run in store.runs()] == [20] * THREADS
            assert list(store.check()) == []

    def test_a_generator_goes_from_thread_to_thread(self, dsn: str, kind: str) -> None:
        with lent(kind, dsn, autocommit=True) as opened:
            store = opened.store
            told = in_threads(lambda number: store.add_page(f"{URL}{number}", 5).kind)
            assert told.count("new") == 1
            store.delete_host("a.example")
            near_copies(store)
            verdicts = store.ingest_many([(f"{URL}new", HTML)])
            clusters = store.clusters(8)
            for taken in (verdicts, clusters):
                made: list[object] = [next(taken)]
                thread = threading.Thread(target=made.extend, args=[taken])
                thread.start()
                thread.join()
                assert len(made) == 1
            assert store.find(FAR) == []
        assert len(urls(dsn)) == 7


@of(OWN, asynchronous=False)
def test_threads_that_lost_their_connections_store_each_page_once(opened: Opened, dsn: str) -> None:
    def work(number: int) -> list[str]:
        made: list[str] = []
        for n in range(5):
            if number == 0:
                end_others(dsn)
            pages = [(f"{URL}{number}/{n}/{m}", (number << 56) + (n << 40)) for m in range(5)]
            made += [one.kind for one in opened.store.add_pages(pages, distance=0)]
        return made

    told = Counter(verdict for made in in_threads(work) for verdict in made)
    assert told == {"new": THREADS * 5, "duplicate": THREADS * 20}
    with connect(dsn) as another:
        assert sum(run.pages for run in another.runs()) == THREADS * 25
    assert len(urls(dsn)) == THREADS * 25


def test_pages_of_a_thread_after_a_start_are_one_run(store: Store) -> None:
    store.start_run("one")
    store.add_page(URL, 1)
    for verdict in store.add_pages([(f"{URL}{n}", n << 30) for n in range(3)]):
        store.add_page(f"{verdict.url}/again", 1 << 60)
    number = store.start_run("another")
    store.add_page(f"{URL}last", 1 << 50)
    assert [run.pages for run in store.runs()] == [1, 7]
    assert store.runs()[0].run_id == number


@of(OWN, asynchronous=False)
def test_a_loop_is_left_whose_connection_was_lost(opened: Opened, dsn: str) -> None:
    list(opened.store.add_pages([(f"{URL}{n}", 0xFFFFFF << 30 * (n % 2)) for n in range(4)]))
    clusters = opened.store.clusters(8)
    assert next(clusters).pages
    end_others(dsn)
    clusters.close()


def test_a_store_is_closed_while_another_thread_is_in_a_loop(dsn: str) -> None:
    store = connect(dsn)
    near_copies(store)
    clusters = store.clusters(8)
    next(clusters)
    closing = threading.Thread(target=store.close)
    closing.start()
    closing.join()
    assert list(clusters) == []
    with pytest.raises(StoreError, match="closed", check=because("closed")):
        store.find(1)


@of(OWN, asynchronous=False)
def test_a_loop_over_clusters_writes_on_another_connection(opened: Opened, dsn: str) -> None:
    store = opened.store
    near_copies(store)
    for cluster in store.clusters(8):
        assert store.add_page(f"{cluster.canonical.url}/again", FAR).kind == "new"
        break

    def score(page: object) -> int:
        return len(store.add_page(f"{URL}new", FAR).url)

    assert store.save_clusters(8, canonical=score) == 1
    assert len(urls(dsn)) == 8


@pytest.mark.parametrize("autocommit", [True, False])
def test_nothing_is_written_into_the_transaction_of_a_loop(dsn: str, autocommit: bool) -> None:
    """The write would be lost if the loop ended early."""
    with psycopg.connect(dsn, autocommit=autocommit) as connection:
        store = connect(connection)
        near_copies(store)
        other = connect(connection, collection="other", create=True)

        def score(page: object) -> int:
            return len(store.add_page(f"{URL}new", FAR).url)

        for cluster in store.clusters(8):
            assert store.get(cluster.canonical.url) is not None
            assert len(list(store.pairs(8))) == 1
            for writer in (store, other):
                with pytest.raises(StoreError, match=r"list\(store\.clusters\(\)\)"):
                    writer.add_page(f"{URL}new", FAR)
            with pytest.raises(StoreError, check=because("wrong_transaction")):
                next(store.clusters(3))
            break
        with pytest.raises(StoreError, check=because("wrong_transaction")):
            store.save_clusters(8, canonical=score)
        assert store.save_clusters(8) == 1
        for cluster in list(store.clusters(8)):
            store.add_page(f"{cluster.canonical.url}/again", FAR)
        # Pairs hold no transaction.
        for _ in store.pairs(8):
            store.add_page(f"{URL}pairs", FAR)
            break
        connection.commit()
    assert len(urls(dsn)) == 8


def test_generators_that_take_turns_lose_no_page(store: Store, dsn: str) -> None:
    """Between two verdicts no transaction is open."""

    def written(name: str) -> Iterator[Verdict]:
        return store.ingest_many(((f"{URL}{name}/{n}", HTML) for n in range(60)), batch_size=20)

    assert len(list(zip(written("a"), written("b"), strict=True))) == 60
    assert len(urls(dsn)) == 120


FORK = """
import gc, os, sys
import pgsimhash

dsn = sys.argv[1]

def use():
    assert store.find(1)
    assert store.add_page("https://a.example/child", 0xFFFF << 32).kind == "new"
    assert len(list(store.clusters(8))) == 1

def close():
    store.close()

def collect():
    global store
    del store
    gc.collect()

store = pgsimhash.connect(dsn)
list(store.add_pages((f"https://a.example/{n}", n) for n in range(6)))
with store._session.connection_to_read() as connection:
    pid = connection.info.backend_pid
for work in (use, close, collect):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, work
    assert store.get("https://a.example/1") is not None, work
assert store.add_page("https://a.example/parent", 0xFFFF << 48).kind == "new"
with store._session.connection_to_read() as connection:
    assert connection.execute("SELECT pg_backend_pid()").fetchone() == (pid,)
store.close()
print("done")
"""


def test_a_forked_child_has_a_connection_of_its_own(dsn: str) -> None:
    assert python(FORK, dsn, PYTHONWARNINGS="error") == "done\n"
    assert len(urls(dsn)) == 8


SHARED_RUN = """
import os, sys
import pgsimhash

store = pgsimhash.connect(sys.argv[1])
store.start_run("mine")
reading, writing = os.pipe()
if (child := os.fork()) == 0:
    os.read(reading, 1)
    list(store.add_pages((f"https://child.example/{n}", n << 30) for n in range(9)))
    os._exit(0)

def pause(seconds):
    os.write(writing, b"x")
    assert os.waitpid(child, 0)[1] == 0

store._session.connections.pause = pause
list(store.add_pages([("https://a.example/parent", 0xFF << 30)]))
store.close()
"""


@pytest.mark.one_server("it adds a trigger")
@pytest.mark.parametrize("known", [False, True])
def test_the_run_of_a_forked_child_hides_no_commit_that_failed(dsn: str, known: bool) -> None:
    if known:
        with connect(dsn) as store:
            store.add_page("https://a.example/parent", 0xFF << 30)
    run_sql(dsn, REFUSE_FIRST.format(times=1, code="40001"))
    python(SHARED_RUN, dsn)
    assert "https://a.example/parent" in urls(dsn)
    assert len(urls(dsn)) == 10
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.last_seen") == [(known,)]
