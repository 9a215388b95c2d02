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
        indexes: whether to create the indexes. Without, create them by ``op.create_index``, for
            example concurrently.
    """
    changed = _alter(op, "ADD COLUMN", table, column, layout, schema, nullable=nullable)
    if indexes:
        for index in sorted(changed.indexes, key=lambda index: str(index.name)):
            op.get_context().impl.create_index(index)


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
    _alter(op, "DROP COLUMN", table, column, layout, schema)


def _alter(
    op: Op,
    change: str,
    name: str,
    column: str,
    layout: str,
    schema: str | None,
    *,
    nullable: bool = True,
) -> Table:
    """Add or drop columns in one statement; return a table of only these, with their indexes."""
    from pgsimhash.sqlalchemy import SIMHASH

    context = op.get_context()
    # The conventions of your metadata name the indexes.
    metadata = SchemaObjects(context).metadata()
    simhash: Column[int] = Column(column, SIMHASH(layout), nullable=nullable)
    table = Table(name, metadata, simhash, schema=schema)
    # It does not double percent signs; DDL does so where the driver needs it.
    plain = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
    quoted = plain.identifier_preparer
    if change == "ADD COLUMN":
        parts = [str(CreateColumn(each).compile(dialect=plain)) for each in table.c]
    else:
        # Generated columns first.
        parts = [quoted.format_column(each) for each in reversed(table.c.values())]
    changes = ", ".join(f"{change} {part}" for part in parts)
    statement = f"ALTER TABLE {quoted.format_table(table)} {changes}".replace("%", "%%")
    context.impl.execute(DDL(statement))  # type: ignore[no-untyped-call]
    return table
