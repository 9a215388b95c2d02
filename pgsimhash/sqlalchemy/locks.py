"""A lock that serializes transactions which search a table and insert into it."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import FromClause, Integer, Select, Text, cast, func, inspect, literal, select
from sqlalchemy.dialects import postgresql

_PG_CLASS: Final = 1259
"""The first key of the lock, the oid of pg_class; the second is the oid of the table."""


def simhash_lock(table: type[Any] | FromClause) -> Select[tuple[Any]]:
    """Return a statement that waits for other transactions that executed it for the same table.

    Execute it before you look for near rows and insert. Otherwise two transactions that do so at
    the same time both find none. The lock is held until the transaction ends and blocks nothing
    else. It needs READ COMMITTED, so that the lookup sees rows that were committed meanwhile.

    Args:
        table: an ORM class or a table of SQLAlchemy Core.
    """
    mapped_table: Any = inspect(table).local_table if isinstance(table, type) else table
    parts = [part for part in (mapped_table.schema, mapped_table.name) if part is not None]
    name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    number = cast(cast(literal(name, Text), postgresql.REGCLASS), Integer)
    return select(func.pg_catalog.pg_advisory_xact_lock(literal(_PG_CLASS, Integer), number))
