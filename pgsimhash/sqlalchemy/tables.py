"""The tables as SQLAlchemy metadata, for queries and for Alembic's comparison.

They describe the result of the migrations, which do not read them.
"""

from __future__ import annotations

from sqlalchemy import Computed, MetaData, text

from pgsimhash.db.schema_names import SCHEMA, in_schema
from pgsimhash.db.statements import schema_comments
from pgsimhash.sqlalchemy import setting_tables as decided
from pgsimhash.sqlalchemy.collection_tables import simhashes
from pgsimhash.sqlalchemy.table_schema import metadata

__all__ = ["decided", "metadata", "metadata_in", "simhashes"]

for (_table, _column), _comment in schema_comments().items():
    _described = metadata.tables[f"{SCHEMA}.{_table}"]
    if _column:
        _described.c[_column].comment = _comment
    else:
        _described.comment = _comment


def metadata_in(schema: str) -> MetaData:
    """Return the metadata of the same tables in another schema."""
    if schema == SCHEMA:
        return metadata
    moved = MetaData(schema=schema)
    for table in metadata.tables.values():
        for column in table.to_metadata(moved, schema=schema).columns:
            if isinstance(column.computed, Computed):
                column.computed.sqltext = text(in_schema(str(column.computed.sqltext), schema))
    return moved
