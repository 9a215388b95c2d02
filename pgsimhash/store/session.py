"""A connection and whose transactions those on it are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.connection import check_settings, translated_errors
from pgsimhash.store.collection import Collection, check_there, follow
from pgsimhash.store.turns import turns_on


class Session:
    """One connection, the store's own or the caller's, in one thread; see ``turns``.

    ``collection`` is the row of the store's collection as it was read last. A store goes by the
    name: :meth:`reading` and :meth:`writing` read the row that has it at that moment.
    """

    collection: Collection

    def __init__(self, connection: psycopg.Connection[Any], *, owned: bool) -> None:
        """Take over a connection.

        Raises:
            StoreError: another process opened it, or another thread is using it; or texts would not
                come back as they are.
        """
        self._turns = turns_on(connection, owned=owned)
        check_settings(connection)
        self.connection = connection
        self._owned = owned

    def check(self) -> None:
        """Check that this is the thread and the process that opened the store.

        Raises:
            StoreError: it is another one.
        """
        self._turns.check()

    def close(self) -> None:
        """Close the connection, unless it is the caller's.

        Raises:
            StoreError: another thread is in a call.
        """
        if self._owned:
            self._turns.check_idle()
            self.connection.close()

    def is_in_callers_transaction(self) -> bool:
        """Return whether what is written now goes into a transaction that the caller ends."""
        status = self.connection.info.transaction_status
        idle = status == TransactionStatus.IDLE
        return not self._owned and not (idle and self.connection.autocommit)

    def is_in_transaction(self) -> bool:
        """Return whether the connection is in a transaction that can be committed."""
        return self.connection.info.transaction_status == TransactionStatus.INTRANS

    @contextmanager
    def read(self) -> Iterator[psycopg.Connection[Any]]:
        """Run statements that write nothing: in no transaction of their own.

        Raises:
            StoreError: it is another thread's or process's turn.
        """
        with self._turns.reading(), translated_errors(self.connection):
            if self.connection.info.transaction_status == TransactionStatus.IDLE:
                yield self.connection
            else:
                with self._block():
                    yield self.connection

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction, inside the caller's where there is one.

        Raises:
            StoreError: it is another thread's or process's turn, or a transaction of a store over
                this connection is not done.
        """
        with self._turns.writing(), translated_errors(self.connection), self._block():
            yield self.connection

    @contextmanager
    def reading(
        self, *, together: bool = False
    ) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do as :meth:`read`, over the collection that has the name at this moment.

        With ``together`` it is one transaction, as cursors and temporary tables need it.

        Raises:
            CollectionError: none has, or it is of another scheme.
            MovedCollectionError: it was deleted before all was read.
        """
        with (self.transaction if together else self.read)() as connection:
            self.collection = opened = follow(connection, self.collection)
            yield connection, opened
            check_there(connection, opened)

    @contextmanager
    def writing(self) -> Iterator[tuple[psycopg.Connection[Any], Collection]]:
        """Do as :meth:`transaction`, over the collection that has the name at this moment.

        Raises:
            CollectionError: none has, or it is of another scheme.
        """
        with self.transaction() as connection:
            self.collection = follow(connection, self.collection)
            yield connection, self.collection

    @contextmanager
    def _block(self) -> Iterator[None]:
        status = self.connection.info.transaction_status
        if status == TransactionStatus.IDLE and not self.connection.autocommit:
            # Begin what only the caller may commit: the block below is then a savepoint.
            self.connection.execute("SELECT 1")
        with self.connection.transaction():
            yield
