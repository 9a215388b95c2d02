"""Connections whose statements call PostgreSQL's own functions and operators.

Other users may create functions and operators in a schema of the caller's ``search_path``.
PostgreSQL calls them if their argument types match better, or if their schema precedes
``pg_catalog``. They would run with the caller's rights. So the package pins ``search_path`` for
every statement. On its own connections, it pins the session once. On any other connection it pins
each statement, in the same round trip, because the caller sends statements too, or a pooler shares
the session.

It pins ``DateStyle`` too, because Citus sends times to its nodes as text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, Final, LiteralString, Self, cast
from weakref import WeakSet

import psycopg
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import tuple_row

from pgsimhash.db.statements import queries

_KEPT: Final = "_pgsimhash_pinned"


class _Cursor(psycopg.Cursor[Any]):
    """A cursor that pins the search_path for each statement."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        with pinned_statement(self.connection, _send, together=True):
            return super().execute(query, params, **options)


class _ServerCursor(psycopg.ServerCursor[Any]):
    """The same as a server-side cursor, which psycopg cannot declare in a pipeline."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        with pinned_statement(self.connection, _send, together=False):
            return super().execute(query, params, **options)


class _Pinned:
    """A connection that pins each statement, returns tuples, and binds values in the server.

    It does not pin COPY and executemany, which call nothing by name.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.unpinned = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unpinned, name)

    def __enter__(self) -> Self:
        self.unpinned.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.unpinned.__exit__(*error)

    def cursor(
        self, name: str = "", *, row_factory: Any = tuple_row, binary: bool = False
    ) -> psycopg.Cursor[Any]:
        cursor: psycopg.Cursor[Any]
        if name:
            cursor = _ServerCursor(self.unpinned, name, row_factory=row_factory)
        else:
            cursor = _Cursor(self.unpinned, row_factory=row_factory)
        cursor.format = Format.BINARY if binary else Format.TEXT
        return cursor

    def plain_cursor(self) -> psycopg.Cursor[Any]:
        return psycopg.Cursor(self.unpinned, row_factory=tuple_row)

    def execute(self, query: Any, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.cursor().execute(query, parameters)


def pinned(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Return a connection, or its synchronous interface, that pins the search_path."""
    if isinstance(connection, _Pinned) or is_pinned(connection):
        return connection
    pinned_connection = vars(connection).setdefault(_KEPT, _Pinned(connection))
    return cast("psycopg.Connection[Any]", pinned_connection)


def execute_alone(connection: psycopg.Connection[Any], statement: Any) -> None:
    """Execute a statement without pinning: its names are qualified, and it calls nothing."""
    with _plain_cursor(connection) as cursor:
        cursor.execute(statement)


def _plain_cursor(connection: Any) -> psycopg.Cursor[Any]:
    """Return a cursor that does not pin the search_path."""
    if hasattr(connection, "plain_cursor"):
        plain: psycopg.Cursor[Any] = connection.plain_cursor()
        return plain
    return psycopg.Cursor(connection, row_factory=tuple_row)


def pin_session(connection: psycopg.Connection[Any]) -> None:
    """Pin the search_path of a session that nobody else has."""
    connection.execute(pin_statement(), {"local": False})
    note_pinned(connection)


def note_pinned(connection: psycopg.BaseConnection[Any]) -> None:
    """Record that the session of a connection is pinned."""
    _sessions.add(connection)


def is_pinned(connection: psycopg.BaseConnection[Any]) -> bool:
    """Return whether the session of a connection is pinned."""
    return connection in _sessions


@contextmanager
def pinned_statement(connection: Any, send: Callable[..., None], together: bool) -> Iterator[None]:
    """Pin the search_path for the statement that the block executes.

    Args:
        connection: a connection, or the synchronous interface of an asynchronous one.
        send: executes a statement, with the options of psycopg's cursors.
        together: whether to send all in one round trip, if libpq can.
    """
    together = together and psycopg.Pipeline.is_supported()
    # The settings end with the transaction, which has only this statement.
    alone = connection.autocommit and _status(connection) == TransactionStatus.IDLE
    block: AbstractContextManager[Any] = nullcontext()
    if together:
        block = connection.pipeline()
    elif alone:
        block = connection.transaction()
    # After a DROP, psycopg sends DEALLOCATE ALL behind the next statement of a pipeline. So that
    # statement must not be prepared immediately.
    prepare = False if connection.prepare_threshold == 0 else None
    handled = sys.exception()
    failure: psycopg.Error | None = None
    try:
        with block:
            try:
                send(connection, pin_statement(), params={"local": True}, prepare=prepare)
                try:
                    yield
                finally:
                    if not alone and _status(connection) != TransactionStatus.INERROR:
                        send(connection, unpin_statement(), prepare=prepare)
            except psycopg.Error as error:
                if not together:
                    raise
                # Raised outside the pipeline; inside, psycopg would log the aborted statements.
                failure = error
    except psycopg.OperationalError as error:
        present = error.__context__
        if present not in (None, handled) and connection.pgconn.pipeline_status:
            # A signal handler raised it, so psycopg could not leave the pipeline.
            raise present from None
        if failure is None or not isinstance(error, psycopg.errors.PipelineAborted):
            raise
    if failure is not None:
        raise failure


def _status(connection: Any) -> int:
    status: int = connection.pgconn.transaction_status
    return status


@cache
def pin_statement() -> LiteralString:
    """Return the statement that pins the search_path and keeps the caller's."""
    return queries()["pin_search_path"]


@cache
def unpin_statement() -> LiteralString:
    """Return the statement that restores the caller's search_path."""
    return queries()["unpin_search_path"]


def _send(connection: psycopg.Connection[Any], statement: LiteralString, **options: Any) -> None:
    psycopg.Cursor(connection, row_factory=tuple_row).execute(statement, **options)


_sessions: WeakSet[psycopg.BaseConnection[Any]] = WeakSet()
