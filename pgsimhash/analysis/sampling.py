"""The simhashes of a collection as arrays: all of them, or those of some pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import tuple_row

from pgsimhash.bits import from_bigint
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.reader import simhash_slices

_URLS: Final = 1_000
"""How many URLs are asked about in one statement."""


def simhashes(store: Store) -> NDArray[np.uint64]:
    """Return all distinct simhashes of the collection: shape (n,), dtype uint64.

    Raises:
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        return np.concatenate(list(simhash_slices(connection, collection)))


class Sample(NamedTuple):
    """Some pages: URLs, simhashes (shape (n,), dtype uint64) and titles, in one order."""

    urls: list[str]
    simhashes: NDArray[np.uint64]
    titles: list[str | None]


def sample(store: Store, size: int, seed: int = 0) -> Sample:
    """Return ``size`` pages chosen by chance, or all there are.

    The present versions count. The same ``seed`` chooses the same pages.

    Raises:
        StoreError: the database does not answer.
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
    """Return the simhashes of the present versions of pages, by URL, of those that are known.

    Raises:
        StoreError: the database does not answer.
    """
    known: dict[str, int] = {}
    with (
        store.session.reading() as (connection, collection),
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        # No page has a URL with NUL, and the database takes none.
        asked = [(url, collection.page_url(url)) for url in dict.fromkeys(urls) if "\0" not in url]
        for start in range(0, len(asked), _URLS):
            batch = asked[start : start + _URLS]
            scope = {
                "collection_id": collection.collection_id,
                "urls": [spelled for _, spelled in batch],
            }
            found: dict[str, int] = dict(
                cursor.execute(query("known_simhashes", connection), scope)
            )
            known |= {
                url: from_bigint(found[spelled]) for url, spelled in batch if spelled in found
            }
    return known
