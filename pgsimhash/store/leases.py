"""Whatever a store can be opened over, as a psycopg connection and whose transactions it has."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg
from psycopg.pq import TransactionStatus

from pgsimhash.connection import open_deployed
from pgsimhash.errors import ArgumentError
from pgsimhash.pinned import pinned
from pgsimhash.store.refusals import (
    closed,
    refusal_of_pool,
    refusals_of_alchemy,
    refusals_of_engine,
    wrong_driver,
)

if TYPE_CHECKING:
    import sqlalchemy
    from psycopg_pool import ConnectionPool
    from sqlalchemy import orm


_ALCHEMY: Final = {
    "sqlalchemy.Engine",
    "sqlalchemy.Connection",
    "sqlalchemy.Session",
    "sqlalchemy.scoped_session",
}


class Lease(Protocol):
    """A connection for a store.

    Attributes:
        owned: whether the store ends its transactions.
        reopens: whether there is another one when it was lost.
        moves: whether its lender takes it back after a transaction, and may lend another one next.
    """

    owned: bool
    reopens: bool
    moves: bool

    def connection(self) -> psycopg.Connection[Any]:
        """Return the connection; another one, where its lender has another now."""

    def close(self) -> None:
        """Give the connection back."""

    def reopen(self) -> None:
        """Get another connection in place of one that was lost, where there is a way."""

    def lost(self) -> None:
        """Let the lender know that the connection was lost."""

    def pause(self, seconds: float) -> None:
        """Wait."""


class _Waiting:
    """What waits by holding up its thread, and has no other connection than the one it lends."""

    reopens = moves = False

    def reopen(self) -> None:
        """Leave it at the one that was lost."""

    def lost(self) -> None:
        """Leave it to the lender to find out."""

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Held(_Waiting):
    """A connection that stays the same, of the caller's."""

    def __init__(self, connection: psycopg.Connection[Any], *, owned: bool) -> None:
        self.owned = owned
        self._connection = pinned(connection)

    def connection(self) -> psycopg.Connection[Any]:
        """Return it."""
        return self._connection

    def close(self) -> None:
        """Leave it open."""


class _Opened(_Waiting):
    """A connection that was opened for the store, and is opened anew when it was lost."""

    owned = reopens = True

    def __init__(self, dsn: str | None, schema: str | None, prepare: bool | None) -> None:
        self._how = partial(open_deployed, dsn, schema, prepare=prepare)
        self._connection = self._how()
        self._closed = False

    def connection(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise closed("store")
        return self._connection

    def reopen(self) -> None:
        if not self._closed:
            self._connection.close()
            self._connection = self._how()

    def close(self) -> None:
        self._closed = True
        self._connection.close()


class _FromPool(_Waiting):
    """A connection of a psycopg pool, until the store is closed."""

    owned = reopens = True

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self._pool = pool
        self._closed = False
        self._taken = False
        self._connection = self._take()

    def _take(self, *, again: bool = False) -> psycopg.Connection[Any]:
        if self._pool.closed:
            raise closed("pool")
        try:
            connection: psycopg.Connection[Any] = self._pool.getconn()
        except psycopg.OperationalError as error:
            raise refusal_of_pool(self._pool, error, again=again) from error
        self._taken = True
        self._autocommit = connection.autocommit
        connection.set_autocommit(True)
        return connection

    def _give_back(self) -> None:
        if self._taken:
            self._taken = False
            if _is_idle(self._connection):
                self._connection.set_autocommit(self._autocommit)
            else:
                # The pool makes another one.
                self._connection.close()
            self._pool.putconn(self._connection)

    def connection(self) -> psycopg.Connection[Any]:
        if self._closed:
            # It is someone else's by now.
            raise closed("store")
        return pinned(self._connection)

    def reopen(self) -> None:
        if not self._closed:
            self._give_back()
            # The others may have been lost with it.
            self._pool.check()
            self._connection = self._take(again=True)

    def close(self) -> None:
        self._closed = True
        self._give_back()


class _FromEngine(_Waiting):
    """A connection of an SQLAlchemy engine, until the store is closed."""

    owned = reopens = True

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._engine = engine
        self._closed = False
        self._connection = self._take()

    def _take(self) -> sqlalchemy.Connection:
        with refusals_of_engine():
            return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def connection(self) -> psycopg.Connection[Any]:
        if self._connection.closed:
            raise closed("store")
        return _driver_connection(self._connection)

    def reopen(self) -> None:
        if self._closed:
            return
        self._drop()
        for _ in range(idle_of(self._engine)):
            self._connection = self._take()
            if answers(self.connection()):
                return
            self._drop()
        self._connection = self._take()

    def _drop(self) -> None:
        if not self._connection.closed:
            self._connection.invalidate()
            self._connection.close()

    def close(self) -> None:
        self._closed = True
        if self._connection.closed or _is_idle(_driver_connection(self._connection)):
            self._connection.close()
        else:
            self._drop()


class _OfAlchemy(_Waiting):
    """The caller's SQLAlchemy connection, or the one that his session has at the moment.

    A scoped session is asked anew each time: after its remove() it is another one.
    """

    owned = False
    moves = True

    def __init__(
        self, lender: sqlalchemy.Connection | orm.Session | orm.scoped_session[Any]
    ) -> None:
        self._lender = lender
        self._lent: sqlalchemy.Connection

    def connection(self) -> psycopg.Connection[Any]:
        from sqlalchemy import Connection

        lender = self._lender
        with refusals_of_alchemy():
            lent = lender if isinstance(lender, Connection) else lender.connection()
            if not lent.in_transaction():
                # Begun behind its back, a transaction would not end with its commit().
                lent.exec_driver_sql("SELECT 1")
            self._lent = lent
            return _driver_connection(lent)

    def lost(self) -> None:
        # Else the caller's own rollback() would be sent to nobody, and be an error.
        if not self._lent.closed:
            self._lent.invalidate()

    def close(self) -> None:
        """Leave it open."""


def lease(where: Any, schema: str | None = None, *, prepare: bool | None = None) -> Lease:
    """Return what a store is opened over; see :func:`pgsimhash.connect`.

    Raises:
        ArgumentError: ``where`` is none of what it can be, or ``prepare`` is said of what is not
            opened here.
        NoServerError: it is a DSN, and no server answers or it refuses the login.
        StoreError: it is closed, or psycopg is not what it stands on.
    """
    if where is None or isinstance(where, str):
        return _Opened(where, schema, prepare)
    kinds = kinds_of(where)
    if "sqlalchemy.URL" in kinds:
        return _Opened(where.render_as_string(hide_password=False), schema, prepare)
    check_not_told_to_prepare(prepare)
    if isinstance(where, psycopg.Connection):
        if where.closed:
            raise closed("connection")
        return Held(where, owned=False)
    if "psycopg_pool.ConnectionPool" in kinds:
        return _FromPool(where)
    if kinds & _ALCHEMY:
        return _over_alchemy(where)
    name = f"{type(where).__module__}.{type(where).__qualname__}"
    hint = ""
    if "Async" in name or "async" in name:
        hint = "; for what is asynchronous there is pgsimhash.connect_async()"
    elif callable(where):
        hint = "; call it first, perhaps"
    raise ArgumentError(
        "invalid_connection",
        f"a store is opened over a DSN, a psycopg connection or pool, or SQLAlchemy's URL, Engine, "
        f"Connection or Session, not over {name}{hint}",
    )


def check_not_told_to_prepare(prepare: bool | None) -> None:
    """Refuse ``prepare`` for a connection that is opened by someone else.

    Raises:
        ArgumentError: it is given.
    """
    if prepare is not None:
        raise ArgumentError(
            "invalid_connection",
            "prepare is for connections that the store opens itself, over a DSN or a URL; for "
            "yours say it where they are made: psycopg.connect(..., prepare_threshold=None), a "
            "pool's kwargs, or create_engine(connect_args={'prepare_threshold': None})",
        )


def kinds_of(where: object) -> set[str]:
    """Return the classes of an object, each as its package and its name: nothing is imported."""
    kinds = type(where).__mro__
    return {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds}


def check_driver(lender: Any) -> None:
    """Check that psycopg 3 is what SQLAlchemy's engine, connection or session stands on.

    Raises:
        ArgumentError: it is a session without an engine.
        StoreError: it stands on another driver.
    """
    from sqlalchemy import exc

    try:
        # Before anything is sent: another database may not know what is.
        engine = lender.get_bind() if hasattr(lender, "get_bind") else lender
    except exc.UnboundExecutionError as error:
        raise ArgumentError(
            "invalid_connection", "the session has no engine; give Session(engine)"
        ) from error
    if (engine.dialect.name, engine.dialect.driver) != ("postgresql", "psycopg"):
        raise wrong_driver(f"{engine.dialect.name}+{engine.dialect.driver}")


def _over_alchemy(lender: Any) -> Lease:
    from sqlalchemy import Engine

    check_driver(lender)
    return _FromEngine(lender) if isinstance(lender, Engine) else _OfAlchemy(lender)


def _driver_connection(connection: sqlalchemy.Connection) -> psycopg.Connection[Any]:
    lent = connection.connection
    # One that was detached from its pool has only this.
    found = lent.driver_connection or lent.dbapi_connection
    if not isinstance(found, psycopg.Connection):
        raise wrong_driver(type(found).__module__)
    return pinned(found)


def idle_of(engine: Any) -> int:
    """Return how many connections an engine has that may have been lost with the one in use.

    It is not told to dispose of them: those that others use at the moment would then stay open
    after their return, in a pool that nobody closes.
    """
    return getattr(engine.pool, "checkedin", int)()


def _is_idle(connection: psycopg.Connection[Any]) -> bool:
    return connection.info.transaction_status == TransactionStatus.IDLE


def answers(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server still answers over a connection."""
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return not connection.closed
    return True
