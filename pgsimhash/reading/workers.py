"""Turn pages into records, in one process or several, in order and in bounded memory.

A thread cannot be stopped, so pages with limits are read in processes.
"""

import hashlib
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from numbers import Real
from typing import Any, Final, TypeVar
from weakref import WeakSet

from pgsimhash.errors import ArgumentError, PageError, check_number
from pgsimhash.pages.records import Input, Item, PageFailure, PageRecord, Pause, SourcePage
from pgsimhash.pages.urls import URL_BYTES_MAX
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.reading.processes import EndedError, Worker, no_process
from pgsimhash.runtime.machine import limit_memory, usable_cores
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.schemes.registry import DEFAULT_SCHEME, read_page

_Other = TypeVar("_Other", bound=Item)
# The arguments of _begin_reading.
_Work = tuple[Scheme, bool, int, int | None]

PAGE_SECONDS: Final = 30.0
"""The default time limit of a page in another process: ten times the time of any normal page."""

_NO_MEMORY: Final = "reading the page takes too much memory (page_memory)"
_PASSED_ON: Final = ("fetched_at", "etag", "last_modified", "truncated")
_TITLE_MAX: Final = 1000
# How many pages and bytes are read ahead for each process, to keep it busy during storing.
_AHEAD_PAGES, _AHEAD_SIZE = 64, 4 * 1024 * 1024


def extract(
    page: SourcePage | _Other,
    scheme: Scheme = DEFAULT_SCHEME,
    *,
    markdown: bool = True,
    max_bytes: int = MAX_BYTES,
) -> PageRecord | PageFailure | _Other:
    """Return the record of one page, or a failure; never raise.

    Other items are returned unchanged. A page larger than ``max_bytes`` is a failure.
    """
    if not isinstance(page, SourcePage):
        return page
    try:
        html, values = page.html, read_page(page, scheme, max_bytes, markdown=markdown)
        data = html.encode("utf-8", "surrogatepass") if isinstance(html, str) else html
        values["html_digest"] = hashlib.sha256(data).digest()[:16]
        values["title"] = values["title"] and values["title"][:_TITLE_MAX]
        if len((values["canonical_url"] or "").encode()) > URL_BYTES_MAX:
            values["canonical_url"] = None
        values["noindex"] |= page.noindex
        if not markdown:
            values["markdown"] = None
        return PageRecord(**values, **{name: getattr(page, name) for name in _PASSED_ON})
    except Exception as error:  # one page must never end the others
        return failed(page.url, error)


def failed(url: str, error: Exception) -> PageFailure:
    """Return the failure of a page that raised ``error`` when it was read."""
    if isinstance(error, PageError):
        return PageFailure(url, error.reason, str(error))
    if isinstance(error, MemoryError):
        return PageFailure(url, "no_memory", _NO_MEMORY)
    return PageFailure(url, "crashed", f"{type(error).__name__}: {error}")


def extract_many(
    pages: Iterable[SourcePage | _Other],
    jobs: int = 1,
    scheme: Scheme | str = DEFAULT_SCHEME,
    *,
    markdown: bool = True,
    max_bytes: int = MAX_BYTES,
    page_seconds: float | None = None,
    page_memory: int | None = None,
) -> Iterator[PageRecord | PageFailure | _Other]:
    """Yield the records of pages in order, computed by ``jobs`` processes.

    One job is this process, unless pages have limits. For each process, about 64 pages or 4 MB are
    read ahead. Finished records are yielded when the next page or a pause arrives. A page that
    kills its process becomes a failure, ``crashed``; other pages are not affected. The limits and
    the errors are those of :class:`PageReader`; by default, a page has :data:`PAGE_SECONDS`.
    """
    check_reading(jobs, max_bytes)
    recipe, reader = get_scheme(scheme), PageReader(page_seconds, page_memory, jobs)
    options: dict[str, Any] = {"scheme": recipe, "markdown": markdown, "max_bytes": max_bytes}
    if jobs == 1 and not reader.has_limit:
        return map(partial(extract, **options), pages)
    recipe.check_portable()
    results: Iterator[Any] = _read_ahead(reader, jobs, options, pages)
    return results


def check_reading(jobs: int, max_bytes: int) -> None:
    """Check the arguments of a call that reads pages; :class:`PageReader` checks its limits."""
    check_number("jobs", jobs)
    check_number("max_bytes", max_bytes, 0, 2**63)


class PageReader:
    """Call :func:`extract` from any thread, in processes if pages have limits.

    Processes start on demand and run until :meth:`close`. They receive the scheme pickled; one that
    cannot be is an ArgumentError.

    Args:
        page_seconds: the most seconds for a page; more are a failure, ``too_slow``. By default no
            limit, or :data:`PAGE_SECONDS` in other processes.
        page_memory: the most bytes of a process for its pages, beyond some 100 MB that it always
            needs; more are a failure, ``no_memory``. Linux only.
        processes: how many pages are read at a time, always in processes. By default, as many as
            there are cores, and in processes if there is a limit.
    """

    def __init__(
        self,
        page_seconds: float | None = None,
        page_memory: int | None = None,
        processes: int | None = None,
    ) -> None:
        if page_seconds is not None:
            check_number("page_seconds", page_seconds, 0.001, math.inf, Real)
        if page_memory is not None:
            check_number("page_memory", page_memory, 1, 2**62)
        self.has_limit = page_memory is not None or page_seconds not in (None, math.inf)
        self._in_processes = self.has_limit or processes is not None
        self._seconds = PAGE_SECONDS if page_seconds is None else page_seconds
        self._memory = page_memory
        self._processes = processes or usable_cores()
        self._is_closed = False
        self.begin()
        _readers.add(self)

    def begin(self) -> None:
        """Begin without processes; a forked child must not use those of its parent."""
        self._all: list[Worker] = []
        self._idle: list[tuple[_Work, Worker]] = []
        self._lock = threading.Lock()
        self._places = threading.Semaphore(self._processes)

    def extract(
        self, page: Input, scheme: Scheme, *, markdown: bool = True, max_bytes: int = MAX_BYTES
    ) -> Item:
        """Return the record of one page, see :func:`extract`."""
        if not self._in_processes:
            return extract(page, scheme, markdown=markdown, max_bytes=max_bytes)
        work = scheme, markdown, max_bytes, self._memory
        with self._places:
            reader = self._reader_for(work)
            try:
                return _read_by(reader, page, self._seconds)
            finally:
                self._idle.append((work, reader))

    def kill(self) -> None:
        """End the processes; the pages that they are reading fail."""
        with self._lock:
            self._is_closed = True
            for reader in self._all:
                reader.close()

    def close(self) -> None:
        """End the processes and free their resources."""
        self.kill()
        with self._lock:
            for reader in self._all:
                reader.release()

    def _reader_for(self, work: _Work) -> Worker:
        with self._lock:
            for place, (known, _) in enumerate(self._idle):
                if known == work:
                    return self._idle.pop(place)[1]
            work[0].check_portable()  # the scheme
            reader = Worker(_begin_reading, work)
            self._all.append(reader)
            if self._is_closed:
                reader.close()
            return reader


def _begin_again() -> None:
    for reader in _readers:
        reader.begin()


_readers: WeakSet[PageReader] = WeakSet()
os.register_at_fork(after_in_child=_begin_again)


def _read_ahead(
    reader: PageReader, jobs: int, options: dict[str, Any], pages: Iterable[Input]
) -> Iterator[Item]:
    """Yield the results of pages in order, read by ``jobs`` processes of ``reader``; close it."""
    # A thread for each process sends it the next page as soon as it is idle.
    threads = ThreadPoolExecutor(jobs, "pages")
    sent: deque[tuple[Future[Item], int]] = deque()
    size = 0
    try:
        for page in pages:
            if not isinstance(page, Pause):
                try:
                    sent.append((threads.submit(reader.extract, page, **options), _size(page)))
                except RuntimeError as error:
                    raise no_process(error) from error
                size += _size(page)
            while sent:
                result, result_size = sent[0]
                # Even with the largest pages, each process has a next page while it reads one.
                is_enough = len(sent) >= 2 * jobs and (
                    len(sent) >= jobs * _AHEAD_PAGES or size >= jobs * _AHEAD_SIZE
                )
                if not (is_enough or result.done()):
                    break
                sent.popleft()
                size -= result_size
                yield result.result()
            if isinstance(page, Pause):
                yield page
        for result, _ in sent:
            yield result.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        reader.kill()
        threads.shutdown()
        reader.close()


def _size(page: Input) -> int:
    html = page.html if isinstance(page, SourcePage) else ""
    # Invalid pages become failures when they are read.
    return len(html) if isinstance(html, bytes | str) else 0


def _read_by(worker: Worker, page: Input, page_seconds: float, *, again: bool = True) -> Item:
    """Return a process's result for a page; without an answer it is a failure."""
    try:
        item: Item = worker.ask(page, page_seconds)
        return item
    except EndedError as error:
        reason = str(error)
    except ArgumentError:
        if not again:
            raise
        reason = "crashed"
    except Exception as error:  # invalid pages may be impossible to send
        return failed(page.url, error)
    if reason == "crashed" and again:
        # An outside cause may have ended the process.
        return _read_by(worker, page, page_seconds, again=False)
    detail = {
        "too_slow": f"the page takes more than {page_seconds:g} s to read (page_seconds)",
        "no_memory": _NO_MEMORY,
    }.get(reason, "the page ended the process reading it")
    return PageFailure(page.url, reason, detail)


def _begin_reading(
    scheme: Scheme, markdown: bool, max_bytes: int, memory: int | None
) -> Callable[[Input], Item]:
    """Return the function that reads pages; each process receives the scheme only once."""
    if memory is not None:
        limit_memory(memory)
    return partial(extract, scheme=scheme, markdown=markdown, max_bytes=max_bytes)
