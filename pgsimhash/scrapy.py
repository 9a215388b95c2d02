"""Drop or tag near-duplicates in a Scrapy crawl, and do not fetch known pages again.

:class:`Addon` is the whole set-up. Pages are stored by an item pipeline, or else by a spider
middleware. Needs Scrapy 2.15 or later (extra ``scrapy``) and its asyncio reactor, the default.
"""

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final, Self
from urllib.parse import urldefrag
from weakref import WeakKeyDictionary, WeakSet

from pgsimhash.errors import PgsimhashError, StoreError, invalid_argument
from pgsimhash.pages.policies import checked_settings
from pgsimhash.pages.records import PageStatus, Pause, Verdict
from pgsimhash.pages.selectors import Selectors
from pgsimhash.pages.values import says_noindex
from pgsimhash.runtime import requires
from pgsimhash.sources import SourcePage
from pgsimhash.sources.page import content_type
from pgsimhash.store import connect
from pgsimhash.store.session import RETRY_SECONDS

with requires("pgsimhash.scrapy", "Scrapy 2.15 or later", extra="scrapy"):
    from itemadapter import ItemAdapter
    from scrapy import Request, signals
    from scrapy.crawler import Crawler
    from scrapy.exceptions import DropItem, IgnoreRequest, NotConfigured
    from scrapy.http import HtmlResponse, Response
    from scrapy.http.request import NO_CALLBACK
    from scrapy.settings import BaseSettings
    from scrapy.utils.asyncio import is_asyncio_available
    from scrapy.utils.request import RequestFingerprinter
    from w3lib.url import canonicalize_url

__all__ = [
    "Addon",
    "PgsimhashDownloaderMiddleware",
    "PgsimhashPipeline",
    "PgsimhashSpiderMiddleware",
]

PAUSE_SECONDS: Final = 5.0
"""Seconds after a failure of the store before its next call; pages pass without a verdict."""

DECIDED_MAX: Final = 10_000
"""How many verdicts are remembered for retries and further items of their pages."""

LOG_SECONDS: Final = 60.0
"""A failure of the store is logged this often."""

_VALIDATORS: Final = ("If-None-Match", "If-Modified-Since")
_NOT_STORED: Final = ("too_short", "failed", "gone", "unknown")
_POLL_SECONDS: Final = 0.005  # how long a batch waits for another page

_logger = logging.getLogger(__name__)


class Addon:
    """Enable what a crawl needs: ``ADDONS = {"pgsimhash.scrapy.Addon": 500}``.

    The downloader middleware skips requests for known pages. The spider middleware stores pages and
    drops the items of known ones, unless the pipeline is enabled.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable the two middlewares."""
        enable = settings.setdefault_in_component_priority_dict
        enable("DOWNLOADER_MIDDLEWARES", PgsimhashDownloaderMiddleware, 60)
        enable("SPIDER_MIDDLEWARES", PgsimhashSpiderMiddleware, 1000)


class _Component:
    """The base of the components: the settings, the store in its thread, the counters."""

    def __init__(self, crawler: Crawler) -> None:
        """Open the store; errors of the store or the settings end the crawl here."""
        settings = crawler.settings
        if not settings.getbool("PGSIMHASH_ENABLED", True):
            raise NotConfigured
        self._crawler = crawler
        self._action = settings.get("PGSIMHASH_ACTION", "drop")
        self._tag = settings.get("PGSIMHASH_TAG", "pgsimhash")
        self._follows = settings.getbool("PGSIMHASH_FOLLOW", True)
        self._closes = settings.getbool("PGSIMHASH_CLOSE_ON_ERROR")
        self._closing: asyncio.Task[None] | None = None
        self._decided: dict[int, Verdict] = {}
        if self._action not in ("drop", "tag"):
            raise invalid_argument(f"PGSIMHASH_ACTION must be drop or tag, not {self._action!r}")
        if not is_asyncio_available():
            raise invalid_argument("pgsimhash.scrapy needs the asyncio reactor of Scrapy")
        if crawler not in _opened:
            _opened[crawler] = _Store(crawler)
        self._store = _opened[crawler]
        self._store.has_pipeline |= isinstance(self, PgsimhashPipeline)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def _verdict(
        self, page: SourcePage | PageStatus, request: Request | None = None
    ) -> tuple[Verdict | None, dict[str, Any]]:
        """Return the store's verdict, counted, and its tag; on an error, the tag alone."""
        is_stored = False
        try:
            verdict = await asyncio.wrap_future(self._store.ask(page))
            is_stored = verdict.kind not in _NOT_STORED
        except Exception as error:  # errors of the store must not lose a page
            is_page = isinstance(page, SourcePage)
            counter = "unanswered" if is_page else "unanswered_requests"
            self._count_failure(counter, page.url, error)
            reason = getattr(error, "reason", "crashed")
            tag = {"url": page.url, "kind": "unanswered", "reason": reason, "detail": str(error)}
            return None, tag
        finally:
            self._release([page.url, *_urls(request)], is_stored=is_stored)
        self._count(verdict.kind)
        if verdict.reason == "address_known":
            self._count("address_known")
        if verdict.page_id is not None and isinstance(page, SourcePage):
            # A version that this run stored is unchanged in a retry and in the page's next item.
            verdict = self._decided.setdefault(verdict.page_id, replace(verdict, markdown=None))
            if len(self._decided) > DECIDED_MAX:
                del self._decided[next(iter(self._decided))]
        return verdict, verdict.as_json()

    def _count_failure(self, counter: str, url: str, error: Exception) -> None:
        self._count(counter)
        if time.monotonic() >= self._store.logs_at:
            self._store.logs_at = time.monotonic() + LOG_SECONDS
            message = "no answer about %s: %s (other failures of the next minute are only counted)"
            expected = isinstance(error, PgsimhashError)
            _logger.error(message, url, error, exc_info=not expected)
        if self._closes and self._closing is None:
            closing = self._crawler.engine.close_spider_async(reason="pgsimhash_error")
            self._closing = asyncio.ensure_future(closing)

    def _release(self, urls: Iterable[str], *, is_stored: bool = False) -> None:
        """End the requests of these URLs; if they failed, make those that waited for them."""
        for request in self._store.in_flight.release(urls, is_stored=is_stored):
            self._crawler.stats.inc_value("pgsimhash/skipped", -1)
            self._crawler.engine.crawl(request.replace(dont_filter=True))

    def _page_of(self, request: Request) -> tuple[str, str] | None:
        """Return the URL of the page that a request asks for, and what all its requests share.

        None is a request for something else by Scrapy's fingerprint, such as a POST. Headers that
        are set later may be part of a fingerprint, so a request keeps its first answer.
        """
        if request not in _pages:
            fingerprinter = self._crawler.request_fingerprinter
            plain = Request(urldefrag(request.url).url)
            own = fingerprinter.fingerprint(request)
            shared = canonicalize_url(plain.url)
            if type(fingerprinter) is not RequestFingerprinter:
                shared = f"fingerprint:{own.hex()}"
            is_plain = own == fingerprinter.fingerprint(plain)
            _pages[request] = (plain.url, shared) if is_plain else None
        return _pages[request]

    def _drops(self, verdict: Verdict) -> bool:
        # A page without a simhash was not compared, so it may be new.
        return self._action == "drop" and verdict.simhash is not None and not verdict.keep

    def _count(self, name: str) -> None:
        self._crawler.stats.inc_value(f"pgsimhash/{name}")


class PgsimhashPipeline(_Component):
    """Drop items with a known page, or tag items with the verdict.

    Items without a page pass unchanged. Those without a simhash pass too: nothing was compared.
    """

    def page_of(self, item: Any) -> SourcePage | None:
        """Return the page in ``url`` and ``html`` of an item, or None; you can override this."""
        fields = ItemAdapter(item) if ItemAdapter.is_item(item) else {}
        url, html = fields.get("url"), fields.get("html")
        if url is None or html is None:
            return None
        return SourcePage(urldefrag(url).url if isinstance(url, str) else url, html)

    async def process_item(self, item: Any) -> Any:
        """Return the item, tagged, or raise DropItem if the page is known."""
        page = self.page_of(item)
        if page is None:
            self._count("no_page")
            return item
        verdict, tag = await self._verdict(page)
        if verdict is not None and self._drops(verdict):
            self._count("dropped")
            original = verdict.duplicate_of or verdict.url
            # DEBUG, because Scrapy logs the whole item, including the page.
            raise DropItem(f"{verdict.kind} ({verdict.reason}): {original}", log_level="DEBUG")
        if verdict is None or self._action == "tag":
            self._tag_item(item, tag)
        return item

    def _tag_item(self, item: Any, tag: dict[str, Any]) -> None:
        try:
            ItemAdapter(item)[self._tag] = tag
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            self._count("untagged")
            if self._crawler.stats.get_value("pgsimhash/untagged") == 1:
                message = (
                    "%s has no field %r, so it gets no verdict: declare the field, or set "
                    "PGSIMHASH_TAG to another one (%s)"
                )
                _logger.error(message, type(item).__name__, self._tag, error)


class PgsimhashSpiderMiddleware(_Component):
    """Drop the output of callbacks for known pages, or only tag the responses.

    ``response.meta`` has the verdict, which generator callbacks can read. Responses without HTML,
    or with a status outside 200 to 299, pass unchanged; with the pipeline, all do.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._arrived = WeakSet[Response]()

    def process_spider_input(self, response: Response) -> None:
        """Note the response; another middleware may give it to the errback of its request alone."""
        self._arrived.add(response)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the output of a callback; for a known page only requests, or none without FOLLOW.

        A generator starts after its page got the verdict; without FOLLOW it does not start at all.
        """
        is_stored = response in self._arrived and not self._store.has_pipeline
        verdict = await self._verdict_about(response) if is_stored else None
        drops = verdict is not None and self._drops(verdict)
        has_items = False
        if drops:
            self._count("dropped")
        if self._follows or not drops:
            async for output in result:
                if isinstance(output, Request) or not drops:
                    has_items |= not isinstance(output, Request)
                    yield output
        if not has_items:
            self._release(_urls(response.request))

    async def _verdict_about(self, response: Response) -> Verdict | None:
        is_page = isinstance(response, HtmlResponse) and 200 <= response.status < 300
        request = response.request
        if not is_page or request is None or _is_left(request) or self._page_of(request) is None:
            self._count("no_page")
            return None
        kind, etag, modified = (
            (response.headers.get(name) or b"").decode("latin-1")
            for name in ("Content-Type", "ETag", "Last-Modified")
        )
        charset = content_type(kind).get_content_charset()
        robots = response.headers.getlist("X-Robots-Tag")
        content, ignore = (request.meta.get(f"pgsimhash_{name}") for name in Selectors._fields)
        page = SourcePage(
            response.url, response.body, charset, etag=etag, last_modified=modified,
            content=content, ignore=ignore,
            noindex=any(says_noindex(value.decode("latin-1")) for value in robots),
        )  # fmt: skip
        verdict, tag = await self._verdict(page, request)
        response.meta[self._tag] = tag
        return verdict


class PgsimhashDownloaderMiddleware(_Component):
    """Skip requests for known pages, see :meth:`pgsimhash.Store.should_fetch`.

    A request for something else by Scrapy's fingerprint, such as a POST, and its redirects are
    made. So are start requests, those that this crawl made before, such as retries, and those whose
    ``meta`` has ``{"pgsimhash": False}``.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        # Scrapy's HTTP cache sends validators of its own.
        has_cache = settings.getbool("HTTPCACHE_ENABLED")
        self._sends_validators = settings.getbool("PGSIMHASH_CONDITIONAL") and not has_cache
        self._made: set[bytes] = set()
        # The URL and depth of each request that is not for a page, such as one of a form.
        self._others: set[tuple[str, object]] = set()
        # Of each URL without a response yet, whether the request has validators.
        self._in_flight: dict[str, bool] = {}
        # Scrapy drops a redirect to a page that it requested before.
        crawler.signals.connect(self._follow, signal=signals.request_scheduled)
        crawler.signals.connect(self._store.in_flight.end, signal=signals.request_dropped)
        # The spider middleware knows of callbacks without items.
        for signal in ("item_scraped", "item_dropped", "item_error", "spider_error"):
            crawler.signals.connect(self._release_done, signal=getattr(signals, signal))
        crawler.signals.connect(self._release_rest, signal=signals.spider_idle)

    def _release_done(self, response: Response | None) -> None:
        """Request other URLs of a page whose item or callback ended."""
        self._release(_urls(getattr(response, "request", None)))

    def _release_rest(self) -> None:
        """Request other URLs of pages that never arrive: a callback or middleware took them."""
        self._release(list(self._store.in_flight.held))

    def _follow(self, request: Request) -> None:
        """Store where the request before a redirect led."""
        before = request.meta.get("redirect_urls", [""])[-1]
        # A request that only copied the meta of another is no redirect.
        if before in self._in_flight:
            self._store.redirect(urldefrag(before).url, urldefrag(request.url).url)
            for name in _VALIDATORS if self._in_flight.pop(before) else ():
                request.headers.pop(name, None)

    async def process_request(self, request: Request) -> None:
        """Let a request pass, or raise IgnoreRequest if the page is known and not due."""
        self._follow(request)
        meta, page = request.meta, self._page_of(request)
        # Links may have a copy of the meta of their page, but are deeper.
        depth = meta.get("depth", 0)
        if page is None or _is_left(request):
            self._others.add((request.url, depth))
            return
        has_validators = self._in_flight.get(request.url, False)
        fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        is_made = (meta.get("is_start_request") and not depth) or meta.get("retry_times")
        # The redirect of a form is its answer.
        before = ((url, depth) for url in meta.get("redirect_urls", ()))
        is_made = is_made or not self._others.isdisjoint(before)
        if not is_made and fingerprint not in self._made:
            validators: dict[str, str] | None = {}
            address = None
            try:
                lookup = self._store.ask(partial(self._store.headers_and_address, page))
                validators, address = await asyncio.wrap_future(lookup)
            except Exception as error:
                self._count_failure("unanswered_requests", page[0], error)
            if validators is None:
                self._count("skipped")
                # A redirect to a known page answers for its address too.
                self._release(_urls(request), is_stored=True)
                raise IgnoreRequest("the page is known")
            if address and not self._store.in_flight.take(address, request):
                self._count("skipped")
                raise IgnoreRequest("another URL of the page is requested")
            own = any(name in request.headers for name in _VALIDATORS)
            if validators and self._sends_validators and not own:
                request.headers.update(validators)
                has_validators = True
        self._made.add(fingerprint)
        self._in_flight[request.url] = has_validators

    async def process_response(self, request: Request, response: Response) -> Response:
        """Store what the answers 304, 404 and 410 say; raise IgnoreRequest for a page's 304."""
        has_validators = self._in_flight.pop(request.url, False)
        page = self._page_of(request)
        if page is None or _is_left(request):
            return response
        if isinstance(response, HtmlResponse):
            self._store.redirect(page[1], response.url)
        if response.status in (304, 404, 410) and "cached" not in response.flags:
            await self._verdict(PageStatus(page[0], response.status != 304))
        if not (isinstance(response, HtmlResponse) and 200 <= response.status < 300):
            self._release(_urls(request))
        if response.status == 304 and has_validators:
            raise IgnoreRequest("the page is unmodified")
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Request another URL of a page whose request failed."""
        self._release(_urls(request))


class _InFlight:
    """The addresses of pages that were requested, and are neither stored yet nor failed."""

    def __init__(self) -> None:
        # By the URL of a request: its address, and those of the URLs before its redirects.
        self.held: dict[str, list[str]] = {}
        # By address: requests of its other URLs, which are made if that request fails.
        self._waiting: defaultdict[str, deque[Request]] = defaultdict(partial(deque, maxlen=100))
        # The addresses that are held, or for which a page of this crawl answers.
        self._taken: set[str] = set()

    def end(self, request: Request) -> None:
        """Let the page to which a dropped redirect leads answer for its address."""
        for url in request.meta.get("redirect_urls", ()):
            self.held.pop(url, None)

    def take(self, address: str, request: Request) -> bool:
        """Return whether a request may be made; otherwise it waits for another of its address."""
        own = self._pop(_urls(request))
        if address in self._taken:
            for led in own:
                # They lead to the same page.
                self._waiting.pop(led, None)
            self._waiting[address].append(request)
            return False
        self.held[request.url] = [*own, address]
        self._taken.update(self.held[request.url])
        return True

    def release(self, urls: Iterable[str], *, is_stored: bool) -> list[Request]:
        """End the requests of these URLs; return those that waited for them, if they failed."""
        waiting = [request for own in self._pop(urls) for request in self._waiting.pop(own, ())]
        return [] if is_stored else waiting

    def _pop(self, urls: Iterable[str]) -> list[str]:
        addresses = [own for url in urls for own in self.held.pop(url, ())]
        self._taken.difference_update(addresses)
        return addresses


class _Store:
    """The store, in a thread that looks up requests and stores pages in the order of their arrival.

    All waiting pages are one batch, so the crawl determines the batch size.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._options = _options(settings)
        # A page or a lookup, and the future of its answer; None at the end.
        self._tasks: Queue[tuple[Any, Future[Any]] | None] = Queue()
        self._failure: StoreError | None = None
        self._resumes_at = self.logs_at = 0.0
        self._is_closed = self.has_pipeline = False
        self.in_flight = _InFlight()
        self._redirects: dict[str, str] = {}
        with ExitStack() as stack:
            store = connect(
                settings.get("PGSIMHASH_DSN"),
                collection=settings.get("PGSIMHASH_COLLECTION", "default"),
                create=settings.getbool("PGSIMHASH_CREATE", True) or None,
                scheme=settings.get("PGSIMHASH_SCHEME"),
                schema=settings.get("PGSIMHASH_SCHEMA"),
                retry_seconds=settings.getfloat("PGSIMHASH_RETRY_SECONDS", RETRY_SECONDS),
            )
            self._store = stack.enter_context(store)
            # Raises for invalid options before the first page.
            store.ingest_many([], **self._options)
            store.start_run(settings.get("PGSIMHASH_LABEL", f"scrapy {crawler.spidercls.name}"))
            # A daemon: if another component fails now, Scrapy closes no spider.
            thread = Thread(target=self._ingest, name="pgsimhash-store", daemon=True)
            thread.start()
            stack.callback(thread.join)
            self._opened = stack.pop_all()
        crawler.signals.connect(self.close, signal=signals.spider_closed)

    def ask(self, task: SourcePage | PageStatus | Callable[[], object]) -> Future[Any]:
        """Return the future of the verdict about a page, or of the result of a lookup."""
        answer: Future[Any] = Future()
        self._tasks.put((task, answer))
        return answer

    def headers_and_address(self, urls: Iterable[str]) -> tuple[dict[str, str] | None, str | None]:
        """Return the headers for all URLs of a page, None if one is fresh, and its address."""
        answers = list(map(self._store._headers_and_address, dict.fromkeys(urls)))
        is_due = all(headers is not None for headers, _ in answers)
        return answers[0] if is_due else (None, None)

    def redirect(self, url: str, target: str) -> None:
        """Store that requests of ``url`` lead to the page at ``target``."""
        if url != target:
            self._redirects[url] = target
            self.ask(self._put_redirects)

    def close(self) -> None:
        """Answer the waiting pages, and close the store."""
        self._tasks.put(None)
        self._opened.close()

    def _put_redirects(self) -> None:
        redirects, self._redirects = self._redirects, {}
        if redirects:
            self._store.add_redirects(redirects)

    def _ingest(self) -> None:
        answers: deque[Future[Verdict]] = deque()
        while not self._is_closed:
            try:
                for verdict in self._store.ingest_many(self._pages(answers), **self._options):
                    answers.popleft().set_result(verdict)
            except Exception as error:
                # Not retried: if only the answer was lost, the pages would now be known.
                while answers:
                    self._fail(answers.popleft(), error)

    def _pages(self, answers: deque[Future[Verdict]]) -> Iterator[SourcePage | PageStatus | Pause]:
        """Yield the pages as they arrive, and pauses while some have no answer; answer lookups."""
        while True:
            try:
                waiting = self._tasks.get(timeout=_POLL_SECONDS if answers else None)
            except Empty:
                yield Pause()
                continue
            if waiting is None:
                self._is_closed = True
                return
            task, answer = waiting
            if not answer.set_running_or_notify_cancel():
                continue
            if self._failure is not None and time.monotonic() < self._resumes_at:
                answer.set_exception(type(self._failure)(*self._failure.args))
            elif callable(task):
                try:
                    answer.set_result(task())
                except Exception as error:
                    self._fail(answer, error)
            else:
                answers.append(answer)
                yield task

    def _fail(self, answer: Future[Any], error: Exception) -> None:
        """Answer with an error; after one of the store, all fail for some seconds."""
        if isinstance(error, StoreError):
            self._failure, self._resumes_at = error, time.monotonic() + PAUSE_SECONDS
        answer.set_exception(error)


_opened: WeakKeyDictionary[Crawler, _Store] = WeakKeyDictionary()
_pages: WeakKeyDictionary[Request, tuple[str, str] | None] = WeakKeyDictionary()


def _urls(request: Request | None) -> tuple[str, ...]:
    """Return the URL of a request, and those before its redirects."""
    return () if request is None else (request.url, *request.meta.get("redirect_urls", ()))


def _is_left(request: Request) -> bool:
    return request.meta.get("pgsimhash") is False or request.callback is NO_CALLBACK


def _options(settings: BaseSettings) -> dict[str, Any]:
    seconds = settings.get("PGSIMHASH_PAGE_SECONDS")
    memory = settings.get("PGSIMHASH_PAGE_MEMORY")
    try:
        options = checked_settings(settings.getdict("PGSIMHASH_MATCH")).given()
        options["page_seconds"] = seconds and float(seconds)
        options["page_memory"] = memory and int(memory)
    except (TypeError, ValueError) as error:
        raise invalid_argument(f"PGSIMHASH_MATCH, _PAGE_SECONDS, _PAGE_MEMORY: {error}") from None
    return options
