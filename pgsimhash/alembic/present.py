"""Inspect your table for columns of a failed attempt and for indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Computed, Table, inspect, text
from sqlalchemy.dialects.postgresql.base import PGDialect

from pgsimhash.errors import StoreError

if TYPE_CHECKING:
    from alembic.migration import MigrationContext


def has_columns(context: MigrationContext, table: Table, column: str, layout: str) -> bool:
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


def present_indexes(context: MigrationContext, table: Table) -> dict[str, bool]:
    """Return the existing indexes of a table by name, and whether each is usable."""
    assert context.connection is not None
    preparer, schema = _preparer(), table.schema
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


def _preparer() -> Any:
    # A driver's own preparer may double percent signs.
    return PGDialect(paramstyle="named").identifier_preparer  # type: ignore[no-untyped-call]


def check_not_partitioned(context: MigrationContext, table: Table) -> None:
    """Refuse operations that PostgreSQL does not support on a partitioned table."""
    assert context.connection is not None
    named = {"table": _preparer().format_table(table)}
    if context.connection.scalar(_PARTITIONED, named):
        raise StoreError(
            "unsuitable",
            f"the table {table.fullname} is partitioned, and PostgreSQL cannot build or drop "
            "indexes of such tables concurrently; omit concurrently=True",
        )
