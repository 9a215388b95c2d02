"""The tables as SQLAlchemy sees them, for queries and for Alembic's comparison.

They describe what the migrations made; the migrations do not read them.
"""

from __future__ import annotations

from pgsimhash.statements import SCHEMA, schema_comments
from pgsimhash.tables import decided
from pgsimhash.tables.collected import simhashes
from pgsimhash.tables.schema import metadata

__all__ = ["decided", "metadata", "simhashes"]

for (_table, _column), _comment in schema_comments().items():
    _described = metadata.tables[f"{SCHEMA}.{_table}"]
    if _column:
        _described.c[_column].comment = _comment
    else:
        _described.comment = _comment
