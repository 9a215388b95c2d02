"""A collection changes its layout while lookups and writers go on."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.layout import LAYOUTS
from pgsimhash.store.layouts import set_default_layout

ROWS = 3_000


def known(count: int = ROWS) -> list[int]:
    rng = random.Random(7)
    return [rng.getrandbits(64) for _ in range(count)]


def url(simhash: int) -> str:
    return f"https://a.example/{simhash:016x}"


@pytest.fixture
def full(dsn: str) -> Iterator[Store]:
    with connect(dsn) as store:
        list(store.add_many([(url(simhash), simhash) for simhash in known()], distance=0))
        yield store


def rows_in(dsn: str, layout: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            f"SELECT count(*) FROM pgsimhash.{LAYOUTS[layout].table}"
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("layout", ["16+16+16+16", "5 choose 2"])
def test_everything_moves_and_nothing_stays_behind(full: Store, dsn: str, layout: str) -> None:
    steps: list[tuple[str, int, int]] = []
    maintenance.relayout(full, layout, progress=lambda *step: steps.append(step))
    assert full.layout == layout
    assert rows_in(dsn, layout) == ROWS
    assert rows_in(dsn, "22+21+21") == 0
    assert sorted(analysis.simhashes(full).tolist()) == sorted(known())
    assert all(full.exists(simhash ^ 0b1011, 3) for simhash in known()[:50])
    assert [step for step, done, total in steps if done == total] == [
        "clean up",
        "copy",
        "index",
        "clean up",
    ]
    maintenance.relayout(full, "22+21+21")
    assert rows_in(dsn, "22+21+21") == ROWS
    assert rows_in(dsn, layout) == 0


def test_other_collections_stay_where_they_are(full: Store, dsn: str) -> None:
    with connect(dsn, collection="other") as other:
        list(other.add_many([(url(simhash), simhash) for simhash in known(100)]))
        maintenance.relayout(full, "16+16+16+16")
        assert other.layout == "22+21+21"
        assert sorted(analysis.simhashes(other).tolist()) == sorted(known(100))
        assert other.exists(known()[0])


def test_lookups_and_writers_go_on_all_the_while(full: Store, dsn: str) -> None:
    """A reader never misses, and what is written or deleted meanwhile arrives."""
    stop = threading.Event()
    missed: list[int] = []
    written: set[int] = set(known())
    failures: list[BaseException] = []
    rounds = {"read": threading.Event(), "write": threading.Event()}
    met: list[bool] = []

    def in_between(step: str, done: int, total: int) -> None:
        """Half a copy is made: go on when the reader and the writer have done a round."""
        if step == "copy" and done == total // 2:
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
                if not any(match.simhash == one for match in store.find(one ^ 5, 3)):
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
                rounds["write"].set()

    def safely(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=safely, args=[work]) for work in (read, write)]
    for thread in threads:
        thread.start()
    for layout in ("16+16+16+16", "32+32", "22+21+21"):
        maintenance.relayout(full, layout, distance=7, progress=in_between)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert met == [True] * 6
    assert missed == []
    assert set(analysis.simhashes(full).tolist()) == written


def test_plain_sql_is_mirrored_too(full: Store, dsn: str) -> None:
    """Rows that are inserted and deleted by hand in the middle of a move."""
    with psycopg.connect(dsn, autocommit=True) as hand:

        def in_between(step: str, done: int, total: int) -> None:
            if step == "copy" and done == total // 2:
                hand.execute("DELETE FROM pgsimhash.simhashes WHERE simhash % 2 = 0")
                hand.execute(
                    "INSERT INTO pgsimhash.simhashes (collection_id, simhash) "
                    "SELECT 1, n * 2 FROM generate_series(1, 50) AS n"
                )

        maintenance.relayout(full, "16+16+16+16", progress=in_between)
    odd = {simhash for simhash in known() if simhash % 2}
    assert set(analysis.simhashes(full).tolist()) == odd | {2 * n for n in range(1, 51)}


class InterruptionError(Exception):
    """Stands for a lost connection or Ctrl-C."""


def interrupted(full: Store, layout: str, at: str) -> None:
    def stop(step: str, done: int, total: int) -> None:
        if step == at and done == total // 2:
            raise InterruptionError

    with pytest.raises(InterruptionError):
        maintenance.relayout(full, layout, progress=stop)


def leave_half_an_index(connection: psycopg.Connection, table: str) -> None:
    """Leave what CREATE INDEX CONCURRENTLY leaves when it is interrupted."""
    connection.execute(f"CREATE INDEX {table}_prefix_4_idx ON pgsimhash.{table} (prefix_4)")
    connection.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
        [f"pgsimhash.{table}_prefix_4_idx"],
    )


def valid_indexes(connection: psycopg.Connection, table: str) -> int:
    """How many indexes a table has, all of them valid."""
    row = connection.execute(
        "SELECT count(*), bool_and(indisvalid) FROM pg_index WHERE indrelid = %s::regclass",
        [f"pgsimhash.{table}"],
    ).fetchone()
    assert row is not None
    assert row[1]
    return int(row[0])


@pytest.mark.parametrize("at", ["copy", "index"])
def test_an_interrupted_move_goes_on_when_asked_again(full: Store, dsn: str, at: str) -> None:
    interrupted(full, "5 choose 2", at)
    assert full.exists(known()[0] ^ 1)
    list(full.add_many([("https://a.example/late", 99)], distance=0))
    with pytest.raises(pgsimhash.CollectionError, match="on its way to layout '5 choose 2'"):
        maintenance.relayout(full, "32+32", distance=3)
    maintenance.relayout(full, "5 choose 2")
    assert set(analysis.simhashes(full).tolist()) == {*known(), 99}
    assert rows_in(dsn, "22+21+21") == 0


def test_an_interrupted_move_can_be_cancelled(full: Store, dsn: str) -> None:
    interrupted(full, "16+16+16+16", "copy")
    assert rows_in(dsn, "16+16+16+16") > 0
    maintenance.relayout(full, "22+21+21")
    assert full.layout == "22+21+21"
    assert rows_in(dsn, "16+16+16+16") == 0
    assert sorted(analysis.simhashes(full).tolist()) == sorted(known())


def test_what_an_interrupted_index_build_leaves_is_built_anew(full: Store, dsn: str) -> None:
    interrupted(full, "5 choose 2", "index")
    table = LAYOUTS["5 choose 2"].table
    with psycopg.connect(dsn, autocommit=True) as connection:
        leave_half_an_index(connection, table)
        maintenance.relayout(full, "5 choose 2")
        assert valid_indexes(connection, table) == 10


@pytest.mark.parametrize("at", ["copy", "index"])
def test_a_layout_without_its_indexes_yet_is_for_no_new_collection(
    full: Store, dsn: str, at: str
) -> None:
    interrupted(full, "5 choose 2", at)
    advice = (
        r"relayout default '5 choose 2', or cancel it: "
        r"pgsimhash collection relayout default '22\+21\+21'"
    )
    with pytest.raises(pgsimhash.CollectionError, match=advice):
        connect(dsn, collection="other", layout="5 choose 2")
    with psycopg.connect(dsn) as connection, pytest.raises(pgsimhash.CollectionError, match=advice):
        set_default_layout(connection, LAYOUTS["5 choose 2"])
    assert [status.collection for status in full.status()] == ["default"]
    maintenance.relayout(full, "5 choose 2")
    with connect(dsn, collection="other", layout="5 choose 2") as other:
        assert other.layout == "5 choose 2"


def test_what_a_cancelled_move_left_without_indexes_gets_them_for_a_new_collection(
    full: Store, dsn: str
) -> None:
    interrupted(full, "5 choose 2", "index")
    table = LAYOUTS["5 choose 2"].table
    with psycopg.connect(dsn, autocommit=True) as connection:
        leave_half_an_index(connection, table)
        maintenance.relayout(full, "22+21+21")
        with connect(dsn, collection="other", layout="5 choose 2") as other:
            assert valid_indexes(connection, table) == 10
            list(other.add_many([(url(simhash), simhash) for simhash in known(100)]))
            assert all(other.exists(simhash ^ 0b1011, 3) for simhash in known(100))
    maintenance.relayout(full, "5 choose 2")
    assert rows_in(dsn, "5 choose 2") == ROWS + 100


def test_a_layout_that_does_not_answer_the_default_distance_is_refused(full: Store) -> None:
    with pytest.raises(pgsimhash.CollectionError, match="give a smaller one with --distance"):
        maintenance.relayout(full, "32+32")
    maintenance.relayout(full, "32+32", distance=5)
    assert full.status()[0].default_distance == 5


def test_two_at_once_are_refused(full: Store, dsn: str) -> None:
    with connect(dsn) as other:

        def meanwhile(step: str, done: int, total: int) -> None:
            if step == "index":
                with pytest.raises(pgsimhash.StoreError, match="being changed by someone else"):
                    maintenance.relayout(other, "16+16+16+16")

        maintenance.relayout(full, "16+16+16+16", progress=meanwhile)


def test_a_connection_in_a_transaction_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection=connection)
        with pytest.raises(pgsimhash.StoreError, match="autocommit=True"):
            maintenance.relayout(store, "32+32")
