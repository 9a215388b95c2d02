"""Collections, pages with their prefix columns, and the SQL functions.

Revision ID: 0001
Revises:
"""

from alembic.operations import Operations

from pgsimhash.schema.scripts import drop_statements, schema_script, split_statements
from pgsimhash.search.layout import Layout

revision: str = "0001"
down_revision: str | None = None


def upgrade(op: Operations, schema: str, layout: Layout) -> None:
    """Create the current schema."""
    for statement in split_statements(schema_script(schema, layout)):
        op.execute(statement)


def downgrade(op: Operations, schema: str, layout: Layout) -> None:
    """Drop all objects of the package, with all data."""
    for statement in drop_statements(schema):
        op.execute(statement)
