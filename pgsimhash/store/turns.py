"""Whose turn it is on a connection: one thread of one process, and one transaction at a time.

psycopg lets threads share a connection, but then they share its transaction too: when one of them
rolls back, what the others were told is stored is gone. So is what a loop's body writes into the
transaction of the generator that it loops over, when the loop is left.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from pgsimhash.errors import StoreError


class Turns:
    """The use of one connection by all stores over it."""

    def __init__(self, *, owned: bool) -> None:
        self._owned = owned
        self._process = os.getpid()
        self._thread = threading.current_thread()
        self._reading = 0
        self._writing = False

    @property
    def busy(self) -> bool:
        """Whether a call, or the loop over what one returned, is under way."""
        return bool(self._reading or self._writing)

    @property
    def precious(self) -> bool:
        """Whether a forked child would harm its parent with what it sends."""
        return self._owned or self.busy

    def check(self, opener: threading.Thread | None = None) -> None:
        """Check that this is the thread and the process of the connection.

        Args:
            opener: the thread of a store whose connection may have been another's meanwhile, as
                a session gives it back after each transaction.

        Raises:
            StoreError: it is another one.
        """
        self._check_process()
        present = threading.current_thread()
        wanted = opener or self._thread
        if present is not wanted:
            raise StoreError(
                "other_thread",
                f"the store belongs to thread {wanted.name!r} and is used in "
                f"{present.name!r}; open one in each thread: pgsimhash.connect()",
            )

    def check_idle(self) -> None:
        """Check that no other thread is in a call.

        Raises:
            StoreError: one is.
        """
        if self.busy and threading.current_thread() is not self._thread:
            raise StoreError(
                "connection_in_use",
                f"another thread, {self._thread.name!r}, is using the connection; wait for it, "
                "or open a store with a connection of its own: pgsimhash.connect()",
            )

    def take(self) -> None:
        """Let the connection be this thread's.

        Raises:
            StoreError: it is another process's, or another thread is in a call.
        """
        with _lock:
            self._check_process()
            self.check_idle()
            self._thread = threading.current_thread()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run a block that writes nothing, inside another one or not.

        Raises:
            StoreError: it is another thread's or process's turn.
        """
        with _lock:
            self.check()
            self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a block that may write, inside no other such block.

        Raises:
            StoreError: it is another thread's or process's turn, or inside another one.
        """
        with _lock:
            self.check()
            if self._writing:
                raise StoreError(
                    "unfinished_call",
                    "a call is not done yet, and its transaction would take along what this one "
                    "writes: a loop over clusters() is under way, or a function that was passed "
                    "to a call; loop over list(store.clusters()), or open another store",
                )
            self._writing = True
        try:
            yield
        finally:
            self._writing = False

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(
                "other_process",
                f"the store belongs to process {self._process} and is used in its child "
                f"{os.getpid()}; open one in each process: pgsimhash.connect()",
            )


def turns_on(connection: psycopg.Connection[Any], *, owned: bool) -> Turns:
    """Return the turns on a connection, which is this thread's from now on.

    Args:
        connection: where a store is opened.
        owned: whether it is the store's own.

    Raises:
        StoreError: it is another process's, or another thread is in a call on it.
    """
    turns = _turns.setdefault(connection, Turns(owned=owned))
    turns.take()
    return turns


_turns: WeakKeyDictionary[psycopg.Connection[Any], Turns] = WeakKeyDictionary()
_lock = threading.Lock()


def _cut_off() -> None:
    """In a forked child, take care that nothing reaches the server by the parent's connections.

    Not what a destructor sends, nor the end of a block that was open in the parent. The socket
    itself is shared: it must neither be shut down nor closed by libpq's rules.
    """
    global _lock
    _lock = threading.Lock()  # another thread may have held it, and is not here
    for connection, turns in _turns.items():
        # One that is closed has no socket.
        with suppress(psycopg.Error, OSError):
            if turns.precious:
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, connection.fileno(), inheritable=False)
                os.close(nowhere)


os.register_at_fork(after_in_child=_cut_off)
