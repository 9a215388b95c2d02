"""Read the simhashes of a collection: all, or those of a random sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import tuple_row

from pgsimhash.db.statements import query
from pgsimhash.store import Store
from pgsimhash.store.lookups import simhash_slices


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
