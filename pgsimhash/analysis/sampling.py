"""Read the simhashes of a collection: all, a random sample, or those of given URLs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import tuple_row

from pgsimhash.db.statements import query
from pgsimhash.hashing.bits import from_bigint
from pgsimhash.store import Store
from pgsimhash.store.lookups import simhash_slices

_URLS: Final = 1_000
"""How many URLs one statement looks up."""


def simhashes(store: Store) -> NDArray[np.uint64]:
    """Return all distinct simhashes of the collection: shape (n,), dtype uint64."""
    with store.session.reading() as (connection, collection):
        return np.concatenate(list(simhash_slices(connection, collection)))


class Sample(NamedTuple):
    """A sample of pages: URLs, simhashes (shape (n,), dtype uint64) and titles, in one order."""

    urls: list[str]
    simhashes: NDArray[np.uint64]
    titles: list[str | None]


def sample(store: Store, size: int, seed: int = 0) -> Sample:
    """Return the current versions of ``size`` random pages, or of all if there are fewer.

    The same ``seed`` chooses the same pages.
    """
    with (
        store.session.reading() as (connection, collection),
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        parameters = {"collection_id": collection.collection_id, "size": size, "seed": seed}
        rows = cursor.execute(query("sample", connection), parameters).fetchall()
    values = np.array([simhash for _, simhash, _ in rows], dtype=np.int64).view(np.uint64)
    return Sample([url for url, *_ in rows], values, [title for *_, title in rows])


def known_simhashes(store: Store, urls: Iterable[str]) -> dict[str, int]:
    """Return the simhashes of the current versions of all known pages among ``urls``, by URL."""
    known: dict[str, int] = {}
    with (
        store.session.reading() as (connection, collection),
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        # The database rejects NUL, and no page has a URL with NUL.
        pages = [(url, collection.page_url(url)) for url in dict.fromkeys(urls) if "\0" not in url]
        for start in range(0, len(pages), _URLS):
            batch = pages[start : start + _URLS]
            scope = {
                "collection_id": collection.collection_id,
                "urls": [page_url for _, page_url in batch],
            }
            rows: dict[str, int] = dict(cursor.execute(query("known_simhashes", connection), scope))
            known |= {
                url: from_bigint(rows[page_url]) for url, page_url in batch if page_url in rows
            }
    return known
