"""What goes into the store, made records and gathered into batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from pgsimhash.bits import check_simhash
from pgsimhash.errors import (
    BlockedPageError,
    ErrorPageError,
    InvalidSimhashError,
    InvalidTimeError,
    InvalidUrlError,
    NotHtmlError,
    ScriptPageError,
    TooShortError,
)
from pgsimhash.octets import Octets, frozen
from pgsimhash.policies import Rules
from pgsimhash.records import PageFailure, PageRecord, Verdict
from pgsimhash.sources import SourceFailure, SourcePage
from pgsimhash.times import check_time
from pgsimhash.urls import check_url

BATCH_PAGES: Final = 256
"""How many pages are decided together: few enough to see progress while they are read."""

BATCH_SIMHASHES: Final = 1000
"""The same where nothing has to be read."""

BATCH_SECONDS: Final = 2.0

_TOO_SHORT: Final = frozenset(
    {
        "policy",
        TooShortError.reason,
        ErrorPageError.reason,
        BlockedPageError.reason,
        ScriptPageError.reason,
    }
)
"""The reasons of pages that are what they should be, but say too little."""

Page = SourcePage | SourceFailure | tuple[str, str | Octets]


def as_source(page: Page) -> SourcePage | SourceFailure:
    """Return a page or a ``(url, html)`` pair as a page, or as the failure that its types make."""
    if isinstance(page, tuple):
        url, html = page
        page = SourcePage(url, frozen(html))
    source = page
    if isinstance(source, SourcePage):
        if not isinstance(source.url, str):
            what = f"a URL is a str, not {type(source.url).__name__}"
            return SourceFailure(str(source.url), InvalidUrlError.reason, what)
        if not isinstance(source.html, str | bytes):
            what = f"a page is a str or bytes, not {type(source.html).__name__}"
            return SourceFailure(source.url, NotHtmlError.reason, what)
    return source


def as_record(page: tuple[str, int]) -> PageRecord | PageFailure:
    """Return a ``(url, simhash)`` pair as a record, or as the failure it is."""
    url, simhash = page
    try:
        return PageRecord(check_url(url), check_simhash(simhash))
    except InvalidUrlError as error:
        return PageFailure(url, error.reason, str(error))
    except InvalidSimhashError as error:
        return PageFailure(url, "invalid_simhash", str(error))


def write_in_batches(
    items: Iterable[PageRecord | PageFailure],
    write: Callable[[list[PageRecord]], list[Verdict]],
    size: int,
) -> Iterator[Verdict]:
    """Hand records to ``write`` in batches and yield a verdict for each item, in order.

    A batch is full at ``size`` items, or when its first item has waited for two seconds and the
    next one comes.
    """
    batch: list[PageRecord | PageFailure] = []
    started = time.monotonic()
    for item in items:
        batch.append(item)
        if len(batch) >= size or time.monotonic() - started >= BATCH_SECONDS:
            yield from verdicts_of(batch, write)
            batch, started = [], time.monotonic()
    yield from verdicts_of(batch, write)


def verdicts_of(
    batch: Iterable[PageRecord | PageFailure],
    write: Callable[[list[PageRecord]], Iterable[Verdict]],
) -> Iterator[Verdict]:
    """Hand the records of one batch to ``write`` and yield a verdict for each item, in order."""
    batch = list(batch)
    records = [item for item in batch if isinstance(item, PageRecord)]
    verdicts = iter(write(records) if records else ())
    for item in batch:
        yield next(verdicts) if isinstance(item, PageRecord) else _failed(item)


def with_checked_time(item: PageRecord | PageFailure) -> PageRecord | PageFailure:
    """Return ``item`` with its time in UTC, or the failure that its time makes it."""
    if isinstance(item, PageRecord) and item.fetched_at is not None:
        try:
            return replace(item, fetched_at=check_time(item.fetched_at))
        except InvalidTimeError as error:
            return PageFailure(item.url, error.reason, str(error))
    return item


def with_enough_words(item: PageRecord | PageFailure, rules: Rules) -> PageRecord | PageFailure:
    """Return ``item``, or the failure that a policy makes of a page with too few words."""
    if isinstance(item, PageFailure) or item.words is None:
        return item
    least = rules.terms_for(item.url).min_words
    if item.words >= least:
        return item
    return PageFailure(item.url, "policy", f"it has {item.words} words, and {least} are asked for")


def _failed(failure: PageFailure) -> Verdict:
    return Verdict(
        failure.url,
        "too_short" if failure.reason in _TOO_SHORT else "failed",
        failure.reason,
        detail=failure.detail,
    )
