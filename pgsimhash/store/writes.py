"""What goes into the store, and out of it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import check_simhash, check_simhashes
from pgsimhash.extraction import extract_many
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.store.batches import (
    BATCH_PAGES,
    BATCH_SIMHASHES,
    Page,
    as_record,
    as_source,
    write_in_batches,
)
from pgsimhash.store.part import Part
from pgsimhash.store.writer import add_simhashes, delete_page, write_batch
from pgsimhash.urls import check_url


class Writes(Part):
    """Deciding about pages, remembering and forgetting them."""

    def ingest(
        self, url: str, html: str | bytes, *, distance: int | None = None, verify: bool = True
    ) -> Verdict:
        """Fingerprint one page, decide whether it is known, and remember it.

        Args:
            url: the page's absolute URL.
            html: the page; bytes are decoded as a browser would.
            distance: the largest number of differing bits that makes a duplicate; by default
                the collection's.
            verify: whether a match more than 8 bits away counts only if the sketches of the two
                pages agree as well (see :mod:`pgsimhash.sketch`).

        Raises:
            SchemeError: the collection's scheme is not registered in this process.
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        return next(iter(self.ingest_many([(url, html)], distance=distance, verify=verify)))

    def ingest_many(
        self,
        pages: Iterable[Page],
        *,
        distance: int | None = None,
        jobs: int = 1,
        verify: bool = True,
    ) -> Iterator[Verdict]:
        """Ingest pages as they come and yield a verdict for each, in their order.

        Lazy: pages are taken, stored and forgotten in batches as the verdicts are consumed, so
        memory does not grow with their number. Each batch is one transaction; a page that
        fails is reported and the rest goes on.

        Args:
            pages: ``(url, html)`` pairs, or what :func:`pgsimhash.sources.read_pages` yields.
            distance: as for :meth:`ingest`.
            jobs: in how many processes to fingerprint; with more than one, the calling script
                needs the usual ``if __name__ == "__main__":`` guard.
            verify: as for :meth:`ingest`.

        Raises:
            SchemeError: the collection's scheme is not registered in this process.
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer; the batches before stay.
        """
        write = self._writer(distance, verify=verify)
        records = extract_many(map(as_source, pages), jobs, self._collection.scheme)
        return write_in_batches(records, write, BATCH_PAGES)

    def add(
        self,
        url: str,
        simhash: int,
        *,
        fetched_at: datetime | None = None,
        distance: int | None = None,
    ) -> Verdict:
        """Ingest a page that the caller fingerprinted, with the collection's scheme.

        Raises:
            InvalidUrlError: ``url`` is not one.
            InvalidSimhashError: ``simhash`` is not in 0..2**64-1.
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        record = PageRecord(check_url(url), check_simhash(simhash), fetched_at)
        return self._writer(distance)([record])[0]

    def add_many(
        self, pages: Iterable[tuple[str, int]], *, distance: int | None = None
    ) -> Iterator[Verdict]:
        """Add ``(url, simhash)`` pairs as they come; :meth:`ingest_many` without the reading.

        A pair that is none (a URL that is not one, a number that is no simhash) is reported as
        failed and the rest goes on.

        Raises:
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer; the batches before stay.
        """
        return write_in_batches(map(as_record, pages), self._writer(distance), BATCH_SIMHASHES)

    def add_simhashes(self, simhashes: NDArray[np.uint64]) -> int:
        """Add simhashes without pages or verdicts, and return how many were not known.

        For a load from elsewhere: all of them or none. Lookups find them with no URL. Batches
        that another writer is deciding at that moment may not see them.

        Args:
            simhashes: shape (n,), dtype uint64.

        Raises:
            InvalidSimhashError: the array has another shape or dtype.
            StoreError: the database does not answer.
        """
        check_simhashes(simhashes)
        with self._session.transaction() as connection:
            return add_simhashes(connection, self._collection, simhashes)

    def delete(self, url: str) -> int:
        """Forget all versions of the page at ``url`` and return how many there were.

        Simhashes that no other page has are forgotten too; pages that were found to duplicate
        this one stay, as duplicates of nothing.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.transaction() as connection:
            return delete_page(connection, self._collection, url)

    def _writer(
        self, distance: int | None, *, verify: bool = True
    ) -> Callable[[list[PageRecord]], list[Verdict]]:
        wanted = self._distance(distance)

        def write(records: list[PageRecord]) -> list[Verdict]:
            with self._session.transaction() as connection:
                return write_batch(connection, self._collection, records, wanted, verify=verify)

        return write
