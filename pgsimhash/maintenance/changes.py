"""What functions that write to a store's collection have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pgsimhash.store import Store
from pgsimhash.store.collection import check_names


@contextmanager
def changing(store: Store) -> Iterator[psycopg.Connection[Any]]:
    """Run a block that writes to a store's collection by its name, in a transaction.

    Raises:
        CollectionError: it was renamed since it was opened.
    """
    with store.session.transaction() as connection:
        check_names(connection, [store.opened])
        yield connection
