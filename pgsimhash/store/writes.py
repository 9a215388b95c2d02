"""What goes into the store, and what would become of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import check_simhash, check_simhashes
from pgsimhash.errors import PageError
from pgsimhash.extraction import extract_many
from pgsimhash.octets import MAX_BYTES, Octets, frozen
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.sources import SourcePage
from pgsimhash.store.batches import (
    BATCH_PAGES,
    BATCH_SIMHASHES,
    Item,
    Page,
    as_record,
    as_source,
    with_checked_time,
)
from pgsimhash.store.deciding import Deciding
from pgsimhash.store.runs import draw_run
from pgsimhash.store.writer import add_simhashes
from pgsimhash.terms import Options
from pgsimhash.times import check_time
from pgsimhash.urls import check_url


class Writes(Deciding):
    """Deciding about pages and remembering them.

    The options of all of these are those of :class:`pgsimhash.terms.Terms`: ``distance``,
    ``verify``, ``scope``, ``newest``, ``max_age``, ``canonical_link``, ``keep_first`` and
    ``min_words``. What is not given is as policies say, else as the collection has it.
    """

    def start_run(self, what: str) -> int:
        """Let what is added from now on belong to a run of its own, and return its number.

        Without this, all that one store adds is one run. ``what`` describes it in the list.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.transaction() as connection:
            self._run = draw_run(connection, what)
        return self._run.run_id

    def ingest(
        self,
        url: str,
        html: str | Octets,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[Options],
    ) -> Verdict:
        """Fingerprint one page, decide whether it is known, and remember it.

        Args:
            url: the page's absolute URL.
            html: the page; bytes are decoded as a browser would.
            fetched_at: when it was fetched, by default now.
            max_bytes: a larger page is a failure.
            options: on what terms; by default the collection's.

        Raises:
            SchemeError: the scheme of the collection is not registered in this process.
            InvalidDistanceError: the layout does not answer ``distance``.
            UnknownRuleError: there is no such scope, or a number is below 1.
            InvalidTimeError: ``max_age`` is none, or ``fetched_at`` names no zone, is in the
                future or before 1970.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        page = _page(url, html, fetched_at)
        return next(iter(self.ingest_many([page], max_bytes=max_bytes, **options)))

    def should_store(
        self,
        url: str,
        html: str | Octets,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[Options],
    ) -> bool:
        """Decide and remember, as :meth:`ingest`, and return whether the page is worth keeping.

        It is if its verdict is ``new``, or fewer than ``keep_first`` near-copies are known, under
        this URL or another; not if it says too little.

        Raises:
            PageError: the page cannot be read, so that nothing was decided; ``reason`` and the
                message say why. Otherwise as for :meth:`ingest`.
        """
        verdict = self.ingest(url, html, fetched_at=fetched_at, max_bytes=max_bytes, **options)
        if verdict.verdict == "failed":
            raise PageError(f"{url}: {verdict.detail}", verdict.reason)
        return verdict.keep

    def decide(
        self,
        url: str,
        html: str | Octets,
        *,
        fetched_at: datetime | None = None,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[Options],
    ) -> Verdict:
        """Return the verdict that :meth:`ingest` would give now, and remember nothing.

        Raises:
            As for :meth:`ingest`.
        """
        page = _page(url, html, fetched_at)
        return next(iter(self.decide_many([page], max_bytes=max_bytes, **options)))

    def decide_many(
        self,
        pages: Iterable[Page],
        *,
        jobs: int = 1,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[Options],
    ) -> Iterator[Verdict]:
        """Yield for each page the verdict that :meth:`ingest` would give now, in their order.

        Nothing is remembered: pages are compared with the store, and in batches with the ones
        just before them.

        Raises:
            As for :meth:`ingest_many`.
        """
        items = self._read(pages, jobs, max_bytes)
        return self._decide_all(items, BATCH_PAGES, options, remember=False)

    def ingest_many(
        self,
        pages: Iterable[Page],
        *,
        jobs: int = 1,
        max_bytes: int = MAX_BYTES,
        **options: Unpack[Options],
    ) -> Iterator[Verdict]:
        """Ingest pages as they come and yield a verdict for each, in their order.

        Lazy: pages are taken, stored and forgotten in batches as the verdicts are consumed, so
        memory does not grow with their number. Each batch is one transaction; a page that
        fails is reported and the rest goes on.

        Args:
            pages: ``(url, html)`` pairs, or what :func:`pgsimhash.sources.read_pages` yields.
            jobs: in how many processes to fingerprint; with more than one, the calling script
                needs the usual ``if __name__ == "__main__":`` guard.
            max_bytes: a larger page is a failure.
            options: on what terms; by default the collection's.

        Raises:
            SchemeError: the scheme of the collection is not registered in this process.
            InvalidDistanceError: the layout does not answer ``distance``.
            UnknownRuleError: there is no such scope, or a number is below 1.
            InvalidTimeError: ``max_age`` is none.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer; the batches before stay.
        """
        items = self._read(pages, jobs, max_bytes)
        return self._decide_all(items, BATCH_PAGES, options, remember=True)

    def add(
        self,
        url: str,
        simhash: int,
        *,
        fetched_at: datetime | None = None,
        **options: Unpack[Options],
    ) -> Verdict:
        """Ingest a page that the caller fingerprinted, with the collection's scheme.

        Raises:
            InvalidUrlError: ``url`` is not one.
            InvalidSimhashError: ``simhash`` is not in 0..2**64-1.
            InvalidTimeError: ``fetched_at`` names no zone, is in the future or before 1970, or
                ``max_age`` is none.
            InvalidDistanceError: the layout does not answer ``distance``.
            UnknownRuleError: there is no such scope, or a number is below 1.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        moment = None if fetched_at is None else check_time(fetched_at)
        record = PageRecord(check_url(url), check_simhash(simhash), moment)
        return next(self._decide_all([record], 1, options, remember=True))

    def add_many(
        self, pages: Iterable[tuple[str, int]], **options: Unpack[Options]
    ) -> Iterator[Verdict]:
        """Add ``(url, simhash)`` pairs as they come; :meth:`ingest_many` without the reading.

        A pair that is none (a URL that is not one, a number that is no simhash) is reported as
        failed and the rest goes on.

        Raises:
            InvalidDistanceError: the layout does not answer ``distance``.
            UnknownRuleError: there is no such scope, or a number is below 1.
            InvalidTimeError: ``max_age`` is none.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer; the batches before stay.
        """
        self._session.check()
        items = map(as_record, pages)
        return self._decide_all(items, BATCH_SIMHASHES, options, remember=True)

    def add_simhashes(self, simhashes: NDArray[np.uint64]) -> int:
        """Add simhashes without pages or verdicts, and return how many were not known.

        For a load from elsewhere: all of them or none. Lookups find them with no URL, and they
        stay when pages that share them are deleted. Batches that another writer is deciding at
        that moment may not see them.

        Args:
            simhashes: shape (n,), dtype uint64.

        Raises:
            InvalidSimhashError: the array has another shape or dtype.
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        check_simhashes(simhashes)
        with self._session.transaction() as connection:
            return add_simhashes(connection, self._collection, simhashes)

    def _read(self, pages: Iterable[Page], jobs: int, max_bytes: int) -> Iterator[Item]:
        self._session.check()
        collection = self._collection
        records = extract_many(
            map(as_source, pages),
            jobs,
            collection.scheme,
            markdown=collection.keep_markdown,
            max_bytes=max_bytes,
        )
        return map(with_checked_time, records)


def _page(url: str, html: str | Octets, fetched_at: datetime | None) -> SourcePage:
    moment = None if fetched_at is None else check_time(fetched_at)
    return SourcePage(url, frozen(html), fetched_at=moment)
