"""The lock by which transactions search and insert into a table one after the other."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import FromClause, Integer, Select, Text, cast, func, inspect, literal, select
from sqlalchemy.dialects import postgresql

_PG_CLASS: Final = 1259
"""The first key of the lock, the number of pg_class; the second is the number of the table."""


def simhash_lock(table: type[Any] | FromClause) -> Select[tuple[Any]]:
    """Return a statement that waits for other transactions that executed it for the same table.

    Execute it before you look for near rows and insert. Otherwise two transactions that do so at
    the same time both find nothing near. It holds until the transaction ends, locks nobody else
    out, and needs READ COMMITTED, so that the lookup sees what was committed meanwhile.

    Args:
        table: an ORM class or a table of SQLAlchemy Core.
    """
    found: Any = inspect(table).local_table if isinstance(table, type) else table
    parts = [part for part in (found.schema, found.name) if part is not None]
    name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    number = cast(cast(literal(name, Text), postgresql.REGCLASS), Integer)
    return select(func.pg_catalog.pg_advisory_xact_lock(literal(_PG_CLASS, Integer), number))
