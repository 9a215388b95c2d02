"""A collection is renamed, or two names are swapped, while writers continue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.pages.policies import PolicySettings
from tests.conftest import wait_for_a_lock
from tests.refusals import sqlstate
from tests.store.content import content

A, B = "https://a.example/", "https://b.example/"


CHANGES: list[Callable[[Store], object]] = [
    lambda store: store.delete(A),
    lambda store: store.delete_host("a.example"),
    lambda store: maintenance.undo(store),
    lambda store: store.expire(timedelta(microseconds=1)),
    lambda store: maintenance.mark(store, A, B, same=True),
    lambda store: maintenance.unmark(store, A, B),
    lambda store: maintenance.set_policy(store, "*", PolicySettings(distance=3)),
    lambda store: maintenance.remove_policy(store, "*"),
    lambda store: maintenance.rename(store, "fifth"),
]


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


def test_open_stores_use_the_collection_that_has_the_name(dsn: str, store: Store) -> None:
    store.add(A, 1)
    with connect(dsn, collection="better") as better:
        better.add(B, 1 << 40)
        before = names(dsn)
        maintenance.rename(better, "default", swap=True)
        assert better.collection == "default"
        assert better.get(B) is not None
    assert names(dsn) == {"default": before["better"], "better": before["default"]}
    assert store.get(B) is not None
    assert store.get(A) is None
    assert [match.url for match in store.find(1 << 40)] == [B]
    assert store.add(B, 0xFFFF).verdict == "updated"
    assert [row[:2] for row in content(dsn, "default")] == [(B, 1 << 40), (B, 0xFFFF)]
    assert store.delete(B).versions == 2
    assert [row[0] for row in content(dsn, "better")] == [A]


def test_open_stores_of_a_missing_name_raise(dsn: str, store: Store) -> None:
    store.add(A, 1)
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pgsimhash.rename_collection('default', 'old')")
        connection.commit()
    changes: list[Callable[[Store], object]] = [
        *CHANGES,
        lambda store: store.add(B, 2),
        lambda store: store.get(A),
        lambda store: store.find(1),
        lambda store: store.find_many(np.zeros(1, dtype=np.uint64)),
        lambda store: store.exists(1),
        lambda store: store.should_fetch(A),
        lambda store: store.decide(A, "<p>" + "one more word " * 30),
        lambda store: next(store.clusters()),
        lambda store: analysis.report(store),
        lambda store: maintenance.change_settings(store, distance=3),
        lambda store: maintenance.rebuild(store),
    ]
    for change in changes:
        with pytest.raises(pgsimhash.CollectionError, match=r"['\"]default['\"] does not exist"):
            change(store)
    assert len(content(dsn, "old")) == 1


def test_invalid_new_names_are_refused(dsn: str, store: Store) -> None:
    connect(dsn, collection="other").close()
    with pytest.raises(pgsimhash.CollectionError, match=r'"other" exists already; .*--swap'):
        maintenance.rename(store, "other")
    with pytest.raises(pgsimhash.CollectionError, match='"nowhere" does not exist'):
        maintenance.rename(store, "nowhere", swap=True)
    with pytest.raises(pgsimhash.CollectionError, match="is empty; give one"):
        maintenance.rename(store, "")
    assert store.collection == "default"
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.Error, check=sqlstate("PS001")):
        connection.execute("SELECT pgsimhash.rename_collection('nowhere', 'here')")


def test_of_two_concurrent_renames_the_second_fails(dsn: str) -> None:
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
