"""Connections that return tuples and bind values in the server, whatever factories they have."""

from __future__ import annotations

from typing import Any, Final, Self, cast

import psycopg
from psycopg.pq import Format
from psycopg.rows import tuple_row

_KEPT: Final = "_pgsimhash_plain"


class _Plain:
    """A connection whose cursors return tuples, and receive values in binary form."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.wrapped = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def __enter__(self) -> Self:
        self.wrapped.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.wrapped.__exit__(*error)

    def cursor(self, name: str = "", *, row_factory: Any = tuple_row) -> psycopg.Cursor[Any]:
        kinds = psycopg.Cursor, psycopg.ServerCursor
        cursor: psycopg.Cursor[Any] = new_cursor(self.wrapped, name, row_factory, *kinds)
        return cursor

    def execute(self, query: Any, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.cursor().execute(query, parameters)


def plain(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Return the plain interface of a connection, or of a synchronous interface to one."""
    if hasattr(connection, "wrapped"):
        return connection
    made = vars(connection).setdefault(_KEPT, _Plain(connection))
    return cast("psycopg.Connection[Any]", made)


def new_cursor(connection: Any, name: str, row_factory: Any, ordinary: Any, named: Any) -> Any:
    """Return a cursor of one of two classes of psycopg: the second if it has a name."""
    if name and connection.pgconn.pipeline_status:
        raise psycopg.NotSupportedError("server-side cursors do not work in a pipeline")
    names = (name,) if name else ()
    cursor = (named if name else ordinary)(connection, *names, row_factory=row_factory)
    # Times in text form depend on the DateStyle.
    cursor.format = Format.BINARY
    return cursor
