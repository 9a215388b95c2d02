"""A connection and whose transactions those on it are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.connection import translated_errors


class Session:
    """One connection, the store's own or the caller's."""

    def __init__(self, connection: psycopg.Connection[Any], *, owned: bool) -> None:
        self.connection = connection
        self._owned = owned

    def close(self) -> None:
        """Close the connection, unless it is the caller's."""
        if self._owned:
            self.connection.close()

    @contextmanager
    def read(self) -> Iterator[psycopg.Connection[Any]]:
        """Run statements that write nothing: in no transaction of their own."""
        if self.connection.info.transaction_status == TransactionStatus.IDLE:
            with translated_errors(self.connection):
                yield self.connection
        else:
            with self.transaction() as connection:
                yield connection

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Run a block in a transaction, inside the caller's where there is one."""
        with translated_errors(self.connection):
            idle = self.connection.info.transaction_status == TransactionStatus.IDLE
            if idle and not self.connection.autocommit:
                # Begin what only the caller may commit: the block below is then a savepoint.
                self.connection.execute("SELECT 1")
            with self.connection.transaction():
                yield self.connection
