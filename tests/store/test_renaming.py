"""A collection gets another name, or the names of two are exchanged, beside writers."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, connect
from tests.store.test_refingerprinting import content

A, B = "https://a.example/", "https://b.example/"


def names(dsn: str) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        return dict(
            connection.execute("SELECT name, collection_id FROM pgsimhash.collections").fetchall()
        )


def test_a_store_keeps_its_pages_under_the_new_name(dsn: str, store: Store) -> None:
    store.add(A, 1)
    store.rename("news")
    assert store.collection == "news"
    assert store.add(B, 1).duplicate_of == A
    assert len(content(dsn, "news")) == 2
    assert list(names(dsn)) == ["news"]
    store.rename("news")
    assert store.collection == "news"


def test_two_collections_exchange_their_names(dsn: str, store: Store) -> None:
    store.add(A, 1)
    with connect(dsn, collection="better") as better:
        before = names(dsn)
        better.rename("default", swap=True)
        assert better.collection == "default"
        better.add(B, 2)
    assert names(dsn) == {"default": before["better"], "better": before["default"]}
    with connect(dsn, create=False) as present:
        assert present.get(B) is not None
        assert present.get(A) is None


def test_who_has_it_open_by_the_old_name_writes_into_no_other(dsn: str, store: Store) -> None:
    store.add(A, 1)
    with connect(dsn, collection="better") as better:
        better.rename("default", swap=True)
    with pytest.raises(pgsimhash.CollectionError, match="was renamed to 'better'; open it again"):
        store.add(B, 2)
    with connect(dsn, create=False) as present:
        assert not content(dsn, "default")
        assert not len(present.simhashes())
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pgsimhash.rename_collection('better', 'old')")
        connection.commit()
    with pytest.raises(pgsimhash.CollectionError, match="renamed to 'old'"):
        store.add_simhashes(np.zeros(1, dtype=np.uint64))


def test_names_that_cannot_be_say_why(dsn: str, store: Store) -> None:
    connect(dsn, collection="other").close()
    with pytest.raises(pgsimhash.CollectionError, match=r'"other" exists already; .*--swap'):
        store.rename("other")
    with pytest.raises(pgsimhash.CollectionError, match='"nowhere" does not exist'):
        store.rename("nowhere", swap=True)
    with pytest.raises(pgsimhash.CollectionError, match="give one that is not empty"):
        store.rename("")
    assert store.collection == "default"
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.UndefinedObject):
        connection.execute("SELECT pgsimhash.rename_collection('nowhere', 'here')")
