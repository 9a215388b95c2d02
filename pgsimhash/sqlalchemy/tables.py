"""Define the package's tables for SQLAlchemy, and the lock of a table of your own.

The tables are read from ``sql/tables.sql``, so a column is written once.
"""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, func, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import SchemaItem

from pgsimhash.db.schema_names import SCHEMA, in_schema
from pgsimhash.db.scripts import read_sql, schema_comments, split_statements
from pgsimhash.sqlalchemy.simhash_type import SIMHASH

metadata = sa.MetaData(schema=SCHEMA)

_TYPES: Final[dict[str, Any]] = {
    "bigint": BigInteger,
    "bigint[]": postgresql.ARRAY(BigInteger),
    "boolean": sa.Boolean,
    "bytea": sa.LargeBinary,
    "integer": Integer,
    "interval": sa.Interval,
    "smallint": sa.SmallInteger,
    "text": Text,
    "timestamptz": sa.DateTime(timezone=True),
}

_SIMHASHES: Final = (("pages", "simhash"), ("pages", "structure"))

_TABLE: Final = re.compile(r"CREATE TABLE pgsimhash\.(\w+) \((.*?)\n\)", re.DOTALL)
_INDEX: Final = re.compile(
    r"CREATE INDEX (\w+)\s+ON pgsimhash\.(\w+) \((.*?)\)(?:\s+WHERE (.*))?$", re.DOTALL
)
_COLUMN: Final = re.compile(
    r"(\w+) (\S+)( NOT NULL)?(?: DEFAULT (\S+))?"
    r"(?: GENERATED (ALWAYS|BY DEFAULT) AS (?:IDENTITY|\((.*)\) STORED))?",
    re.DOTALL,
)


def _read_tables() -> None:
    """Add the tables and indexes of sql/tables.sql to the metadata, with their comments."""
    comments = schema_comments()
    for statement in split_statements(read_sql("tables.sql")):
        bare = re.sub(r"\s*--.*", "", statement).strip()
        if table := _TABLE.match(bare):
            name, body = table.groups()
            parts = re.split(r",\n    (?=\S)", body.strip())
            items = [_item(name, part, comments) for part in parts if " CHECK (" not in part]
            Table(name, metadata, *items, comment=comments[name, ""])
        elif index := _INDEX.match(bare):
            name, on, columns, condition = index.groups()
            keys = [text(key) if "(" in key else key for key in columns.split(", ")]
            where = None if condition is None else text(condition)
            made = Index(
                name, *keys, postgresql_where=where, _table=metadata.tables[f"{SCHEMA}.{on}"]
            )
            assert made.table is not None


def _item(table: str, part: str, comments: dict[tuple[str, str], str]) -> SchemaItem:
    """Return a column or a constraint."""
    if part.startswith("CONSTRAINT "):
        _, name, kind, rest = part.split(maxsplit=3)
        columns = rest[rest.index("(") + 1 : rest.index(")")].split(", ")
        if kind == "PRIMARY":
            return sa.PrimaryKeyConstraint(*columns, name=name)
        if kind == "FOREIGN":
            referred = [f"{SCHEMA}.collections.{column}" for column in columns]
            return sa.ForeignKeyConstraint(columns, referred, name=name)
        return sa.UniqueConstraint(*columns, name=name)
    found = _COLUMN.fullmatch(part)
    assert found is not None, part
    name, kind, needed, default, generated, expression = found.groups()
    extra: list[SchemaItem] = []
    if expression is not None:
        extra = [sa.Computed(expression.strip(), persisted=True)]
    elif generated is not None:
        extra = [sa.Identity(always=generated == "ALWAYS")]
    return Column(
        name,
        SIMHASH() if (table, name) in _SIMHASHES else _TYPES[kind],
        *extra,
        nullable=needed is None and not (generated and expression is None),
        server_default=None if default is None else text(default),
        comment=comments[table, name],
    )


_read_tables()

collections, pages, last_seen, runs, sources, policies, marks, clusters = (
    metadata.tables[f"{SCHEMA}.{name}"]
    for name in (
        *("collections", "pages", "last_seen", "runs"),
        *("sources", "policies", "marks", "clusters"),
    )
)


def metadata_in(schema: str) -> sa.MetaData:
    """Return the metadata of the same tables in another schema."""
    if schema == SCHEMA:
        return metadata
    moved = sa.MetaData(schema=schema)
    for table in metadata.tables.values():
        for column in table.to_metadata(moved, schema=schema).columns:
            if isinstance(column.computed, sa.Computed):
                column.computed.sqltext = text(in_schema(str(column.computed.sqltext), schema))
    return moved


_PG_CLASS: Final = 1259
"""The first key of the lock, the oid of pg_class; the second is the oid of the table."""


def simhash_lock(table: type[Any] | sa.FromClause) -> sa.Select[tuple[Any]]:
    """Return a statement that waits for other transactions that executed it for the same table.

    Execute it before you look for near rows and insert. Otherwise two transactions that do so at
    the same time both find none. The lock is held until the transaction ends and blocks nothing
    else. It needs READ COMMITTED, so that the lookup sees rows that were committed meanwhile.

    Args:
        table: an ORM class or a table of SQLAlchemy Core.
    """
    mapped_table: Any = sa.inspect(table).local_table if isinstance(table, type) else table
    parts = [part for part in (mapped_table.schema, mapped_table.name) if part is not None]
    name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    number = sa.cast(sa.cast(sa.literal(name, Text), postgresql.REGCLASS), Integer)
    return sa.select(func.pg_catalog.pg_advisory_xact_lock(sa.literal(_PG_CLASS, Integer), number))
