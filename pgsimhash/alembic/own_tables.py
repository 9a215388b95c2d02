"""Operations that add simhash columns to your own tables, and drop them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final

from alembic.operations import MigrateOperation, Operations
from sqlalchemy import Computed, Index, Table, inspect, text
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, DropIndex, ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from pgsimhash.errors import StoreError
from pgsimhash.search.layout import DEFAULT_LAYOUT, get_layout

if TYPE_CHECKING:
    from alembic.migration import MigrationContext


Op = ModuleType | Operations
"""Alembic's ``op``, as a revision imports it, or your own ``Operations``."""


@Operations.register_operation("add_simhash")
@Operations.register_operation("drop_simhash")
@dataclass
class ChangeSimhash(MigrateOperation):
    """Adds a simhash column with its prefix columns and indexes to your own table, or drops it."""

    adds: bool
    table: str
    column: str
    layout: str
    schema: str | None
    concurrently: bool
    nullable: bool = True

    @classmethod
    def add_simhash(
        cls,
        operations: Op,
        table: str,
        column: str = "simhash",
        layout: str = DEFAULT_LAYOUT.name,
        schema: str | None = None,
        *,
        nullable: bool = True,
        concurrently: bool = False,
    ) -> None:
        """Add the columns and indexes of :func:`pgsimhash.sqlalchemy.simhash_columns`.

        One ALTER TABLE adds the columns and rewrites the table once.

        Args:
            operations: Alembic's ``op``.
            table: your table.
            column: the name of the simhash column.
            layout: the layout of the prefix columns.
            schema: the table's schema; None means the first of the search_path.
            nullable: whether rows may have no simhash. It must be true if the table has rows.
            concurrently: whether to build the indexes concurrently. This ends the transaction, so
                the columns stay after a failure. A repeated run drops the invalid index and
                continues.

        Raises:
            ArgumentError: the layout does not exist, or would need too many columns.
            StoreError: with ``concurrently``: env.py holds a transaction that Alembic cannot end,
                an index was not built, the table is partitioned, or other columns or indexes have
                these names.
        """
        operations.invoke(cls(True, table, column, layout, schema, concurrently, nullable))

    @classmethod
    def drop_simhash(
        cls,
        operations: Op,
        table: str,
        column: str = "simhash",
        layout: str = DEFAULT_LAYOUT.name,
        schema: str | None = None,
        *,
        concurrently: bool = False,
    ) -> None:
        """Drop what :meth:`add_simhash` adds; see there for the arguments.

        With ``concurrently`` the indexes are dropped first, without blocking other sessions.

        Raises:
            ArgumentError: the layout does not exist, or would need too many columns.
            StoreError: with ``concurrently``: env.py holds a transaction that Alembic cannot end,
                the table is partitioned, or other indexes have these names.
        """
        operations.invoke(cls(False, table, column, layout, schema, concurrently))


# For type checkers, which only know Alembic's own operations on ``op``.
add_simhash = ChangeSimhash.add_simhash
drop_simhash = ChangeSimhash.drop_simhash


@Operations.implementation_for(ChangeSimhash)
def _change(operations: Operations, change: ChangeSimhash) -> None:
    from pgsimhash.sqlalchemy import simhash_columns

    layout = get_layout(change.layout).name
    columns = simhash_columns(change.column, layout, nullable=change.nullable)
    # The conventions of your metadata name the indexes.
    metadata = operations.schema_obj.metadata()
    table = Table(change.table, metadata, *columns, schema=change.schema)
    context = operations.get_context()
    present = _present_indexes(context, table) if change.concurrently else None
    if change.adds:
        _add(context, table, change.column, layout, present)
    else:
        if present is not None:
            with _outside_transactions(context):
                for index in _indexes(table, concurrently=True):
                    context.impl.execute(DropIndex(index, if_exists=True))
        # This drops their indexes too.
        context.impl.execute(_AlterTable(table, "DROP COLUMN"))


def _add(
    context: MigrationContext,
    table: Table,
    column: str,
    layout: str,
    present: dict[str, bool] | None,
) -> None:
    if present is None:
        context.impl.execute(_AlterTable(table, "ADD COLUMN"))
        for index in _indexes(table):
            context.impl.create_index(index)
        return
    if context.as_sql:
        context.impl.execute(_AlterTable(table, "ADD COLUMN IF NOT EXISTS"))
    elif not _has_columns(context, table, column, layout):
        context.impl.execute(_AlterTable(table, "ADD COLUMN"))
    with _outside_transactions(context):
        for index in _indexes(table, concurrently=True):
            valid = present.get(str(index.name))
            if valid:
                continue
            # A script drops what it does not know.
            if context.as_sql or valid is False:
                context.impl.execute(DropIndex(index, if_exists=True))
            try:
                context.impl.execute(CreateIndex(index))
            except DBAPIError as error:
                raise StoreError(
                    "gave_up",
                    f"the index {index.name} was not built: {str(error.orig).strip()}; migrate "
                    "again, which first drops the invalid index",
                ) from error


def _indexes(table: Table, *, concurrently: bool = False) -> list[Index]:
    for index in table.indexes:
        index.dialect_options["postgresql"]["concurrently"] = concurrently
    return sorted(table.indexes, key=lambda index: str(index.name))


class _AlterTable(ExecutableDDLElement):
    """One ALTER TABLE that adds or drops all of the table's columns."""

    def __init__(self, table: Table, change: str) -> None:
        self.table = table
        self.change = change


@compiles(_AlterTable)
def _alter_table(element: _AlterTable, compiler: DDLCompiler, **_options: object) -> str:
    columns = list(element.table.c)
    if element.change.startswith("ADD"):
        parts = [compiler.get_column_specification(each) for each in columns]
    else:
        # Generated columns first.
        parts = [compiler.preparer.format_column(each) for each in reversed(columns)]
    changes = ", ".join(f"{element.change} {part}" for part in parts)
    return f"ALTER TABLE {compiler.preparer.format_table(element.table)} {changes}"


def _outside_transactions(context: MigrationContext) -> AbstractContextManager[None]:
    """Return a block in which each statement commits, unless the revision began a transaction."""
    connection = None if context.as_sql else context.connection
    if connection and getattr(connection.connection.dbapi_connection, "autocommit", False):
        return nullcontext()
    return context.autocommit_block()


def _has_columns(context: MigrationContext, table: Table, column: str, layout: str) -> bool:
    """Return whether the columns exist, from an attempt that failed later."""
    assert context.connection is not None
    present = {
        each["name"]: (each["computed"]["sqltext"] if "computed" in each else "", each["nullable"])
        for each in inspect(context.connection).get_columns(table.name, schema=table.schema)
    }
    if not any(each.name in present for each in table.c):
        return False
    for each in table.c:
        wanted_text = str(each.computed.sqltext) if isinstance(each.computed, Computed) else ""
        if each.name not in present or _plain(present[each.name][0]) != _plain(wanted_text):
            raise StoreError(
                "unsuitable",
                f"the table {table.fullname} has columns with the names of {column} and its "
                f"prefixes, but not those of layout {layout!r}; drop them, or give "
                "the column another name",
            )
        if each.name == column and present[each.name][1] and not each.nullable:
            raise StoreError(
                "unsuitable",
                f"the column {column} of the table {table.fullname} exists already and is "
                "nullable; omit nullable=False, and call op.alter_column(..., nullable=False) once "
                "every row has a simhash",
            )
    return True


def _plain(expression: str) -> str:
    return "".join(each for each in expression if each not in "()'\" \n")


_PARTITIONED: Final = text(
    "SELECT c.relkind = 'p' FROM pg_catalog.pg_class AS c "
    "WHERE c.oid = pg_catalog.to_regclass(:table)"
)

_PRESENT: Final = text(
    # Names as CREATE INDEX and DROP INDEX use them.
    "SELECT c.oid::regclass::text, coalesce(i.indisvalid AND i.indisready, false), "
    "i.indrelid = t.oid AND m.amname = 'btree' AND NOT i.indisunique "
    "AND i.indpred IS NULL AND i.indexprs IS NULL, "
    "ARRAY(SELECT a.attname::text "
    "FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (number, n) "
    "JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number "
    "ORDER BY k.n) "
    "FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_class AS c "
    "ON c.relname = :name AND c.relnamespace = t.relnamespace "
    "OR c.oid = pg_catalog.to_regclass(:named) "
    "LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid = c.oid "
    "LEFT JOIN pg_catalog.pg_am AS m ON m.oid = c.relam "
    "WHERE t.oid = pg_catalog.to_regclass(:table)"
)


def _present_indexes(context: MigrationContext, table: Table) -> dict[str, bool]:
    """Return the existing indexes of a table by name, and whether each is usable.

    A script knows none. Refuse what cannot be done concurrently, and indexes of others.
    """
    if context.as_sql:
        return {}
    if context._in_external_transaction:
        raise StoreError(
            "wrong_transaction",
            "indexes are built concurrently outside of a transaction, and env.py began one that "
            "Alembic cannot end; let context.begin_transaction() begin it, or omit "
            "concurrently=True",
        )
    assert context.connection is not None
    # A driver's own preparer may double percent signs.
    preparer = PGDialect(paramstyle="named").identifier_preparer  # type: ignore[no-untyped-call]
    schema = table.schema
    if context.connection.scalar(_PARTITIONED, {"table": preparer.format_table(table)}):
        raise StoreError(
            "unsuitable",
            f"the table {table.fullname} is partitioned, and PostgreSQL cannot build or drop "
            "indexes of such tables concurrently; omit concurrently=True",
        )
    indexes = {}
    for index in table.indexes:
        name = preparer.format_index(index)
        named = {
            "name": name[1:-1].replace('""', '"') if name.startswith('"') else name,
            "named": name if schema is None else f"{preparer.quote_schema(schema)}.{name}",
            "table": preparer.format_table(table),
        }
        for other, valid, alike, columns in context.connection.execute(_PRESENT, named):
            if not alike or columns != [each.name for each in index.columns]:
                raise StoreError(
                    "unsuitable",
                    f"{other} is not the index of this name on the simhashes of {table.fullname}; "
                    "rename it, give the column another name, or pass the table's schema=",
                )
            indexes[str(index.name)] = valid
    return indexes
