"""The store: what is known about pages, asked and told through one PostgreSQL connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgsimhash.bits import check_distance, check_simhash
from pgsimhash.connection import check_schema, translated_errors
from pgsimhash.extraction import extract_many
from pgsimhash.layout import get_layout
from pgsimhash.pairs import Pairs, find_pairs
from pgsimhash.records import (
    CollectionStatus,
    Match,
    Matches,
    PageRecord,
    StoredPage,
    Verdict,
)
from pgsimhash.schemes import DEFAULT_SCHEME
from pgsimhash.store import reader
from pgsimhash.store.batches import (
    BATCH_PAGES,
    BATCH_SIMHASHES,
    Page,
    as_record,
    as_source,
    write_in_batches,
)
from pgsimhash.store.collection import open_collection
from pgsimhash.store.relayout import Progress, relayout
from pgsimhash.store.session import Session
from pgsimhash.store.status import read_status
from pgsimhash.store.writer import delete_page, write_batch
from pgsimhash.urls import check_url


class Store:
    """A collection of pages in PostgreSQL; made by :func:`pgsimhash.connect`.

    A store that opened its own connection commits batch by batch and closes the connection at
    the end of its ``with`` block. One that was given a connection neither commits nor closes
    it: on a connection with ``autocommit`` each batch is a transaction, on any other the caller
    commits. Not to be shared between threads.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        collection: str = "default",
        *,
        create: bool = True,
        layout: str | None = None,
        owns_connection: bool = False,
    ) -> None:
        """Open ``collection`` over ``connection``, creating it where ``create`` is true.

        Raises:
            SchemaError: the schema is missing, or older or newer than this package.
            CollectionError: the collection is missing and ``create`` is false, or it holds
                another scheme or layout.
            UnknownLayoutError: there is no such layout.
        """
        self._session = Session(connection, owned=owns_connection)
        with self._session.transaction():
            check_schema(connection)
            self._collection = open_collection(
                connection, collection, DEFAULT_SCHEME.name, create=create, layout=layout
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if the store opened it."""
        self._session.close()

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._collection.name

    @property
    def layout(self) -> str:
        """The name of the collection's layout when the store was opened or changed it."""
        return self._collection.layout

    def find(
        self,
        simhash: int,
        distance: int = 3,
        *,
        limit: int | None = None,
        host: str | None = None,
        since: datetime | None = None,
    ) -> list[Match]:
        """Return every known simhash within ``distance`` bits, each once, nearest first.

        Exact: none is missed. (Manku, Jain, Das Sarma, WWW 2007, section 3.)

        Args:
            simhash: what to look for.
            distance: the largest number of differing bits.
            limit: at most so many matches, the nearest.
            host: only matches that have a page on this host.
            since: only matches that have a page fetched then or later.

        Raises:
            InvalidSimhashError: ``simhash`` is not in 0..2**64-1.
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        wanted = self._distance(distance)
        with self._session.read() as connection:
            return reader.find(
                connection,
                self._collection,
                simhash,
                wanted,
                limit=limit,
                host=host,
                since=since,
            )

    def find_many(self, simhashes: NDArray[np.uint64], distance: int = 3) -> Matches:
        """Look up an array of simhashes in one statement; several times as fast as one by one.

        Args:
            simhashes: shape (n,), dtype uint64.
            distance: the largest number of differing bits.

        Returns:
            The matches of all of them, by query, nearest first.

        Raises:
            InvalidSimhashError: the array has another shape or dtype.
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        wanted = self._distance(distance)
        with self._session.read() as connection:
            return reader.find_many(connection, self._collection, simhashes, wanted)

    def exists(self, simhash: int, distance: int = 3) -> bool:
        """Return whether any known simhash is within ``distance`` bits; stops at the first.

        Raises:
            InvalidSimhashError: ``simhash`` is not in 0..2**64-1.
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        wanted = self._distance(distance)
        with self._session.read() as connection:
            return reader.exists(connection, self._collection, simhash, wanted)

    def simhashes(self) -> NDArray[np.uint64]:
        """Return all distinct simhashes of the collection: shape (n,), dtype uint64.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return reader.simhashes(connection, self._collection)

    def pairs(self, distance: int = 3) -> Pairs:
        """Return every pair of known simhashes within ``distance`` bits, found in memory.

        Needs about 40 bytes of memory a distinct simhash; see :func:`pgsimhash.find_pairs`.

        Raises:
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        wanted = self._distance(distance)
        return find_pairs(self.simhashes(), wanted)

    def ingest(self, url: str, html: str | bytes, *, distance: int | None = None) -> Verdict:
        """Fingerprint one page, decide whether it is known, and remember it.

        Args:
            url: the page's absolute URL.
            html: the page; bytes are decoded as a browser would.
            distance: the largest number of differing bits that makes a duplicate; by default
                the collection's.

        Raises:
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer.
        """
        return next(iter(self.ingest_many([(url, html)], distance=distance)))

    def ingest_many(
        self, pages: Iterable[Page], *, distance: int | None = None, jobs: int = 1
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

        Raises:
            InvalidDistanceError: the layout does not answer ``distance``.
            StoreError: the database does not answer; the batches before stay.
        """
        write = self._writer(distance)
        return write_in_batches(extract_many(map(as_source, pages), jobs), write, BATCH_PAGES)

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

    def get(self, url: str) -> StoredPage | None:
        """Return the present version of the page at ``url``, or None if it is not known.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return reader.get(connection, self._collection, url)

    def delete(self, url: str) -> int:
        """Forget all versions of the page at ``url`` and return how many there were.

        Simhashes that no other page has are forgotten too; pages that were found to duplicate
        this one stay, as duplicates of nothing.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.transaction() as connection:
            return delete_page(connection, self._collection, url)

    def relayout(
        self,
        layout: str,
        *,
        distance: int | None = None,
        progress: Progress = lambda step, done, total: None,
    ) -> None:
        """Move the collection to another layout, while lookups and writers go on.

        Lookups stay exact throughout. An interrupted move goes on when called again; asking
        for the present layout cancels it. Needs the rights of the tables' owner and a
        connection with ``autocommit``, such as the store's own.

        Args:
            layout: the name of the layout; ``pgsimhash plan`` compares them.
            distance: the collection's new default distance; by default the present one.
            progress: called with the step, and how much of how much of it is done.

        Raises:
            UnknownLayoutError: there is no such layout.
            CollectionError: the collection is on its way to another layout, or the new one does
                not answer its default distance.
            StoreError: the connection is in a transaction, or another process is at it.
        """
        connection = self._session.connection
        with translated_errors(connection):
            relayout(
                connection,
                self.collection,
                get_layout(layout),
                distance=distance,
                progress=progress,
            )
            self._collection = open_collection(
                connection, self.collection, self._collection.scheme, create=False
            )

    def status(self) -> list[CollectionStatus]:
        """Return the figures of every collection in the database.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return read_status(connection)

    def _distance(self, distance: int | None) -> int:
        largest = get_layout(self._collection.layout).distances[-1]
        wanted = self._collection.default_distance if distance is None else distance
        return check_distance(wanted, largest)

    def _writer(self, distance: int | None) -> Callable[[list[PageRecord]], list[Verdict]]:
        wanted = self._distance(distance)

        def write(records: list[PageRecord]) -> list[Verdict]:
            with self._session.transaction() as connection:
                return write_batch(connection, self._collection, records, wanted)

        return write
