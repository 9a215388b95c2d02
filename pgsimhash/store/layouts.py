"""Deploy the table, indexes and functions of a layout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.db.pinned import execute_alone
from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import LayoutPart, layout_statements, query
from pgsimhash.errors import CollectionError
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, get_layout
from pgsimhash.search.permutation import Permutation


def is_deployed(connection: psycopg.Connection[Any], layout: Layout) -> bool | None:
    """Return None without the layout's table, else whether all its indexes exist."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(
            query("layout_deployed", connection), {"layout": layout.name}
        ).fetchone()


def deploy_layout(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Create the missing objects of ``layout`` in one transaction.

    Raises:
        CollectionError: it has no indexes yet because a collection is still being built in it.
    """
    indexed = is_deployed(connection, layout)
    if indexed is None:
        with connection.transaction(), _as_owner(connection):
            _create(connection, layout, indexed=True)
            _execute(connection, "indexes", layout)
    elif not indexed:
        with connection.transaction():
            _check_unclaimed(connection, layout)
            build_indexes(connection, layout, concurrently=False)


def deploy_table(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Create the objects of ``layout`` without its indexes, which are built afterwards."""
    if is_deployed(connection, layout) is None:
        with connection.transaction(), _as_owner(connection):
            _create(connection, layout, indexed=False)


def build_indexes(
    connection: psycopg.Connection[Any], layout: Layout, *, concurrently: bool = True
) -> None:
    """Build the missing indexes, and again those that an interrupted run left invalid.

    Args:
        connection: the connection; in autocommit mode if concurrently.
        layout: the layout of the table.
        concurrently: whether other sessions may write to the table meanwhile.
    """
    if is_deployed(connection, layout):
        return
    schema = schema_of(connection)
    with connection.cursor(row_factory=tuple_row) as cursor:
        table = {"table": f"{schema}.{layout.table}"}
        valid: dict[str, bool] = dict(
            cursor.execute(query("indexes", connection), table).fetchall()
        )
    execute = partial(execute_alone, connection) if concurrently else connection.execute
    for permutation, statement in zip(
        layout.permutations[1:],
        layout_statements("indexes", layout, schema, concurrently=concurrently),
        strict=True,
    ):
        name = _index_name(layout, permutation)
        if valid.get(name) is False:
            drop = sql.SQL("DROP INDEX CONCURRENTLY {}" if concurrently else "DROP INDEX {}")
            execute(drop.format(sql.Identifier(schema, name)))
        if not valid.get(name):
            execute(statement)
    connection.execute(query("layout_indexed", connection), {"layout": layout.name})


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
            name = sql.Identifier(schema, _index_name(layout, permutation))
            cursor.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(name))
    return True


def fill_indexes(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Build the indexes that :func:`empty_table` dropped, in the same transaction."""
    _execute(connection, "indexes", layout)
    table = sql.Identifier(schema_of(connection), layout.table)
    connection.execute(sql.SQL("ANALYZE {}").format(table))


def _index_name(layout: Layout, permutation: Permutation) -> str:
    return f"{layout.table}_{permutation.column}_idx"


def default_layout(connection: psycopg.Connection[Any]) -> Layout:
    """Return the default layout of new collections."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        name = cursor.execute(query("default_layout", connection)).fetchone()
    return DEFAULT_LAYOUT if name is None else get_layout(name)


def set_default_layout(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Deploy ``layout`` and make it the default of new collections.

    Raises:
        CollectionError: it has no indexes yet because a collection is still being built in it.
    """
    deploy_layout(connection, layout)
    statement = sql.SQL("ALTER TABLE {} ALTER COLUMN layout SET DEFAULT {}")
    connection.execute(
        statement.format(sql.Identifier(schema_of(connection), "collections"), layout.name)
    )


def _check_unclaimed(connection: psycopg.Connection[Any], layout: Layout) -> None:
    """Block new collections in a layout until the transaction ends; raise if one is being built."""
    scope = {"layout": layout.name}
    connection.execute(query("lock_layout", connection), scope)
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(query("collections_made", connection), scope).fetchone()
    if row is not None:
        name, source = row
        raise CollectionError(
            "being_built",
            f"layout {layout.name!r} has no indexes yet because collection {name!r} is still "
            f"being built in it; finish that: pgsimhash collection rebuild {source} --into {name} "
            f"--layout '{layout.name}', or delete it: pgsimhash collection delete {name}",
        )


def _create(connection: psycopg.Connection[Any], layout: Layout, *, indexed: bool) -> None:
    _execute(connection, "table", layout)
    _execute(connection, "functions", layout)
    _execute(connection, "lookup", layout)
    _execute(connection, "row", layout, indexed=indexed)


@contextmanager
def _as_owner(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Create objects in this block as the schema owner; it must be in a transaction."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        before = cursor.execute(query("act_as_owner", connection)).fetchone()
        yield
        if before is not None:
            cursor.execute(query("act_as", connection), {"role": before[0]})


def _execute(
    connection: psycopg.Connection[Any], part: LayoutPart, layout: Layout, *, indexed: bool = True
) -> None:
    for statement in layout_statements(part, layout, schema_of(connection), indexed=indexed):
        connection.execute(statement)
