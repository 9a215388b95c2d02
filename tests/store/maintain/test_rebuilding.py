"""A collection is rebuilt with another layout, while lookups and writers continue."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from typing import Any

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.errors import ArgumentError, CollectionError, NoServerError
from pgsimhash.maintenance import rebuild_pages, rebuild_work
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.store import lookups
from pgsimhash.store.collection import Collection, find_collection
from pgsimhash.store.layouts import set_default_layout
from pgsimhash.store.memory import Memory
from tests.conftest import wait_for_a_lock
from tests.store.content import content, simhash_rows

PAGES = 3_000


def known(count: int = PAGES) -> list[int]:
    rng = random.Random(7)
    return [rng.getrandbits(64) for _ in range(count)]


def url(simhash: int) -> str:
    return f"https://a.example/{simhash:016x}"


@pytest.fixture
def full(dsn: str) -> Iterator[Store]:
    with connect(dsn) as store:
        list(store.add_many([(url(simhash), simhash) for simhash in known()], distance=0))
        store.add_simhashes(np.arange(5, 2000, dtype=np.uint64))
        yield store


class InterruptionError(Exception):
    """Simulates a lost connection or Ctrl-C."""


def stop_at(step: str) -> rebuild_pages.Progress:
    def stop(now: str, done: int, total: int) -> None:
        if now == step and done >= total // 2:
            raise InterruptionError

    return stop


@pytest.mark.parametrize("layout", [None, "16+16+16+16", "5 choose 2"])
def test_everything_is_copied(dsn: str, store: Store, layout: str | None) -> None:
    store.add_simhashes(np.array([3, 2**63], dtype=np.uint64))
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for number in (0, 0b111, 1 << 40, 3):
        store.add(url(number), number, fetched_at=at)
    store.start_run("later")
    store.add(url(0), 1 << 50)
    store.add(url(3), 3, fetched_at=at + timedelta(days=3))
    maintenance.mark(store, url(0), url(3), same=False)
    maintenance.set_policy(store, "a.example", PolicySettings(distance=2, min_tokens=50))
    before = content(dsn, "default", numbered=True)
    simhashes = simhash_rows(dsn, "default")
    about = maintenance.marks(store), maintenance.policies(store), maintenance.runs(store)
    made = maintenance.rebuild(store, layout=layout)
    assert (made.name, made.layout) == ("default", layout or "22+21+21")
    assert store.opened == made
    assert content(dsn, "default", numbered=True) == before
    assert simhash_rows(dsn, "default") == simhashes
    assert (
        maintenance.marks(store),
        maintenance.policies(store),
        maintenance.runs(store),
    ) == about
    # The old one is unchanged, and both are independent.
    assert content(dsn, "default-2", numbered=True) == before
    assert simhash_rows(dsn, "default-2") == simhashes
    assert maintenance.undo(store)[1].versions == 1
    assert len(content(dsn, "default")) == len(before) - 1
    with connect(dsn, collection="default-2") as old:
        assert old.add(url(99), 0x1F << 20).verdict == "new"


def test_of_two_rebuilds_that_begin_at_once_one_is_refused(
    dsn: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(url(1), 1)
    both = threading.Barrier(2)

    def find_when_both_do(*arguments: Any) -> Collection | None:
        collection = find_collection(*arguments)
        both.wait(timeout=60)
        return collection

    monkeypatch.setattr(rebuild_work, "find_collection", find_when_both_do)

    def rebuild(_: int) -> str:
        with connect(dsn) as own:
            try:
                maintenance.rebuild(own, replace=True)
            except CollectionError as error:
                return error.reason
        return "rebuilt"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(rebuild, range(2))) == ["being_built", "rebuilt"]


def test_the_steps_are_reported(full: Store) -> None:
    steps: list[tuple[str, int, int]] = []
    maintenance.rebuild(full, layout="5 choose 2", progress=lambda *step: steps.append(step))
    assert [step for step, done, total in steps if done == total] == [
        "pages",
        "simhashes",
        "index",
    ]
    assert full.layout == "5 choose 2"
    assert all(full.exists(simhash ^ 0b1011, 3) for simhash in known()[:50])


@pytest.mark.parametrize(
    ("replace", "names"),
    [(False, {"default": "32+32", "other": "22+21+21"}), (True, {"default": "32+32"})],
)
def test_the_result_has_the_requested_layout(
    dsn: str, full: Store, replace: bool, names: dict[str, str]
) -> None:
    maintenance.change_settings(full, distance=3)
    maintenance.rebuild(full, "other", layout="32+32", replace=replace)
    assert {one.collection: one.layout for one in full.status()} == names
    assert {one.pages for one in full.status()} == {PAGES}
    assert full.add("https://b.example/", 99).verdict == "duplicate"
    if "other" in names:
        with connect(dsn, collection="other", create=False) as other:
            assert other.add("https://b.example/", 99).verdict == "duplicate"


def stop(store: Store, into: str | None = None, at: str = "index", **options: Any) -> None:
    """Interrupt a rebuild in the middle of a step."""
    with pytest.raises(InterruptionError):
        maintenance.rebuild(store, into, progress=stop_at(at), **options)


def test_only_the_rebuild_writes_to_the_new_collection(dsn: str, full: Store) -> None:
    stop(full, "other", layout="16+16+16+16")
    first, second = known(2)
    with connect(dsn, collection="other") as other:
        assert [match.url for match in other.find(first, 0)] == [url(first)]
        for refused in (
            lambda: other.add("https://a.example/mine", 5),
            lambda: other.delete(url(second)),
            lambda: other.add_simhashes(np.zeros(1, dtype=np.uint64)),
            lambda: maintenance.mark(other, url(second), url(first), same=True),
            lambda: maintenance.set_policy(other, "*", PolicySettings(distance=2)),
            lambda: maintenance.rebuild(other),
        ):
            with pytest.raises(pgsimhash.CollectionError, match="being built from"):
                refused()


@pytest.mark.one_server("it inserts a page without the package")
@pytest.mark.parametrize("layout", [None, "16+16+16+16"])
def test_everything_that_happens_meanwhile_is_in_the_new_collection(
    dsn: str, full: Store, layout: str | None
) -> None:
    """Including rows inserted before, and committed at the very end."""
    first, second, third = known(3)
    with psycopg.connect(dsn) as late:
        late.execute(
            "CREATE TEMPORARY TABLE drawn AS "
            "SELECT nextval('pgsimhash.pages_page_id_seq') AS page_id"
        )
        list(full.add_many([("https://a.example/next", 1 << 53)], distance=0))
        stop(full, layout=layout)
        full.delete(url(first))
        full.add(url(second), second, fetched_at=datetime.now(UTC))
        full.add(url(third), 1 << 51)
        full.add("https://a.example/late", 1 << 55)
        full.add_simhashes(np.array([2**60], dtype=np.uint64))
        with full.session.read() as connection:
            connection.execute("SELECT pgsimhash.delete_simhashes('default', ARRAY[7, 1999])")
        late.execute(
            "INSERT INTO pgsimhash.pages (page_id, collection_id, url, simhash) "
            "SELECT page_id, 1, 'https://a.example/inserted', 4711 FROM drawn"
        )
    maintenance.rebuild(full, layout=layout)
    assert full.get("https://a.example/inserted") is not None
    assert content(dsn, "default", numbered=True) == content(dsn, "default-2", numbered=True)
    assert simhash_rows(dsn, "default") == simhash_rows(dsn, "default-2")
    assert list(maintenance.check(full)) == []


def test_lookups_and_writers_continue_meanwhile(
    full: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader misses nothing, no writer is refused, and concurrent changes are kept."""
    monkeypatch.setattr(rebuild_pages, "_COPIED", 200)
    stop = threading.Event()
    missed: list[int] = []
    written: set[int] = set(known())
    standalone = set(range(5, 2000))
    failures: list[BaseException] = []
    rounds = {"read": threading.Event(), "write": threading.Event()}
    met: list[bool] = []

    def in_between(step: str, done: int, total: int) -> None:
        """Half of it is copied: continue after a round of the reader and the writer."""
        if step in ("pages", "simhashes") and total // 2 <= done <= total // 2 + 200:
            for event in rounds.values():
                event.clear()
            met.extend(event.wait(60) for event in rounds.values())

    def read() -> None:
        rng = random.Random(1)
        with connect(dsn) as store:
            while not stop.is_set():
                some = np.array(rng.sample(known()[:1000], 20), dtype=np.uint64)
                found = set(store.find_many(some ^ np.uint64(1 << 33), 3).simhashes.tolist())
                missed.extend(set(some.tolist()) - found)
                one = int(some[0])
                if not any(match.url == url(one) for match in store.find(one ^ 5, 3)):
                    missed.append(one)
                if store.get(url(one)) is None:
                    missed.append(one)
                rounds["read"].set()

    def write() -> None:
        rng = random.Random(2)
        with connect(dsn) as store:
            while not stop.is_set():
                new = [rng.getrandbits(64) for _ in range(20)]
                list(store.add_many([(url(simhash), simhash) for simhash in new], distance=0))
                written.update(new)
                gone = rng.choice(sorted(written - set(known()[:1000])))
                store.delete(url(gone))
                written.discard(gone)
                more = [rng.getrandbits(64) for _ in range(5)]
                store.add_simhashes(np.array(more, dtype=np.uint64))
                standalone.update(more)
                rounds["write"].set()

    def safely(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=safely, args=[work]) for work in (read, write)]
    for thread in threads:
        thread.start()
    maintenance.change_settings(full, distance=7)
    for layout in ("16+16+16+16", "32+32", "22+21+21"):
        maintenance.rebuild(full, layout=layout, replace=True, progress=in_between)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(met) > 6
    assert all(met)
    assert missed == []
    assert set(analysis.simhashes(full).tolist()) == written | standalone
    assert {row[0] for row in content(dsn, "default")} == {url(simhash) for simhash in written}


def test_a_lookup_in_memory_follows_a_collection_that_is_replaced_under_it(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(dsn) as store, connect(dsn) as other:
        store.add_simhashes(np.arange(1000, dtype=np.uint64))
        with other.session.read() as connection:
            store.session.memory.take_in(connection, store.session.collection)
        looked_up = lookups._still_there

        def replaced(*arguments: Any) -> Any:
            monkeypatch.undo()
            maintenance.rebuild(other, layout="16+16+16+16", replace=True)
            return looked_up(*arguments)

        monkeypatch.setattr(lookups, "_still_there", replaced)
        assert store.find_many(np.array([5], dtype=np.uint64), 0).simhashes.tolist() == [5]
        assert lookups._still_there is looked_up


def test_pages_are_compared_with_the_remaining_collections(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that the batch is compared with is deleted after the lookup."""
    with connect(dsn) as store, connect(dsn, collection="other") as other:
        maintenance.set_policy(store, "*", PolicySettings(scope="global"))
        store.add("https://a.example/1", 5)
        gone: list[int] = []

        @contextmanager
        def deleted(*_: object) -> Iterator[None]:
            yield
            monkeypatch.undo()
            with other.session.read() as connection:
                gone.append(maintenance.delete_collection(connection, "other"))

        monkeypatch.setattr(Memory, "looking_up", deleted)
        # A large batch is looked up in a statement of its own.
        pages = [(f"https://a.example/{n}", 4) for n in range(2, 20)]
        assert [verdict.distance for verdict in store.add_many(pages)] == [1] + [0] * 17
        assert gone == [0]


@pytest.mark.parametrize("at", ["pages", "simhashes", "index"])
def test_an_interrupted_rebuild_continues(full: Store, dsn: str, at: str) -> None:
    stop(full, at=at, layout="5 choose 2")
    assert full.exists(known()[0] ^ 1)
    list(full.add_many([("https://a.example/late", 99 << 30)], distance=0))
    with pytest.raises(pgsimhash.CollectionError, match="began with another layout; repeat"):
        maintenance.rebuild(full, layout="16+16+16+16")
    maintenance.rebuild(full, layout="5 choose 2")
    assert full.layout == "5 choose 2"
    assert content(dsn, "default") == content(dsn, "default-2")
    assert simhash_rows(dsn, "default") == simhash_rows(dsn, "default-2")


def test_a_rebuild_that_is_given_up_leaves_nothing(full: Store, dsn: str) -> None:
    stop(full, at="simhashes", layout="16+16+16+16")
    with psycopg.connect(dsn, autocommit=True) as connection:
        maintenance.delete_collection(connection, "default-2")
    with psycopg.connect(dsn) as connection:
        for table in (LAYOUTS["16+16+16+16"].table, "rebuilds"):
            assert connection.execute(f"SELECT FROM pgsimhash.{table}").fetchall() == []
    maintenance.rebuild(full, layout="16+16+16+16")
    assert full.layout == "16+16+16+16"


def test_a_rebuild_from_a_deleted_collection_stands_alone(full: Store, dsn: str) -> None:
    stop(full, "other")
    with psycopg.connect(dsn, autocommit=True) as connection:
        maintenance.delete_collection(connection, "default")
    with connect(dsn, collection="other") as other:
        assert other.add("https://b.example/", 99).verdict == "duplicate"


def _go_on_until_killed(dsn: str) -> None:
    def kill(step: str, done: int, total: int) -> None:
        if done:
            os.kill(os.getpid(), signal.SIGKILL)

    with connect(dsn) as store:
        maintenance.rebuild(store, "other", progress=kill)


def test_a_killed_rebuild_continues(dsn: str, full: Store) -> None:
    child = get_context("spawn").Process(target=_go_on_until_killed, args=[dsn])
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert len(content(dsn, "other")) == 2_000
    maintenance.rebuild(full, "other")
    assert content(dsn, "default", numbered=True) == content(dsn, "other", numbered=True)


def test_a_lost_connection_loses_only_the_batch(dsn: str, full: Store) -> None:
    def interfere(step: str, done: int, total: int) -> None:
        if done:
            with psycopg.connect(dsn, autocommit=True) as hand:
                hand.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    with pytest.raises(NoServerError, match="run again to continue"):
        maintenance.rebuild(full, "other", progress=interfere)
    with connect(dsn) as store:
        maintenance.rebuild(store, "other")
    assert content(dsn, "default", numbered=True) == content(dsn, "other", numbered=True)


def test_two_concurrent_rebuilds_share_the_work(
    dsn: str, full: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild_pages, "_COPIED", 500)
    with connect(dsn) as other:

        def meanwhile(step: str, done: int, total: int) -> None:
            if step == "pages" and done == 1000:
                maintenance.rebuild(other, "both")

        with pytest.raises(pgsimhash.CollectionError, match="someone else finished or deleted it"):
            maintenance.rebuild(full, "both", progress=meanwhile)
    assert len(content(dsn, "default")) == PAGES
    assert content(dsn, "default", numbered=True) == content(dsn, "both", numbered=True)


def leave_half_an_index(connection: psycopg.Connection, table: str) -> None:
    """Leave the invalid index of an interrupted CREATE INDEX CONCURRENTLY."""
    connection.execute(f"CREATE INDEX {table}_prefix_4_idx ON pgsimhash.{table} (prefix_4)")
    connection.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
        [f"pgsimhash.{table}_prefix_4_idx"],
    )


def valid_indexes(connection: psycopg.Connection, table: str) -> int:
    """The number of a table's indexes, all of them valid."""
    row = connection.execute(
        "SELECT count(*), bool_and(indisvalid) FROM pg_index WHERE indrelid = %s::regclass",
        [f"pgsimhash.{table}"],
    ).fetchone()
    assert row is not None
    assert row[1]
    return int(row[0])


def test_an_interrupted_index_build_is_repeated(full: Store, dsn: str) -> None:
    stop(full, layout="5 choose 2")
    table = LAYOUTS["5 choose 2"].table
    with psycopg.connect(dsn, autocommit=True) as connection:
        leave_half_an_index(connection, table)
        maintenance.rebuild(full, layout="5 choose 2")
        assert valid_indexes(connection, table) == 10


@pytest.mark.parametrize("at", ["pages", "index"])
def test_a_layout_without_indexes_gets_no_new_collection(full: Store, dsn: str, at: str) -> None:
    stop(full, at=at, layout="5 choose 2")
    advice = (
        r"rebuild default --into default-2 --layout '5 choose 2', or delete it: "
        r"pgsimhash collection delete default-2"
    )
    with pytest.raises(pgsimhash.CollectionError, match=advice):
        connect(dsn, collection="other", layout="5 choose 2")
    with psycopg.connect(dsn) as connection, pytest.raises(pgsimhash.CollectionError, match=advice):
        set_default_layout(connection, LAYOUTS["5 choose 2"])
    maintenance.rebuild(full, layout="5 choose 2")
    with connect(dsn, collection="other", layout="5 choose 2") as other:
        assert other.layout == "5 choose 2"


def test_a_new_collection_builds_missing_indexes(full: Store, dsn: str) -> None:
    stop(full, layout="5 choose 2")
    table = LAYOUTS["5 choose 2"].table
    with psycopg.connect(dsn, autocommit=True) as connection:
        leave_half_an_index(connection, table)
        maintenance.delete_collection(connection, "default-2")
        with connect(dsn, collection="other", layout="5 choose 2") as other:
            assert valid_indexes(connection, table) == 10
            list(other.add_many([(url(simhash), simhash) for simhash in known(100)]))
            assert all(other.exists(simhash ^ 0b1011, 3) for simhash in known(100))


def test_impossible_requests_name_the_fix(dsn: str, full: Store) -> None:
    with pytest.raises(pgsimhash.CollectionError, match="give a smaller one with --distance"):
        maintenance.rebuild(full, layout="32+32")
    maintenance.set_policy(full, "a.example/x", PolicySettings(distance=8))
    with pytest.raises(ArgumentError, match=r"policy set .a.example/x. --distance 7"):
        maintenance.rebuild(full, layout="32+32", distance=5)
    connect(dsn, collection="taken").close()
    for into in ("default", "taken"):
        with pytest.raises(pgsimhash.CollectionError, match=r"exists already.*--into"):
            maintenance.rebuild(full, into)
    with pytest.raises(pgsimhash.errors.ArgumentError):
        maintenance.rebuild(full, layout="7 choose 8")
    assert [one.collection for one in full.status()] == ["default", "taken"]
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        with pytest.raises(pgsimhash.StoreError, match="autocommit=True"):
            maintenance.rebuild(store, layout="5 choose 2")


def test_a_collection_renamed_meanwhile_is_unchanged(dsn: str, full: Store) -> None:
    def meanwhile(step: str, done: int, total: int) -> None:
        if step == "index" and done:
            with connect(dsn) as other:
                maintenance.rename(other, "renamed")
            connect(dsn, collection="default").close()

    with pytest.raises(pgsimhash.CollectionError, match="now belongs to another collection"):
        maintenance.rebuild(full, "made", progress=meanwhile)
    assert {one.collection: one.pages for one in full.status()} == {
        "renamed": PAGES,
        "default": 0,
        "made": PAGES,
    }


def test_a_collection_that_is_being_built_is_not_compared_with(dsn: str, store: Store) -> None:
    """Its pages belong to the first collection again."""
    store.add(url(0), 0)
    stop(store, "other")
    assert store.add(url(1), 1, scope="global").duplicate_of == url(0)
    with connect(dsn, collection="third") as third:
        assert third.add(url(2), 2, scope="global").duplicate_of == url(0)
    # The row of the original is in the same collection.
    assert [row[14] for row in content(dsn, "default")] == [None, url(0)]
    told: list[pgsimhash.Verdict] = []
    stop(store, "again", scope="global", verdicts=told.append)
    assert [verdict.duplicate_of for verdict in told] == [None, url(0)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pgsimhash.set_policy('default', 'late.example', distance => 1)",
        "SELECT pgsimhash.remove_policy('default', 'a.example')",
        "SELECT pgsimhash.unmark('default', %(a)s, %(b)s)",
        "SELECT pgsimhash.mark('default', %(a)s, %(c)s, false)",
        "SELECT pgsimhash.add_simhashes('default', ARRAY[12345])",
    ],
)
def test_a_mark_at_the_very_end_waits_and_applies(dsn: str, store: Store, statement: str) -> None:
    """A mark during the swap applies to the collection that has the name then."""
    urls = {"a": url(0), "b": url(1 << 40), "c": url(0xFF << 20)}
    for number in (0, 1 << 40, 0xFF << 20):
        store.add(url(number), number)
    maintenance.mark(store, urls["a"], urls["b"], same=True)
    maintenance.set_policy(store, "a.example", PolicySettings(distance=2))
    stop(store, "other")
    with (
        psycopg.connect(dsn) as ending,
        psycopg.connect(dsn, autocommit=True) as late,
        ThreadPoolExecutor(1) as pool,
    ):
        # The end of a rebuild, after it copied the marks.
        ending.execute("SELECT pgsimhash._lock_collections(ARRAY[1, 2], true)")
        ending.execute("DELETE FROM pgsimhash.rebuilds")
        ending.execute("SELECT pgsimhash.rename_collection('default', 'other', true)")
        told = pool.submit(late.execute, statement, urls)
        wait_for_a_lock(dsn)
        ending.commit()
        told.result(timeout=60)
    with connect(dsn) as new, connect(dsn, collection="other") as old:
        held = [
            (len(maintenance.marks(one)), len(maintenance.policies(one)), one.exists(12345, 0))
            for one in (new, old)
        ]
    assert held[0] != held[1] == (1, 1, False)
