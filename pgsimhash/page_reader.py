"""Reads pages one by one for whoever has threads: asyncio, Scrapy.

A thread cannot be stopped; where it is said what a page may take, a process reads in its place.
"""

from __future__ import annotations

import math
import threading

from pgsimhash.machine import usable_cores
from pgsimhash.octets import MAX_BYTES
from pgsimhash.processes import Deadlines, has_limits
from pgsimhash.records import PageFailure, PageRecord
from pgsimhash.schemes import Scheme
from pgsimhash.sources import SourcePage
from pgsimhash.workers import (
    PAGE_SECONDS,
    Reader,
    Work,
    extract,
    new_reader,
    read_by,
)


class PageReader:
    """What :func:`pgsimhash.workers.extract` does, in other processes if pages have limits.

    Any thread may ask; as many pages as there are cores are read at a time. Processes are started
    when they are needed, and stay until this is closed.

    Args:
        page_seconds: how long a page may take; more is a failure, ``too_slow``. With
            ``page_memory`` alone, :data:`pgsimhash.workers.PAGE_SECONDS`.
        page_memory: how many bytes its process may take for it; more is a failure, ``no_memory``.

    Raises:
        ArgumentError: one of them is not above 0.
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
        """Fingerprint one page, as :func:`pgsimhash.workers.extract` does.

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
        """End the processes; what they were reading fails."""
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
