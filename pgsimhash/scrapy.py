"""Near-duplicates dropped or tagged in a Scrapy crawl: an item pipeline, a spider middleware.

Needs Scrapy 2.14 or later (extra ``scrapy``) and its asyncio reactor, which is the default. Use one
of the two: each hands every page to the store, and what it met before is no news to the other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from email.message import Message
from functools import partial
from typing import Any, Final, Self, TypeVar, cast
from weakref import WeakSet

from pgsimhash.errors import ArgumentError, MissingPackageError, StoreError, install_command
from pgsimhash.matching import MatchOptions, check_options
from pgsimhash.page_reader import PageReader
from pgsimhash.records import PageFailure, PageRecord, Verdict
from pgsimhash.schemes import get_scheme
from pgsimhash.sources import SourcePage
from pgsimhash.store import Store, connect
from pgsimhash.store.batches import BATCH_PAGES, as_source
from pgsimhash.store.retries import RETRY_SECONDS

try:
    from itemadapter import ItemAdapter
    from scrapy import Request, signals
    from scrapy.crawler import Crawler
    from scrapy.exceptions import DropItem
    from scrapy.http import HtmlResponse, Response
    from scrapy.settings import BaseSettings
    from scrapy.utils.asyncio import is_asyncio_available
except ImportError as error:
    raise MissingPackageError(
        "not_installed",
        f"pgsimhash.scrapy needs Scrapy 2.14 or later; install it {install_command('scrapy')}",
    ) from error

ACTIONS: Final = ("drop", "tag")

REOPEN_SECONDS: Final = 5.0
"""After the store failed, how long pages pass without a verdict before it is opened again."""

Asked = TypeVar("Asked")

_logger = logging.getLogger(__name__)
_served: WeakSet[Crawler] = WeakSet()


class _Component:
    """What pipeline and middleware share: the settings, the store in its thread, the counters."""

    def __init__(self, crawler: Crawler) -> None:
        """Open the store; what is wrong with it or with the settings ends the crawl here.

        Raises:
            ArgumentError: a setting is none, or the other component is there, or no asyncio.
            StoreError: the store cannot be opened.
        """
        settings = crawler.settings
        self._crawler = crawler
        self._action = settings.get("PGSIMHASH_ACTION", "drop")
        self._tag = settings.get("PGSIMHASH_TAG", "pgsimhash")
        self._closes = settings.getbool("PGSIMHASH_CLOSE_ON_ERROR")
        self._closing: asyncio.Task[None] | None = None
        _check(self._action in ACTIONS, f"PGSIMHASH_ACTION is drop or tag, not {self._action!r}")
        _check(is_asyncio_available(), "pgsimhash.scrapy needs the asyncio reactor of Scrapy")
        _check(
            crawler not in _served,
            "PgsimhashPipeline and PgsimhashSpiderMiddleware would each store every page, so that "
            "what one met is known to the other; enable one of them",
        )
        what = f"scrapy {crawler.spidercls.name}"
        self._store = _StoreThread(
            partial(_connect, settings), what, _options(settings), _page_reader(settings)
        )
        _served.add(crawler)
        crawler.signals.connect(self._store.close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def _verdict(self, page: SourcePage) -> Verdict | None:
        """Return the store's verdict, counted; None where it could not be had, which is logged."""
        try:
            verdict = await asyncio.wrap_future(self._store.ask(page))
        except Exception as error:  # a page is never lost because the store is
            known = isinstance(error, StoreError)
            _logger.error("no verdict about %s: %s", page.url, error, exc_info=not known)
            self._count("unanswered")
            if self._closes and self._closing is None:
                closing = self._crawler.engine.close_spider_async(reason="pgsimhash_error")
                self._closing = asyncio.ensure_future(closing)
            return None
        self._count(verdict.verdict)
        return verdict

    def _drops(self, verdict: Verdict) -> bool:
        # What has no simhash was compared with nothing: it may well be new.
        return self._action == "drop" and verdict.simhash is not None and not verdict.keep

    def _count(self, name: str) -> None:
        self._crawler.stats.inc_value(f"pgsimhash/{name}")


class PgsimhashPipeline(_Component):
    """Drops items whose page is known already, or tags items with the verdict.

    Items that hold no page, and those that no verdict could be had about, pass as they are.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._url_field = crawler.settings.get("PGSIMHASH_URL_FIELD", "url")
        self._html_field = crawler.settings.get("PGSIMHASH_HTML_FIELD", "html")
        super().__init__(crawler)

    def page_of(self, item: Any) -> SourcePage | None:
        """Return the page that an item holds, None if it holds none; override it at will."""
        if not ItemAdapter.is_item(item):
            return None
        fields = ItemAdapter(item)
        url, html = fields.get(self._url_field), fields.get(self._html_field)
        return None if url is None or html is None else SourcePage(url, html)

    async def process_item(self, item: Any) -> Any:
        """Return the item, with its tag if that is the action.

        Raises:
            DropItem: its page is known.
        """
        page = self.page_of(item)
        if page is None:
            self._count("no_page")
            return item
        verdict = await self._verdict(page)
        if verdict is None:
            return item
        if self._drops(verdict):
            self._count("dropped")
            known = verdict.duplicate_of or "a simhash without a page"
            # Scrapy logs the whole item with it, and that has the page in it.
            raise DropItem(f"{verdict.verdict} ({verdict.reason}): {known}", log_level="DEBUG")
        if self._action == "tag":
            self._tag_item(item, verdict)
        return item

    def _tag_item(self, item: Any, verdict: Verdict) -> None:
        try:
            ItemAdapter(item)[self._tag] = verdict.as_json()
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            self._count("untagged")
            _logger.error(
                "%s takes no field %r, so it has no verdict: declare it, or name another one in "
                "PGSIMHASH_TAG (%s)",
                type(item).__name__,
                self._tag,
                error,
            )


class PgsimhashSpiderMiddleware(_Component):
    """Drops what a callback makes of pages that are known already, or only tags the responses.

    ``response.meta`` has the verdict, which a callback that is a generator can read. Responses that
    are no HTML, or have another status than 200 to 299, pass as they are.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._follows = crawler.settings.getbool("PGSIMHASH_FOLLOW", True)
        super().__init__(crawler)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield what a callback yields: of a known page the requests, or with no ``FOLLOW`` none.

        A generator has not begun when its page gets its verdict, and with no ``FOLLOW`` never does.
        """
        verdict = await self._verdict_about(response)
        drops = verdict is not None and self._drops(verdict)
        if drops:
            self._count("dropped")
        if drops and not self._follows:
            return
        async for found in result:
            if not drops or isinstance(found, Request):
                yield found

    async def _verdict_about(self, response: Response) -> Verdict | None:
        if not isinstance(response, HtmlResponse) or not 200 <= response.status < 300:
            self._count("no_page")
            return None
        page = SourcePage(response.url, response.body, charset=_charset(response))
        verdict = await self._verdict(page)
        if verdict is not None:
            response.meta[self._tag] = verdict.as_json()
        return verdict


class _StoreThread:
    """The one thread that opens, uses and closes the store, and one before it that reads pages.

    What waits when either is free is one batch, so the crawl decides how large batches are. While
    the store waits for the database the next pages are read.
    """

    def __init__(
        self, opener: Callable[..., Store], what: str, options: MatchOptions, reader: PageReader
    ) -> None:
        self._opener = opener
        self._what = what
        self._options = options
        self._pages: deque[tuple[SourcePage, Future[Verdict]]] = deque()
        self._records: deque[tuple[PageRecord | PageFailure, Future[Verdict]]] = deque()
        self._page_reader = reader
        self._reader = ThreadPoolExecutor(1, "pgsimhash-reader")
        self._thread = ThreadPoolExecutor(1, "pgsimhash-store")
        self._store: Store | None = None
        self._failed_at: float | None = None
        self._failure: StoreError | None = None
        try:
            store = self._thread.submit(self._open, create=True).result()
        except BaseException:
            self.close()
            raise
        self._extract = partial(
            reader.extract, scheme=get_scheme(store.scheme), markdown=store.opened.keep_markdown
        )

    def ask(self, page: SourcePage) -> Future[Verdict]:
        """Return what will be the verdict about a page, which is stored."""
        answer: Future[Verdict] = Future()
        self._pages.append((page, answer))
        self._reader.submit(self._read)
        return answer

    def close(self) -> None:
        """Answer what waits, and close the store."""
        self._reader.shutdown()
        self._page_reader.close()
        self._thread.submit(self._close)
        self._thread.shutdown()

    def _read(self) -> None:
        batch = [
            (self._extract(as_source(page)), answer)
            for page, answer in _taken(self._pages)
            if answer.set_running_or_notify_cancel()
        ]
        if batch:
            self._records.extend(batch)
            self._thread.submit(self._answer)

    def _answer(self) -> None:
        batch = _taken(self._records)
        if not batch:
            return
        try:
            verdicts = self._opened().ingest_many([record for record, _ in batch], **self._options)
            for (_, answer), verdict in zip(batch, verdicts, strict=True):
                answer.set_result(verdict)
        except Exception as error:
            # Never asked again: what was stored, and only its answer lost, would now be known.
            if isinstance(error, StoreError) and self._store is not None:
                self._failure, self._failed_at = error, time.monotonic()
                self._close()
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)

    def _opened(self) -> Store:
        if self._store is not None:
            return self._store
        failure, failed_at = self._failure, self._failed_at
        if failure and failed_at and time.monotonic() - failed_at < REOPEN_SECONDS:
            raise type(failure)(*failure.args)
        try:
            # A collection that someone deleted meanwhile is not to come back empty.
            return self._open(create=False)
        except StoreError as error:
            self._failure, self._failed_at = error, time.monotonic()
            raise

    def _open(self, *, create: bool) -> Store:
        self._store = store = self._opener(create=create)
        # Wrong options are refused here, before the first page.
        store.ingest_many([], **self._options)
        store.start_run(self._what)
        return store

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _taken(waiting: deque[Asked]) -> list[Asked]:
    return [waiting.popleft() for _ in range(min(len(waiting), BATCH_PAGES))]


def _connect(settings: BaseSettings, *, create: bool) -> Store:
    return connect(
        settings.get("PGSIMHASH_DSN"),
        collection=settings.get("PGSIMHASH_COLLECTION", "default"),
        create=create,
        scheme=settings.get("PGSIMHASH_SCHEME"),
        schema=settings.get("PGSIMHASH_SCHEMA"),
        retry_seconds=settings.getfloat("PGSIMHASH_RETRY_SECONDS", RETRY_SECONDS),
    )


def _page_reader(settings: BaseSettings) -> PageReader:
    seconds, memory = (settings.get(f"PGSIMHASH_PAGE_{what}") for what in ("SECONDS", "MEMORY"))
    try:
        return PageReader(seconds and float(seconds), memory and int(memory))
    except ValueError as error:
        raise ArgumentError(
            "invalid_setting", f"PGSIMHASH_PAGE_SECONDS, _MEMORY: {error}"
        ) from None


def _options(settings: BaseSettings) -> MatchOptions:
    options = settings.getdict("PGSIMHASH_MATCH")
    try:
        check_options(options)
    except TypeError as error:
        raise ArgumentError("invalid_setting", f"PGSIMHASH_MATCH: {error}") from None
    return cast(MatchOptions, options)


def _check(is_right: bool, message: str) -> None:
    if not is_right:
        raise ArgumentError("invalid_setting", message)


def _charset(response: Response) -> str | None:
    header = Message()
    header["content-type"] = (response.headers.get("Content-Type") or b"").decode("latin-1")
    return header.get_content_charset()
