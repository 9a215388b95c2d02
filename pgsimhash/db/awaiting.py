"""A synchronous interface to an asynchronous connection.

The store is written once, for synchronous connections. Over an ``AsyncConnection`` it runs in a
greenlet, like SQLAlchemy's ``run_sync``: a call that would block returns the thread to the event
loop until the answer arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.db.plain import new_cursor

try:
    from sqlalchemy.util import await_
except ImportError:  # SQLAlchemy 2.0
    from sqlalchemy.util import await_only as await_

__all__ = ["await_", "awaited"]

_T = TypeVar("_T")


class _Cursor:
    """The methods of a cursor that the store uses."""

    itersize = 2_000
    """Rows per fetch."""

    def __init__(self, cursor: psycopg.AsyncCursor[Any]) -> None:
        self._cursor = cursor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        await_(self._cursor.close())

    def __iter__(self) -> Iterator[Any]:
        while rows := self.fetchmany(self.itersize):
            yield from rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, *arguments: Any, **options: Any) -> Self:
        await_(self._cursor.execute(*arguments, **options))
        return self

    def fetchone(self) -> Any:
        return await_(self._cursor.fetchone())

    def fetchmany(self, size: int = 0) -> list[Any]:
        return await_(self._cursor.fetchmany(size))

    def fetchall(self) -> list[Any]:
        return await_(self._cursor.fetchall())


class _Connection:
    """The methods of a connection that the store uses."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.wrapped = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def cursor(self, name: str = "", *, row_factory: Any = tuple_row) -> _Cursor:
        # The caller's connection may have its own cursor classes.
        kinds = psycopg.AsyncCursor, psycopg.AsyncServerCursor
        return _Cursor(new_cursor(self.wrapped, name, row_factory, *kinds))

    def execute(self, query: Any, parameters: Any = None) -> _Cursor:
        return self.cursor().execute(query, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with _inside(self.wrapped.transaction()):
            yield


@contextmanager
def _inside(block: AbstractAsyncContextManager[_T]) -> Iterator[_T]:
    entered = await_(block.__aenter__())
    try:
        yield entered
    except BaseException as error:
        if not await_(block.__aexit__(type(error), error, error.__traceback__)):
            raise
    else:
        await_(block.__aexit__(None, None, None))


def awaited(connection: psycopg.AsyncConnection[Any]) -> psycopg.Connection[Any]:
    """Return a synchronous interface to a connection, for use in a greenlet."""
    return cast("psycopg.Connection[Any]", _Connection(connection))
