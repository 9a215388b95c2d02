"""What a table of the project's own has already: columns of a failed try, indexes by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Computed, Table, inspect, text
from sqlalchemy.dialects.postgresql.base import PGDialect

from pgsimhash.errors import StoreError

if TYPE_CHECKING:
    from alembic.migration import MigrationContext


def has_columns(context: MigrationContext, table: Table, column: str, layout: str) -> bool:
    """Whether the columns are there, from a try that failed later.

    Raises:
        StoreError: other columns have the names.
    """
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
                "other_table",
                f"the table {table.fullname} has columns with the names of {column} and its "
                f"prefixes, and they are not those of layout {layout!r}; drop them, or give "
                "the column another name",
            )
        if each.name == column and present[each.name][1] and not each.nullable:
            raise StoreError(
                "other_table",
                f"the column {column} of the table {table.fullname} is there, and may be "
                "NULL; leave out nullable=False, and say op.alter_column(..., nullable=False) once "
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
    # By the names by which CREATE INDEX and DROP INDEX go.
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
    """Return by name which of a table's indexes are there, and whether each can be used.

    Raises:
        StoreError: something else has the name of one.
    """
    assert context.connection is not None
    preparer, schema = _preparer(), table.schema
    found = {}
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
                    "other_table",
                    f"{other} is not the index of this name on the simhashes of {table.fullname}; "
                    "rename it, or give the column another name, or say schema= if it is elsewhere",
                )
            found[str(index.name)] = valid
    return found


def _preparer() -> Any:
    # Of the driver's own, names would have their percent signs doubled.
    return PGDialect(paramstyle="named").identifier_preparer  # type: ignore[no-untyped-call]


def check_not_partitioned(context: MigrationContext, table: Table) -> None:
    """Refuse what PostgreSQL cannot do to a partitioned table.

    Raises:
        StoreError: it is one.
    """
    assert context.connection is not None
    named = {"table": _preparer().format_table(table)}
    if context.connection.scalar(_PARTITIONED, named):
        raise StoreError(
            "partitioned_table",
            f"the table {table.fullname} is partitioned, and PostgreSQL neither builds nor drops "
            "indexes of such tables beside writers; leave out concurrently=True",
        )
