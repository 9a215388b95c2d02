"""Read single pages from any thread, for asyncio and Scrapy.

A thread cannot be stopped, so pages with limits are read in processes.
"""

from __future__ import annotations

import math
import threading

from pgsimhash.pages.records import PageFailure, PageRecord
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.reading.processes import Deadlines, has_limits
from pgsimhash.reading.workers import PAGE_SECONDS, Reader, Work, extract, new_reader, read_by
from pgsimhash.runtime.machine import usable_cores
from pgsimhash.schemes import Scheme
from pgsimhash.sources import SourcePage


class PageReader:
    """Call :func:`pgsimhash.reading.workers.extract`, in processes if pages have limits.

    Any thread may call it. As many pages as there are cores are read at a time. Processes start on
    demand and run until :meth:`close`.

    Args:
        page_seconds: the most seconds for a page; more are a failure, ``too_slow``. By default no
            limit, or :data:`pgsimhash.reading.workers.PAGE_SECONDS` with ``page_memory``.
        page_memory: the most bytes of its process for a page; more are a failure, ``no_memory``.

    Raises:
        ArgumentError: a limit is not above 0.
    """

    def __init__(self, page_seconds: float | None = None, page_memory: int | None = None) -> None:
        self._has_limits = has_limits(page_seconds, page_memory)
        self._seconds = PAGE_SECONDS if page_seconds is None else page_seconds
        self._memory = page_memory
        self._all: list[Reader] = []
        self._idle: list[tuple[Work, Reader]] = []
        self._lock = threading.Lock()
        self._places = threading.Semaphore(usable_cores())
        self._deadlines = Deadlines(self._all, self._seconds if self._has_limits else math.inf)

    def extract(
        self,
        page: SourcePage | PageRecord | PageFailure,
        scheme: Scheme,
        *,
        markdown: bool = True,
        max_bytes: int = MAX_BYTES,
    ) -> PageRecord | PageFailure:
        """Return the record of one page, see :func:`pgsimhash.reading.workers.extract`.

        Raises:
            ArgumentError: pages have limits, and the scheme cannot be sent to other processes.
        """
        if not self._has_limits:
            return extract(page, scheme, markdown=markdown, max_bytes=max_bytes)
        work = Work(scheme.check_portable(), markdown, max_bytes, self._memory)
        with self._places:
            reader = self._reader_for(work)
            try:
                return read_by(reader, [page], self._seconds)[0]
            finally:
                self._idle.append((work, reader))

    def close(self) -> None:
        """End the processes; the pages that they are reading fail."""
        self._deadlines.close()
        with self._lock:
            for reader in self._all:
                reader.close()
                reader.release()

    def _reader_for(self, work: Work) -> Reader:
        with self._lock:
            for place, (known, _) in enumerate(self._idle):
                if known == work:
                    return self._idle.pop(place)[1]
            reader = new_reader(work)
            self._all.append(reader)
            return reader
