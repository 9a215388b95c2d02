"""A store with a cache gives the results of the database."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from pgsimhash.store.memory import LIMIT_VARIABLE, Memory

from pgsimhash import Store, Verdict, connect, maintenance
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import to_bigint
from tests.refusals import because

NEW = 0xFFFF_0000_FFFF_0000


def as_array(*simhashes: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(simhashes, dtype=np.uint64)


def hold(store: Store) -> Store:
    """Let a store cache its collection's simhashes."""
    with store.session.read() as connection:
        store.session.memory.take_in(connection, store.opened)
    assert store.session.memory.holds(store.opened)
    return store


@pytest.fixture
def holding(store: Store) -> Store:
    store.add("https://a.example/", 0)
    return hold(store)


@pytest.fixture
def other(holding: Store, dsn: str) -> Iterator[Store]:
    """Another store of the same collection without a cache."""
    with connect(dsn, lookup_memory=0) as opened:
        yield opened


def known(store: Store, simhash: int, distance: int = 3) -> list[int]:
    return sorted(map(int, store.find_many(as_array(simhash), distance).simhashes))


def brought(seed: int, count: int) -> list[tuple[str, int]]:
    """Pages of a few kinds, some with the URL of another one."""
    rng = random.Random(seed)
    kinds = [random.Random(kind).getrandbits(64) for kind in range(6)]
    return [
        (
            f"https://{rng.choice('abc')}.example/{rng.randrange(count)}",
            rng.choice(kinds)
            ^ sum(1 << bit for bit in rng.sample(range(64), rng.choice([0, 2, 9]))),
        )
        for _ in range(count)
    ]


def test_every_verdict_is_the_same(dsn: str) -> None:
    with connect(dsn, collection="asks", lookup_memory=0) as asking:
        expected = list(asking.add_many(brought(1, 600), batch_size=50))
    with connect(dsn, collection="holds") as opened:
        verdicts = list(hold(opened).add_many(brought(1, 600), batch_size=50))
        assert opened.session.memory.holds(opened.opened)
    assert {one.verdict for one in expected} >= {"new", "duplicate", "near", "updated"}
    assert [without_id(one) for one in verdicts] == [without_id(one) for one in expected]


def without_id(verdict: Verdict) -> tuple[object, ...]:
    return (verdict.url, verdict.verdict, verdict.reason, verdict.distance, verdict.duplicate_of)


def test_what_another_writer_adds_is_found(holding: Store, other: Store) -> None:
    other.add("https://b.example/", 1 << 40)
    assert known(holding, 1 << 40) == [0, 1 << 40]
    (verdict,) = holding.add_many([("https://c.example/", 0b111 << 40)], distance=2)
    assert (verdict.verdict, verdict.duplicate_of) == ("duplicate", "https://b.example/")


@pytest.mark.one_server("it inserts simhashes and pages without the package")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT pgsimhash.add_simhashes('default', ARRAY[%(new)s])",
        "INSERT INTO pgsimhash.simhashes (collection_id, simhash) VALUES (%(id)s, %(new)s)",
        "INSERT INTO pgsimhash.pages (collection_id, url, simhash, page_id) "
        "VALUES (%(id)s, 'https://b.example/', %(new)s, -7)",
        "SELECT pgsimhash.add_page('https://b.example/', %(new)s)",
    ],
)
def test_simhashes_added_by_sql_are_found(holding: Store, dsn: str, statement: str) -> None:
    with psycopg.connect(dsn) as connection:
        values = {"id": holding.opened.collection_id, "new": to_bigint(NEW)}
        connection.execute(statement, values)
        assert known(holding, NEW) == []
        connection.commit()
    assert known(holding, NEW) == [NEW]
    (verdict,) = holding.add_many([("https://c.example/", NEW ^ 1)], distance=3)
    assert verdict.verdict == "duplicate"
    hold(holding)
    assert known(holding, NEW) == sorted([NEW, NEW ^ 1])


def test_a_load_that_is_rolled_back_is_not_taken_for_another_one(holding: Store, dsn: str) -> None:
    load = "SELECT pgsimhash.add_simhashes('default', ARRAY[%s::bigint])"
    with psycopg.connect(dsn) as connection:
        store = hold(connect(connection))
        connection.execute(load, [1 << 20])
        hold(store)
        connection.rollback()
        with psycopg.connect(dsn, autocommit=True) as another:
            another.execute(load, [1 << 50])
        assert known(store, 1 << 50) == [0, 1 << 50]
        assert known(store, 1 << 20, 0) == []


def test_deleted_simhashes_are_not_found(holding: Store, other: Store, dsn: str) -> None:
    other.add_simhashes(as_array(1 << 40))
    other.add("https://b.example/", 1 << 50)
    hold(holding)
    assert known(holding, 1, 1) == [0]
    other.delete("https://a.example/")
    other.delete("https://b.example/")
    assert known(holding, 1 << 40, 1) == [1 << 40]
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pgsimhash.delete_simhashes('default', ARRAY[1::bigint << 40])")
    assert holding.session.memory.holds(holding.opened)
    assert known(holding, 0, 12) == []
    (verdict,) = holding.add_many([("https://c.example/", (1 << 50) + 1)], distance=8)
    assert verdict.verdict == "new"


def test_the_cache_follows_the_name_to_another_collection(holding: Store, dsn: str) -> None:
    with connect(dsn, collection="second") as second:
        second.add("https://b.example/", 1 << 40)
        maintenance.rename(second, "default", swap=True)
    assert known(holding, 1 << 40, 0) == [1 << 40]
    assert known(holding, 0, 0) == []
    assert known(holding, 1 << 40, 0) == [1 << 40]


def test_many_loads_leave_few_rows(holding: Store, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT setseed(.5)")
        for number in range(400):
            connection.execute(
                "SELECT pgsimhash.add_simhashes('default', ARRAY[%s::bigint])", [number]
            )
        rows = connection.execute("SELECT count(*) FROM pgsimhash.cache_epochs").fetchone()
        assert rows is not None
        assert 0 < rows[0] < 300
        connection.execute("SET default_transaction_isolation = 'repeatable read'")
        for number in range(200):
            connection.execute(
                "INSERT INTO pgsimhash.simhashes (collection_id, simhash) VALUES (%s, %s)",
                [holding.opened.collection_id, -1 - number],
            )
    assert known(holding, 399, 0) == [399]


@pytest.mark.parametrize("size", [2, 20])
def test_the_cost_of_small_and_large_batches_counts(store: Store, size: int) -> None:
    store.add_simhashes(np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64))
    memory = store.session.memory
    number = 0
    while not memory.holds(store.opened):
        assert number < 1_000
        pages = [(f"https://a.example/{n}", n << 32) for n in range(number, number + size)]
        list(store.add_many(pages, batch_size=size, distance=12))
        number += size


def test_the_cache_is_filled_when_lookups_have_cost_as_much(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    many = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    store.add_simhashes(many)
    memory = store.session.memory
    with caplog.at_level(logging.INFO, "pgsimhash"):
        while not memory.holds(store.opened):
            assert len(store.find_many(many[:2000], 8).queries) >= 2000
    assert "20000 simhashes of 'default' held in memory" in caplog.text
    assert store.find_many(many[:2000], 8).simhashes.tolist()[:1] == many[:1].tolist()
    with caplog.at_level(logging.INFO, "pgsimhash"):
        store.add_simhashes(as_array(12))
        store.find_many(many[:2000], 8)
    assert "simhashes were loaded into 'default'" in caplog.text


@pytest.mark.parametrize("limit", [0, 64 * 1999])
def test_the_cache_respects_its_memory_limit(dsn: str, limit: int) -> None:
    many = np.random.default_rng(1).integers(0, 2**64, 2000, dtype=np.uint64)
    with connect(dsn, lookup_memory=limit) as store:
        store.add_simhashes(many)
        for _ in range(2):
            with store.session.read() as connection:
                store.session.memory.take_in(connection, store.opened)
            assert not store.session.memory.holds(store.opened)
            assert len(store.find_many(many, 0).queries) == 2000


def test_the_stores_of_a_process_share_the_memory_limit(dsn: str) -> None:
    many = np.random.default_rng(1).integers(0, 2**64, 2000, dtype=np.uint64)
    limit = 64 * 3000
    with connect(dsn, lookup_memory=limit) as first:
        first.add_simhashes(many)
        hold(first)
        with connect(dsn, lookup_memory=limit) as second, second.session.read() as connection:
            second.session.memory.take_in(connection, second.opened)
            assert not second.session.memory.holds(second.opened)
        # Simhashes that arrive later need memory too.
        for number in range(4):
            pages = ((f"https://{number}.example/{n}", n << number) for n in range(500, 1000))
            sum(1 for _ in first.add_many(pages, distance=0))
        assert not first.session.memory.holds(first.opened)
        assert known(first, 501, 0) == [501]
    with connect(dsn, lookup_memory=64 * 9999) as third:
        assert hold(third)


def test_the_environment_can_set_the_memory_limit(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    memory = Memory(None)
    store.add_simhashes(as_array(1))
    with store.session.read() as connection:
        memory.take_in(connection, store.opened)
    assert not memory.holds(store.opened)
    monkeypatch.setenv(LIMIT_VARIABLE, "2GB")
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        store.find_many(as_array(1))
