"""Find all pairs of near-duplicates in a collection, as pages with URLs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import psycopg

from pgsimhash.db.statements import fetch, stream
from pgsimhash.hashing.bits import format_simhash, from_bigint
from pgsimhash.runtime.progress import no_progress
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared, Pairs, stream_pairs
from pgsimhash.store import Store
from pgsimhash.store.collection import Collection, checked_distance
from pgsimhash.store.lookups import all_simhashes

_ROWS: Final = 2_000
"""Pairs per lookup of pages."""


class PairedPage(NamedTuple):
    """One page of a pair."""

    url: str
    title: str | None
    simhash: int


@dataclass(frozen=True, slots=True)
class PagePair:
    """Two pages, and their distance in bits."""

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
    store: Store, distance: int | None = None, *, progress: Compared = no_progress
) -> Generator[PagePair]:
    """Yield the pairs of ``Store.pairs`` as pages with their URLs, in bounded memory.

    Only current versions count. The first page of a simhash represents it in pairs with other
    simhashes. It also forms a pair at distance 0 with each page of the same simhash. So ten
    thousand pages with one simhash give 9,999 pairs instead of 50 million; all other pairs follow
    from these. The transaction is open during the loop, as with ``Store.clusters``. Pages that are
    added or deleted meanwhile may be missing.

    Args:
        store: the store of the collection.
        distance: the largest number of differing bits; by default the collection's.
        progress: see ``Store.pairs``.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
    """
    checked_distance(store.opened, distance, DISTANCE_MAX)
    return _page_pairs(store, distance, progress)


def _page_pairs(store: Store, distance: int | None, progress: Compared) -> Generator[PagePair]:
    with store.session.reading(together=True) as (connection, collection):
        limit = checked_distance(collection, distance, DISTANCE_MAX)
        simhashes = all_simhashes(connection, collection)
        yield from _sharing(connection, collection)
        for chunk in stream_pairs(simhashes, limit, progress=progress):
            yield from _as_pages(connection, collection, chunk)


def _sharing(connection: psycopg.Connection[Any], collection: Collection) -> Iterator[PagePair]:
    """Yield the pairs of the first page of each simhash and its other pages."""
    scope = {"collection_id": collection.collection_id, "simhashes": [], "clusters": []}
    with closing(stream(connection, "clusters", scope)) as rows:
        for simhash, members in groupby(rows, key=itemgetter(0)):
            value = from_bigint(simhash)
            pages = (PairedPage(url, title, value) for _, _, url, _, _, title, _ in members)
            first = next(pages)
            for other in pages:
                yield PagePair(first, other, 0)


def _as_pages(
    connection: psycopg.Connection[Any], collection: Collection, chunk: Pairs
) -> Iterator[PagePair]:
    """Yield the pairs of a chunk as the first pages of their simhashes."""
    for start in range(0, len(chunk.low), _ROWS):
        low, high, distances = (column[start : start + _ROWS] for column in chunk)
        signed = np.unique(np.concatenate((low, high))).view(np.int64).tolist()
        first = _first_pages(connection, collection, signed)
        for a, b, bits in zip(low.tolist(), high.tolist(), distances.tolist(), strict=True):
            if a in first and b in first:
                yield PagePair(first[a], first[b], bits)


def _first_pages(
    connection: psycopg.Connection[Any], collection: Collection, simhashes: Sequence[int]
) -> dict[int, PairedPage]:
    parameters = {"collection_id": collection.collection_id, "simhashes": simhashes}
    return {
        from_bigint(simhash): PairedPage(url, title, from_bigint(simhash))
        for simhash, url, title in fetch(connection, "first_pages", parameters)
    }
