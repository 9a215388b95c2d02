"""Open connections, check their settings, and lend them: each call of a store checks one out.

A call is one transaction or one read. So threads can share a store, and a store that lost its
connection gets another for the next call.

Asynchronous ones run in a greenlet, see :func:`pgsimhash.db.statements.waited`. SQLAlchemy's
asynchronous classes wrap its blocking ones in the same greenlets, so those are used directly.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg import conninfo, pq

from pgsimhash.db import server_errors
from pgsimhash.db.statements import close, in_thread, is_active, is_idle, waited
from pgsimhash.errors import NoServerError, StoreError, check_type, invalid_argument
from pgsimhash.log import log_warnings

if TYPE_CHECKING:
    import sqlalchemy

_T = TypeVar("_T")
_OLDEST_SERVER: Final = 140000
# Options of libpq that the DSN, the environment or a service file can override.
_SETTINGS: Final = {
    "connect_timeout": "10",
    "application_name": "pgsimhash",
    # Both sides detect a cut network within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


def open_connection(
    dsn: str, *, autocommit: bool = False, asynchronous: bool = False
) -> psycopg.Connection[Any]:
    """Connect to PostgreSQL 14 or later, in a greenlet if asynchronous; prepare no statements."""
    check_type(dsn, str, "a DSN is a str")
    driver: Any = psycopg.AsyncConnection if asynchronous else psycopg.Connection
    try:
        settings = _missing_settings(conninfo.conninfo_to_dict(dsn))
        # A database, a user or the environment may set another encoding.
        server = conninfo.make_conninfo(dsn, **settings, client_encoding="UTF8")
        connection: psycopg.Connection[Any] = waited(
            driver.connect(server, autocommit=autocommit, prepare_threshold=None)
        )
    except psycopg.ProgrammingError as error:
        # libpq quotes what it cannot read, with the password.
        problem = server_errors.first_line(error)
        problem = problem.replace(dsn, "...") if dsn else problem
        raise NoServerError(
            "invalid_dsn",
            f"the DSN cannot be read: {problem}; write it like "
            "postgresql://user:password@host:5432/database",
        ) from error
    except (psycopg.OperationalError, UnicodeError) as error:
        # The codec of host names raises this for an invalid name.
        raise in_thread(partial(server_errors.no_connection, error), asynchronous) from error
    try:
        if connection.info.server_version < _OLDEST_SERVER:
            version = connection.info.server_version // 10000
            raise unsuitable(f"PostgreSQL 14 or later is needed, and this server is {version}")
        check_settings(connection)
    except BaseException:
        close(connection)
        raise
    log_warnings(connection)
    return connection


def check_settings(connection: psycopg.Connection[Any]) -> None:
    """Check the settings that could change stored texts.

    Times and ages need no check: they are read in binary form, which does not depend on settings.
    """
    status = connection.info.parameter_status
    if (encoding := status("server_encoding")) not in (None, "UTF8"):
        raise unsuitable(
            f"the database {connection.info.dbname!r} has the encoding {encoding}, which cannot "
            "store all texts; use one with UTF-8: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    if (encoding := status("client_encoding")) not in (None, "UTF8"):
        raise unsuitable(
            f"the connection has the client_encoding {encoding}, and texts are in UTF-8; "
            "run: SET client_encoding TO 'UTF8'"
        )
    if status("standard_conforming_strings") == "off":
        raise unsuitable(
            "standard_conforming_strings is off, which changes the meaning of the schema's "
            "functions; run: SET standard_conforming_strings TO on, or permanently: "
            "ALTER DATABASE name RESET standard_conforming_strings"
        )


def _missing_settings(given: Mapping[str, object]) -> dict[str, str]:
    """Return the :data:`_SETTINGS` that neither a DSN nor the environment sets."""
    if "service" in given:
        # Only libpq reads the service file, and the DSN would override it.
        return {}
    present = {
        option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.val is not None
    }
    return {name: value for name, value in _SETTINGS.items() if name not in {*given, *present}}


def unsuitable(problem: str) -> StoreError:
    """Return the error for a server or settings that the package cannot work with."""
    return StoreError("unsuitable", problem)


class Connections(ABC):
    """Lends connections to a store."""

    owned = True  # the store ends the transactions, and can replace a lost connection

    def __init__(self, source: Any, asynchronous: bool) -> None:
        self._source, self._asynchronous = source, asynchronous
        self._closed = False

    @abstractmethod
    def checked_out(self, *, loop: bool = False) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Check out a connection; with ``loop``, the caller's code in the block may use the store.

        It raises StoreError if none can be lent, and NoServerError if no server answers.
        """

    def in_transaction(self) -> bool:
        """Return whether the caller's connection is in a transaction that can be committed."""
        return False

    def pause(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        if self._asynchronous:
            waited(asyncio.sleep(seconds))
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """Close the connections that were opened here, not the caller's."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise server_errors.closed("store")


def connections_of(
    where: Any, connect: Callable[[str | None], Any], *, asynchronous: bool = False
) -> Connections:
    """Return the connections for ``where`` as of ``pgsimhash.connect`` or ``connect_async``.

    ``connect`` opens a connection to a DSN.
    """
    if hasattr(where, "render_as_string"):
        # A URL of SQLAlchemy.
        where = where.render_as_string(hide_password=False)
    if where is None or isinstance(where, str):
        return _DsnConnections(partial(connect, where), asynchronous)
    kinds = type(where).__mro__
    names = [f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds]
    if asynchronous:
        names = [
            re.sub(r"\.(Async|async_)", ".", name) for name in names if "async" in name.lower()
        ]
    for name in names:
        if kind := _KINDS.get(name):
            return kind(where, asynchronous)
    name = f"{type(where).__module__}.{type(where).__qualname__}"
    hint = "; maybe call it first" if callable(where) else ""
    raise invalid_argument(
        "a store needs a DSN, a psycopg connection or pool, or SQLAlchemy's URL, Engine, "
        "Connection or Session, and connect_async() the asynchronous ones, such as AsyncEngine "
        f"and AsyncSession, not {name}{hint}"
    )


class _DsnConnections(Connections):
    """Opens a connection if none is idle, and keeps it for later calls.

    Each thread in a call has its own connection. Tasks take turns, because there may be thousands.
    """

    def __init__(self, connect: Callable[[], Any], asynchronous: bool) -> None:
        super().__init__(connect, asynchronous)
        # By process: a forked child must not use its parent's connections.
        self._idle: dict[int, list[Any]] = {}
        self._turns: dict[Any, _Turns] = {}

    @contextmanager
    def checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        self._check_open()
        # A loop has its own connection, so that lookups of other tasks need not wait for its end.
        with _taken(self._turns, True) if self._asynchronous and not loop else nullcontext():
            idle = self._idle.setdefault(os.getpid(), [])
            usable = (connection for connection in self._popped() if not connection.closed)
            connection = next(usable, None) or self._source()
            try:
                yield connection
            except NoServerError:
                self._close_idle()
                raise
            finally:
                if is_idle(connection):
                    idle.append(connection)
                else:
                    close(connection)
                if self._closed:
                    self._close_idle()

    def _popped(self) -> Iterator[Any]:
        """Yield idle connections; another thread gets different ones."""
        with suppress(IndexError):
            while True:
                yield self._idle.get(os.getpid(), []).pop()

    def _close_idle(self) -> None:
        for connection in self._popped():
            close(connection)

    def close(self) -> None:
        # The others are closed when they are returned.
        super().close()
        self._close_idle()


class _PoolConnections(Connections):
    _lost = False

    @contextmanager
    def checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        self._check_open()
        if self._source.closed:
            raise server_errors.closed("pool")
        try:
            connection = waited(self._source.getconn())
        except psycopg.OperationalError as error:
            if self._lost:
                # The pool takes a while to replace connections.
                raise server_errors.no_connection(error) from error
            reason = partial(server_errors.no_connection_of_pool, self._source, error)
            raise in_thread(reason, self._asynchronous) from error
        self._lost = False
        try:
            # The pool replaces a finished connection.
            with _in_autocommit(connection, connection.pgconn.finish):
                yield connection
        except NoServerError:
            self._lost = True
            raise
        finally:
            waited(self._source.putconn(connection))
            if self._lost:
                # The other connections may be lost too.
                waited(self._source.check())


class _CallerConnections(Connections):
    owned = False

    def _check_open(self) -> None:
        if self._source.closed:
            raise server_errors.closed("connection")

    @contextmanager
    def checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        with _taken(_turns.setdefault(self._source, {}), self._asynchronous):
            self._check_open()
            yield self._source

    def in_transaction(self) -> bool:
        return is_active(self._source)


class _EngineConnections(Connections):
    def __init__(self, where: Any, asynchronous: bool) -> None:
        super().__init__(getattr(where, "sync_engine", where), asynchronous)
        _check_driver(self._source)

    @contextmanager
    def checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        self._check_open()
        with server_errors.translated_sqlalchemy_errors():
            checked_out = self._source.connect()
        try:
            connection = _driver_connection(checked_out)
            with _in_autocommit(connection, checked_out.invalidate):
                yield connection
        except NoServerError:
            from sqlalchemy import exc

            checked_out.close()
            # SQLAlchemy detects a lost connection, and then replaces all of the pool.
            with suppress(exc.DBAPIError, exc.TimeoutError):
                for _ in range(getattr(self._source.pool, "checkedin", int)()):
                    with self._source.connect() as other:
                        other.exec_driver_sql("SELECT 1")
            raise
        finally:
            checked_out.close()


class _SessionConnections(Connections):
    """Lends the connection of the caller's SQLAlchemy session, or the SQLAlchemy connection."""

    owned = False

    def __init__(self, where: Any, asynchronous: bool) -> None:
        super().__init__(where, asynchronous)
        if self._present() is None:
            raise invalid_argument(
                "the AsyncConnection is not connected yet; await it: "
                "connect_async(await engine.connect())"
            )
        _check_driver(self._present())

    def _present(self) -> Any:
        """Return the blocking session or connection.

        A scoped session, which is callable, returns a different one after its remove().
        """
        present = self._source() if callable(self._source) else self._source
        for name in ("sync_session", "sync_connection"):
            present = getattr(present, name, present)
        return present

    @contextmanager
    def checked_out(self, *, loop: bool = False) -> Iterator[psycopg.Connection[Any]]:
        session = self._present()
        with _taken(_turns.setdefault(session, {}), self._asynchronous):
            with server_errors.translated_sqlalchemy_errors():
                connection = _connection_of(session)
                if not connection.in_transaction():
                    # SQLAlchemy's commit() would not end a transaction that it did not begin.
                    connection.begin()
                own = _driver_connection(connection)
            try:
                yield own
            except NoServerError:
                # Otherwise the caller's rollback() would fail.
                if not connection.closed:
                    connection.invalidate()
                raise

    def in_transaction(self) -> bool:
        from sqlalchemy import exc

        session = self._present()
        with suppress(exc.SQLAlchemyError):
            # Without one, _connection_of() would begin it.
            if session.in_transaction():
                return is_active(_driver_connection(_connection_of(session)))
        return False


# Names, because psycopg_pool is optional and SQLAlchemy is slow to import.
_KINDS: Final[dict[str, type[Connections]]] = {
    "psycopg.Connection": _CallerConnections,
    "psycopg_pool.ConnectionPool": _PoolConnections,
    "sqlalchemy.Engine": _EngineConnections,
    "sqlalchemy.Connection": _SessionConnections,
    "sqlalchemy.Session": _SessionConnections,
    "sqlalchemy.scoped_session": _SessionConnections,
}


@contextmanager
def _in_autocommit(connection: Any, discard: Callable[[], object]) -> Iterator[None]:
    """Put a connection of a pool into autocommit mode; discard it if it cannot be restored."""
    if connection.closed:
        raise server_errors.LOST.about("it was closed in its pool")
    if not is_idle(connection):
        raise StoreError(
            "wrong_transaction",
            "the pool or engine gave a connection that is in a transaction; end that first, also "
            "in a callback such as check or checkout, or give an engine with a pool instead of a "
            "single connection",
        )
    autocommit = connection.autocommit
    try:
        # A task may be cancelled in either call.
        waited(connection.set_autocommit(True))
        yield
    finally:
        try:
            if is_idle(connection):
                waited(connection.set_autocommit(autocommit))
        finally:
            if not is_idle(connection) or connection.autocommit != autocommit:
                discard()


def _check_driver(where: Any) -> None:
    from sqlalchemy import exc

    try:
        # Check before sending a statement that another database may not understand.
        engine = where.get_bind() if hasattr(where, "get_bind") else where
    except exc.UnboundExecutionError as error:
        raise invalid_argument("the session has no engine; give Session(engine)") from error
    if (engine.dialect.name, engine.dialect.driver) != ("postgresql", "psycopg"):
        raise StoreError(
            "unsuitable",
            "the store needs psycopg 3, and this engine uses "
            f"{engine.dialect.name}+{engine.dialect.driver}; create it with "
            "create_engine('postgresql+psycopg://...')",
        )


def _connection_of(session: Any) -> Any:
    # Only a session has get_bind().
    return session.connection() if hasattr(session, "get_bind") else session


def _driver_connection(connection: sqlalchemy.Connection) -> Any:
    proxied = connection.connection
    # A connection detached from its pool has only dbapi_connection.
    return proxied.driver_connection or proxied.dbapi_connection


class _Turns:
    """A reentrant lock: one thread or task at a time uses a connection."""

    def __init__(self, asynchronous: bool) -> None:
        self._lock: Any = asyncio.Lock() if asynchronous else threading.Lock()
        self._find_user = asyncio.current_task if asynchronous else threading.get_ident
        self._user: object = None
        self._depth = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn of this thread or task, and keep it for the block."""
        user = self._find_user()
        if self._user != user:
            waited(self._lock.acquire())
            self._user, self._depth = user, 0
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._user = None
                self._lock.release()


# The turns of all stores over a caller's connection or session.
_turns: WeakKeyDictionary[object, dict[Any, _Turns]] = WeakKeyDictionary()


def _taken(turns: dict[Any, _Turns], asynchronous: bool) -> AbstractContextManager[None]:
    return of_loop(turns, partial(_Turns, asynchronous), asynchronous).taken()


def of_loop(values: dict[Any, _T], make: Callable[[], _T], asynchronous: bool = True) -> _T:
    """Return the value of this event loop, of which each thread has its own."""
    loop = asyncio.get_running_loop() if asynchronous else None
    if loop not in values:
        # The tasks of a closed loop never end.
        for closed_loop in [one for one in [*values] if one and one.is_closed()]:
            values.pop(closed_loop, None)
    return values.setdefault(loop, make())
