"""All pairs of near-copies in a collection as pages, with their URLs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import psycopg
from psycopg.rows import tuple_row

from pgsimhash.bits import format_simhash, from_bigint
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.pairs import Compared, Pairs, stream_pairs
from pgsimhash.progress import unheard
from pgsimhash.statements import query
from pgsimhash.store import Store, groups
from pgsimhash.store.collection import Collection, checked_distance

_ROWS: Final = 2_000
"""How many pages the server sends, and of how many pairs it is asked for pages, at a time."""


class PairedPage(NamedTuple):
    """One page of a pair."""

    url: str
    title: str | None
    simhash: int


@dataclass(frozen=True, slots=True)
class PagePair:
    """Two pages, and in how many bits they differ."""

    a: PairedPage
    b: PairedPage
    distance: int

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, simhashes as 16 hex digits."""
        return {
            "a": self.a.url,
            "b": self.b.url,
            "distance": self.distance,
            "a_title": self.a.title,
            "b_title": self.b.title,
            "a_simhash": format_simhash(self.a.simhash),
            "b_simhash": format_simhash(self.b.simhash),
        }


def page_pairs(
    store: Store, distance: int | None = None, *, progress: Compared = unheard
) -> Generator[PagePair]:
    """Yield the pairs of ``Store.pairs`` as pages with their URLs, streamed, in bounded memory.

    The present version of each page counts. The first page of a simhash stands for it: it is in the
    pairs with other simhashes, and makes a pair at distance 0 with each page that shares its
    simhash. So ten thousand pages with one simhash make 9,999 pairs, and not 50 million; every
    other pair of pages follows from these. Simhashes without a page are left out. While the loop is
    under way its transaction is open, as with ``Store.clusters``; what is written meanwhile may be
    missed, and what is deleted may be left out.

    Args:
        store: whose collection it is.
        distance: the largest number of differing bits; by default the collection's.
        progress: told as by ``Store.pairs``.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
        StoreError: the database does not answer.
    """
    store.session.check()
    checked_distance(store.opened, distance, DISTANCE_MAX)
    return _page_pairs(store, distance, progress)


def _page_pairs(store: Store, distance: int | None, progress: Compared) -> Generator[PagePair]:
    with store.session.reading(together=True) as (connection, collection):
        wanted = checked_distance(collection, distance, DISTANCE_MAX)
        with groups.spool(connection, collection) as simhashes:
            for pair in _sharing(connection, collection):
                yield pair
                store.session.check()
            for block in stream_pairs(simhashes, wanted, progress=progress):
                for pair in _as_pages(connection, collection, block):
                    yield pair
                    store.session.check()


def _sharing(connection: psycopg.Connection[Any], collection: Collection) -> Iterator[PagePair]:
    """Yield the first page of each simhash with each other one that has it."""
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(name="pgsimhash_pairs", row_factory=tuple_row, binary=True) as rows:
        rows.itersize = _ROWS
        rows.execute(query("sharing_pages", connection), scope)
        for simhash, members in groupby(rows, key=itemgetter(0)):
            value = from_bigint(simhash)
            pages = (PairedPage(url, title, value) for _, url, title in members)
            first = next(pages)
            for other in pages:
                yield PagePair(first, other, 0)


def _as_pages(
    connection: psycopg.Connection[Any], collection: Collection, block: Pairs
) -> Iterator[PagePair]:
    """Yield the pairs of a block as the first pages of their simhashes."""
    for start in range(0, len(block.low), _ROWS):
        low, high, distances = (column[start : start + _ROWS] for column in block)
        signed = np.unique(np.concatenate((low, high))).view(np.int64).tolist()
        first = _first_pages(connection, collection, signed)
        for a, b, bits in zip(low.tolist(), high.tolist(), distances.tolist(), strict=True):
            if a in first and b in first:
                yield PagePair(first[a], first[b], bits)


def _first_pages(
    connection: psycopg.Connection[Any], collection: Collection, simhashes: Sequence[int]
) -> dict[int, PairedPage]:
    parameters = {"collection_id": collection.collection_id, "simhashes": simhashes}
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        cursor.execute(query("first_pages", connection), parameters)
        return {
            from_bigint(simhash): PairedPage(url, title, from_bigint(simhash))
            for simhash, url, title in cursor
        }
