"""The calls of a store by name, for tests of what holds for all of them.

They fit a collection that has pages at A and B, and a run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import numpy as np

from pgsimhash import Store, analysis, maintenance
from pgsimhash.pages.policies import PolicySettings

A, B = "https://a.example/", "https://b.example/"
HTML = "<p>" + "one two three four " * 20
DAY = timedelta(days=1)

LOOKUPS: dict[str, Callable[[Store], object]] = {
    "find": lambda store: store.find(7),
    "find_many": lambda store: store.find_many(np.array([7], dtype=np.uint64)),
    "exists": lambda store: store.exists(7),
    "near_pages": lambda store: store.near_pages(7),
    "near_pages of a URL": lambda store: store.near_pages(A),
    "get": lambda store: store.get(A),
    "should_fetch": lambda store: store.should_fetch(A),
    "decide": lambda store: store.decide(A, HTML),
    "decide_many": lambda store: list(store.decide_many([(A, HTML)])),
}
"""Calls that read few pages."""

SCANS: dict[str, Callable[[Store], object]] = {
    "pairs": lambda store: list(store.pairs()),
    "clusters": lambda store: list(store.clusters()),
    "report": lambda store: analysis.report(store),
}
"""Calls that read all pages; they may take long."""

CHANGES: dict[str, Callable[[Store], object]] = {
    "add": lambda store: store.add(f"{A}3", 5),
    "add_many": lambda store: list(store.add_many([(f"{A}4", 5)])),
    "ingest": lambda store: store.ingest(f"{A}5", HTML),
    "ingest_many": lambda store: list(store.ingest_many([(f"{A}6", HTML)])),
    "should_store": lambda store: store.should_store(f"{A}7", HTML),
    "mark": lambda store: maintenance.mark(store, A, B, same=True),
    "unmark": lambda store: maintenance.unmark(store, A, B),
    "set_policy": lambda store: maintenance.set_policy(store, "*", PolicySettings(distance=3)),
    "remove_policy": lambda store: maintenance.remove_policy(store, "*"),
    "change_settings": lambda store: maintenance.change_settings(store, keep_markdown=True),
    "rebuild": lambda store: maintenance.rebuild(store),
    "rename": lambda store: maintenance.rename(store, "other"),
    "undo": lambda store: maintenance.undo(store),
    "delete_run": lambda store: maintenance.delete_run(store, maintenance.runs(store)[0].run_id),
    "expire": lambda store: store.expire(DAY),
    "delete": lambda store: store.delete(A),
    "delete_host": lambda store: store.delete_host("a.example"),
}
"""Calls that lock the collection."""
