"""Pages to records, in this process or in several, in order and with bounded memory."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Final, NamedTuple

from pgsimhash.errors import ArgumentError, PageError, check_type
from pgsimhash.machine import limit_memory
from pgsimhash.octets import MAX_BYTES
from pgsimhash.processes import Deadlines, EndedError, Worker, has_limits
from pgsimhash.records import PageFailure, PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, fingerprint, get_scheme
from pgsimhash.sources import PAUSE, SourcePage
from pgsimhash.urls import URL_BYTES_MAX

_Page = SourcePage | PageFailure | PageRecord
_Made = PageRecord | PageFailure


class Work(NamedTuple):
    """What pages are fingerprinted by; ``memory`` is how many bytes a process may take for it."""

    scheme: Scheme
    markdown: bool
    max_bytes: int
    memory: int | None


class _Message(NamedTuple):
    """Pages that went to a process together, their bytes, and what it makes of them."""

    pages: list[_Page]
    size: int
    made: Future[list[_Made]]


PAGE_SECONDS: Final = 30.0
"""How long another process may take for a page by default: ten times what any page should take."""

_TITLE_MAX = 1000
_MESSAGE_PAGES, _MESSAGE_SIZE = 4, 512 * 1024
"""What goes to a process at once: passing it on takes as long for one page as for some of them."""

_AHEAD_PAGES, _AHEAD_SIZE = 8, 4 * 1024 * 1024
"""What is read ahead for each process: what keeps it busy while a batch is being stored."""


def extract(
    page: _Page,
    scheme: Scheme = DEFAULT_SCHEME,
    *,
    markdown: bool = True,
    max_bytes: int = MAX_BYTES,
) -> PageRecord | PageFailure:
    """Fingerprint one page; whatever goes wrong with it becomes a failure.

    What is a record or a failure already comes back as it is. Without ``markdown`` the record has
    none. A page larger than ``max_bytes`` is a failure.
    """
    if not isinstance(page, SourcePage):
        return page
    try:
        made = fingerprint(
            page.html,
            page.url,
            charset=page.charset,
            scheme=scheme,
            max_bytes=max_bytes,
            markdown=markdown,
        )
    except PageError as error:
        return PageFailure(page.url, error.reason, str(error))
    except MemoryError as error:
        return PageFailure(page.url, "no_memory", f"the page takes too much memory: {error}")
    except Exception as error:  # one page must never end the others
        return PageFailure(page.url, "unexpected", f"{type(error).__name__}: {error}")
    return PageRecord(
        url=page.url,
        simhash=made.simhash,
        fetched_at=page.fetched_at,
        title=made.title and made.title[:_TITLE_MAX],
        canonical_url=_short_url(made.canonical_url),
        language=made.language,
        features=made.features,
        tokens=made.tokens,
        html_bytes=made.html_bytes,
        html_digest=html_digest(page.html),
        structure=made.structure,
        text_digest=made.text_digest,
        unseen=made.unseen,
        sketch=made.sketch,
        markdown=made.markdown if markdown else None,
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
    """Fingerprint pages with ``jobs`` processes and yield the records in the pages' order.

    For each process some 8 pages are read ahead, or 4 MB of them, and what is done is yielded when
    the next page, or a pause, comes. A page that kills its process becomes a failure, ``crashed``,
    and so does one that takes too long, ``too_slow``; the others go on.

    Args:
        pages: what is a record or a failure already comes back as it is.
        jobs: how many processes; one is this one, unless it is said what a page may take.
        scheme: the recipe, or its name; other processes get it pickled.
        markdown: whether records have Markdown, which takes much of a page's time.
        max_bytes: a larger page is a failure.
        page_seconds: how long a process may take for a page, :data:`PAGE_SECONDS` if it is not
            said, ``math.inf`` for ever.
        page_memory: how many bytes a process may take for a page and for the libraries that the
            first one loads (100 MB); more is a failure with the reason ``no_memory``. On Linux.

    Raises:
        ArgumentError: there is no such scheme, or it cannot be pickled and has to be; ``jobs``,
            ``page_seconds`` or ``page_memory`` is not above 0.
    """
    check_type("jobs", jobs, int, wanted="the number of processes, such as jobs=4")
    check_type("max_bytes", max_bytes, int, wanted="a number of bytes, such as 10_000_000")
    if jobs < 1:
        raise ArgumentError(
            "invalid_number", f"jobs is the number of processes, 1 or more, not {jobs}"
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
) -> Iterator[_Made]:
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
    """Processes at work on pages, which come in messages, and what they made of them, in order."""

    def __init__(self, jobs: int, work: Work, page_seconds: float) -> None:
        self._jobs, self._page_seconds = jobs, page_seconds
        self._workers = [new_reader(work) for _ in range(jobs)]
        self._idle = [*self._workers]
        # A thread for each process hands it the next pages as soon as it is done.
        self._threads = ThreadPoolExecutor(jobs, "pages")
        self._deadlines = Deadlines(self._workers, page_seconds)
        self._gathered: list[_Page] = []
        self._gathered_size = 0
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
        """Take a page, and send it with those before it if it is time to."""
        self._gathered.append(page)
        self._gathered_size += _size(page)
        if (
            len(self._gathered) >= _MESSAGE_PAGES
            or self._gathered_size >= _MESSAGE_SIZE
            # Who has nothing to do gets what there is: the next page may be long in coming.
            or self._is_one_idle()
        ):
            self.send()

    def send(self) -> None:
        """Send what was gathered."""
        pages, size = self._gathered, self._gathered_size
        if not pages:
            return
        made = self._threads.submit(self._read, pages)
        self._sent.append(_Message(pages, size, made))
        self._pages += len(pages)
        self._size += size
        self._gathered, self._gathered_size = [], 0

    def done(self) -> Iterator[_Made]:
        """Yield what is done; where enough is read ahead, wait for the first of it."""
        while self._sent and (self._is_enough() or self._sent[0].made.done()):
            yield from self._first()

    def rest(self) -> Iterator[_Made]:
        """Yield all that is left."""
        while self._sent:
            yield from self._first()

    def _is_one_idle(self) -> bool:
        # From the end: what was sent last is done last.
        busy = (message for message in reversed(self._sent) if not message.made.done())
        return sum(1 for _ in islice(busy, self._jobs)) < self._jobs

    def _is_enough(self) -> bool:
        # Of pages as large as can be, each process still gets the next while it reads one.
        return len(self._sent) >= 2 * self._jobs and (
            self._pages >= self._jobs * _AHEAD_PAGES or self._size >= self._jobs * _AHEAD_SIZE
        )

    def _first(self) -> list[_Made]:
        message = self._sent.popleft()
        self._pages -= len(message.pages)
        self._size -= message.size
        return message.made.result()

    def _read(self, pages: list[_Page]) -> list[_Made]:
        """Let a process read some pages; in a thread of its own."""
        worker = self._idle.pop()
        try:
            return read_by(worker, pages, self._page_seconds)
        finally:
            self._idle.append(worker)


Reader = Worker[list[_Page], list[_Made]]


def new_reader(work: Work) -> Reader:
    """Return a process that reads pages, and begins with the first ones."""
    return Worker(_reads, work, [__name__])


def read_by(
    worker: Reader, pages: list[_Page], page_seconds: float, *, last: bool = False
) -> list[_Made]:
    """Let a process read some pages; what it does not answer for becomes a failure."""
    try:
        return worker.ask(pages, page_seconds)
    except EndedError as error:
        reason = error.reason
    except Exception as error:  # what is no page cannot be sent either
        if len(pages) == 1:
            return [PageFailure(pages[0].url, "unexpected", f"{type(error).__name__}: {error}")]
        reason = "crashed"
    if len(pages) == 1 and (last or reason != "crashed"):
        return [_ended(pages[0].url, reason, page_seconds)]
    # One of them ended it, or someone else did: each gets a process of which that is known.
    return [read_by(worker, [page], page_seconds, last=True)[0] for page in pages]


def _ended(url: str, reason: str, page_seconds: float) -> PageFailure:
    if reason == "too_slow":
        what = f"the page takes more than {page_seconds:g} s to read (page_seconds)"
        return PageFailure(url, "too_slow", what)
    if reason == "no_memory":
        return PageFailure(url, "no_memory", "the page takes more than page_memory allows")
    return PageFailure(url, "crashed", "the page ended the process reading it")


def _size(page: _Page) -> int:
    html = page.html if isinstance(page, SourcePage) else ""
    # What is no page becomes a failure where it is read.
    return len(html) if isinstance(html, bytes | str) else 0


def _reads(
    scheme: Scheme, markdown: bool, max_bytes: int, memory: int | None
) -> Callable[[list[_Page]], list[_Made]]:
    """Return what reads pages; a scheme can be large, so it is sent once to each process."""
    if memory is not None:
        limit_memory(memory)

    def read(pages: list[_Page]) -> list[_Made]:
        return [extract(page, scheme, markdown=markdown, max_bytes=max_bytes) for page in pages]

    return read
