"""Add simhash columns to your own tables, and drop them."""

from types import ModuleType

from alembic.operations import Operations
from alembic.operations.schemaobj import SchemaObjects
from sqlalchemy import DDL, Column, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateColumn

from pgsimhash.search.layout import DEFAULT_LAYOUT

Op = ModuleType | Operations
"""Alembic's ``op``, as a revision imports it, or your own ``Operations``."""


def add_simhash(
    op: Op,
    table: str,
    column: str = "simhash",
    layout: str = DEFAULT_LAYOUT.name,
    schema: str | None = None,
    *,
    nullable: bool = True,
    indexes: bool = True,
) -> None:
    """Add a :class:`pgsimhash.sqlalchemy.SIMHASH` column with its prefix columns and indexes.

    One ALTER TABLE adds the columns and rewrites the table once.

    Args:
        op: Alembic's ``op``.
        table: your table.
        column: the name of the simhash column.
        layout: the layout of the prefix columns.
        schema: the table's schema; None means the first of the search_path.
        nullable: whether rows may have no simhash. It must be true if the table has rows.
        indexes: whether to create the indexes; else do so by ``op.create_index``, concurrently.
    """
    added, impl = _columns(op, table, column, layout, schema, nullable), op.get_context().impl
    # It does not double percent signs; DDL does so where the driver needs it.
    plain = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    parts = ", ".join(f"ADD COLUMN {CreateColumn(each).compile(dialect=plain)}" for each in added.c)
    statement = f"ALTER TABLE {plain.identifier_preparer.format_table(added)} {parts}"
    impl.execute(DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]
    if indexes:
        for index in sorted(added.indexes, key=lambda index: str(index.name)):
            impl.create_index(index)


def drop_simhash(
    op: Op,
    table: str,
    column: str = "simhash",
    layout: str = DEFAULT_LAYOUT.name,
    schema: str | None = None,
) -> None:
    """Drop the columns of :func:`add_simhash`, with their indexes.

    The arguments and errors are the same.
    """
    # Generated columns first.
    for name in reversed(_columns(op, table, column, layout, schema).c.keys()):
        op.drop_column(table, name, schema=schema)


def _columns(
    op: Op, name: str, column: str, layout: str, schema: str | None, nullable: bool = True
) -> Table:
    """Return a table of only these columns, with their indexes."""
    from pgsimhash.sqlalchemy import SIMHASH

    # The conventions of your metadata name the indexes.
    metadata = SchemaObjects(op.get_context()).metadata()
    simhash: Column[int] = Column(column, SIMHASH(layout), nullable=nullable)
    return Table(name, metadata, simhash, schema=schema)
