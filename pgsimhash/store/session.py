"""The transactions of a store, over connections of its source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.db.connection import check_settings
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

_LOCK_SECONDS: Final = 300
"""How long the store's own transactions wait for each lock, and run a statement after it."""

LOCK_TIMEOUT: Final = f"{_LOCK_SECONDS}s"

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
        lock_timeout: float | None = None,
        statement_timeout: float | None = None,
        retry_seconds: float | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self.source = source
        self._schema = schema
        # Connections whose settings were checked, with the store's schema.
        self._known: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self.retry_seconds = checked_retry_seconds(retry_seconds)
        if on_event is not None and not callable(on_event):
            raise TypeError(f"on_event is a function that receives events, not {on_event!r}")
        self.on_event = on_event
        locks = _LOCK_SECONDS if lock_timeout is None else lock_timeout
        # For one transaction only: the next one may use another server behind a pooler.
        self.bounds = {
            "lock_timeout": _milliseconds("lock_timeout", lock_timeout),
            "otherwise": LOCK_TIMEOUT if source.owned else "0",
            "statement_timeout": _milliseconds("statement_timeout", statement_timeout),
            # With an unlimited lock timeout, statements are not limited either.
            "statement_otherwise": (
                f"{locks + _LOCK_SECONDS:.0f}s" if source.owned and locks else "0"
            ),
        }

    def may_retry(self, error: PgsimhashError) -> bool:
        """Return whether to retry: nothing was committed, and the fault may be transient."""
        return self.source.owned and self.retry_seconds > 0 and passes(error)

    def is_in_callers_transaction(self) -> bool:
        """Return whether writes belong to a transaction that the caller ends."""
        if self.source.owned:
            return False
        with self._checked_out() as connection:
            return not _is_alone(connection)

    @contextmanager
    def _checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        with self.source.connection(loop=loop) as connection:
            own = getattr(connection, "wrapped", connection)
            if own in self._known:
                with translated_errors(connection):
                    yield connection
                return
            check_settings(connection)
            tell_of_waits(connection)
            try:
                with bound_to_schema(connection, self._schema):
                    self._schema = schema_of(connection)
                    self._known.add(own)
                    with translated_errors(connection):
                        yield connection
            except BaseException:
                self._known.discard(own)
                raise

    @contextmanager
    def read(self, *, limited: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Check out a connection for statements that read, outside a transaction of the store.

        ``limited`` sets the statement timeout of lookups, for one transaction because of poolers.
        """
        limited &= self.bounds["statement_timeout"] is not None
        with (
            self._checked_out() as connection,
            nullcontext() if _is_alone(connection) and not limited else _block(connection),
        ):
            if limited:
                connection.execute(query("bound_statements", connection), self.bounds)
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction with the timeouts of writers."""
        with self.begun() as connection:
            self.bound_waits(connection)
            yield connection

    def bound_waits(self, connection: psycopg.Connection[Any]) -> None:
        """Limit how long the transaction waits for locks, and how long it may idle."""
        connection.execute(query("bound_waits", connection), self.bounds)

    @contextmanager
    def begun(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction, inside the caller's if there is one."""
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
        """Read from the collection that has the name now, in one transaction if ``together``."""
        with self.begun(loop=True) if together else self.read(limited=True) as connection:
            self.collection = opened = follow(connection, self.collection)
            yield connection, opened
            check_there(connection, opened)

    @contextmanager
    def looking_up(
        self, distance: int | None
    ) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Read by statements that name the collection and its scheme, so that they need no row."""
        try:
            checked_distance(self.collection, distance)
        except ArgumentError:
            # The layout of the collection may have changed since its row was read.
            with self.reading() as (_, collection):
                checked_distance(collection, distance)
        try:
            with self.read(limited=True) as connection:
                yield connection, self.collection
        except CollectionError:
            # Raises the reason.
            with self.reading():
                raise

    @contextmanager
    def writing(self) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Write to the collection that has the name now, in a transaction."""
        with self.begun() as connection:
            self.collection = follow(connection, self.collection, self.bounds)
            yield connection, self.collection


@contextmanager
def _not_within_another(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Refuse a transaction inside an unfinished call on the caller's connection.

    Rows that the body of a loop over ``clusters()`` wrote would be lost if it left the loop early.
    """
    own = getattr(connection, "wrapped", connection)
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
        connection.execute("SELECT 1")
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
