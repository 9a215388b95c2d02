"""The store's questions: what is known, and what is near."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from pgsimhash.records import CollectionStatus, Match, Matches, StoredPage
from pgsimhash.recrawl import fetch_advice
from pgsimhash.store import reader
from pgsimhash.store.part import Part
from pgsimhash.store.status import read_status


class Lookups(Part):
    """Lookups in a collection; nothing is written."""

    def find(
        self,
        simhash: int,
        distance: int = 3,
        *,
        limit: int | None = None,
        host: str | None = None,
        since: datetime | None = None,
        sketch: int | None = None,
    ) -> list[Match]:
        """Return every known simhash within ``distance`` bits, each once, nearest first.

        Exact: none is missed. (Manku, Jain, Das Sarma, WWW 2007, section 3.)

        Args:
            simhash: what to look for.
            distance: the largest number of differing bits.
            limit: at most so many matches, the nearest.
            host: only matches that have a page on this host.
            since: only matches that have a page fetched then or later.
            sketch: the sketch that belongs to ``simhash``: matches more than 8 bits away whose
                page has quite another one are left out (see :mod:`pgsimhash.sketch`).

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
                sketch=sketch,
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

    def get(self, url: str) -> StoredPage | None:
        """Return the present version of the page at ``url``, or None if it is not known.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return reader.get(connection, self._collection, url)

    def should_fetch(self, url: str, *, now: datetime | None = None) -> bool:
        """Return whether to fetch a page: it is not known, or due again.

        Due is what :func:`pgsimhash.recrawl_hint` says by when the page changed and when it was
        last met unchanged; ``pgsimhash.analysis.advise_fetch`` has that hint too.

        Args:
            url: the page.
            now: the time to decide for, with a time zone; by default the present.

        Raises:
            InvalidTimeError: ``now`` names no zone.
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            visits = reader.visits(connection, self._collection, url)
        return fetch_advice(url, visits, now=now).fetch

    def status(self) -> list[CollectionStatus]:
        """Return the figures of every collection in the database.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return read_status(connection)
