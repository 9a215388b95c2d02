"""The one way in: check the pages that a caller gives, and gather them into batches.

Pages are checked here before they are read, and invalid ones become failures. Their texts are
checked in :func:`bounded`, when their size is known.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from reprlib import repr as short_repr
from typing import Any, Final, TypeVar, cast

from pgsimhash.errors import PageError, invalid_argument
from pgsimhash.hashing.bits import check_simhash
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.policies import NUMBER_MAX
from pgsimhash.pages.records import (
    BITS_64,
    COUNTS,
    TEXTS,
    Input,
    Item,
    PageFailure,
    PageRecord,
    PageStatus,
    Pause,
    SourcePage,
)
from pgsimhash.pages.selectors import Selectors
from pgsimhash.pages.urls import check_url, normalized_url
from pgsimhash.pages.values import BytesLike, check_time, text_size, validator
from pgsimhash.sources.page import failure

BATCH_PAGES: Final = 256  # few enough to show progress while pages are read
BATCH_SIMHASHES: Final = 1000  # records per batch if no page has to be read
BATCH_SECONDS: Final = 2.0
# The text of a page at most, and the text after which a batch ends. PostgreSQL drops the connection
# at a message of 1 GB. A batch has at most twice this size, and quotes are sent doubled.
BATCH_BYTES: Final = 64 * 1024 * 1024

Page = Input | tuple[str, str | BytesLike]

_T = TypeVar("_T")
_Page = TypeVar("_Page", bound=SourcePage | PageRecord | PageStatus)


def as_input(page: Page) -> Input:
    """Return a page with checked values; an invalid page is a failure."""
    if isinstance(page, PageFailure):
        url, reason, detail = map(_text, (page.url, page.reason, page.detail))
        return replace(page, url=url, reason=reason, detail=detail)
    if isinstance(page, SourcePage | PageRecord | PageStatus):
        return _or_failure(page.url, lambda: checked(page))
    url, html = _pair(page, "html")
    return _or_failure(url, lambda: checked(SourcePage(url, html)))


def page_of(url: str, html: str | BytesLike, fetched_at: datetime | None, **headers: Any) -> Page:
    """Return the page of a call; an invalid time raises ArgumentError."""
    if fetched_at is not None:
        check_time(fetched_at)
    # A SourcePage copies mutable bytes.
    return SourcePage(url, cast("bytes | str", html), fetched_at=fetched_at, **headers)


def as_record(page: tuple[str, int]) -> Item:
    """Convert a ``(url, simhash)`` pair to a record, or to a failure if it is invalid."""
    url, simhash = _pair(page, "simhash")
    return _or_failure(url, lambda: PageRecord(check_url(url), check_simhash(simhash)))


def _or_failure(url: object, read: Callable[[], _T]) -> _T | PageFailure:
    try:
        return read()
    except Exception as error:  # the methods of a page's values may raise anything
        return failure(_text(url), error)


def _text(value: object) -> str:
    return value if isinstance(value, str) else short_repr(value)


def _pair(page: object, second: str) -> tuple[Any, Any]:
    if isinstance(page, tuple | list) and len(page) == 2:
        return page[0], page[1]
    example = f"[('https://example.com/', {second})]"
    raise invalid_argument(f"pages are pairs, such as {example}, not {short_repr(page)}")


def checked(page: _Page) -> _Page:
    """Check all values but texts; the reader checks the URL and the size of an unread page."""
    for name in ("is_gone", "noindex", "content_missing"):
        if not isinstance(answer := getattr(page, name, False), bool):
            raise PageError("unreadable", f"{name} is True or False, not {answer!r:.40}")
    if isinstance(page, PageStatus):
        check_url(page.url)
    elif isinstance(page, PageRecord):
        _check_record(page)
    elif not isinstance(page.url, str):
        raise PageError("invalid_url", f"a URL is a str, not {type(page.url).__name__}")
    elif not isinstance(page.html, str | bytes):
        raise PageError("not_html", f"a page is a str or bytes, not {type(page.html).__name__}")
    else:
        Selectors(page.content, page.ignore).checked()
    time = None if page.fetched_at is None else check_time(page.fetched_at)
    etag, modified = validator(page.etag), validator(page.last_modified)
    return replace(page, fetched_at=time, etag=etag, last_modified=modified)


def _check_record(record: PageRecord) -> None:
    check_url(record.url)
    for name in ("simhash", *BITS_64):
        number = getattr(record, name)
        if number is not None or name == "simhash":
            check_simhash(number)
    to_halves(record.signature)
    for name in COUNTS:
        number = getattr(record, name)
        if number is not None and (type(number) is not int or not 0 <= number <= NUMBER_MAX):
            raise PageError("unreadable", f"{name} is from 0 to {NUMBER_MAX:,}, not {number!r}")
    if not isinstance(record.html_digest, bytes | None):
        raise PageError("unreadable", f"html_digest is bytes, not {record.html_digest!r}")


def next_batch(items: Iterator[Item], size: int) -> list[Item]:
    """Return the next items in order; an empty list at the end.

    It ends at ``size`` items or :data:`BATCH_BYTES` of text, after two seconds, or with a pause.
    """
    batch: list[Item] = []
    started, text = time.monotonic(), 0
    for item in items:
        if not isinstance(item, Pause):
            checked, item_size = bounded(item)
            batch.append(checked)
            text += item_size
        is_late = isinstance(item, Pause) or time.monotonic() - started >= BATCH_SECONDS
        if batch and (len(batch) >= size or text >= BATCH_BYTES or is_late):
            break
    return batch


def bounded(item: Item) -> tuple[Item, int]:
    """Return an item and how many bytes of text it sends to the database.

    A record becomes a failure if PostgreSQL cannot store its texts.
    """
    if not isinstance(item, PageRecord):
        return item, 0
    try:
        texts = {name: getattr(item, name) for name in TEXTS}
        size = sum(text_size(name, text) for name, text in texts.items() if text is not None)
        if size > BATCH_BYTES:
            raise PageError("too_large", f"its text has more than {BATCH_BYTES:,} bytes")
    except Exception as error:
        return failure(item.url, error), 0
    return item, size


def with_normalized_url(item: Item) -> Item:
    """Return ``item`` with normalized URLs, or a failure if one is invalid."""
    if isinstance(item, PageFailure):
        return item
    try:
        url = normalized_url(item.url)
    except PageError as error:
        return failure(item.url, error)
    if isinstance(item, PageStatus):
        return replace(item, url=url)
    canonical = alternates = None
    with suppress(PageError):
        canonical = item.canonical_url and normalized_url(item.canonical_url)
    with suppress(PageError):
        alternates = item.alternates and " ".join(map(normalized_url, item.alternates.split()))
    return replace(item, url=url, canonical_url=canonical, alternates=alternates)
