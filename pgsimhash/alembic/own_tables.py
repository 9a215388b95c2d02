"""Operations that add simhash columns to your own tables, and drop them."""

from types import ModuleType

from alembic.operations import Operations
from alembic.operations.schemaobj import SchemaObjects
from sqlalchemy import Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from pgsimhash.search.layout import DEFAULT_LAYOUT

Op = ModuleType | Operations
"""Alembic's ``op``, as a revision imports it, or your own ``Operations``."""


@Operations.register_operation("add_simhash")
@Operations.register_operation("drop_simhash")
class SimhashOperations:
    """Add a simhash column with its prefix columns and indexes to your own table, or drop it."""

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
        indexes: bool = True,
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
            indexes: whether to create the indexes. Without, create them by ``op.create_index``, for
                example concurrently.
        """
        impl = operations.get_context().impl
        changed = _table(operations, table, column, layout, schema, nullable=nullable)
        impl.execute(_AlterTable(changed, "ADD COLUMN"))
        if indexes:
            for index in sorted(changed.indexes, key=lambda index: str(index.name)):
                impl.create_index(index)

    @classmethod
    def drop_simhash(
        cls,
        operations: Op,
        table: str,
        column: str = "simhash",
        layout: str = DEFAULT_LAYOUT.name,
        schema: str | None = None,
    ) -> None:
        """Drop the columns of :meth:`add_simhash`, with their indexes.

        The arguments and errors are the same.
        """
        changed = _table(operations, table, column, layout, schema)
        operations.get_context().impl.execute(_AlterTable(changed, "DROP COLUMN"))


# For type checkers, which only know Alembic's own operations on ``op``.
add_simhash = SimhashOperations.add_simhash
drop_simhash = SimhashOperations.drop_simhash


def _table(
    operations: Op,
    name: str,
    column: str,
    layout: str,
    schema: str | None,
    *,
    nullable: bool = True,
) -> Table:
    """Return a table of only the columns and indexes that are added or dropped."""
    from pgsimhash.sqlalchemy import simhash_columns

    # The conventions of your metadata name the indexes.
    metadata = SchemaObjects(operations.get_context()).metadata()
    return Table(name, metadata, *simhash_columns(column, layout, nullable=nullable), schema=schema)


class _AlterTable(ExecutableDDLElement):
    """One ALTER TABLE that adds or drops all of the table's columns."""

    def __init__(self, table: Table, change: str) -> None:
        self.table = table
        self.change = change


@compiles(_AlterTable)
def _alter_table(element: _AlterTable, compiler: DDLCompiler, **_options: object) -> str:
    columns = list(element.table.c)
    if element.change == "ADD COLUMN":
        parts = [compiler.get_column_specification(each) for each in columns]
    else:
        # Generated columns first.
        parts = [compiler.preparer.format_column(each) for each in reversed(columns)]
    changes = ", ".join(f"{element.change} {part}" for part in parts)
    return f"ALTER TABLE {compiler.preparer.format_table(element.table)} {changes}"
