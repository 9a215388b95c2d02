"""A connection and whose transactions those on it are."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.connection import check_settings, translated_errors
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    NoServerError,
    PgsimhashError,
    check_type,
)
from pgsimhash.log import tell_of_waits
from pgsimhash.schema_names import bound_to_schema, schema_of
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, check_there, checked_distance, follow
from pgsimhash.store.leases import Lease
from pgsimhash.store.retries import checked_retry_seconds, passes
from pgsimhash.store.turns import Turns, turns_on

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
    """One connection, the store's own or the caller's, in one thread; see ``turns``.

    ``collection`` is the row of the store's collection as it was read last. A store goes by the
    name: :meth:`reading` and :meth:`writing` read the row that has it at that moment.
    """

    collection: Collection

    def __init__(
        self,
        lease: Lease,
        lookup_memory: int | None = None,
        lock_timeout: float | None = None,
        statement_timeout: float | None = None,
        retry_seconds: float | None = None,
    ) -> None:
        """Take over what was lent, and so many bytes for what is remembered of the collection.

        Each transaction waits for locks so many seconds, each statement of a lookup or a batch
        takes so many, and what fails for a while is tried again for so many; see
        :func:`pgsimhash.connect`.

        Raises:
            ArgumentError: ``lock_timeout``, ``statement_timeout`` or ``retry_seconds`` is no such
                number.
            StoreError: another process opened the connection, or another thread is using it; or
                texts would not come back as they are.
        """
        self._lease = lease
        check_type("lookup_memory", lookup_memory, int, None, wanted="bytes, such as 500_000_000")
        self._lookup_memory = lookup_memory
        self.retry_seconds = checked_retry_seconds(retry_seconds)
        locks = _LOCK_SECONDS if lock_timeout is None else lock_timeout
        # For the length of a transaction, so that a pooler may give the next one to another server.
        self._bounds = {
            "lock_timeout": _milliseconds("lock_timeout", lock_timeout),
            "otherwise": LOCK_TIMEOUT if lease.owned else "0",
            "statement_timeout": _milliseconds("statement_timeout", statement_timeout),
            # Who waits as long as it takes has no statement that takes less.
            "statement_otherwise": (
                f"{locks + _AFTER_LOCKS:.0f}s" if lease.owned and locks else "0"
            ),
        }
        self._opener = threading.current_thread() if lease.moves else None
        self._turns = self._take(lease.connection())

    def _take(self, connection: psycopg.Connection[Any]) -> Turns:
        turns = turns_on(connection, owned=self._lease.owned)
        check_settings(connection)
        tell_of_waits(connection)
        self._held = connection
        return turns

    @cached_property
    def memory(self) -> Memory:
        """What is remembered of the collection, in this process."""
        # A lookup of one simhash needs no numpy.
        from pgsimhash.store.memory import Memory

        return Memory(self._lookup_memory)

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection; a session of SQLAlchemy's has another one after each transaction.

        One of the store's own that was lost is opened anew, unless something on it is under way. So
        is one that is not idle between two calls: an exception out of a signal handler left it amid
        a statement or a transaction.
        """
        self._turns.check(self._opener)
        idle = self._held.pgconn.transaction_status == TransactionStatus.IDLE
        if not idle and self._lease.reopens and not self._turns.busy:
            self._lease.reopen()
            # Of another server it may be wrong: a standby that was promoted lacks the last pages.
            self.__dict__.pop("memory", None)
        present = self._lease.connection()
        if present is not self._held:
            schema = schema_of(self._held)
            self._turns = self._take(present)
            with bound_to_schema(present, schema):
                return present
        if self._opener is not None:
            self._turns.take()
        return present

    def check(self) -> None:
        """Check that this is the thread and the process that opened the store.

        Raises:
            StoreError: it is another one.
        """
        self._turns.check(self._opener)

    def close(self) -> None:
        """Close the connection or give it back, unless it is the caller's.

        Raises:
            StoreError: another thread is in a call.
        """
        if self._lease.owned:
            self._turns.check_idle()
        self._lease.close()

    def may_retry(self, error: PgsimhashError) -> bool:
        """Return whether to do again what failed: nothing of it stayed, and it may do better."""
        if not self._lease.owned or not self.retry_seconds or self._turns.busy:
            return False
        return passes(error) and (self._lease.reopens or not self._held.closed)

    def pause(self, seconds: float) -> None:
        """Wait, for something to be over."""
        self._lease.pause(seconds)

    def is_in_callers_transaction(self) -> bool:
        """Return whether what is written now goes into a transaction that the caller ends."""
        if self._lease.owned:
            return False
        connection = self.connection
        idle = connection.info.transaction_status == TransactionStatus.IDLE
        return not (idle and connection.autocommit)

    def is_in_transaction(self) -> bool:
        """Return whether the connection is in a transaction that can be committed."""
        return self._held.info.transaction_status == TransactionStatus.INTRANS

    @contextmanager
    def read(self) -> Iterator[psycopg.Connection[Any]]:
        """Run statements that write nothing: in no transaction of their own.

        Raises:
            StoreError: it is another thread's or process's turn.
        """
        connection = self.connection
        try:
            with self._turns.reading(), translated_errors(connection):
                idle = connection.info.transaction_status == TransactionStatus.IDLE
                if idle and connection.autocommit:
                    yield connection
                else:
                    with self._block(connection):
                        yield connection
        except NoServerError:
            self._lease.lost()
            raise

    @contextmanager
    def bounded(self) -> Iterator[psycopg.Connection[Any]]:
        """Do as :meth:`read`, and let no statement take longer than was asked for.

        Raises:
            StoreError: it is another thread's or process's turn.
        """
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
            StoreError: it is another thread's or process's turn, or a transaction of a store over
                this connection is not done.
        """
        with self._begun() as connection:
            connection.execute(query("bound_waits", connection), self._bounds)
            yield connection

    @contextmanager
    def _begun(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self.connection
        try:
            with self._turns.writing(), translated_errors(connection), self._block(connection):
                yield connection
        except NoServerError:
            self._lease.lost()
            raise

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
        with (self._begun if together else self.bounded)() as connection:
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
    def _block(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        status = connection.info.transaction_status
        begins = status == TransactionStatus.IDLE and not connection.autocommit
        if begins or status == TransactionStatus.INERROR:
            # Begin what only the caller may commit: the block below is then a savepoint. In one
            # that failed be told here: psycopg complains of savepoints that it did not make.
            connection.execute("SELECT 1")
        with connection.transaction():
            yield


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
