"""A cache of the collection's simhashes, filled when lookups are frequent."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgsimhash.db.statements import fetch
from pgsimhash.errors import ArgumentError
from pgsimhash.log import logger
from pgsimhash.runtime.machine import memory_bytes
from pgsimhash.search.memory_index import BlockIndex, Near
from pgsimhash.store.collection import Collection
from pgsimhash.store.lookups import SLICES, simhash_slice

LIMIT_VARIABLE: Final = "PGSIMHASH_LOOKUP_MEMORY"

HELD_BYTES: Final = 64
"""Bytes per simhash while all are read; afterwards about half."""

HELD_SHARE: Final = 8
"""Divisor of the machine's memory for the default limit."""

_AT_LEAST: Final = 1e-3
"""Seconds that a cached lookup takes at least, including reading what is new."""

_PATIENCE: Final = 0.1
"""Seconds of lookups after which the size of the collection is checked."""

_READ_SECONDS: Final = 4e-7
"""Approximate seconds to read and sort one simhash."""


class Memory:
    """All simhashes of a collection, read once lookups have cost as much as reading them.

    So the total cost is at most twice the optimum, for any number of lookups. Matches are exact:
    before each answer, the cache reads the simhashes of newer page ids, which are assigned under
    the lock of the collection. Any other addition changes the cache epoch (table ``cache_epochs``),
    which empties the cache. Deleted simhashes stay in it, so callers check that matches still
    exist.
    """

    def __init__(self, limit: int | None) -> None:
        """Create an empty cache.

        Args:
            limit: memory limit in bytes, shared by all stores of the process; 0 disables the cache.
                None means PGSIMHASH_LOOKUP_MEMORY, in megabytes, else an eighth of the machine's
                memory.
        """
        self._limit = _default_limit() if limit is None else limit
        self._lock = threading.Lock()
        self._forget(None)

    def _forget(self, collection_id: int | None) -> None:
        with _taking:
            _taken.pop(self, None)
        self._of = collection_id
        self._index: BlockIndex | None = None
        self._newest = 0
        self._epoch: Any = None
        self._spent = 0.0
        self._pays = _PATIENCE

    def __len__(self) -> int:
        index = self._index
        return 0 if index is None else len(index)

    def holds(self, collection: Collection) -> bool:
        """Return whether the simhashes of a collection are cached."""
        return self._index is not None and self._of == collection.collection_id

    @property
    def newest(self) -> int:
        """The newest page id that the cache includes."""
        return self._newest

    def spent(self, collection: Collection, seconds: float) -> None:
        """Record by how much a lookup in the database was slower than a cached one."""
        if collection.collection_id == self._of:
            self._spent += max(0.0, seconds - _AT_LEAST)

    @contextmanager
    def looking_up(self, collection: Collection) -> Iterator[None]:
        """Record by how much the lookups in this block were slower than cached ones."""
        started = time.perf_counter()
        yield
        self.spent(collection, time.perf_counter() - started)

    def near(
        self,
        connection: psycopg.Connection[Any],
        collection: Collection,
        simhashes: NDArray[np.uint64],
        distance: int,
    ) -> Near | None:
        """Return the cached simhashes near, maybe deleted ones too; None means ask the database."""
        if not self._limit:
            return None
        with self._lock:
            return self._near(connection, collection, simhashes, distance)

    def _near(
        self,
        connection: psycopg.Connection[Any],
        collection: Collection,
        simhashes: NDArray[np.uint64],
        distance: int,
    ) -> Near | None:
        if self._of != collection.collection_id:
            self._forget(collection.collection_id)
        if self._index is not None:
            self._hear(connection, collection, self._index)
        elif self._pays_off(connection, collection):
            self.take_in(connection, collection)
        return None if self._index is None else self._index.near(simhashes, distance)

    def take_in(self, connection: psycopg.Connection[Any], collection: Collection) -> None:
        """Read all simhashes of a collection, if they fit."""
        self._forget(collection.collection_id)
        # Simhashes that arrive while the slices are read are read afterwards.
        epoch, newest, _ = _arrived(connection, collection, None)
        read: list[NDArray[np.uint64]] = []
        for number in range(SLICES):
            read.append(simhash_slice(connection, collection, number))
            if not self._takes(sum(map(len, read))):
                self._give_up(collection)
                return
        known = np.concatenate(read)
        read.clear()
        self._index, self._epoch, self._newest = BlockIndex(known), epoch, newest
        _log(collection, f"{len(known)} simhashes of {collection.name!r} held in memory")
        self._hear(connection, collection, self._index)

    def _pays_off(self, connection: psycopg.Connection[Any], collection: Collection) -> bool:
        """Return whether lookups have cost as much as reading would, estimated from one slice."""
        if self._spent < self._pays:
            return False
        rows = len(simhash_slice(connection, collection, 0)) * SLICES
        self._pays = max(rows * _READ_SECONDS, _PATIENCE)
        return self._spent >= self._pays

    def _takes(self, rows: int) -> bool:
        """Reserve memory for this many simhashes; return whether there is enough."""
        with _taking:
            others = sum(taken for one, taken in _taken.items() if one is not self)
            _taken[self] = max(1, rows) * HELD_BYTES
            return others + _taken[self] <= self._limit

    def _give_up(self, collection: Collection) -> None:
        _log(
            collection,
            f"the simhashes of {collection.name!r} do not fit into {self._limit} bytes of memory; "
            "lookups use the database",
        )
        self._forget(collection.collection_id)
        self._limit = 0

    def _hear(
        self, connection: psycopg.Connection[Any], collection: Collection, index: BlockIndex
    ) -> None:
        epoch, self._newest, simhashes = _arrived(connection, collection, self._newest)
        if epoch != self._epoch:
            _log(
                collection,
                f"simhashes were loaded into {collection.name!r}, or the server changed; the cache "
                "is emptied",
            )
            self._forget(collection.collection_id)
        elif len(simhashes) and not self._takes(len(index) + len(simhashes)):
            self._give_up(collection)
        elif len(simhashes):
            index.add(simhashes)


_taken: WeakKeyDictionary[Memory, int] = WeakKeyDictionary()
"""The bytes that each cache of this process uses; together they stay within the limit."""

_taking: Final = threading.Lock()

NO_MEMORY: Final = Memory(0)
"""A disabled cache: every lookup goes to the database."""


def _arrived(
    connection: psycopg.Connection[Any], collection: Collection, newest: int | None
) -> tuple[Any, int, NDArray[np.uint64]]:
    """Return the cache epoch, the newest page id, and the simhashes of pages after ``newest``.

    The epoch also depends on the server: a promoted standby may lack the last pages.
    """
    scope = {"collection_id": collection.collection_id, "newest_page": newest, "limit": None}
    ((*epoch, last, values),) = fetch(connection, "arrived_simhashes", scope, binary=True)
    return epoch, last, np.frombuffer(values or b"", dtype=">u8").astype(np.uint64)


def _log(collection: Collection, message: str) -> None:
    logger.info("%s", message, extra={"collection": collection.name})


def _default_limit() -> int:
    configured = os.environ.get(LIMIT_VARIABLE, "")
    if not configured:
        return memory_bytes() // HELD_SHARE
    if not configured.isdecimal():
        raise ArgumentError(
            "invalid_argument",
            f"{LIMIT_VARIABLE} must be a number of megabytes (0: no cache), not {configured!r}",
        )
    return int(configured) << 20
