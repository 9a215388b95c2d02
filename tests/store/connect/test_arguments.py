"""A wrong argument is refused with a clear error, before anything is sent or stored."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa

from pgsimhash import (
    Store,
    analysis,
    connect,
    fingerprint,
    format_simhash,
    parse_simhash,
)
from pgsimhash.errors import ArgumentError, PageError, PgsimhashError
from pgsimhash.hashing.bits import from_base32, from_bigint
from pgsimhash.pages.policies import PolicySettings
from pgsimhash.schema.deployed import create_roles
from pgsimhash.schema.migrate import upgrade
from pgsimhash.schemes import get_scheme, simhash_texts
from pgsimhash.schemes.registry import TEXT_SCHEME
from pgsimhash.sources import read_pages
from pgsimhash.sqlalchemy import simhash_lock
from tests.database import run_sql
from tests.refusals import because
from tests.store.calls import A, B
from tests.store.connect.conftest import Opened, lent, of
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
    "add_pages: URLs": lambda store: list(store.add_pages([A])),
    "add_pages: a mapping": lambda store: list(store.add_pages({A: 5})),
    "add_pages: numbers": lambda store: list(store.add_pages([5])),
    "get": lambda store: store.get(5),
    "delete_page": lambda store: store.delete_page(b"https://a.example/"),
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
    "find: no limit": lambda store: store.find(5, limit=0),
    "find: a bool as a distance": lambda store: store.find(5, True),
    "near_pages: a distance": lambda store: store.near_pages(0, 13),
    "near_pages: a simhash": lambda store: store.near_pages(2**64),
    "near_pages: a bool": lambda store: store.near_pages(True),
    "near_pages: a signature": lambda store: store.near_pages(0, signature=2**128),
    "near_pages: NUL": lambda store: store.near_pages(NUL),
    "find_many: two dimensions": lambda store: store.find_many(ARRAY.reshape(2, 1)),
    "find_many: a distance": lambda store: store.find_many(ARRAY, 99),
    "has_near: no simhash": lambda store: store.has_near(1.5),
    "has_near: a distance": lambda store: store.has_near(5, 65),
    "get: NUL": lambda store: store.get(NUL),
    "get: a surrogate": lambda store: store.get(SURROGATE),
    "should_fetch: NUL": lambda store: store.should_fetch(NUL),
    "delete_page: NUL": lambda store: store.delete_page(NUL),
    "delete_host: a surrogate": lambda store: store.delete_host("\ud800"),
    "expire: nothing": lambda store: store.expire(timedelta(0)),
    "expire: before the year 1": lambda store: store.expire(timedelta.max),
    "start_run: NUL": lambda store: store.start_run("a\0"),
    "start_run: a surrogate": lambda store: store.start_run("\ud800"),
    "start_run: None": lambda store: store.start_run(None),
    "add_page: a long URL": lambda store: store.add_page(A + "x" * 3000, 5),
    "add_page: NUL": lambda store: store.add_page(NUL, 5),
    "add_page: a simhash": lambda store: store.add_page(A, 2**64),
    "add_page: a time": lambda store: store.add_page(A, 5, fetched_at=FUTURE),
    "add_page: a distance": lambda store: store.add_page(A, 5, distance=64),
    "ingest: a time": lambda store: store.ingest(A, HTML, fetched_at=NAIVE),
    "ingest_many: a batch": lambda store: list(store.ingest_many([(A, HTML)], batch_size=0)),
    "ingest_many: jobs": lambda store: list(store.ingest_many([(A, HTML)], jobs=0)),
    "ingest_many: negative jobs": lambda store: list(store.ingest_many([(A, HTML)], jobs=-3)),
    "decide_many: jobs": lambda store: list(store.decide_many([(A, HTML)], jobs=0)),
    "ingest_many: half a job": lambda store: list(store.ingest_many([(A, HTML)], jobs=1.5)),
    "ingest: a distance": lambda store: store.ingest("no URL", HTML, distance=99),
    "decide: a distance": lambda store: store.decide(A, "", distance=True),
    "seen: a time": lambda store: store.seen(B, fetched_at=FUTURE),
    "should_fetch: a negative age": lambda store: store.should_fetch(A, older_than=-timedelta(1)),
    "ingest_many: seconds": lambda store: list(store.ingest_many([(A, HTML)], page_seconds=-1)),
    "ingest_many: nan seconds": lambda store: list(
        store.ingest_many([(A, HTML)], page_seconds=float("nan"))
    ),
    "ingest_many: memory": lambda store: list(store.ingest_many([(A, HTML)], page_memory=0)),
    "ingest_many: too much memory": lambda store: list(
        store.ingest_many([(A, HTML)], page_memory=2**63)
    ),
    "add_pages: a batch": lambda store: list(store.add_pages([(A, 5)], batch_size=0)),
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
    "delete_host: no host": lambda store: store.delete_host(A),
    "mark: equal URLs": lambda store: store.mark(B, B, same=True),
    "set_policy: no setting": lambda store: store.set_policy("*"),
    "set_policy: a pattern": lambda store: store.set_policy("a b", distance=3),
    "set_policy: a distance": lambda store: store.set_policy("*", distance=13),
    "mark: NUL": lambda store: store.mark(NUL, A, same=True),
    "set_policy: NUL": lambda store: store.set_policy("a\0", distance=3),
    "undo_run: no such run": lambda store: store.undo_run(2**70),
}


@of(["pool", "connection"])
def test_wrong_arguments_are_refused_and_nothing_is_stored(opened: Opened, dsn: str) -> None:
    opened.store.add_page(B, 0)
    if hasattr(opened.lender, "commit"):
        opened.lender.commit()
    before = content(dsn, "default")
    for calls, kinds in ((TYPES, (ArgumentError, TypeError)), (VALUES, (PgsimhashError,))):
        for name, call in calls.items():
            with pytest.raises(kinds) as caught:
                pytest.fail(f"{name}: {answer_of(opened, name, call)}")
            assert str(caught.value), name
            if type(caught.value) is ArgumentError:
                assert caught.value.reason == "invalid_argument", name
            assert calls is VALUES or not isinstance(caught.value.__cause__, psycopg.Error), name
    assert content(dsn, "default") == before
    # The connection is usable, and no label remains.
    assert opened.store.add_page(A, 0xFFFF_FFFF << 16).kind == "new"


def answer_of(opened: Opened, name: str, call: Callable[[Any], Any]) -> Any:
    """Call a method of a store of either kind, or a function that takes a store."""
    if opened.store is opened.made:
        return call(opened.store)
    # An asynchronous generator does nothing before its first value.
    if hasattr(Store, name.partition(":")[0]):
        return exhausted(call(opened.store))
    return opened.run(opened.made.run_sync(lambda store: exhausted(call(store))))


def exhausted(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterator) else answer


IN_SQL = {
    "find: a distance": ["find(0::bigint, -1)", "find(0::bigint, 13)"],
    "near_pages: a distance": [f"near_pages({value}, 13)" for value in ("0::bigint", f"'{A}'")],
    "has_near: a distance": ["has_near(0, 65)"],
    "find_many: a distance": ["find_many('{0}', 99)"],
    "should_fetch: a negative age": [f"should_fetch('{A}', interval '-1 day')"],
    "seen: a time": [f"seen('{A}', '2999-01-01')", f"gone('{A}', '1969-01-01')"],
    "expire: nothing": ["expire(interval '0')", "expire(interval '-1 day')"],
    "expire: before the year 1": ["expire(interval '9999 years')"],
    "delete_host: no host": [
        f"delete_host('{host}')" for host in ("", A, "a.example/x", "a.example:80")
    ],
    "mark: equal URLs": [f"mark('{B}', '{B}', true)"],
    "undo_run: no such run": ["undo_run(7)"],
    "set_policy: no setting": ["set_policy('*')"],
    "set_policy: a pattern": ["set_policy('a b', 3)"],
    "set_policy: a distance": ["set_policy('*', 13)"],
}
"""The calls of SQL that have an argument of :data:`VALUES`."""

NOT_IN_SQL = {
    "its types have only valid values": {
        "find: no simhash", "find: a simhash out of range", "near_pages: a simhash",
        "near_pages: a bool", "find: a bool as a distance", "near_pages: NUL",
        "has_near: no simhash", "find_many: two dimensions", "should_fetch: NUL",
        "delete_page: NUL", "add_page: NUL", "delete_host: a surrogate", "add_page: a simhash",
        "mark: NUL", "set_policy: NUL", "start_run: NUL", "start_run: a surrogate",
    },
    "the column refuses NULL": {"start_run: None"},
    "it has no such argument": {
        "find: a limit", "find: a signature out of range", "find: no signature",
        "near_pages: a limit", "near_pages: a signature", "find: a negative limit",
        "find: no limit", "add_page: a distance", "add_pages: a batch",
    },
    "the page fails alone, with a verdict": {"add_page: a long URL", "add_page: a time"},
}  # fmt: skip
"""The others of functions that SQL has too, by reason."""


def test_sql_refuses_the_same(store: Store, dsn: str) -> None:
    store.add_page(B, 0)
    before = content(dsn, "default")
    functions = dict(
        run_sql(
            dsn,
            "SELECT proname::text, prokind::text FROM pg_proc"
            " WHERE pronamespace = 'pgsimhash'::regnamespace",
        )
    )
    common = {name for name in VALUES if name.partition(":")[0] in functions}
    assert common == {*IN_SQL, *itertools.chain(*NOT_IN_SQL.values())}
    for call in itertools.chain(*IN_SQL.values()):
        is_procedure = functions[call.partition("(")[0]] == "p"
        statement = f"{'CALL' if is_procedure else 'SELECT * FROM'} pgsimhash.{call}"
        with pytest.raises(psycopg.Error) as caught:
            pytest.fail(f"{call}: {run_sql(dsn, statement)}")
        assert (caught.value.sqlstate or "").startswith("PS"), call
    assert content(dsn, "default") == before


WRONG: list[Any] = [
    ARRAY, b"x", "x", "\0", "\ud800", -1, 2**70, 2.5, float("nan"), [1], {"a": 1}, object(), print,
    timedelta(0), NAIVE, (1, 2), {1}, pd.NaT, pd.NA, np.timedelta64(3, "D"),
]  # fmt: skip
"""Values of all types. Each is invalid for most arguments."""

OPTIONS = {
    "distance": 3, "verify": True, "scope": "host", "window_size": 5, "max_age": timedelta(1),
    "canonical_link": True, "max_copies": 2, "min_tokens": 1,
}  # fmt: skip
SELECTORS = {"content": "main", "ignore": "nav"}
READING = {"max_bytes": 9999, "markdown": False, **OPTIONS, **SELECTORS}
STREAMED = {"pages": [(A, HTML)], "jobs": 1, "page_seconds": None, "page_memory": None, **READING}
EVERY: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "find": (Store.find, {"simhash": 5, "distance": 3, "limit": 2, "signature": None}),
    "near_pages": (
        Store.near_pages,
        {"page": 5, "distance": 3, "limit": 1, "verify": True, "signature": None},
    ),
    "find_many": (Store.find_many, {"simhashes": ARRAY, "distance": 3}),
    "has_near": (Store.has_near, {"simhash": 5, "distance": 3}),
    "get": (Store.get, {"url": A}),
    "should_fetch": (Store.should_fetch, {"url": A, "older_than": timedelta(1)}),
    "request_headers": (Store.request_headers, {"url": A, "older_than": timedelta(1)}),
    "seen": (Store.seen, {"url": A, "fetched_at": None}),
    "gone": (Store.gone, {"url": A, "fetched_at": None}),
    "add_redirects": (Store.add_redirects, {"targets": {A: B}}),
    "ingest": (Store.ingest, {"url": A, "html": HTML, "fetched_at": None, **READING}),
    "decide": (Store.decide, {"url": A, "html": HTML, "fetched_at": None, **READING}),
    "ingest_many": (Store.ingest_many, {"batch_size": None, **STREAMED}),
    "decide_many": (Store.decide_many, STREAMED),
    "add_page": (Store.add_page, {"url": A, "simhash": 5, "fetched_at": None, **OPTIONS}),
    "add_pages": (Store.add_pages, {"pages": [(A, 5)], "batch_size": None, **OPTIONS}),
    "start_run": (Store.start_run, {"label": "x"}),
    "expire": (Store.expire, {"older_than": timedelta(1), "progress": print}),
    "delete_page": (Store.delete_page, {"url": "https://nowhere.example/"}),
    "delete_host": (Store.delete_host, {"host": "nowhere.example", "progress": print}),
    "pairs": (Store.pairs, {"distance": 3, "progress": print}),
    "clusters": (
        Store.clusters,
        {"distance": 3, "linkage": "single", "canonical": "earliest", "progress": print},
    ),
    "change_settings": (Store.change_settings, {"distance": 3}),
    "rename": (Store.rename, {"name": "default"}),
    "set_policy": (
        Store.set_policy,
        {"pattern": "a.example", "expire_after": None, "refetch_after": None, **OPTIONS},
    ),
    "remove_policy": (Store.remove_policy, {"pattern": "b.example"}),
    "policy_for": (Store.policy_for, {"url": A}),
    "mark": (Store.mark, {"a": A, "b": B, "same": True}),
    "unmark": (Store.unmark, {"a": A, "b": B}),
    "undo_run": (Store.undo_run, {"run_id": 999}),
    "ingest_files": (Store.ingest_files, {"paths": [], "jobs": 1, "max_bytes": 99}),
    "versions": (analysis.versions, {"url": A}),
    "page_pairs": (analysis.page_pairs, {"distance": 3}),
    "report": (analysis.report, {"distance": 3, "linkage": "single"}),
}
STORELESS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "PolicySettings": (PolicySettings, {**OPTIONS, "expire_after": None, "refetch_after": None}),
    "parse_simhash": (parse_simhash, {"text": "0" * 16}),
    "format_simhash": (format_simhash, {"simhash": 5}),
    "from_base32": (from_base32, {"text": "a" * 13}),
    "from_bigint": (from_bigint, {"value": 5}),
    "get_scheme": (get_scheme, {"name": "pgsimhash-article-1"}),
    "fingerprint": (fingerprint, {"html": HTML, "max_bytes": 9999}),
    "read_pages": (read_pages, {"paths": [], "max_bytes": 99}),
    "simhash_lock": (simhash_lock, {"table": sa.table("mine")}),
    "upgrade": (upgrade, {"dsn": "host=127.0.0.1 port=1"}),
    "create_roles": (create_roles, {"dsn": "host=127.0.0.1 port=1", "schema": "x"}),
}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_values_of_any_type_are_refused_by_the_package(dsn: str, asynchronous: bool) -> None:
    for name, (function, good) in EVERY.items():
        with lent("dsn", dsn, asynchronous=asynchronous) as opened:
            opened.store.add_page(B, 0)
            if hasattr(Store, name):
                call = getattr(opened.store, name)
            else:
                call = partial(call_with, opened, name, function)
            refuse_or_accept(call, good)
        # What was accepted may have renamed it.
        run_sql(dsn, "TRUNCATE pgsimhash.collections CASCADE")


def call_with(opened: Opened, name: str, function: Callable[..., Any], /, **values: Any) -> Any:
    return answer_of(opened, name, lambda store: function(store, **values))


def test_values_of_any_type_are_refused_without_a_store() -> None:
    for function, good in STORELESS.values():
        refuse_or_accept(function, good)


def refuse_or_accept(function: Callable[..., Any], good: dict[str, Any]) -> None:
    for name, value in itertools.product(good, WRONG):
        with suppress(PgsimhashError):
            try:
                exhausted(function(**{**good, name: value}))
            except Exception as error:
                if isinstance(error, PgsimhashError):
                    raise
                pytest.fail(f"{function}: {name} = {value!r:.40}: {error!r}")


def test_options_of_connect_are_refused(dsn: str) -> None:
    wrong: list[tuple[str, Any]]
    wrong = [("retry_seconds", value) for value in ("5", -1, float("nan"), 2**31)]
    wrong += [("collection", 5), ("scheme", 5), ("schema", 5), ("on_event", "print")]
    wrong += [(name, ARRAY) for name in ("scheme", "schema", "keep_markdown", "normalize_urls")]
    wrong += [("retry_seconds", ARRAY)]
    for name, value in wrong:
        options: dict[str, Any] = {name: value}
        with pytest.raises(ArgumentError, match=None if isinstance(value, int | str) else name):
            connect(dsn, **options)
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.collections") == [(0,)]


def test_numbers_of_numpy_are_numbers(store: Store) -> None:
    assert store.add_page(A, np.uint64(5)).keep  # type: ignore[arg-type]
    limit: Any = np.int64(1)
    assert [match.url for match in store.find(5, limit=limit)] == [A]
    options: Any = {"distance": limit, "window_size": limit, "max_copies": limit}
    assert store.add_page(B, 4, min_tokens=limit, **options).kind == "duplicate"
    policy = store.set_policy("*", **options)
    assert (policy.distance, policy.max_copies) == (1, 1)


def test_a_url_that_is_not_a_string_is_invalid(store: Store) -> None:
    wrong: Any = None
    with pytest.raises(PageError, check=because("invalid_url")):
        store.add_page(wrong, 5)
    (verdict,) = store.add_pages([(wrong, 5)])
    assert (verdict.url, verdict.reason) == ("None", "invalid_url")
