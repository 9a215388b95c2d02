"""A store belongs to one thread of one process; whoever shares it is told, and no page is lost."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis, connect, maintenance, parquet
from pgsimhash.errors import StoreError
from pgsimhash.policies import PolicySettings
from tests.refusals import because

URL = "https://a.example/"
FAR = 0xFFFF << 48
FARTHER = 0xFFFF << 32
HTML = "<p>" + "one two three four " * 20


def in_thread(work: Callable[[], object]) -> object:
    """Return what ``work`` returns in a thread of its own, or raise what it raises there."""
    made: list[object] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return made[0]


def use_up(made: object) -> None:
    """Take all that a generator yields, as what a method returned."""
    if isinstance(made, Iterator):
        list(made)


def rows(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT count(*) FROM pgsimhash.pages").fetchone()
    assert found is not None
    return int(found[0])


def near_copies(store: Store, count: int = 6) -> None:
    assert len(list(store.add_many((f"{URL}{n}", n) for n in range(count)))) == count


USES: dict[str, Callable[[Store], Any]] = {
    "__enter__": lambda store: store.__enter__(),
    "add": lambda store: store.add(URL, 1),
    "add_many": lambda store: store.add_many([(URL, 1)]),
    "add_simhashes": lambda store: store.add_simhashes(np.arange(3, dtype=np.uint64)),
    "clusters": lambda store: store.clusters(),
    "decide": lambda store: store.decide(URL, HTML),
    "decide_many": lambda store: store.decide_many([(URL, HTML)]),
    "delete": lambda store: store.delete(URL),
    "delete_host": lambda store: store.delete_host("a.example"),
    "exists": lambda store: store.exists(1),
    "expire": lambda store: store.expire(timedelta(days=1)),
    "find": lambda store: store.find(1),
    "find_many": lambda store: store.find_many(np.arange(3, dtype=np.uint64)),
    "get": lambda store: store.get(URL),
    "ingest": lambda store: store.ingest(URL, HTML),
    "ingest_many": lambda store: store.ingest_many([(URL, HTML)]),
    "near_pages": lambda store: store.near_pages(1),
    "pairs": lambda store: store.pairs(),
    "should_fetch": lambda store: store.should_fetch(URL),
    "should_store": lambda store: store.should_store(URL, HTML),
    "start_run": lambda store: store.start_run("a test"),
    "status": lambda store: store.status(),
}

BESIDE: dict[str, Callable[[Store], Any]] = {
    "check": lambda store: maintenance.check(store),
    "change_settings": lambda store: maintenance.change_settings(store, distance=3),
    "delete_run": lambda store: maintenance.delete_run(store, 1),
    "mark": lambda store: maintenance.mark(store, URL, f"{URL}2", same=True),
    "marks": lambda store: maintenance.marks(store),
    "policies": lambda store: maintenance.policies(store),
    "policy_for": lambda store: maintenance.policy_for(store, URL),
    "rebuild": lambda store: maintenance.rebuild(store, "other"),
    "remove_policy": lambda store: maintenance.remove_policy(store, "a.example"),
    "rename": lambda store: maintenance.rename(store, "renamed"),
    "runs": lambda store: maintenance.runs(store),
    "set_policy": lambda store: maintenance.set_policy(
        store, "a.example", PolicySettings(distance=3)
    ),
    "undo": lambda store: maintenance.undo(store),
    "unmark": lambda store: maintenance.unmark(store, URL, f"{URL}2"),
    "advise_fetch": lambda store: analysis.advise_fetch(store, URL),
    "explain": lambda store: analysis.explain(store, URL, URL),
    "known_simhashes": lambda store: analysis.known_simhashes(store, [URL]),
    "page_pairs": lambda store: analysis.page_pairs(store),
    "report": lambda store: analysis.report(store),
    "sample": lambda store: analysis.sample(store, 3),
    "save_clusters": lambda store: analysis.save_clusters(store, "groups"),
    "save_pairs": lambda store: analysis.save_pairs(store, "near"),
    "simhashes": lambda store: analysis.simhashes(store),
    "save_simhashes": lambda store: parquet.save_simhashes(store, os.devnull),
    "versions": lambda store: analysis.versions(store, URL),
}
"""What takes a store and is none of its methods."""


def test_the_list_of_uses_is_complete() -> None:
    methods = {name for name, _ in inspect.getmembers(Store, inspect.isfunction)}
    assert set(USES) == {name for name in methods if not name.startswith("_")} - {"close"} | {
        "__enter__"
    }


@pytest.mark.parametrize("owned", [True, False])
def test_every_method_is_refused_in_another_thread(dsn: str, owned: bool) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        connect(dsn if owned else connection, keep_markdown=True) as store,
    ):
        for name, use in (USES | BESIDE).items():
            with pytest.raises(StoreError, match="open one in each thread"):
                in_thread(lambda use=use: use_up(use(store)))  # type: ignore[misc]
            assert rows(dsn) == 0, name
        assert store.add(URL, 1).verdict == "new"
    assert rows(dsn) == 1


def test_threads_that_alternate_lose_no_page(dsn: str) -> None:
    with connect(dsn) as store:
        acknowledged: list[str] = []
        refused: list[str] = []

        def write(name: str) -> None:
            for number in range(50):
                try:
                    acknowledged.append(store.add(f"{URL}{name}/{number}", number).url)
                except StoreError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=write, args=[name]) for name in "ab"]
        for thread in threads:
            thread.start()
        write("c")
        for thread in threads:
            thread.join()
    assert len(refused) == 100
    assert rows(dsn) == len(acknowledged) == 50


def test_a_generator_is_refused_where_another_thread_takes_it_over(dsn: str) -> None:
    with connect(dsn) as store:
        near_copies(store)
        verdicts = store.ingest_many([(f"{URL}new", HTML)])
        clusters = store.clusters(8)
        for taken in (verdicts, clusters):
            with pytest.raises(StoreError, match="open one in each thread"):
                in_thread(lambda taken=taken: next(taken))  # type: ignore[misc]
    assert rows(dsn) == 6


def test_stores_over_one_connection_are_of_the_thread_that_opened_the_last(dsn: str) -> None:
    """As with a pool, which hands a connection from thread to thread."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        first = connect(connection)
        assert first.add(URL, 1).verdict == "new"

        def work() -> None:
            assert connect(connection).add(f"{URL}2", FAR).verdict == "new"

        in_thread(work)
        with pytest.raises(StoreError, check=because("other_thread")):
            first.add(f"{URL}3", FARTHER)
        assert connect(connection).add(f"{URL}3", FARTHER).verdict == "new"
    assert rows(dsn) == 3


def test_no_store_is_opened_over_a_connection_that_another_thread_is_using(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        store = connect(connection)
        near_copies(store)
        clusters = store.clusters(8)
        next(clusters)
        with pytest.raises(StoreError, match="another thread"):
            in_thread(lambda: connect(connection))
        clusters.close()
        in_thread(lambda: connect(connection))


def test_another_thread_may_close_a_store_between_calls(dsn: str) -> None:
    store = connect(dsn)
    near_copies(store)
    clusters = store.clusters(8)
    next(clusters)
    with pytest.raises(StoreError, check=because("connection_in_use")):
        in_thread(store.close)
    clusters.close()
    in_thread(store.close)
    with pytest.raises(pgsimhash.StoreError, match="closed"):
        store.find(1)


@pytest.mark.parametrize("autocommit", [True, False])
def test_nothing_is_written_into_the_transaction_of_a_loop(dsn: str, autocommit: bool) -> None:
    """What was would be gone when the loop is left before its end."""
    with psycopg.connect(dsn, autocommit=autocommit) as connection:
        store = connect(connection)
        near_copies(store)
        other = connect(connection, collection="other")
        for cluster in store.clusters(8):
            assert store.get(cluster.canonical.url) is not None
            assert len(list(store.pairs(8))) == 1
            for writer in (store, other):
                with pytest.raises(StoreError, match=r"list\(store\.clusters\(\)\)"):
                    writer.add(f"{URL}new", FAR)
            with pytest.raises(StoreError, check=because("unfinished_call")):
                next(store.clusters(3))
            break
        for cluster in list(store.clusters(8)):
            store.add(f"{cluster.canonical.url}/again", FAR)
        connection.commit()
    assert rows(dsn) == 7


def test_a_function_that_a_call_calls_writes_nothing(dsn: str) -> None:
    with connect(dsn) as store:
        near_copies(store)

        def score(page: object) -> int:
            return len(store.add(f"{URL}new", FAR).url)

        with pytest.raises(StoreError, check=because("unfinished_call")):
            analysis.save_clusters(store, "groups", 8, canonical=score)
        assert analysis.save_clusters(store, "groups", 8) == 1
    assert rows(dsn) == 6


def test_tasks_that_take_turns_lose_no_page(dsn: str) -> None:
    """Two generators of one store in one thread: between two verdicts no transaction is open."""

    async def write(store: Store, name: str) -> list[str]:
        verdicts = []
        for verdict in store.ingest_many((f"{URL}{name}/{n}", HTML) for n in range(300)):
            verdicts.append(verdict.url)
            await asyncio.sleep(0)
        return verdicts

    async def both(store: Store) -> list[list[str]]:
        return list(await asyncio.gather(write(store, "a"), write(store, "b")))

    with connect(dsn) as store:
        assert list(map(len, asyncio.run(both(store)))) == [300, 300]
    assert rows(dsn) == 600


def test_pairs_hold_no_transaction_while_they_are_looped_over(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        near_copies(store)
        for _ in store.pairs(8):
            store.add(f"{URL}new", FAR)
            break
        connection.commit()
    assert rows(dsn) == 7


FORK = """
import contextlib, gc, os, sys
import psycopg, pgsimhash
from pgsimhash.errors import StoreError

dsn, given, looping = sys.argv[1], sys.argv[2] == "given", sys.argv[3] == "looping"

def use():
    for ask in (lambda: store.find(1), lambda: store.add("https://a.example/child", 1),
                lambda: next(store.clusters(8)), lambda: store.__enter__()):
        try:
            ask()
        except StoreError as error:
            print("refused:", error)

def close():
    store.close()

def leave():
    with contextlib.suppress(SystemExit), contextlib.closing(store):
        sys.exit()

def collect():
    global store, loop, connection
    del store, loop, connection
    gc.collect()

def ask_the_connection():
    if looping or not given:
        with contextlib.suppress(psycopg.Error):
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

def open_another():
    if given:
        try:
            pgsimhash.connect(connection)
        except StoreError as error:
            print("refused:", error)
    with pgsimhash.connect(dsn) as own:
        assert own.add("https://a.example/child", 0xFFFF << 32).verdict == "new"

connection = psycopg.connect(dsn, autocommit=True)
store = pgsimhash.connect(connection) if given else pgsimhash.connect(dsn)
if not given:
    connection = store.session.connection
list(store.add_many((f"https://a.example/{n}", n) for n in range(6)))
loop = store.clusters(8) if looping else iter([])
next(loop, None)
pid = connection.info.backend_pid
for work in (use, close, leave, collect, ask_the_connection, open_another):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, work
    assert store.get("https://a.example/1") is not None, work
assert list(loop) == []
assert store.add("https://a.example/parent", 0xFFFF << 48).verdict == "new"
assert connection.execute("SELECT pg_backend_pid()").fetchone() == (pid,)
store.close()
print("done")
"""


@pytest.mark.parametrize("looping", ["looping", "idle"])
@pytest.mark.parametrize("given", ["given", "own"])
def test_a_forked_child_cannot_reach_the_parents_session(
    dsn: str, given: str, looping: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, dsn, given, looping],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *refused, last = done.stdout.splitlines()
    assert last == "done"
    assert len(refused) == 4 + (given == "given")
    assert all("open one in each process" in line for line in refused)
    assert rows(dsn) == 8
