"""Operations that add simhash columns to your own tables, and drop them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from alembic.operations import MigrateOperation, Operations
from sqlalchemy import Index, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, DropIndex, ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from pgsimhash.alembic.present import check_not_partitioned, has_columns, present_indexes
from pgsimhash.errors import StoreError
from pgsimhash.search.layout import DEFAULT_LAYOUT, get_layout

if TYPE_CHECKING:
    from alembic.migration import MigrationContext


class Invokes(Protocol):
    """Alembic's ``op``, as a revision imports it, or your own ``Operations``."""

    def invoke(self, operation: MigrateOperation, /) -> Any:
        """Run an operation."""


@dataclass
class _SimhashOperation(MigrateOperation):
    table: str
    column: str
    layout: str
    schema: str | None
    concurrently: bool
    nullable: bool = True

    def __post_init__(self) -> None:
        self.layout = get_layout(self.layout).name


@Operations.register_operation("add_simhash")
class AddSimhash(_SimhashOperation):
    """Adds a simhash column to your own table, with its prefix columns and indexes."""

    @classmethod
    def add_simhash(
        cls,
        operations: Invokes,
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
        operations.invoke(cls(table, column, layout, schema, concurrently, nullable))


@Operations.register_operation("drop_simhash")
class DropSimhash(_SimhashOperation):
    """Drops the columns and their indexes."""

    @classmethod
    def drop_simhash(
        cls,
        operations: Invokes,
        table: str,
        column: str = "simhash",
        layout: str = DEFAULT_LAYOUT.name,
        schema: str | None = None,
        *,
        concurrently: bool = False,
    ) -> None:
        """Drop what :meth:`AddSimhash.add_simhash` adds; see there for the arguments.

        With ``concurrently`` the indexes are dropped first, without blocking other sessions.

        Raises:
            ArgumentError: the layout does not exist, or would need too many columns.
            StoreError: with ``concurrently``: env.py holds a transaction that Alembic cannot end,
                the table is partitioned, or other indexes have these names.
        """
        operations.invoke(cls(table, column, layout, schema, concurrently))


# For type checkers, which only know Alembic's own operations on ``op``.
add_simhash = AddSimhash.add_simhash
drop_simhash = DropSimhash.drop_simhash


@Operations.implementation_for(AddSimhash)
def _add(operations: Operations, operation: AddSimhash) -> None:
    context, table = operations.get_context(), _table_of(operations, operation)
    if not operation.concurrently:
        context.impl.execute(_AlterTable(table, "ADD COLUMN"))
        for index in _indexes(table):
            context.impl.create_index(index)
        return
    _check_can_commit(context)
    if context.as_sql:
        context.impl.execute(_AlterTable(table, "ADD COLUMN IF NOT EXISTS"))
    else:
        check_not_partitioned(context, table)
        there = has_columns(context, table, operation.column, operation.layout)
        present = present_indexes(context, table)
        if not there:
            context.impl.execute(_AlterTable(table, "ADD COLUMN"))
    with _outside_transactions(context):
        for index in _indexes(table):
            valid = None if context.as_sql else present.get(str(index.name))
            if valid:
                continue
            if context.as_sql or valid is False:
                context.impl.execute(_concurrent(DropIndex(index, if_exists=True), index))
            try:
                context.impl.execute(_concurrent(CreateIndex(index), index))
            except DBAPIError as error:
                raise StoreError(
                    "gave_up",
                    f"the index {index.name} was not built: {str(error.orig).strip()}; migrate "
                    "again, which first drops the invalid index",
                ) from error


@Operations.implementation_for(DropSimhash)
def _drop(operations: Operations, unwanted: DropSimhash) -> None:
    context, table = operations.get_context(), _table_of(operations, unwanted)
    if unwanted.concurrently:
        _check_can_commit(context)
        if not context.as_sql:
            check_not_partitioned(context, table)
            present_indexes(context, table)
        with _outside_transactions(context):
            for index in _indexes(table):
                context.impl.execute(_concurrent(DropIndex(index, if_exists=True), index))
    # This drops their indexes too.
    context.impl.execute(_AlterTable(table, "DROP COLUMN"))


def _table_of(operations: Operations, operation: _SimhashOperation) -> Table:
    """Return a table of these columns only, named by the conventions of your metadata."""
    from pgsimhash.sqlalchemy import simhash_columns

    columns = simhash_columns(operation.column, operation.layout, nullable=operation.nullable)
    metadata = operations.schema_obj.metadata()
    return Table(operation.table, metadata, *columns, schema=operation.schema)


def _indexes(table: Table) -> list[Index]:
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


def _concurrent(statement: Any, index: Index) -> Any:
    index.dialect_options["postgresql"]["concurrently"] = True
    return statement


def _outside_transactions(context: MigrationContext) -> AbstractContextManager[None]:
    """Return a block in which each statement commits, unless the revision began a transaction."""
    connection = None if context.as_sql else context.connection
    if connection and getattr(connection.connection.dbapi_connection, "autocommit", False):
        return nullcontext()
    return context.autocommit_block()


def _check_can_commit(context: MigrationContext) -> None:
    if not context.as_sql and context._in_external_transaction:
        raise StoreError(
            "wrong_transaction",
            "indexes are built concurrently outside of a transaction, and env.py began one that "
            "Alembic cannot end; let context.begin_transaction() begin it, or omit "
            "concurrently=True",
        )
