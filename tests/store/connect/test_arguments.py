"""An argument of a wrong type is refused before anything is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import psycopg
import pytest

from pgsimhash import ArgumentError, PageError, Store, connect, connect_async, fingerprint
from pgsimhash.schemes import TEXT_SCHEME, get_scheme, simhash_texts
from tests.refusals import because

A = "https://a.example/"

# Any, because the calls are wrong on purpose.
CALLS: dict[str, Callable[[Any], Any]] = {
    "ingest_many: URLs": lambda store: list(store.ingest_many([A])),
    "ingest_many: a mapping": lambda store: list(store.ingest_many({A: "<p>"})),
    "ingest_many: a text": lambda store: list(store.ingest_many(A)),
    "ingest_many: None": lambda store: list(store.ingest_many(None)),
    "ingest_many: triples": lambda store: list(store.ingest_many([(A, "<p>", 1)])),
    "ingest_many: in processes": lambda store: list(store.ingest_many([A], jobs=2)),
    "decide_many: URLs": lambda store: list(store.decide_many([A])),
    "decide_many: a mapping": lambda store: list(store.decide_many({A: "<p>"})),
    "add_many: URLs": lambda store: list(store.add_many([A])),
    "add_many: a mapping": lambda store: list(store.add_many({A: 5})),
    "add_many: numbers": lambda store: list(store.add_many([5])),
    "get": lambda store: store.get(5),
    "delete": lambda store: store.delete(b"https://a.example/"),
    "delete_host": lambda store: store.delete_host(None),
    "should_fetch": lambda store: store.should_fetch([A]),
    "find: limit": lambda store: store.find(5, limit="5"),
    "find: host": lambda store: store.find(5, host=5),
    "near_pages: limit": lambda store: store.near_pages(5, limit=2.5),
    "near_pages: page": lambda store: store.near_pages(b"https://a.example/"),
    "batch_size": lambda store: list(store.ingest_many([(A, "<p>")], batch_size="5")),
    "jobs": lambda store: list(store.ingest_many([(A, "<p>")], jobs=None)),
    "max_bytes": lambda store: list(store.ingest_many([(A, "<p>")], max_bytes="5")),
    "max_bytes: one page": lambda store: store.ingest(A, "<p>", max_bytes="5"),
    "page_seconds": lambda store: list(store.ingest_many([(A, "<p>")], page_seconds="5")),
    "simhash_texts: None": lambda _: list(simhash_texts([None])),  # type: ignore[list-item]
    "simhash_texts: a text": lambda _: list(simhash_texts("a text")),
    "simhash_texts: bytes": lambda _: list(simhash_texts([b"a text"])),  # type: ignore[list-item]
    "simhash_texts: a mapping": lambda _: list(simhash_texts({A: "a text"})),
    "simhash": lambda _: TEXT_SCHEME.simhash(None),  # type: ignore[arg-type]
    "simhash: bytes": lambda _: TEXT_SCHEME.simhash(b"a text"),  # type: ignore[arg-type]
    "fingerprint": lambda _: fingerprint(None),  # type: ignore[arg-type]
    "fingerprint: a list": lambda _: fingerprint([1]),  # type: ignore[arg-type]
    "get_scheme": lambda _: get_scheme(["a"]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_argument_of_a_wrong_type_is_refused(store: Store, call: Callable[[Any], Any]) -> None:
    with pytest.raises((ArgumentError, TypeError)) as caught:
        call(store)
    assert not isinstance(caught.value.__cause__, psycopg.Error)
    assert [collection.pages for collection in store.status()] == [0]


@pytest.mark.parametrize(
    "options",
    [
        {"collection": 5},
        {"scheme": 5},
        {"schema": 5},
        {"lock_timeout": "5"},
        {"statement_timeout": "5"},
        {"retry_seconds": "5"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_option_of_connect_of_a_wrong_type_is_refused(dsn: str, options: dict[str, Any]) -> None:
    with pytest.raises((ArgumentError, TypeError)):
        connect(dsn, **options)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM pgsimhash.collections").fetchone() == (0,)


def test_the_asynchronous_store_refuses_the_same(dsn: str) -> None:
    async def use(method: str, wrong: Any) -> None:
        async with await connect_async(dsn) as store:
            async for _ in getattr(store, method)(wrong):
                pass

    for method, wrong in [("ingest_many", [A]), ("ingest_many", {A: "<p>"}), ("add_many", {A: 5})]:
        with pytest.raises((ArgumentError, TypeError)):
            asyncio.run(use(method, wrong))


def test_numbers_of_numpy_are_numbers(store: Store) -> None:
    assert store.add(A, np.uint64(5)).keep  # type: ignore[arg-type]
    limit: Any = np.int64(1)
    assert [match.url for match in store.find(5, limit=limit)] == [A]


def test_a_url_that_is_not_a_string_is_invalid(store: Store) -> None:
    wrong: Any = None
    with pytest.raises(PageError, check=because("invalid_url")):
        store.add(wrong, 5)
    (verdict,) = store.add_many([(wrong, 5)])
    assert (verdict.url, verdict.reason) == ("None", "invalid_url")
