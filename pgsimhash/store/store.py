"""The store: what is known about pages, asked and told through one PostgreSQL connection."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.bits import check_distance, check_simhash, from_bigint, to_bigint
from pgsimhash.connection import check_schema, translated_errors
from pgsimhash.errors import TooShortError
from pgsimhash.extraction import extract_many
from pgsimhash.layout import LAYOUTS
from pgsimhash.records import (
    CollectionStatus,
    Match,
    PageFailure,
    PageRecord,
    StoredPage,
    Verdict,
)
from pgsimhash.schemes import DEFAULT_SCHEME
from pgsimhash.sources import SourceFailure, SourcePage
from pgsimhash.statements import query
from pgsimhash.store.collection import open_collection
from pgsimhash.store.status import read_status
from pgsimhash.store.writer import write_batch
from pgsimhash.urls import check_url

BATCH_PAGES: Final = 256
_BATCH_SECONDS: Final = 2.0

Page = SourcePage | SourceFailure | tuple[str, str | bytes]


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
        owns_connection: bool = False,
    ) -> None:
        """Open ``collection`` over ``connection``, creating it where ``create`` is true.

        Raises:
            SchemaError: the schema is missing, or older or newer than this package.
            CollectionError: the collection is missing and ``create`` is false, or it holds
                another scheme or layout.
        """
        self._connection = connection
        self._owns_connection = owns_connection
        with self._transaction():
            check_schema(connection)
            self._collection = open_collection(
                connection, collection, DEFAULT_SCHEME.name, create=create
            )
        self._scope = {"collection_id": self._collection.collection_id}

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
        if self._owns_connection:
            self._connection.close()

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._collection.name

    def find(self, simhash: int, distance: int = 3) -> list[Match]:
        """Return every known simhash within ``distance`` bits, each once, nearest first.

        Exact: none is missed. (Manku, Jain, Das Sarma, WWW 2007, section 3.)

        Raises:
            InvalidSimhashError: ``simhash`` is not in 0..2**64-1.
            InvalidDistanceError: ``distance`` is not in 0..8.
            StoreError: the database does not answer.
        """
        parameters = {
            **self._scope,
            "collection": self._collection.name,
            "simhash": to_bigint(simhash),
            "distance": self._distance(distance),
        }
        with self._transaction(), self._connection.cursor(row_factory=tuple_row) as cursor:
            rows = cursor.execute(query("find"), parameters).fetchall()
        return [Match(from_bigint(value), bits, url, title) for value, bits, url, title in rows]

    def ingest(self, url: str, html: str | bytes, *, distance: int | None = None) -> Verdict:
        """Fingerprint one page, decide whether it is known, and remember it.

        Args:
            url: the page's absolute URL.
            html: the page; bytes are decoded as a browser would.
            distance: the largest number of differing bits that makes a duplicate; by default
                the collection's.

        Raises:
            InvalidDistanceError: ``distance`` is not in 0..8.
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
            InvalidDistanceError: ``distance`` is not in 0..8.
            StoreError: the database does not answer; the batches before stay.
        """
        wanted = self._distance(distance)
        return self._ingest_batches(extract_many(map(_source_page, pages), jobs), wanted)

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
            InvalidDistanceError: ``distance`` is not in 0..8.
            StoreError: the database does not answer.
        """
        record = PageRecord(check_url(url), check_simhash(simhash), fetched_at)
        return next(self._write([record], self._distance(distance)))

    def get(self, url: str) -> StoredPage | None:
        """Return the present version of the page at ``url``, or None if it is not known.

        Raises:
            StoreError: the database does not answer.
        """
        with self._transaction(), self._connection.cursor(row_factory=tuple_row) as cursor:
            row = cursor.execute(query("page"), {**self._scope, "url": url}).fetchone()
        return None if row is None else StoredPage(row[0], from_bigint(row[1]), *row[2:])

    def delete(self, url: str) -> int:
        """Forget all versions of the page at ``url`` and return how many there were.

        Simhashes that no other page has are forgotten too; pages that were found to duplicate
        this one stay, as duplicates of nothing.

        Raises:
            StoreError: the database does not answer.
        """
        with self._transaction(), self._connection.cursor(row_factory=scalar_row) as cursor:
            cursor.execute(query("lock_collection"), self._scope)
            simhashes = cursor.execute(
                query("delete_pages"), {**self._scope, "url": url}
            ).fetchall()
            cursor.execute(query("delete_orphans"), {**self._scope, "simhashes": simhashes})
        return len(simhashes)

    def status(self) -> list[CollectionStatus]:
        """Return the figures of every collection in the database.

        Raises:
            StoreError: the database does not answer.
        """
        with self._transaction():
            return read_status(self._connection)

    def _distance(self, distance: int | None) -> int:
        largest = LAYOUTS[self._collection.layout].distances[-1]
        wanted = self._collection.default_distance if distance is None else distance
        return check_distance(wanted, largest)

    def _ingest_batches(
        self, records: Iterable[PageRecord | PageFailure], distance: int
    ) -> Iterator[Verdict]:
        batch: list[PageRecord | PageFailure] = []
        started = time.monotonic()
        for record in records:
            batch.append(record)
            if len(batch) >= BATCH_PAGES or time.monotonic() - started >= _BATCH_SECONDS:
                yield from self._write(batch, distance)
                batch, started = [], time.monotonic()
        yield from self._write(batch, distance)

    def _write(
        self, batch: list[PageRecord | PageFailure] | list[PageRecord], distance: int
    ) -> Iterator[Verdict]:
        records = [item for item in batch if isinstance(item, PageRecord)]
        with self._transaction():
            verdicts = iter(write_batch(self._connection, self._collection, records, distance))
        for item in batch:
            yield next(verdicts) if isinstance(item, PageRecord) else _failed(item)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block in a transaction, inside the caller's where there is one."""
        connection = self._connection
        with translated_errors(connection):
            idle = connection.info.transaction_status == TransactionStatus.IDLE
            if idle and not connection.autocommit:
                # Begin what only the caller may commit: the block below is then a savepoint.
                connection.execute("SELECT 1")
            with connection.transaction():
                yield


def _source_page(page: Page) -> SourcePage | SourceFailure:
    return SourcePage(*page) if isinstance(page, tuple) else page


def _failed(failure: PageFailure) -> Verdict:
    return Verdict(
        failure.url,
        "too_short" if failure.reason == TooShortError.reason else "failed",
        failure.reason,
        detail=failure.detail,
    )
