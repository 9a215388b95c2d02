"""The transactions of a store, over connections of its source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.db.connection import check_settings
from pgsimhash.db.pinned import execute_alone
from pgsimhash.db.refusals import translated_errors
from pgsimhash.db.schema_names import bound_to_schema, schema_of
from pgsimhash.db.sources import ConnectionSource
from pgsimhash.db.statements import query
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    PgsimhashError,
    StoreError,
)
from pgsimhash.log import tell_of_waits
from pgsimhash.store.collection import Collection, check_there, checked_distance, follow
from pgsimhash.store.events import OnEvent
from pgsimhash.store.retries import checked_retry_seconds, passes

if TYPE_CHECKING:
    from pgsimhash.store.memory import Memory

_LOCK_SECONDS: Final = 300

LOCK_TIMEOUT: Final = f"{_LOCK_SECONDS}s"
"""How long the store's own transactions wait for each lock by default."""

_AFTER_LOCKS: Final = 300
"""How many seconds longer than that a statement that writes may run by default."""

_LONGEST: Final = 2**31 // 1000
"""PostgreSQL's maximum in seconds: 24 days."""


class Session:
    """The transactions of a store, each on a connection checked out for it.

    ``collection`` is its row as last read. A store is bound to the name: :meth:`reading` and
    :meth:`writing` read the row that has the name at that moment.
    """

    collection: Collection

    def __init__(
        self,
        source: ConnectionSource,
        schema: str | None = None,
        lookup_memory: int | None = None,
        lock_timeout: float | None = None,
        statement_timeout: float | None = None,
        retry_seconds: float | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        """Use a connection source; see :func:`pgsimhash.connect` for the limits.

        Raises:
            ArgumentError: ``lock_timeout``, ``statement_timeout`` or ``retry_seconds`` is invalid.
        """
        self.source = source
        self._schema = schema
        # Connections whose settings were checked, with the store's schema.
        self._known: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._lookup_memory = None if lookup_memory is None else index(lookup_memory)
        self.retry_seconds = checked_retry_seconds(retry_seconds)
        if on_event is not None and not callable(on_event):
            raise TypeError(f"on_event is a function that receives events, not {on_event!r}")
        self.on_event = on_event
        locks = _LOCK_SECONDS if lock_timeout is None else lock_timeout
        # For one transaction only: the next one may use another server behind a pooler.
        self._bounds = {
            "lock_timeout": _milliseconds("lock_timeout", lock_timeout),
            "otherwise": LOCK_TIMEOUT if source.owned else "0",
            "statement_timeout": _milliseconds("statement_timeout", statement_timeout),
            # With an unlimited lock timeout, statements are not limited either.
            "statement_otherwise": (
                f"{locks + _AFTER_LOCKS:.0f}s" if source.owned and locks else "0"
            ),
        }

    @cached_property
    def memory(self) -> Memory:
        """The cache of the collection's simhashes in this process."""
        # Imported here because a lookup of one simhash needs no numpy.
        from pgsimhash.store.memory import Memory

        return Memory(self._lookup_memory)

    @property
    def cached_simhashes(self) -> int:
        """The number of simhashes in the cache."""
        memory: Memory | None = vars(self).get("memory")
        return 0 if memory is None else len(memory)

    def may_retry(self, error: PgsimhashError) -> bool:
        """Return whether to retry: nothing was committed, and the fault may be transient."""
        return self.source.owned and self.retry_seconds > 0 and passes(error)

    def is_in_callers_transaction(self) -> bool:
        """Return whether writes belong to a transaction that the caller ends."""
        if self.source.owned:
            return False
        with self._checked_out() as connection:
            return not _is_alone(connection)

    def is_in_transaction(self) -> bool:
        """Return whether the caller's connection is in a transaction that can be committed."""
        return self.source.in_transaction()

    @contextmanager
    def _checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        with self.source.connection(loop=loop) as connection:
            own = getattr(connection, "unpinned", connection)
            with nullcontext() if own in self._known else self._first_used(connection):
                self._known.add(own)
                with translated_errors(connection):
                    yield connection

    @contextmanager
    def _first_used(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        check_settings(connection)
        tell_of_waits(connection)
        try:
            with bound_to_schema(connection, self._schema):
                self._schema = schema_of(connection)
                yield
        except BaseException:
            self._known.discard(getattr(connection, "unpinned", connection))
            raise

    @contextmanager
    def read(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend a connection for statements that only read, outside a transaction of the store."""
        with self._checked_out() as connection:
            if _is_alone(connection):
                yield connection
            else:
                with _block(connection):
                    yield connection

    @contextmanager
    def bounded(self) -> Iterator[psycopg.Connection[Any]]:
        """Do the same as :meth:`read`, with the statement timeout of lookups."""
        with self.read() as connection:
            if self._bounds["statement_timeout"] is None:
                yield connection
                return
            # Set for one transaction, for poolers.
            with connection.transaction():
                connection.execute(query("bound_statements", connection), self._bounds)
                yield connection

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction, inside the caller's if there is one.

        Raises:
            StoreError: another transaction of a store is open on the caller's connection.
        """
        with self._begun() as connection:
            connection.execute(query("bound_waits", connection), self._bounds)
            yield connection

    @contextmanager
    def _begun(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        with (
            self._checked_out(loop=loop) as connection,
            _not_within_another(connection),
            _block(connection),
        ):
            yield connection

    @contextmanager
    def reading(
        self, *, together: bool = False
    ) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do the same as :meth:`bounded`, with the collection that has the name now.

        ``together`` makes it one transaction, for cursors and temporary tables.

        Raises:
            CollectionError: no collection has the name, or its scheme differs.
            MovedCollectionError: it was deleted during the reads.
        """
        with self._begun(loop=True) if together else self.bounded() as connection:
            self.collection = opened = follow(connection, self.collection)
            yield connection, opened
            check_there(connection, opened)

    @contextmanager
    def looking_up(
        self, distance: int | None
    ) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do the same as :meth:`bounded`, for statements that use the collection's name and scheme.

        Raises:
            CollectionError: no collection has the name, or its scheme differs.
            ArgumentError: its layout does not support ``distance``.
        """
        try:
            checked_distance(self.collection, distance)
        except ArgumentError:
            # The layout of the collection may have changed since its row was read.
            with self.reading() as (_, collection):
                checked_distance(collection, distance)
        try:
            with self.bounded() as connection:
                yield connection, self.collection
        except CollectionError:
            # Raises the reason.
            with self.reading():
                raise

    @contextmanager
    def writing(self) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do the same as :meth:`transaction`, with the collection that has the name now.

        Raises:
            CollectionError: no collection has the name, or its scheme differs.
        """
        with self._begun() as connection:
            self.collection = follow(connection, self.collection, self._bounds)
            yield connection, self.collection


@contextmanager
def _not_within_another(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Refuse a transaction inside an unfinished call on the caller's connection.

    Rows that the body of a loop over ``clusters()`` wrote would be lost if it left the loop early.
    """
    own = getattr(connection, "unpinned", connection)
    if own in _in_transaction:
        raise StoreError(
            "wrong_transaction",
            "another call is not finished, and its rollback would undo this write: "
            "a loop over clusters() is running, or a function that was passed "
            "to a call; loop over list(store.clusters()), or open a store over a DSN or a pool",
        )
    _in_transaction.add(own)
    try:
        yield
    finally:
        _in_transaction.discard(own)


@contextmanager
def _block(connection: psycopg.Connection[Any]) -> Iterator[None]:
    status = connection.info.transaction_status
    begins = status == TransactionStatus.IDLE and not connection.autocommit
    if begins or status == TransactionStatus.INERROR:
        # Begin the transaction that only the caller may commit, so that the block below is a
        # savepoint. In a failed transaction this raises the clear error; psycopg would complain
        # about savepoints.
        execute_alone(connection, "SELECT 1")
    with connection.transaction():
        yield


def _is_alone(connection: psycopg.Connection[Any]) -> bool:
    """Return whether each statement is its own transaction."""
    return connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


def _milliseconds(name: str, seconds: float | None) -> str | None:
    if seconds is None:
        return None
    if not 0 <= seconds <= _LONGEST:
        raise ArgumentError(
            "invalid_argument",
            f"{name} must be between 0 (no limit) and {_LONGEST} seconds, not {seconds!r}",
        )
    return str(math.ceil(seconds * 1000))


_in_transaction: WeakSet[psycopg.Connection[Any]] = WeakSet()
