"""What a check looks at, and how: slice by slice, each in one snapshot, mended under the lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row

from pgsimhash.schema_names import schema_of
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, lock_collections

_BLOCKS: Final = 256
"""How many blocks of a table make a slice: 2 MB, some thousand rows."""

Connection = psycopg.Connection[Any]
Row = dict[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which collections are checked, over what, and whether to repair.

    ``read`` gives a connection in no transaction, ``write`` one in a transaction of bounded waits;
    ``everything`` says that these are all collections there are.
    """

    read: Callable[[], AbstractContextManager[Connection]]
    write: Callable[[], AbstractContextManager[Connection]]
    collections: tuple[Collection, ...]
    everything: bool
    repair: bool

    def name(self, collection_id: int) -> str | None:
        """Return the name of a collection, None where it has none."""
        return {one.collection_id: one.name for one in self.collections}.get(collection_id)

    def ids(self, layout: str | None = None) -> list[int]:
        """Return the numbers of the collections, of all layouts or of one."""
        return [one.collection_id for one in self.collections if layout in (None, one.layout)]

    def of(self, collection_ids: Sequence[int]) -> list[Collection]:
        """Return the collections with these numbers."""
        return [one for one in self.collections if one.collection_id in collection_ids]


@dataclass(frozen=True, slots=True)
class Look:
    """A query for what is wrong in a slice of a table.

    Attributes:
        statement: its name.
        table: what is walked.
        ids: the numbers of the collections whose rows matter.
        things: the names of tables and functions that the query has places for.
        columns: those of columns.
        values: what else it takes.
    """

    statement: str
    table: str
    ids: Sequence[int]
    things: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Values = field(default_factory=dict)

    def rows(self, connection: Connection, bounds: Values) -> list[Row]:
        """Return what it finds between some bounds."""
        with connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(self.text(connection, self.statement), {**self.values, **bounds})
            return cursor.fetchall()

    def text(self, connection: Connection, statement: str) -> sql.Composed:
        """Return a query with the names put in."""
        schema = schema_of(connection)
        things = {place: sql.Identifier(schema, name) for place, name in self.things.items()}
        columns = {place: sql.Identifier(name) for place, name in self.columns.items()}
        return sql.SQL(query(statement, connection)).format(**things, **columns)


Mend = Callable[[Connection, Look, Sequence[Row], Values], None]
"""Told what was looked for, what was found, and between which bounds."""


def walk(
    scope: Scope, look: Look, mend: Mend | None = None
) -> Iterator[tuple[list[Row], list[Row]]]:
    """Yield what a look finds in each slice of a table as it lies on disk, and what is left of it.

    What it finds is so in one snapshot. To be mended it is looked at again under the lock.
    """
    for bounds in _slices(scope, look) if look.ids else ():
        with scope.read() as connection, connection.transaction():
            connection.execute(query("index_plans", connection))
            left = rows = look.rows(connection, bounds)
        if rows and scope.repair and mend is not None:
            # What a table that was changed does not take is left; nothing was written then.
            with suppress(psycopg.IntegrityError):
                rows, left = _mended(scope, look, mend, rows, bounds)
        if rows:
            yield rows, left


def _mended(
    scope: Scope, look: Look, mend: Mend, rows: Sequence[Row], bounds: Values
) -> tuple[list[Row], list[Row]]:
    """Look again under the lock, mend, and return what was found and what is left of it."""
    with scope.write() as connection:
        owners = scope.of([row["collection_id"] for row in rows])
        lock_collections(connection, owners, loaders=True)
        connection.execute(query("index_plans", connection))
        found = look.rows(connection, bounds)
        mend(connection, look, found, bounds)
        return found, look.rows(connection, bounds)


def _slices(scope: Scope, look: Look) -> Iterator[dict[str, Any]]:
    with scope.read() as connection, connection.cursor(row_factory=scalar_row) as cursor:
        where = {"table": f"{schema_of(connection)}.{look.table}"}
        blocks = int(cursor.execute(query("blocks", connection), where).fetchone() or 0)
    for first in range(0, blocks, _BLOCKS):
        yield {
            "first": f"({first},0)",
            "beyond": f"({first + _BLOCKS},0)",
            "collection_ids": list(look.ids),
        }


def rows_of(connection: Connection, statement: str, values: Values) -> list[Row]:
    """Return the rows of a query by the names of their columns."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query(statement, connection), values).fetchall()


def by_collection(rows: Sequence[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Yield rows by the collection that they belong to."""
    for collection_id in sorted({row["collection_id"] for row in rows}):
        yield collection_id, [row for row in rows if row["collection_id"] == collection_id]
