"""The simhashes of a collection as arrays: all of them, or those of some pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import tuple_row

from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.reader import simhash_slices


def simhashes(store: Store) -> NDArray[np.uint64]:
    """Return all distinct simhashes of the collection: shape (n,), dtype uint64.

    Raises:
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        return np.concatenate(list(simhash_slices(connection, collection)))


def sample(store: Store, size: int, seed: int = 0) -> tuple[list[str], NDArray[np.uint64]]:
    """Return URLs and simhashes of ``size`` pages chosen by chance, or of all there are.

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
    values = np.array([simhash for _, simhash in rows], dtype=np.int64).view(np.uint64)
    return [url for url, _ in rows], values
