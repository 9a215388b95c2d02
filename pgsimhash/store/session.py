"""The transactions of a store, over the connections of its source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.db.connection import check_settings, translated_errors
from pgsimhash.db.pinned import execute_alone
from pgsimhash.db.schema_names import bound_to_schema, schema_of
from pgsimhash.db.sources import ConnectionSource
from pgsimhash.db.statements import query
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    PgsimhashError,
    StoreError,
    check_type,
)
from pgsimhash.log import tell_of_waits
from pgsimhash.store.collection import Collection, check_there, checked_distance, follow
from pgsimhash.store.events import OnEvent, checked_on_event
from pgsimhash.store.retries import checked_retry_seconds, passes

if TYPE_CHECKING:
    from pgsimhash.store.memory import Memory

_LOCK_SECONDS: Final = 300

LOCK_TIMEOUT: Final = f"{_LOCK_SECONDS}s"
"""How long a transaction of our own waits for each lock, unless told otherwise."""

_AFTER_LOCKS: Final = 300
"""For how many seconds more a statement that writes may go on, unless told otherwise."""

_LONGEST: Final = 2**31 // 1000
"""What PostgreSQL can be told, in seconds: 24 days."""


class Session:
    """The transactions of a store, each on a connection that is checked out for it.

    ``collection`` is the row of the store's collection as it was read last. A store goes by the
    name: :meth:`reading` and :meth:`writing` read the row that has it at that moment.
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
        """Take over a source of connections; see :func:`pgsimhash.connect` for the limits.

        Raises:
            ArgumentError: ``lock_timeout``, ``statement_timeout`` or ``retry_seconds`` is no such
                number.
        """
        self.source = source
        self._schema = schema
        # Those whose settings are checked; their schema is the store's.
        self._known: WeakSet[psycopg.Connection[Any]] = WeakSet()
        check_type("lookup_memory", lookup_memory, int, None, wanted="bytes, such as 500_000_000")
        self._lookup_memory = lookup_memory
        self.retry_seconds = checked_retry_seconds(retry_seconds)
        self.on_event = checked_on_event(on_event)
        locks = _LOCK_SECONDS if lock_timeout is None else lock_timeout
        # For the length of a transaction, so that a pooler may give the next one to another server.
        self._bounds = {
            "lock_timeout": _milliseconds("lock_timeout", lock_timeout),
            "otherwise": LOCK_TIMEOUT if source.owned else "0",
            "statement_timeout": _milliseconds("statement_timeout", statement_timeout),
            # Who waits as long as it takes has no statement that takes less.
            "statement_otherwise": (
                f"{locks + _AFTER_LOCKS:.0f}s" if source.owned and locks else "0"
            ),
        }

    @cached_property
    def memory(self) -> Memory:
        """What is remembered of the collection, in this process."""
        # A lookup of one simhash needs no numpy.
        from pgsimhash.store.memory import Memory

        return Memory(self._lookup_memory)

    @property
    def cached_simhashes(self) -> int:
        """The number of simhashes in the cache."""
        memory: Memory | None = vars(self).get("memory")
        return 0 if memory is None else len(memory)

    def may_retry(self, error: PgsimhashError) -> bool:
        """Return whether to do again what failed: nothing of it stayed, and it may do better."""
        return self.source.owned and self.retry_seconds > 0 and passes(error)

    def is_in_callers_transaction(self) -> bool:
        """Return whether what is written now goes into a transaction that the caller ends."""
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
        """Run statements that write nothing: in no transaction of their own."""
        with self._checked_out() as connection:
            if _is_alone(connection):
                yield connection
            else:
                with _block(connection):
                    yield connection

    @contextmanager
    def bounded(self) -> Iterator[psycopg.Connection[Any]]:
        """Do as :meth:`read`, and let no statement take longer than was asked for."""
        with self.read() as connection:
            if self._bounds["statement_timeout"] is None:
                yield connection
                return
            # For the length of a transaction, as a pooler needs it.
            with connection.transaction():
                connection.execute(query("bound_statements", connection), self._bounds)
                yield connection

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction, inside the caller's where there is one.

        Raises:
            StoreError: a transaction of a store over the caller's connection is not done.
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
        """Do as :meth:`bounded`, over the collection that has the name at this moment.

        With ``together`` it is one transaction, as cursors and temporary tables need it.

        Raises:
            CollectionError: none has, or it is of another scheme.
            MovedCollectionError: it was deleted before all was read.
        """
        with self._begun(loop=True) if together else self.bounded() as connection:
            self.collection = opened = follow(connection, self.collection)
            yield connection, opened
            check_there(connection, opened)

    @contextmanager
    def looking_up(
        self, distance: int | None
    ) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do as :meth:`bounded`, for statements that go by the collection's name and scheme.

        Raises:
            CollectionError: none has the name, or it is of another scheme.
            ArgumentError: its layout does not answer ``distance``.
        """
        try:
            checked_distance(self.collection, distance)
        except ArgumentError:
            # The collection may have got another layout since its row was read.
            with self.reading() as (_, collection):
                checked_distance(collection, distance)
        try:
            with self.bounded() as connection:
                yield connection, self.collection
        except CollectionError:
            # Raises what has become of it.
            with self.reading():
                raise

    @contextmanager
    def writing(self) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do as :meth:`transaction`, over the collection that has the name at this moment.

        Raises:
            CollectionError: none has, or it is of another scheme.
        """
        with self._begun() as connection:
            self.collection = follow(connection, self.collection, self._bounds)
            yield connection, self.collection


@contextmanager
def _not_within_another(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Refuse a transaction within another one of a store's, on the caller's connection.

    What a loop's body wrote would be gone when the loop over ``clusters()`` is left before its end.
    """
    own = getattr(connection, "unpinned", connection)
    if own in _in_transaction:
        raise StoreError(
            "unfinished_call",
            "a call is not done yet, and its transaction would take along what this one "
            "writes: a loop over clusters() is under way, or a function that was passed "
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
        # Begin what only the caller may commit: the block below is then a savepoint. In one
        # that failed be told here: psycopg complains of savepoints that it did not make.
        execute_alone(connection, "SELECT 1")
    with connection.transaction():
        yield


def _is_alone(connection: psycopg.Connection[Any]) -> bool:
    """Return whether each statement is a transaction."""
    return connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


def _milliseconds(name: str, seconds: float | None) -> str | None:
    if seconds is None:
        return None
    check_type(name, seconds, float, wanted="seconds, such as 60")
    if not 0 <= seconds <= _LONGEST:
        raise ArgumentError(
            "invalid_number",
            f"{name} is how many seconds to wait at most, up to {_LONGEST}, and 0 is for ever, not "
            f"{seconds!r}",
        )
    return str(math.ceil(seconds * 1000))


_in_transaction: WeakSet[psycopg.Connection[Any]] = WeakSet()
