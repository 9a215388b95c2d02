"""A wrong argument is refused with a clear error, before anything is sent or stored."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest

from pgsimhash import Store, analysis, connect, fingerprint, maintenance
from pgsimhash.errors import ArgumentError, PageError, PgsimhashError
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.schemes import TEXT_SCHEME, get_scheme, simhash_texts
from tests.database import run_sql
from tests.refusals import because
from tests.store.calls import A, B
from tests.store.connect.conftest import lent
from tests.store.content import content

NUL, SURROGATE = f"{A}\0", "https://\ud800/"
HTML = "<p>" + " ".join(f"word{n}" for n in range(60))
NAIVE = datetime(2024, 1, 1)
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
ARRAY = np.zeros(2, np.uint64)

# Any, because the calls are wrong on purpose.
TYPES: dict[str, Callable[[Any], Any]] = {
    "ingest_many: URLs": lambda store: list(store.ingest_many([A])),
    "ingest_many: a mapping": lambda store: list(store.ingest_many({A: "<p>"})),
    "ingest_many: a text": lambda store: list(store.ingest_many(A)),
    "ingest_many: None": lambda store: list(store.ingest_many(None)),
    "ingest_many: triples": lambda store: list(store.ingest_many([(A, "<p>", 1)])),
    "ingest_many: in processes": lambda store: list(store.ingest_many([A], jobs=2)),
    "decide_many: a mapping": lambda store: list(store.decide_many({A: "<p>"})),
    "add_many: URLs": lambda store: list(store.add_many([A])),
    "add_many: a mapping": lambda store: list(store.add_many({A: 5})),
    "add_many: numbers": lambda store: list(store.add_many([5])),
    "get": lambda store: store.get(5),
    "delete": lambda store: store.delete(b"https://a.example/"),
    "delete_host": lambda store: store.delete_host(None),
    "should_fetch": lambda store: store.should_fetch([A]),
    "find: limit": lambda store: store.find(5, limit="5"),
    "near_pages: limit": lambda store: store.near_pages(5, limit=2.5),
    "near_pages: page": lambda store: store.near_pages(b"https://a.example/"),
    "batch_size": lambda store: list(store.ingest_many([(A, "<p>")], batch_size="5")),
    "jobs": lambda store: list(store.ingest_many([(A, "<p>")], jobs=None)),
    "max_bytes": lambda store: list(store.ingest_many([(A, "<p>")], max_bytes="5")),
    "max_bytes: one page": lambda store: store.ingest(A, "<p>", max_bytes="5"),
    "page_seconds": lambda store: list(store.ingest_many([(A, "<p>")], page_seconds="5")),
    "simhash_texts: a text": lambda _: list(simhash_texts("a text")),
    "simhash_texts: a mapping": lambda _: list(simhash_texts({A: "a text"})),
    "simhash: bytes": lambda _: TEXT_SCHEME.simhash(b"a text"),  # type: ignore[arg-type]
    "fingerprint": lambda _: fingerprint(None),  # type: ignore[arg-type]
    "get_scheme": lambda _: get_scheme(["a"]),  # type: ignore[arg-type]
}

VALUES: dict[str, Callable[[Any], Any]] = {
    "find: no simhash": lambda store: store.find("5"),
    "find: a simhash out of range": lambda store: store.find(2**64),
    "find: a distance": lambda store: store.find(5, 2**70),
    "find: a limit": lambda store: store.find(5, limit=2**70),
    "find: a signature out of range": lambda store: store.find(5, signature=2**128),
    "find: no signature": lambda store: store.find(5, signature="5"),
    "near_pages: a limit": lambda store: store.near_pages(5, limit=0),
    "find: a negative limit": lambda store: store.find(5, limit=-1),
    "near_pages: a distance": lambda store: store.near_pages(0, 13),
    "near_pages: a simhash": lambda store: store.near_pages(2**64),
    "near_pages: a bool": lambda store: store.near_pages(True),
    "near_pages: a signature": lambda store: store.near_pages(0, signature=2**128),
    "near_pages: NUL": lambda store: store.near_pages(NUL),
    "find_many: two dimensions": lambda store: store.find_many(ARRAY.reshape(2, 1)),
    "find_many: a distance": lambda store: store.find_many(ARRAY, 99),
    "exists: no simhash": lambda store: store.exists(1.5),
    "get: NUL": lambda store: store.get(NUL),
    "get: a surrogate": lambda store: store.get(SURROGATE),
    "should_fetch: NUL": lambda store: store.should_fetch(NUL),
    "delete: NUL": lambda store: store.delete(NUL),
    "delete_host: a surrogate": lambda store: store.delete_host("\ud800"),
    "expire: nothing": lambda store: store.expire(timedelta(0)),
    "expire: before the year 1": lambda store: store.expire(timedelta.max),
    "start_run: NUL": lambda store: store.start_run("a\0"),
    "start_run: a surrogate": lambda store: store.start_run("\ud800"),
    "start_run: None": lambda store: store.start_run(None),
    "add: a long URL": lambda store: store.add(A + "x" * 3000, 5),
    "add: NUL": lambda store: store.add(NUL, 5),
    "add: a simhash": lambda store: store.add(A, 2**64),
    "add: a time": lambda store: store.add(A, 5, fetched_at=FUTURE),
    "add: a distance": lambda store: store.add(A, 5, distance=64),
    "ingest: a time": lambda store: store.ingest(A, HTML, fetched_at=NAIVE),
    "ingest_many: a batch": lambda store: list(store.ingest_many([(A, HTML)], batch_size=0)),
    "ingest_many: jobs": lambda store: list(store.ingest_many([(A, HTML)], jobs=0)),
    "ingest_many: seconds": lambda store: list(store.ingest_many([(A, HTML)], page_seconds=-1)),
    "ingest_many: nan seconds": lambda store: list(
        store.ingest_many([(A, HTML)], page_seconds=float("nan"))
    ),
    "ingest_many: memory": lambda store: list(store.ingest_many([(A, HTML)], page_memory=0)),
    "add_many: a batch": lambda store: list(store.add_many([(A, 5)], batch_size=0)),
    # At once, not in a loop.
    "pairs: a distance": lambda store: store.pairs(13),
    "clusters: a distance": lambda store: store.clusters(-1),
    "clusters: a linkage": lambda store: store.clusters(3, linkage="double"),
    "clusters: a rule": lambda store: store.clusters(3, canonical="best"),
    "save_clusters: a rule": lambda store: store.save_clusters(canonical="best"),
    "page_pairs: a distance": lambda store: analysis.page_pairs(store, 13),
    "report: a distance": lambda store: analysis.report(store, 13),
    "report: a rule": lambda store: analysis.report(store, canonical="best"),
    "report: a linkage": lambda store: analysis.report(store, linkage="chain"),  # type: ignore[arg-type]
    "mark: NUL": lambda store: maintenance.mark(store, NUL, A, same=True),
    "set_policy: NUL": lambda store: maintenance.set_policy(
        store, "a\0", PolicySettings(distance=3)
    ),
    "undo: no such run": lambda store: maintenance.undo(store, 2**70),
}


def test_wrong_arguments_are_refused_and_nothing_is_stored(store: Store, dsn: str) -> None:
    store.add(B, 0)
    before = content(dsn, "default")
    for calls, kinds in ((TYPES, (ArgumentError, TypeError)), (VALUES, (PgsimhashError,))):
        for name, call in calls.items():
            with pytest.raises(kinds) as caught:
                pytest.fail(f"{name}: {call(store)}")
            assert str(caught.value), name
            if type(caught.value) is ArgumentError:
                assert caught.value.reason == "invalid_argument", name
            assert calls is VALUES or not isinstance(caught.value.__cause__, psycopg.Error), name
    assert content(dsn, "default") == before
    # The connection is usable, and no label remains.
    assert store.add(A, 0xFFFF_FFFF << 16).verdict == "new"


def test_options_of_connect_are_refused(dsn: str) -> None:
    limits = ("lock_timeout", "statement_timeout", "retry_seconds")
    wrong = [(name, value) for name in limits for value in ("5", -1, float("nan"), 2**31)]
    wrong += [("collection", 5), ("scheme", 5), ("schema", 5), ("on_event", "print")]
    for name, value in wrong:
        options: dict[str, Any] = {name: value}
        with pytest.raises((ArgumentError, TypeError), match=None if value in (5, "5") else name):
            connect(dsn, **options)
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.collections") == [(0,)]


def test_the_asynchronous_store_refuses_the_same(dsn: str) -> None:
    with lent("dsn", dsn, asynchronous=True) as opened:
        for name in ("ingest_many: URLs", "ingest_many: a mapping", "add_many: a mapping"):
            with pytest.raises((ArgumentError, TypeError)):
                TYPES[name](opened.store)


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
