"""Deploy the table, indexes and functions of a layout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row

from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import LayoutPart, fetch, layout_statements
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, get_layout


def deploy_layout(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Create the objects of ``layout`` in one transaction, unless they exist."""
    if fetch(connection, "layout_deployed", {"layout": layout.name}):
        return
    with connection.transaction(), _as_owner(connection):
        for part in ("table", "functions", "lookup", "row", "indexes"):
            _execute(connection, part, layout)


def empty_table(connection: psycopg.Connection[Any], layout: Layout) -> bool:
    """Drop the indexes of an empty table, except the first; return False if it has rows.

    The table stays locked until the transaction ends. It is truncated too: rows copied into a table
    of the same transaction can be frozen, so lookups need no VACUUM first.

    Raises:
        psycopg.errors.LockNotAvailable: another session uses the table.
        psycopg.errors.InsufficientPrivilege: another role owns it.
    """
    schema = schema_of(connection)
    table = sql.Identifier(schema, layout.table)
    has_rows = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(table)
    with connection.cursor(row_factory=scalar_row) as cursor:
        if cursor.execute(has_rows).fetchone():
            return False
        cursor.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(table))
        if cursor.execute(has_rows).fetchone():
            return False
        cursor.execute(sql.SQL("TRUNCATE {}").format(table))
        for permutation in layout.permutations[1:]:
            name = sql.Identifier(schema, f"{layout.table}_{permutation.column}_idx")
            cursor.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(name))
    return True


def fill_indexes(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Build the indexes that :func:`empty_table` dropped, in the same transaction."""
    _execute(connection, "indexes", layout)
    table = sql.Identifier(schema_of(connection), layout.table)
    connection.execute(sql.SQL("ANALYZE {}").format(table))


def default_layout(connection: psycopg.Connection[Any]) -> Layout:
    """Return the default layout of new collections."""
    rows = fetch(connection, "default_layout")
    return get_layout(rows[0][0]) if rows else DEFAULT_LAYOUT


def set_default_layout(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Deploy ``layout`` and make it the default of new collections."""
    deploy_layout(connection, layout)
    statement = sql.SQL("ALTER TABLE {} ALTER COLUMN layout SET DEFAULT {}")
    connection.execute(
        statement.format(sql.Identifier(schema_of(connection), "collections"), layout.name)
    )


@contextmanager
def _as_owner(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Create objects in this block as the schema owner; it must be in a transaction."""
    before = fetch(connection, "act_as_owner")
    yield
    if before:
        fetch(connection, "act_as", {"role": before[0][0]})


def _execute(connection: psycopg.Connection[Any], part: LayoutPart, layout: Layout) -> None:
    for statement in layout_statements(part, layout, schema_of(connection)):
        connection.execute(statement)
