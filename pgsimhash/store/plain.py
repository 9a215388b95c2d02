"""The store's own cursors on a connection of somebody else's, whatever cursors that one makes."""

from __future__ import annotations

from typing import Any, Final, cast

import psycopg
from psycopg.pq import Format
from psycopg.rows import tuple_row

_KEPT: Final = "_pgsimhash_plain"


class _Plain:
    """A connection whose rows are tuples and whose values are bound by the server."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def cursor(
        self, name: str = "", *, row_factory: Any = tuple_row, binary: bool = False
    ) -> psycopg.Cursor[Any]:
        made: psycopg.Cursor[Any]
        if name:
            made = psycopg.ServerCursor(self._connection, name, row_factory=row_factory)
        else:
            made = psycopg.Cursor(self._connection, row_factory=row_factory)
        made.format = Format.BINARY if binary else Format.TEXT
        return made

    def execute(self, query: Any, parameters: Any = None) -> psycopg.Cursor[Any]:
        return self.cursor().execute(query, parameters)


def plain(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Return a connection, or what stands for it where its own cursors are of another kind."""
    if connection.row_factory is tuple_row and connection.cursor_factory is psycopg.Cursor:
        return connection
    # The same each time, for all stores over it take turns on it.
    made = vars(connection).setdefault(_KEPT, _Plain(connection))
    return cast("psycopg.Connection[Any]", made)
