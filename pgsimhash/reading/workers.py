"""Turn pages into records, in one process or several, in order and in bounded memory."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from operator import index
from typing import Final, NamedTuple

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.pages.urls import URL_BYTES_MAX
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.reading.processes import Deadlines, EndedError, Worker, has_limits
from pgsimhash.runtime.machine import limit_memory
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, fingerprint, get_scheme
from pgsimhash.sources import PAUSE, SourcePage

_Page = SourcePage | PageFailure | PageRecord
_Result = PageRecord | PageFailure


class Work(NamedTuple):
    """How to fingerprint pages; ``memory`` is the most bytes of a process for a page."""

    scheme: Scheme
    markdown: bool
    max_bytes: int
    memory: int | None


class _Message(NamedTuple):
    """Pages that were sent to a process together, their size in bytes, and their results."""

    pages: list[_Page]
    size: int
    results: Future[list[_Result]]


PAGE_SECONDS: Final = 30.0
"""The default time limit of a page in another process: ten times the time of any normal page."""

_NO_MEMORY: Final = "reading the page takes too much memory (page_memory)"
_TITLE_MAX = 1000
_MESSAGE_PAGES, _MESSAGE_SIZE = 4, 512 * 1024
"""How many pages and bytes are sent at once: sending costs the same for one page as for a few."""

_AHEAD_PAGES, _AHEAD_SIZE = 64, 4 * 1024 * 1024
"""How many pages and bytes are read ahead for each process, to keep it busy during storing."""


def extract(
    page: _Page,
    scheme: Scheme = DEFAULT_SCHEME,
    *,
    markdown: bool = True,
    max_bytes: int = MAX_BYTES,
) -> PageRecord | PageFailure:
    """Return the record of one page, or a failure; never raise.

    Records and failures are returned unchanged. A page larger than ``max_bytes`` is a failure.
    """
    if not isinstance(page, SourcePage):
        return page
    try:
        page_fingerprint = fingerprint(
            page.html,
            page.url,
            charset=page.charset,
            scheme=scheme,
            max_bytes=max_bytes,
            markdown=markdown,
        )
    except PageError as error:
        return PageFailure(page.url, error.reason, str(error))
    except MemoryError:
        return PageFailure(page.url, "no_memory", _NO_MEMORY)
    except Exception as error:  # one page must never end the others
        return PageFailure(page.url, "crashed", f"{type(error).__name__}: {error}")
    return PageRecord(
        url=page.url,
        simhash=page_fingerprint.simhash,
        fetched_at=page.fetched_at,
        title=page_fingerprint.title and page_fingerprint.title[:_TITLE_MAX],
        canonical_url=_short_url(page_fingerprint.canonical_url),
        language=page_fingerprint.language,
        features=page_fingerprint.features,
        tokens=page_fingerprint.tokens,
        html_bytes=page_fingerprint.html_bytes,
        html_digest=html_digest(page.html),
        structure=page_fingerprint.structure,
        text_digest=page_fingerprint.text_digest,
        unseen=page_fingerprint.unseen,
        signature=page_fingerprint.signature,
        markdown=page_fingerprint.markdown if markdown else None,
    )


def html_digest(html: bytes | str) -> bytes:
    """Return the first 16 bytes of the SHA-256 of a page; text counts as UTF-8."""
    data = html.encode("utf-8", "surrogatepass") if isinstance(html, str) else html
    return hashlib.sha256(data).digest()[:16]


def _short_url(url: str | None) -> str | None:
    return url if url is not None and len(url.encode()) <= URL_BYTES_MAX else None


def extract_many(
    pages: Iterable[_Page],
    jobs: int = 1,
    scheme: Scheme | str = DEFAULT_SCHEME,
    *,
    markdown: bool = True,
    max_bytes: int = MAX_BYTES,
    page_seconds: float | None = None,
    page_memory: int | None = None,
) -> Iterator[PageRecord | PageFailure]:
    """Yield the records of pages in order, computed by ``jobs`` processes.

    For each process, about 64 pages or 4 MB are read ahead. Finished records are yielded when the
    next page or a pause arrives. A page that kills its process becomes a failure, ``crashed``, and
    a page that takes too long becomes ``too_slow``; other pages are not affected.

    Args:
        pages: the pages; records and failures are yielded unchanged.
        jobs: the number of processes; 1 is this process, unless pages have limits.
        scheme: the recipe, or its name; other processes receive it pickled.
        markdown: whether records have Markdown, which takes much of a page's time.
        max_bytes: the largest size of a page.
        page_seconds: the most seconds of a process for a page; by default :data:`PAGE_SECONDS`,
            ``math.inf`` for no limit.
        page_memory: the most bytes of a process for a page and for the libraries that the first
            page loads (100 MB); more are a failure, ``no_memory``. Linux only.

    Raises:
        ArgumentError: no scheme has this name, or it cannot be pickled for other processes; or
            ``jobs``, ``page_seconds`` or ``page_memory`` is not above 0.
    """
    max_bytes = index(max_bytes)
    if jobs < 1:
        raise ArgumentError(
            "invalid_argument", f"jobs is the number of processes, 1 or more, not {jobs}"
        )
    limited = (page_seconds, page_memory) != (None, None) and has_limits(page_seconds, page_memory)
    recipe = get_scheme(scheme)
    if jobs == 1 and not limited:
        return (extract(page, recipe, markdown=markdown, max_bytes=max_bytes) for page in pages)
    work = Work(recipe.check_portable(), markdown, max_bytes, page_memory)
    seconds = PAGE_SECONDS if page_seconds is None else page_seconds
    return _extract_in_processes(pages, jobs, work, seconds)


def _extract_in_processes(
    pages: Iterable[_Page], jobs: int, work: Work, page_seconds: float
) -> Iterator[_Result]:
    with closing(_Processes(jobs, work, page_seconds)) as processes:
        for page in pages:
            if page is PAUSE:
                processes.send()
                yield from (*processes.done(), page)
                continue
            processes.add(page)
            yield from processes.done()
        processes.send()
        yield from processes.rest()


class _Processes:
    """Sends pages to processes in messages, and returns the results in order."""

    def __init__(self, jobs: int, work: Work, page_seconds: float) -> None:
        self._jobs, self._page_seconds = jobs, page_seconds
        self._workers = [new_reader(work) for _ in range(jobs)]
        self._idle = [*self._workers]
        # A thread for each process sends it the next pages as soon as it is idle.
        self._threads = ThreadPoolExecutor(jobs, "pages")
        self._deadlines = Deadlines(self._workers, page_seconds)
        self._pending: list[_Page] = []
        self._pending_size = 0
        self._sent: deque[_Message] = deque()
        self._pages = self._size = 0

    def close(self) -> None:
        self._deadlines.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._threads.shutdown()
        for worker in self._workers:
            worker.release()

    def add(self, page: _Page) -> None:
        """Add a page, and send the pending pages if there are enough or a process is idle."""
        self._pending.append(page)
        self._pending_size += _size(page)
        if (
            len(self._pending) >= _MESSAGE_PAGES
            or self._pending_size >= _MESSAGE_SIZE
            # An idle process does not wait: the next page may come late.
            or self._is_one_idle()
        ):
            self.send()

    def send(self) -> None:
        """Send the pending pages."""
        pages, size = self._pending, self._pending_size
        if not pages:
            return
        results = self._threads.submit(self._read, pages)
        self._sent.append(_Message(pages, size, results))
        self._pages += len(pages)
        self._size += size
        self._pending, self._pending_size = [], 0

    def done(self) -> Iterator[_Result]:
        """Yield finished results; if enough is read ahead, wait for the first."""
        while self._sent and (self._is_enough() or self._sent[0].results.done()):
            yield from self._first()

    def rest(self) -> Iterator[_Result]:
        """Yield all remaining results."""
        while self._sent:
            yield from self._first()

    def _is_one_idle(self) -> bool:
        # From the end: the last message is done last.
        busy = (message for message in reversed(self._sent) if not message.results.done())
        return sum(1 for _ in islice(busy, self._jobs)) < self._jobs

    def _is_enough(self) -> bool:
        # Even with the largest pages, each process has a next page while it reads one.
        return len(self._sent) >= 2 * self._jobs and (
            self._pages >= self._jobs * _AHEAD_PAGES or self._size >= self._jobs * _AHEAD_SIZE
        )

    def _first(self) -> list[_Result]:
        message = self._sent.popleft()
        self._pages -= len(message.pages)
        self._size -= message.size
        return message.results.result()

    def _read(self, pages: list[_Page]) -> list[_Result]:
        """Return the results of an idle process; called in the threads."""
        worker = self._idle.pop()
        try:
            return read_by(worker, pages, self._page_seconds)
        finally:
            self._idle.append(worker)


Reader = Worker[list[_Page], list[_Result]]


def new_reader(work: Work) -> Reader:
    """Return a process that reads pages; the first pages start it."""
    return Worker(_reads, work, [__name__])


def read_by(
    worker: Reader, pages: list[_Page], page_seconds: float, *, last: bool = False
) -> list[_Result]:
    """Return a process's results for pages; pages without an answer become failures."""
    try:
        return worker.ask(pages, page_seconds)
    except EndedError as error:
        reason = error.reason
    except Exception as error:  # invalid pages may be impossible to send
        if len(pages) == 1:
            return [PageFailure(pages[0].url, "crashed", f"{type(error).__name__}: {error}")]
        reason = "crashed"
    if len(pages) == 1 and (last or reason != "crashed"):
        return [_ended(pages[0].url, reason, page_seconds)]
    # One of the pages ended the process, or an outside cause: read each page alone.
    return [read_by(worker, [page], page_seconds, last=True)[0] for page in pages]


def _ended(url: str, reason: str, page_seconds: float) -> PageFailure:
    if reason == "too_slow":
        what = f"the page takes more than {page_seconds:g} s to read (page_seconds)"
        return PageFailure(url, "too_slow", what)
    if reason == "no_memory":
        return PageFailure(url, "no_memory", _NO_MEMORY)
    return PageFailure(url, "crashed", "the page ended the process reading it")


def _size(page: _Page) -> int:
    html = page.html if isinstance(page, SourcePage) else ""
    # Invalid pages become failures when they are read.
    return len(html) if isinstance(html, bytes | str) else 0


def _reads(
    scheme: Scheme, markdown: bool, max_bytes: int, memory: int | None
) -> Callable[[list[_Page]], list[_Result]]:
    """Return the function that reads pages; each process receives the scheme only once."""
    if memory is not None:
        limit_memory(memory)

    def read(pages: list[_Page]) -> list[_Result]:
        return [extract(page, scheme, markdown=markdown, max_bytes=max_bytes) for page in pages]

    return read
