"""Connection sources: each call of a store checks out a connection.

A call is one transaction or one read. So threads can share a store, and a store that lost its
connection gets another for the next call.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.db.plain import plain
from pgsimhash.db.refusals import closed, no_connection, refusal_of_pool
from pgsimhash.errors import NoServerError, StoreError

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Mode:
    """How a source waits: by blocking the thread, or in a greenlet by returning to the event loop.

    Attributes:
        wait: returns the result of a method of psycopg.
        wrap: returns the plain interface to a connection.
        sleep: waits for a number of seconds.
        in_thread: calls a blocking function.
        new_lock: returns a lock.
        user: returns the running thread or task.
    """

    wait: Callable[[Any], Any]
    wrap: Callable[[Any], psycopg.Connection[Any]]
    sleep: Callable[[float], Any]
    in_thread: Callable[[Callable[[], StoreError]], StoreError]
    new_lock: Callable[[], Any]
    user: Callable[[], object]


BLOCKING: Final = Mode(
    wait=lambda result: result,
    wrap=plain,
    sleep=time.sleep,
    in_thread=lambda function: function(),
    new_lock=threading.Lock,
    user=threading.get_ident,
)


class ConnectionSource(ABC):
    """Lends connections to a store.

    Attributes:
        owned: whether the store ends the transactions. If so, a lost connection can be replaced.
    """

    owned = True

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._closed = False

    @abstractmethod
    def connection(self, *, loop: bool = False) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Check out a connection for the block.

        Args:
            loop: whether the caller's code runs within the block, and may use the store.

        Raises:
            StoreError: the source is closed or exhausted, or the caller's transaction failed.
            NoServerError: no server answers.
        """

    def _check_open(self) -> None:
        if self._closed:
            raise closed("store")

    def in_transaction(self) -> bool:
        """Return whether the caller's connection is in a transaction that can be committed."""
        return False

    def pause(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        self._mode.sleep(seconds)

    def close(self) -> None:
        """Close the connections that the source opened, not the caller's."""
        self._closed = True


class Turn:
    """A reentrant lock: lets one thread or task at a time use a connection."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._lock = mode.new_lock()
        self._user: object = None
        self._depth = 0

    def __enter__(self) -> None:
        user = self._mode.user()
        if self._user != user:
            self._mode.wait(self._lock.acquire())
            self._user, self._depth = user, 0
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._user = None
            self._lock.release()


class DsnSource(ConnectionSource):
    """Opens a connection if none is idle, and keeps it for later calls.

    Each thread in a call has its own connection. Tasks take turns, because there may be thousands.
    """

    def __init__(self, connect: Callable[[], Any], mode: Mode = BLOCKING) -> None:
        super().__init__(mode)
        self._connect = connect
        # By process: a forked child must not use its parent's connections.
        self._idle: dict[int, list[Any]] = {}
        self._turn = nullcontext() if mode is BLOCKING else Turn(mode)

    @contextmanager
    def connection(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Check out a connection."""
        self._check_open()
        # A loop has its own connection, so that lookups of other tasks need not wait for its end.
        with nullcontext() if loop else self._turn:
            idle = self._idle.setdefault(os.getpid(), [])
            connection = self._take(idle)
            try:
                yield self._mode.wrap(connection)
            except NoServerError:
                self._drop(idle)
                raise
            finally:
                if is_idle(connection):
                    idle.append(connection)
                else:
                    self._mode.wait(connection.close())
                if self._closed:
                    self._drop(idle)

    def _take(self, idle: list[Any]) -> Any:
        with suppress(IndexError):
            while True:
                connection = idle.pop()
                if not connection.closed:
                    return connection
        return self._mode.wait(self._connect())

    def _drop(self, idle: list[Any]) -> None:
        with suppress(IndexError):
            while True:
                self._mode.wait(idle.pop().close())

    def close(self) -> None:
        """Close the idle connections; the others are closed when they are returned."""
        super().close()
        self._drop(self._idle.get(os.getpid(), []))


class PoolSource(ConnectionSource):
    """Checks out connections of a psycopg pool."""

    def __init__(self, pool: Any, mode: Mode) -> None:
        super().__init__(mode)
        self._pool = pool
        self._lost = False

    @contextmanager
    def connection(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Check out a connection."""
        self._check_open()
        wait = self._mode.wait
        connection = self._take()
        autocommit = connection.autocommit
        try:
            if not autocommit:
                wait(connection.set_autocommit(True))
            yield self._mode.wrap(connection)
        except NoServerError:
            self._lost = True
            raise
        finally:
            if not is_idle(connection):
                # The pool replaces it.
                connection.pgconn.finish()
            elif not autocommit:
                wait(connection.set_autocommit(False))
            wait(self._pool.putconn(connection))
            if self._lost:
                # The other connections may be lost too.
                wait(self._pool.check())

    def _take(self) -> Any:
        if self._pool.closed:
            raise closed("pool")
        try:
            connection = self._mode.wait(self._pool.getconn())
        except psycopg.OperationalError as error:
            if self._lost:
                # The pool takes a while to replace connections.
                raise no_connection(error) from error
            refusal = partial(refusal_of_pool, self._pool, error)
            raise self._mode.in_thread(refusal) from error
        self._lost = False
        return connection


class CallerSource(ConnectionSource):
    """Lends the caller's psycopg connection."""

    owned = False

    def __init__(self, connection: Any, mode: Mode) -> None:
        super().__init__(mode)
        self._connection = connection
        self._turn = turn_on(connection, mode)
        self._check_there()

    def _check_there(self) -> None:
        if self._connection.closed:
            raise closed("connection")

    @contextmanager
    def connection(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Wait until no other thread or task uses it."""
        with self._turn:
            self._check_there()
            yield self._mode.wrap(self._connection)

    def in_transaction(self) -> bool:
        """Return whether it is in a transaction that can be committed."""
        return status_of(self._connection) == TransactionStatus.INTRANS


def turn_on(caller: object, mode: Mode) -> Turn:
    """Return the lock that all stores over a caller's connection or session share."""
    return _turns.setdefault(caller, Turn(mode))


def status_of(connection: Any) -> TransactionStatus:
    """Return the state of a connection's transaction."""
    status: TransactionStatus = connection.info.transaction_status
    return status


def is_idle(connection: Any) -> bool:
    """Return whether a connection is in no transaction."""
    return status_of(connection) == TransactionStatus.IDLE


_turns: WeakKeyDictionary[object, Turn] = WeakKeyDictionary()
