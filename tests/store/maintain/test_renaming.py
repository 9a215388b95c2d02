"""A collection is renamed, or two names are swapped, while writers continue."""

from __future__ import annotations

import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, connect, maintenance
from tests.database import after_a_wait, run_sql
from tests.refusals import sqlstate
from tests.store.calls import CHANGES, LOOKUPS, SCANS, A, B
from tests.store.content import content


def names(dsn: str) -> dict[str, int]:
    return dict(run_sql(dsn, "SELECT name, collection_id FROM pgsimhash.collections"))


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
    run_sql(dsn, "SELECT pgsimhash.rename_collection('default', 'old')")
    for name, call in {**LOOKUPS, **SCANS, **CHANGES}.items():
        with pytest.raises(pgsimhash.CollectionError, match=r"['\"]default['\"] does not exist"):
            pytest.fail(f"{name}: {call(store)}")
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
    with pytest.raises(psycopg.Error, check=sqlstate("PS001")):
        run_sql(dsn, "SELECT pgsimhash.rename_collection('nowhere', 'here')")


def test_of_two_concurrent_renames_the_second_fails(store: Store, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pgsimhash.rename_collection('default', 'first')")
        with pytest.raises(pgsimhash.CollectionError, match='"default" does not exist'):
            after_a_wait(connection, lambda: maintenance.rename(store, "second"))
    assert list(names(dsn)) == ["first"]
