"""Compare what two crawls saw: pages that changed, moved, came and went."""

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, compress, islice
from typing import Any, Final, Literal, NamedTuple

from pgsimhash.analysis.changes import WithWords, changed_words
from pgsimhash.errors import NotFoundError
from pgsimhash.pages.records import RunRecord
from pgsimhash.store import Store

Outcome = Literal["changed", "moved", "new", "gone", "missing", "not_visited", "unchanged"]

_BATCH: Final = 32  # changed pages whose Markdown is read at a time


@dataclass(frozen=True, slots=True)
class CrawlChange(WithWords):
    """What became of a page from the earlier crawl to the later one.

    - ``changed``: another text; ``distance`` is the number of bits, and ``words`` are those that
      changed, if the collection keeps Markdown; likewise of ``moved``.
    - ``moved``: ``moved_from``, which is gone or missing, had this text, or redirects to it.
    - ``new``: only the later crawl saw it.
    - ``gone``: the later crawl found it gone (404 or 410).
    - ``missing``: it redirects to a page of the later crawl, or this ended without it, and visited
      at least half as many pages of the host as the earlier one saw.
    - ``not_visited``: nor did the later crawl see it, but it omitted more, or did not end, or the
      page was not due by its policy when it began.
    - ``unchanged``: the same text. One record for all of these ``pages``, without a URL.
    """

    change: Outcome
    pages: int
    url: str | None
    moved_from: str | None
    title: str | None
    distance: int | None
    earlier_page_id: int | None
    later_page_id: int | None


Outcomes = dict[Outcome, tuple[int, list[CrawlChange]]]
"""The number of pages by outcome, and the first of them."""


class CrawlComparison(NamedTuple):
    """The runs of two crawls, and what changed: largest changes first, unchanged pages last."""

    earlier: list[RunRecord]
    later: list[RunRecord]
    changes: Generator[CrawlChange]


def compare_crawls(
    store: Store,
    earlier: int | str | date | None = None,
    later: int | str | date | None = None,
    *,
    examples: int | None = None,
) -> CrawlComparison:
    """Compare two crawls of the collection, by default its last two ended runs.

    A crawl is the number of a run, or for all its runs a label or a day (also ``2026-11-25``). The
    changes are compared when they are read, in one transaction and bounded memory. ``examples``
    limits for how many changed pages the words are compared.

    Raises:
        NotFoundError: the collection has no such run.
    """
    with store._session.calls_to_read() as calls:
        runs = calls.records("runs", RunRecord)
    second = _chosen(store, runs, later)
    before = [run for run in runs if run.run_id < second[-1].run_id]
    first = _chosen(store, before if earlier is None else runs, earlier)
    return CrawlComparison(first, second, _changes(store, first, second, examples))


def _chosen(store: Store, runs: list[RunRecord], crawl: int | str | date | None) -> list[RunRecord]:
    """Return the runs of a crawl, the last one first."""
    given = str(crawl)
    chosen = [run for run in runs if given in (f"{run.run_id}", run.label, f"{run.started_at:%F}")]
    if crawl is None:
        chosen = [run for run in runs if run.ended_at is not None][:1]
    if not chosen:
        name = store.collection.name
        what = "too few runs that ended" if crawl is None else f"no run {crawl}"
        raise NotFoundError(
            "unknown_run",
            f"collection {name!r} has {what}; pgsimhash run list --collection {name} lists them",
        )
    return chosen


def _changes(
    store: Store, earlier: list[RunRecord], later: list[RunRecord], examples: int | None
) -> Generator[CrawlChange]:
    first, second = ([run.run_id for run in runs] for runs in (earlier, later))
    done = 0
    with (
        store._session.calls_to_read(one_transaction=True) as calls,
        closing(calls.stream("compare_crawls", earlier=first, later=second)) as rows,
    ):
        while batch := [CrawlChange(*row) for row in islice(rows, _BATCH)]:
            limit = None if examples is None else max(0, examples - done)
            done += len(batch)
            versions = [(each.earlier_page_id, each.later_page_id) for each in batch]
            changed = [each.change in ("changed", "moved") for each in batch[:limit]]
            page_ids = list(chain(*compress(versions, changed)))
            asked: Any = {"columns": ("page_id", "markdown"), "page_ids": page_ids}
            texts = dict(calls.fetch("versions", **asked)) if page_ids else {}
            for change, pair in zip(batch, versions, strict=True):
                yield replace(change, words=changed_words(*map(texts.get, pair)))


def first_of_each(changes: Iterable[CrawlChange], most: int) -> Outcomes:
    """Return for each outcome the number of pages, and the first of them."""
    outcomes: Outcomes = {}
    for change in changes:
        count, first = outcomes.get(change.change, (0, []))
        if len(first) < most and change.url is not None:
            first.append(change)
        outcomes[change.change] = count + change.pages, first
    return outcomes
