"""Convert input to records, and gather records into batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short_repr
from typing import Any, Final

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.bits import check_simhash
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.policies import NUMBER_MAX, MatchSettings
from pgsimhash.pages.records import PageFailure, PageRecord, Verdict
from pgsimhash.pages.urls import check_url, normalized_url
from pgsimhash.pages.values import BytesLike, check_time, frozen, text_size
from pgsimhash.sources import PAUSE, SourcePage

BATCH_PAGES: Final = 256
"""Pages per batch: few enough to show progress while pages are read."""

BATCH_SIMHASHES: Final = 1000
"""Records per batch if no page has to be read."""

BATCH_SECONDS: Final = 2.0

BATCH_BYTES: Final = 64 * 1024 * 1024
"""The text of a page at most, and the text after which a batch ends.

PostgreSQL drops the connection at a message of 1 GB. A batch has at most twice this size, and
quotes and backslashes are sent doubled.
"""

_TEXTS: Final = ("url", "title", "canonical_url", "language", "markdown")

_TOO_SHORT: Final = frozenset({"policy", "too_short", "error_page", "blocked", "needs_script"})
"""The reasons of pages that are intact but have too little text."""

Page = SourcePage | PageFailure | PageRecord | tuple[str, str | BytesLike]
"""The input of a store. A record must be fingerprinted by the collection's scheme."""

Source = SourcePage | PageFailure | PageRecord
"""The same without pairs."""

Item = PageRecord | PageFailure


def as_source(page: Page) -> Source:
    """Convert a ``(url, html)`` pair to a page, or to a failure if a type is wrong."""
    if not isinstance(page, SourcePage | PageFailure | PageRecord):
        url, html = _pair(page, "html")
        page = SourcePage(url, frozen(html))
    if isinstance(page, SourcePage):
        if not isinstance(page.url, str):
            what = f"a URL is a str, not {type(page.url).__name__}"
            return PageFailure(str(page.url), "invalid_url", what)
        if not isinstance(page.html, str | bytes):
            what = f"a page is a str or bytes, not {type(page.html).__name__}"
            return PageFailure(page.url, "not_html", what)
    return page


def as_record(page: tuple[str, int]) -> Item:
    """Convert a ``(url, simhash)`` pair to a record, or to a failure if it is invalid."""
    url, simhash = _pair(page, "simhash")
    try:
        return PageRecord(check_url(url), check_simhash(simhash))
    except (PageError, ArgumentError) as error:
        return _refused(url, error)


def _pair(page: object, second: str) -> tuple[Any, Any]:
    if isinstance(page, tuple | list) and len(page) == 2:
        return page[0], page[1]
    message = (
        f"pages are pairs, such as [('https://example.com/', {second})], not {short_repr(page)}"
    )
    raise ArgumentError("invalid_argument", message)


def next_batch(items: Iterator[Item], size: int) -> list[Item]:
    """Return the next items in order; an empty list at the end.

    A batch ends at ``size`` items, at :data:`BATCH_BYTES` of text, or with the first item or pause
    after two seconds.
    """
    batch: list[Item] = []
    started, text = time.monotonic(), 0
    for item in items:
        if item is not PAUSE:
            batch.append(item)
            text += size_of(item)
        if len(batch) >= size or text >= BATCH_BYTES:
            break
        if batch and time.monotonic() - started >= BATCH_SECONDS:
            break
    return batch


@dataclass(frozen=True, slots=True)
class Batch:
    """Items in order, and the records among them.

    Attributes:
        items: records and failures.
        records: the records among the items.
        settings: the match settings of each record.
    """

    items: list[Item]
    records: list[PageRecord]
    settings: list[MatchSettings]

    def verdicts(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Return a verdict for each item, given those of the records."""
        rest = iter(verdicts)
        return [
            next(rest) if isinstance(item, PageRecord) else _failed(item) for item in self.items
        ]


def sorted_out(items: Iterable[Item], settings_of_records: Sequence[MatchSettings]) -> Batch:
    """Return items as a batch. Pages with fewer words than ``min_tokens`` become failures."""
    batch = Batch([], [], [])
    rest = iter(settings_of_records)
    for item in items:
        if isinstance(item, PageFailure):
            batch.items.append(item)
            continue
        settings = next(rest)
        if item.tokens is not None and item.tokens < settings.min_tokens:
            detail = f"it has {item.tokens} words, fewer than {settings.min_tokens}"
            batch.items.append(PageFailure(item.url, "policy", detail))
            continue
        batch.items.append(item)
        batch.records.append(item)
        batch.settings.append(settings)
    return batch


def checked(item: Item) -> Item:
    """Return ``item`` with its time in UTC, or a failure if PostgreSQL cannot store a value."""
    if not isinstance(item, PageRecord):
        return item
    try:
        check_url(item.url)
        for number in (item.simhash, item.text_digest, item.structure):
            check_simhash(0 if number is None else number)
        to_halves(item.signature)
        for name in ("features", "tokens", "html_bytes"):
            number = getattr(item, name)
            if number is not None and (type(number) is not int or not 0 <= number <= NUMBER_MAX):
                raise PageError("unreadable", f"{name} is from 0 to {NUMBER_MAX:,}, not {number!r}")
        if not isinstance(item.html_digest, bytes | None):
            raise PageError("unreadable", f"html_digest is bytes, not {item.html_digest!r}")
        if size_of(item) > BATCH_BYTES:
            raise PageError("too_large", f"its text has more than {BATCH_BYTES:,} bytes")
        moment = item.fetched_at
        return item if moment is None else replace(item, fetched_at=check_time(moment))
    except (PageError, ArgumentError) as error:
        return _refused(item.url, error)


def _refused(url: object, error: PageError | ArgumentError) -> PageFailure:
    reason = error.reason if isinstance(error, PageError) else "unreadable"
    return PageFailure(str(url), reason, str(error))


def size_of(item: Item) -> int:
    """Return how many bytes of text an item sends to the database.

    Raises:
        ArgumentError: PostgreSQL cannot store a text.
    """
    if not isinstance(item, PageRecord):
        return 0
    texts = {name: getattr(item, name) for name in _TEXTS}
    return sum(text_size(name, text) for name, text in texts.items() if text is not None)


def with_normalized_url(item: Item) -> Item:
    """Return ``item`` with normalized URLs, or a failure if one is invalid."""
    if isinstance(item, PageFailure):
        return item
    try:
        url = normalized_url(item.url)
    except PageError as error:
        return PageFailure(item.url, error.reason, str(error))
    try:
        canonical = item.canonical_url and normalized_url(item.canonical_url)
    except PageError:
        canonical = None
    return replace(item, url=url, canonical_url=canonical)


def _failed(failure: PageFailure) -> Verdict:
    return Verdict(
        failure.url,
        "too_short" if failure.reason in _TOO_SHORT else "failed",
        failure.reason,
        detail=failure.detail,
    )
