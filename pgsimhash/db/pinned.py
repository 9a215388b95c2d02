"""Connections whose statements mean PostgreSQL's own functions and operators.

Others may create functions and operators in a schema of the caller's ``search_path``. PostgreSQL
calls them if their argument types match better, or if their schema comes before ``pg_catalog``.
They would run with the caller's rights. So the package sends every statement with ``search_path``
pinned. On a connection that the package opened, it pins the session once. On any other connection
it pins each statement, in the same round trip: the caller's statements come in between, or a pooler
gives the session to others.
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
    """The same in the server, where psycopg cannot declare a cursor in a pipeline."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        with pinned_statement(self.connection, _send, together=False):
            return super().execute(query, params, **options)


class _Pinned:
    """A connection that pins each statement, returns tuples, and lets the server bind values.

    What it copies or executes many times is not pinned: that calls nothing by name.
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
        made: psycopg.Cursor[Any]
        if name:
            made = _ServerCursor(self.unpinned, name, row_factory=row_factory)
        else:
            made = _Cursor(self.unpinned, row_factory=row_factory)
        made.format = Format.BINARY if binary else Format.TEXT
        return made

    def plain_cursor(self) -> psycopg.Cursor[Any]:
        return psycopg.Cursor(self.unpinned, row_factory=tuple_row)

    def execute(self, query: Any, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.cursor().execute(query, parameters)


def pinned(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Return a connection, or what stands for it, that pins the search_path."""
    if isinstance(connection, _Pinned) or is_pinned(connection):
        return connection
    made = vars(connection).setdefault(_KEPT, _Pinned(connection))
    return cast("psycopg.Connection[Any]", made)


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
    """Remember that the session of a connection is pinned."""
    _sessions.add(connection)


def is_pinned(connection: psycopg.BaseConnection[Any]) -> bool:
    """Return whether the session of a connection is pinned."""
    return connection in _sessions


@contextmanager
def pinned_statement(connection: Any, send: Callable[..., None], together: bool) -> Iterator[None]:
    """Pin the search_path for the one statement that the block executes.

    Args:
        connection: a connection, or what stands for one that is awaited.
        send: what executes a statement on it, with the options of psycopg's cursors.
        together: whether all goes in one round trip, where libpq can.
    """
    together = together and psycopg.Pipeline.is_supported()
    # Settings end with the transaction, which is this statement's alone.
    alone = connection.autocommit and _status(connection) == TransactionStatus.IDLE
    block: AbstractContextManager[Any] = nullcontext()
    if together:
        block = connection.pipeline()
    elif alone:
        block = connection.transaction()
    # After a DROP psycopg deallocates all statements, but only behind the next one of a pipeline:
    # that one must not be prepared at once.
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
                # Out of a pipeline, psycopg would log what became of the statements after it.
                failure = error
    except psycopg.OperationalError as error:
        present = error.__context__
        if present not in (None, handled) and connection.pgconn.pipeline_status:
            # A signal handler raised it, and psycopg could not leave the pipeline after that.
            raise present from None
        if failure is None or not isinstance(error, psycopg.errors.PipelineAborted):
            raise
    if failure is not None:
        raise failure


def _status(connection: Any) -> int:
    status: int = connection.pgconn.transaction_status
    return status


@contextmanager
def callers_names(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Cursor[Any]]:
    """Give a cursor that finds tables by the caller's search_path; in a transaction.

    What it executes calls nothing but functions that are named with their schema.
    """
    own = getattr(connection, "unpinned", connection)
    with _plain_cursor(connection) as cursor:
        if is_pinned(own):
            cursor.execute(unpin_statement())
        yield cursor
        if is_pinned(own):
            cursor.execute(pin_statement(), {"local": True})


@cache
def pin_statement() -> LiteralString:
    """Return the statement that pins the search_path and keeps the caller's."""
    return queries()["pin_search_path"]


@cache
def unpin_statement() -> LiteralString:
    """Return the statement that gives the transaction the caller's search_path back."""
    return queries()["unpin_search_path"]


def _send(connection: psycopg.Connection[Any], statement: LiteralString, **options: Any) -> None:
    psycopg.Cursor(connection, row_factory=tuple_row).execute(statement, **options)


_sessions: WeakSet[psycopg.BaseConnection[Any]] = WeakSet()
