"""Connection sources over SQLAlchemy's engines, connections and sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.db.refusals import refusals_of_alchemy, wrong_driver
from pgsimhash.db.sources import ConnectionSource, Mode, is_idle, status_of, turn_on
from pgsimhash.errors import ArgumentError, NoServerError

if TYPE_CHECKING:
    import sqlalchemy


class EngineSource(ConnectionSource):
    """Checks out connections of an SQLAlchemy engine."""

    def __init__(self, engine: sqlalchemy.Engine, mode: Mode) -> None:
        super().__init__(mode)
        _check_driver(engine)
        self._engine = engine

    @contextmanager
    def connection(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Check out a connection."""
        self._check_open()
        with refusals_of_alchemy():
            checked_out = self._engine.connect()
        try:
            connection = _driver_connection(checked_out)
            autocommit = connection.autocommit
            with refusals_of_alchemy():
                self._mode.wait(connection.set_autocommit(True))
            try:
                yield self._mode.wrap(connection)
            finally:
                if is_idle(connection):
                    self._mode.wait(connection.set_autocommit(autocommit))
                else:
                    checked_out.invalidate()
        except NoServerError:
            checked_out.close()
            self._find_lost()
            raise
        finally:
            checked_out.close()

    def _find_lost(self) -> None:
        """Let SQLAlchemy detect a lost connection; it then replaces all connections of the pool."""
        from sqlalchemy import exc

        with suppress(exc.DBAPIError, exc.TimeoutError):
            for _ in range(getattr(self._engine.pool, "checkedin", int)()):
                with self._engine.connect() as checked_out:
                    checked_out.exec_driver_sql("SELECT 1")


class SessionSource(ConnectionSource):
    """Lends the connection of the caller's SQLAlchemy session, or the SQLAlchemy connection.

    A scoped session is a different one after its remove().
    """

    owned = False

    def __init__(self, present: Callable[[], Any], mode: Mode) -> None:
        super().__init__(mode)
        _check_driver(present())
        self._present = present

    @contextmanager
    def connection(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """Wait until no other thread uses it, and begin its transaction."""
        session = self._present()
        with turn_on(session, self._mode):
            with refusals_of_alchemy():
                connection = _connection_of(session)
                if not connection.in_transaction():
                    # SQLAlchemy's commit() would not end a transaction that it did not begin.
                    connection.exec_driver_sql("SELECT 1")
                wrapped = self._mode.wrap(_driver_connection(connection))
            try:
                yield wrapped
            except NoServerError:
                # Otherwise the caller's rollback() would fail.
                if not connection.closed:
                    connection.invalidate()
                raise

    def in_transaction(self) -> bool:
        """Return whether it is in a transaction that can be committed; do not begin one."""
        from sqlalchemy import exc

        session = self._present()
        with suppress(exc.SQLAlchemyError):
            if session.in_transaction():
                connection = _driver_connection(_connection_of(session))
                return status_of(connection) == TransactionStatus.INTRANS
        return False


def _check_driver(where: Any) -> None:
    """Check that SQLAlchemy's engine, connection or session uses psycopg 3."""
    from sqlalchemy import exc

    try:
        # Check before sending a statement that another database may not understand.
        engine = where.get_bind() if hasattr(where, "get_bind") else where
    except exc.UnboundExecutionError as error:
        raise ArgumentError(
            "invalid_argument", "the session has no engine; give Session(engine)"
        ) from error
    if (engine.dialect.name, engine.dialect.driver) != ("postgresql", "psycopg"):
        raise wrong_driver(f"{engine.dialect.name}+{engine.dialect.driver}")


def _connection_of(session: Any) -> sqlalchemy.Connection:
    # Only a session has get_bind().
    connection: sqlalchemy.Connection = (
        session.connection() if hasattr(session, "get_bind") else session
    )
    return connection


def _driver_connection(connection: sqlalchemy.Connection) -> Any:
    proxied = connection.connection
    # A connection detached from its pool has only dbapi_connection.
    own = proxied.driver_connection or proxied.dbapi_connection
    if not isinstance(own, psycopg.Connection | psycopg.AsyncConnection):
        raise wrong_driver(type(own).__module__)
    return own
