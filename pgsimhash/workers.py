"""Pages to records, in this process or in several, in order and with bounded memory."""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from pgsimhash.errors import PageError
from pgsimhash.octets import MAX_BYTES
from pgsimhash.records import PageFailure, PageRecord
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, fingerprint, get_scheme
from pgsimhash.sources import SourcePage
from pgsimhash.urls import URL_BYTES_MAX

_Page = SourcePage | PageFailure | PageRecord

_Task = tuple[_Page, Future[PageRecord | PageFailure]]


class _Work(NamedTuple):
    """What pages are fingerprinted by: the scheme, whether with Markdown, and how large at most."""

    scheme: Scheme
    markdown: bool
    max_bytes: int


_work: list[_Work] = []
"""In a process of a pool, what it works by."""

_TITLE_MAX = 1000

_IN_FLIGHT = 8
"""How many pages wait for each process: enough to keep it busy, few enough to stay small."""


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
) -> Iterator[PageRecord | PageFailure]:
    """Fingerprint pages with ``jobs`` processes and yield the records in the pages' order.

    At most a few pages for each process are held at a time. A page that kills its process (out
    of memory, a crash in a parser) becomes a failure with the reason ``crashed``. Other processes
    get the scheme pickled, so it need not be registered there. Without ``markdown`` the records
    have none, which saves much of a page's time. A page larger than ``max_bytes`` is a failure.

    Raises:
        ValueError: ``jobs`` is below 1.
        ArgumentError: there is no such scheme, or it cannot be pickled and ``jobs`` is above 1.
    """
    if jobs < 1:
        raise ValueError(f"jobs is the number of processes, 1 or more, not {jobs}")
    recipe = get_scheme(scheme)
    if jobs == 1:
        return (extract(page, recipe, markdown=markdown, max_bytes=max_bytes) for page in pages)
    return _extract_in_processes(pages, jobs, _Work(recipe.check_portable(), markdown, max_bytes))


def _extract_in_processes(
    pages: Iterable[_Page],
    jobs: int,
    work: _Work,
) -> Iterator[PageRecord | PageFailure]:
    waiting: deque[_Task] = deque()
    pool = _new_pool(jobs, work)
    try:
        for page in pages:
            try:
                future = pool.submit(_extract_here, page)
            except BrokenProcessPool:
                pool.shutdown()
                pool = _new_pool(jobs, work)
                future = pool.submit(_extract_here, page)
            waiting.append((page, future))
            if len(waiting) >= jobs * _IN_FLIGHT:
                yield _result(*waiting.popleft(), work)
        while waiting:
            yield _result(*waiting.popleft(), work)
    finally:
        pool.shutdown(cancel_futures=True)


def _new_pool(jobs: int, work: _Work) -> ProcessPoolExecutor:
    # A forked child would share the parent's database connection; these start clean.
    context = multiprocessing.get_context("spawn" if sys.platform == "darwin" else "forkserver")
    # The fork server imports this once for all the processes it will fork.
    context.set_forkserver_preload([__name__])
    # A scheme can be large (hints for thousands of sites), so it is sent once to each.
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=work)


def _start(scheme: Scheme, markdown: bool, max_bytes: int) -> None:
    # Ctrl-C reaches every process of the terminal; only the parent acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work[:] = [_Work(scheme, markdown, max_bytes)]


def _extract_here(page: _Page) -> PageRecord | PageFailure:
    ((scheme, markdown, max_bytes),) = _work
    return extract(page, scheme, markdown=markdown, max_bytes=max_bytes)


def _result(
    page: _Page,
    future: Future[PageRecord | PageFailure],
    work: _Work,
) -> PageRecord | PageFailure:
    try:
        return future.result()
    except BrokenProcessPool:
        # One page killed its process and took the others' results along: each goes alone now.
        with _new_pool(1, work) as pool:
            try:
                return pool.submit(_extract_here, page).result()
            except BrokenProcessPool:
                return PageFailure(page.url, "crashed", "the page ended the process reading it")
