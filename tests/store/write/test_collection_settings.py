"""The settings of a collection can be changed, and its name, while writers continue."""

import asyncio
import dataclasses
import re
from typing import Any

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import CollectionError, Store, analysis, connect, connect_async
from pgsimhash.errors import ArgumentError
from pgsimhash.schema import migrate
from pgsimhash.schemes import Scheme, get_scheme, register_scheme
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from pgsimhash.search.layout import get_layout
from pgsimhash.store.collection import open_collection
from tests.database import after_a_wait, run_sql
from tests.refusals import because, sqlstate
from tests.store.calls import CHANGES, LOOKUPS, SCANS, A, B
from tests.store.content import content, page_at


def test_the_distance_of_a_collection_applies_until_any_store_changes_it(
    store: Store, dsn: str
) -> None:
    def found() -> tuple[int, int, int, bool, int, int, int]:
        # First, because the others read the collection again.
        many = store.find_many(np.array([0xFF], dtype=np.uint64)).distances
        pairs = sum(len(block.low) for block in store.pairs())
        clusters = len(list(store.clusters())), store.save_clusters()
        lookups = len(store.find(0xFF)), len(store.near_pages(0xFF)), len(many)
        return *lookups, store.has_near(0xFF), pairs, *clusters

    store.add_page("https://a.example/1", 0)
    assert store.add_page("https://a.example/2", 0xFF).distance == 8
    assert found() == (2, 2, 2, True, 1, 1, 1)
    assert not store.has_near(0x1FF << 20)
    with connect(dsn) as other:
        other.change_settings(distance=3)
    assert found() == (1, 1, 1, True, 0, 0, 0)
    assert not store.has_near(0xF0)
    assert store.add_page("https://a.example/3", 0xFFFF).kind == "new"
    store.change_settings(distance=12)
    assert store.add_page("https://a.example/4", 0xFFFFF).duplicate_of == "https://a.example/3"


@pytest.mark.parametrize(("scheme", "layout", "distance"), [
    (DEFAULT_SCHEME, None, 8), (DEFAULT_SCHEME, "32+32", 7),
    (get_scheme("pgsimhash-interop-1"), None, 3),
    (get_scheme("pgsimhash-blog-words-1"), "32+32", 3),
    (dataclasses.replace(DEFAULT_SCHEME, name="mine-1", distance=12), "6 choose 3", 5),
])  # fmt: skip
def test_a_new_collection_has_the_distance_of_its_scheme(
    empty_dsn: str, scheme: Scheme, layout: str | None, distance: int
) -> None:
    register_scheme(scheme)
    migrate.upgrade(empty_dsn, layout=layout)
    with connect(empty_dsn, collection="new", create=True, scheme=scheme) as store:
        assert store.collection.default_distance == distance
        assert analysis.compare_pages(0, 1, store=store).max_distance == distance
        beyond = get_layout(store.collection.layout).distances[-1] + 1
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            store.change_settings(distance=beyond)
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            analysis.compare_pages(0, 1, store=store, distance=beyond)
        assert store.collection.default_distance == distance


def test_omitted_settings_stay_or_keep_the_values_of_others(store: Store, dsn: str) -> None:
    with connect(dsn) as other:
        for at, settings, expected in (
            (store, {"keep_markdown": True}, (8, True)),
            (other, {"distance": 5}, (5, True)),
            (store, {"distance": 6}, (6, True)),
        ):
            at.change_settings(**settings)
            assert (at.collection.default_distance, at.collection.keep_markdown) == expected
    text = "One page says what the other one said, in twelve words or perhaps some more of them."
    store.ingest("https://a.example/", f"<p>{text}</p>")
    assert page_at(store, "https://a.example/").markdown == text


def test_only_default_is_created_unless_create_is_true(empty_dsn: str) -> None:
    migrate.upgrade(empty_dsn)

    async def open_async(**options: Any) -> None:
        async with await connect_async(empty_dsn, **options):
            pass

    for options in ({"collection": "news"}, {"create": False}, {"collection": ""}):
        for call in (
            lambda options=options: connect(empty_dsn, **options),
            lambda options=options: asyncio.run(open_async(**options)),
        ):
            with pytest.raises(CollectionError, check=because("unknown"), match="no collection"):
                call()
    connect(empty_dsn).close()
    names = ["news", "archive", "crawl-2026", "forum", "images", "texts"]
    for name in names:
        connect(empty_dsn, collection=name, create=True, scheme="pgsimhash-blog-words-1").close()
    with pytest.raises(CollectionError, match="create another collection"):
        connect(empty_dsn, collection="news", create=True, scheme="pgsimhash-article-1")
    known = re.escape("(the nearest names: news, ")
    with pytest.raises(CollectionError, match=rf"'newz' .+{known}.+create=True") as refused:
        connect(empty_dsn, collection="newz")
    # Only the nearest of many.
    assert sum(name in str(refused.value) for name in (*names, "default")) == 5
    with pytest.raises(CollectionError, match=rf"'newz' .+{known}.+; check the name$"):
        connect(empty_dsn, collection="newz", create=False)
    with connect(empty_dsn) as store:
        assert [one.name for one in store.collections()] == sorted(["default", *names])


def test_requested_settings_of_an_existing_collection_are_checked(dsn: str) -> None:
    with connect(dsn, collection="news", create=True, keep_markdown=True) as store:
        assert store.collection.keep_markdown
    connect(dsn, collection="news").close()
    with pytest.raises(CollectionError, match="keep_markdown True, not False; Store"):
        connect(dsn, collection="news", keep_markdown=False)
    connect(dsn, collection="plain", create=True).close()
    with pytest.raises(CollectionError, match="keep_markdown False, not True; Store"):
        connect(dsn, collection="plain", keep_markdown=True)
    with psycopg.connect(dsn) as connection:
        assert open_collection(connection, "plain", create=True).default_distance == 8
        with pytest.raises(CollectionError, match="has distance 8, not 3; Store"):
            open_collection(connection, "plain", create=True, distance=3)
        with pytest.raises(
            CollectionError, match="create another collection with it, such as plain-2"
        ):
            open_collection(
                connection, "plain", create=True, scheme=get_scheme("pgsimhash-interop-1")
            )


def names(dsn: str) -> dict[str, int]:
    return dict(run_sql(dsn, "SELECT name, collection_id FROM pgsimhash.collections"))


def test_a_store_keeps_its_pages_under_the_new_name(dsn: str, store: Store) -> None:
    store.add_page(A, 1)
    store.rename("news")
    assert store.collection.name == "news"
    assert store.add_page(B, 1).duplicate_of == A
    assert len(content(dsn, "news")) == 2
    assert list(names(dsn)) == ["news"]
    store.rename("news")
    assert store.collection.name == "news"


def test_open_stores_use_the_collection_that_has_the_name(dsn: str, store: Store) -> None:
    store.add_page(A, 1)
    with connect(dsn, collection="better", create=True) as better:
        better.add_page(B, 1 << 40)
        before = names(dsn)
        better.rename("default", swap=True)
        assert better.collection.name == "default"
        assert better.get(B) is not None
    assert names(dsn) == {"default": before["better"], "better": before["default"]}
    assert store.get(B) is not None
    assert store.get(A) is None
    assert [match.url for match in store.find(1 << 40)] == [B]
    assert store.add_page(B, 0xFFFF).kind == "updated"
    assert [row[:2] for row in content(dsn, "default")] == [(B, 1 << 40), (B, 0xFFFF)]
    assert store.delete_page(B).deleted == 2
    assert [row[0] for row in content(dsn, "better")] == [A]


def test_open_stores_of_a_missing_name_raise(dsn: str, store: Store) -> None:
    store.add_page(A, 1)
    run_sql(dsn, "SELECT pgsimhash.rename_collection('default', 'old')")
    for name, call in {**LOOKUPS, **SCANS, **CHANGES}.items():
        with pytest.raises(pgsimhash.CollectionError, match=r"['\"]default['\"] does not exist"):
            pytest.fail(f"{name}: {call(store)}")
    assert len(content(dsn, "old")) == 1
    with connect(dsn, collection="old", create=True) as old:
        assert not old.collection.keep_markdown


def test_invalid_new_names_are_refused(dsn: str, store: Store) -> None:
    connect(dsn, collection="other", create=True).close()
    with pytest.raises(pgsimhash.CollectionError, match=r'"other" exists already; .*--swap'):
        store.rename("other")
    with pytest.raises(pgsimhash.CollectionError, match='"nowhere" does not exist'):
        store.rename("nowhere", swap=True)
    with pytest.raises(pgsimhash.CollectionError, match="is empty; give one"):
        store.rename("")
    assert store.collection.name == "default"
    with pytest.raises(psycopg.Error, check=sqlstate("PS001")):
        run_sql(dsn, "SELECT pgsimhash.rename_collection('nowhere', 'here')")


def test_of_two_concurrent_renames_the_second_fails(store: Store, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pgsimhash.rename_collection('default', 'first')")
        with pytest.raises(pgsimhash.CollectionError, match='"default" does not exist'):
            after_a_wait(connection, lambda: store.rename("second"))
    assert list(names(dsn)) == ["first"]
