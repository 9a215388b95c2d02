"""The calls of a store by name, for tests of what holds for all of them.

They fit a collection that has pages at A and B, and a run; two stores answer them equally.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pgsimhash import Store, analysis
from pgsimhash.analysis.pairs import LabelledPair

A, B = "https://a.example/", "https://b.example/"
PAGE = Path(__file__).parents[2] / "examples" / "pages" / "sourdough.html"
HTML = "<p>" + "one two three four " * 20
DAY = timedelta(days=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LABELLED = [LabelledPair(A, B, "copy")]

LOOKUPS: dict[str, Callable[[Store], Any]] = {
    "find": lambda store: store.find(7),
    "find with conditions": lambda store: store.find(7, signature=7, limit=2),
    "find_many": lambda store: [column.tolist() for column in store.find_many(range(9))],
    "has_near": lambda store: store.has_near(7),
    "near_pages": lambda store: store.near_pages(7),
    "near_pages of a URL": lambda store: store.near_pages(A, 8, limit=3),
    "get": lambda store: store.get(A),
    "should_fetch": lambda store: store.should_fetch(A),
    "should_fetch_many": lambda store: store.should_fetch_many([A, B]),
    "should_fetch of an age": lambda store: store.should_fetch(A, older_than=DAY),
    "request_headers": lambda store: store.request_headers(A, older_than=DAY),
    "decide": lambda store: store.decide(A, HTML, markdown=True),
    "decide_many": lambda store: list(store.decide_many([(A, HTML), (f"{A}new", HTML)])),
}
"""Calls that read few pages."""

SCANS: dict[str, Callable[[Store], Any]] = {
    "pairs": lambda store: sum(len(block.low) for block in store.pairs(8)),
    "clusters": lambda store: list(store.clusters()),
    "report": lambda store: replace(analysis.report(store), made_at=LONG_AGO),
}
"""Calls that read all pages; they may take long."""

READS: dict[str, Callable[[Store], Any]] = {
    **LOOKUPS,
    **SCANS,
    "status": lambda store: store.status(),
    "collections": lambda store: store.collections()[0],
    "page_pairs": lambda store: list(analysis.page_pairs(store, 8)),
    "evaluate": lambda store: analysis.evaluate(LABELLED, store).omitted,
    "compare_pages": lambda store: analysis.compare_pages(A, B, store=store),
    "compare_crawls": lambda store: list(
        analysis.compare_crawls(store, *[store.runs()[0].run_id] * 2).changes
    ),
    "versions": lambda store: analysis.versions(store, A),
    "runs": lambda store: store.runs(),
    "marks": lambda store: store.marks(),
    "count_reread": lambda store: store.count_reread(),
    "policies": lambda store: store.policies(),
    "policy_for": lambda store: store.policy_for(A),
    "check": lambda store: list(store.check()),
}
"""Calls that write nothing."""

CHANGES: dict[str, Callable[[Store], Any]] = {
    "add_page": lambda store: store.add_page(f"{A}3", 5),
    "add_pages": lambda store: list(store.add_pages([(f"{A}4", 5)])),
    "ingest": lambda store: store.ingest(f"{A}5", HTML),
    "ingest_many": lambda store: list(store.ingest_many([(f"{A}6", HTML)])),
    "ingest_files": lambda store: list(store.ingest_files([PAGE])),
    "add_redirects": lambda store: store.add_redirects({f"{A}old": A}),
    "seen": lambda store: store.seen(A),
    "gone": lambda store: store.gone(A),
    "mark": lambda store: store.mark(A, B, same=True),
    "unmark": lambda store: store.unmark(A, B),
    "set_policy": lambda store: store.set_policy("*", distance=3),
    "remove_policy": lambda store: store.remove_policy("*"),
    "change_settings": lambda store: store.change_settings(keep_markdown=True),
    "rebuild": lambda store: store.rebuild(),
    "rename": lambda store: store.rename(f"{store.collection.name}_renamed"),
    "undo_run": lambda store: store.undo_run(store.runs()[0].run_id),
    "expire": lambda store: store.expire(DAY),
    "delete_page": lambda store: store.delete_page(A),
    "delete_host": lambda store: store.delete_host("a.example"),
}
"""Calls that lock the collection."""
