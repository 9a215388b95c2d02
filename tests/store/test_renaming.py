"""A collection gets another name, or the names of two are exchanged, beside writers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.policies import Settings
from tests.conftest import wait_for_a_lock
from tests.store.content import content

A, B = "https://a.example/", "https://b.example/"


def names(dsn: str) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        return dict(
            connection.execute("SELECT name, collection_id FROM pgsimhash.collections").fetchall()
        )


def test_a_store_keeps_its_pages_under_the_new_name(dsn: str, store: Store) -> None:
    store.add(A, 1)
    maintenance.rename(store, "news")
    assert store.collection == "news"
    assert store.add(B, 1).duplicate_of == A
    assert len(content(dsn, "news")) == 2
    assert list(names(dsn)) == ["news"]
    maintenance.rename(store, "news")
    assert store.collection == "news"


def test_two_collections_exchange_their_names(dsn: str, store: Store) -> None:
    store.add(A, 1)
    with connect(dsn, collection="better") as better:
        before = names(dsn)
        maintenance.rename(better, "default", swap=True)
        assert better.collection == "default"
        better.add(B, 2)
    assert names(dsn) == {"default": before["better"], "better": before["default"]}
    with connect(dsn, create=False) as present:
        assert present.get(B) is not None
        assert present.get(A) is None


def test_who_has_it_open_by_the_old_name_writes_into_no_other(dsn: str, store: Store) -> None:
    store.add(A, 1)
    with connect(dsn, collection="better") as better:
        maintenance.rename(better, "default", swap=True)
    with pytest.raises(pgsimhash.CollectionError, match="was renamed to 'better'; open it again"):
        store.add(B, 2)
    with connect(dsn, create=False) as present:
        assert not content(dsn, "default")
        assert not len(analysis.simhashes(present))
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pgsimhash.rename_collection('better', 'old')")
        connection.commit()
    with pytest.raises(pgsimhash.CollectionError, match="renamed to 'old'"):
        store.add_simhashes(np.zeros(1, dtype=np.uint64))


def test_names_that_cannot_be_say_why(dsn: str, store: Store) -> None:
    connect(dsn, collection="other").close()
    with pytest.raises(pgsimhash.CollectionError, match=r'"other" exists already; .*--swap'):
        maintenance.rename(store, "other")
    with pytest.raises(pgsimhash.CollectionError, match='"nowhere" does not exist'):
        maintenance.rename(store, "nowhere", swap=True)
    with pytest.raises(pgsimhash.CollectionError, match="give one that is not empty"):
        maintenance.rename(store, "")
    assert store.collection == "default"
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.UndefinedObject):
        connection.execute("SELECT pgsimhash.rename_collection('nowhere', 'here')")


@pytest.mark.parametrize("swap", [False, True])
def test_lookups_of_who_has_it_open_go_on(dsn: str, store: Store, swap: bool) -> None:
    store.add(A, 1)
    with connect(dsn, collection="other") as other:
        other.add(B, 3)
        maintenance.rename(other, "third")
        with connect(dsn, create=False) as renamer:
            maintenance.rename(renamer, "third" if swap else "fourth", swap=swap)
        assert [(match.simhash, match.url) for match in other.find(1)] == [(3, B)]
    assert [(match.simhash, match.url) for match in store.find(1)] == [(1, A)]
    assert store.find_many(np.array([1], dtype=np.uint64)).simhashes.tolist() == [1]
    assert analysis.simhashes(store).tolist() == [1]
    assert store.exists(1, distance=0)
    assert not store.exists(3, distance=0)
    assert analysis.report(store).status.collection == ("third" if swap else "fourth")
    assert [verdict.url for verdict in maintenance.rejudge(store)] == [A]


CHANGES: list[Callable[[Store], object]] = [
    lambda store: store.delete(A),
    lambda store: store.delete_host("a.example"),
    lambda store: maintenance.undo(store),
    lambda store: store.expire(timedelta(microseconds=1)),
    lambda store: maintenance.mark(store, A, B, same=True),
    lambda store: maintenance.unmark(store, A, B),
    lambda store: maintenance.set_policy(store, "*", Settings(distance=3)),
    lambda store: maintenance.remove_policy(store, "*"),
    lambda store: maintenance.relayout(store, "32+32", distance=3),
    lambda store: maintenance.rename(store, "fifth"),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("swap", [False, True])
def test_who_has_it_open_by_the_old_name_changes_nothing(
    dsn: str, store: Store, change: Callable[[Store], object], swap: bool
) -> None:
    store.add(A, 1)
    with connect(dsn, collection="other") as other:
        other.add(A, 1)
        other.add(B, 1)
        if not swap:
            maintenance.rename(other, "third")
        with connect(dsn, create=False) as renamer:
            maintenance.rename(renamer, "other", swap=swap)
        before = content(dsn, "other"), content(dsn, "default")
        with pytest.raises(pgsimhash.CollectionError):
            change(store)
        assert (content(dsn, "other"), content(dsn, "default")) == before
        assert maintenance.marks(other) == []
        assert maintenance.policies(other) == []
        assert {status.layout for status in store.status()} == {"22+21+21"}


def test_of_two_who_rename_it_at_once_the_second_is_told(dsn: str) -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        contextlib.closing(pool.submit(connect, dsn).result(timeout=60)) as store,
    ):
        with psycopg.connect(dsn) as connection:
            connection.execute("SELECT pgsimhash.rename_collection('default', 'first')")
            late = pool.submit(maintenance.rename, store, "second")
            wait_for_a_lock(dsn)
            connection.commit()
        with pytest.raises(pgsimhash.CollectionError, match='"default" does not exist'):
            late.result(timeout=60)
    assert list(names(dsn)) == ["first"]


def test_a_refingerprint_that_begins_meanwhile_does_not_block_a_rename(dsn: str) -> None:
    scheme = "pgsimhash-interop-1"
    connect(dsn, collection="new", scheme=scheme).close()
    open_source = partial(connect, dsn, collection="a", keep_markdown=True)
    with (
        ThreadPoolExecutor(1) as pool,
        contextlib.closing(pool.submit(open_source).result(timeout=60)) as store,
    ):
        with psycopg.connect(dsn) as connection:
            # A rename has the lock of writers before it waits for rows that refer to what it names.
            connection.execute(
                "SELECT pg_advisory_xact_lock(1885827944, collection_id) "
                "FROM pgsimhash.collections WHERE name = 'new'"
            )
            late = pool.submit(maintenance.refingerprint, store, "new", scheme, approximate=True)
            wait_for_a_lock(dsn)
            connection.execute("SELECT pgsimhash.rename_collection('new', 'newer')")
            connection.commit()
        with pytest.raises(pgsimhash.CollectionError, match="was renamed to 'newer'"):
            late.result(timeout=60)
