"""Collections, simhashes with their prefix columns, pages and the SQL functions.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from collections.abc import Sequence

from alembic import op
from sqlalchemy import text

from pgsimhash.layout import THREE_BLOCKS, get_layout
from pgsimhash.statements import LAYOUT_PARTS, schema_statements

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


COMMON = (
    "collections",
    "pages",
    "tasks",
    "functions",
    "policies",
    "forgetting",
    "marks",
    "nearest",
    "triggers",
)


def upgrade() -> None:
    for part in (*COMMON, *LAYOUT_PARTS):
        for statement in schema_statements(f"v0001/{part}.sql", THREE_BLOCKS):
            op.execute(statement)


def downgrade() -> None:
    deployed = op.get_bind().execute(text("SELECT name FROM pgsimhash.layouts")).scalars().all()
    for name in deployed:
        for statement in schema_statements("v0001/drop_layout.sql", get_layout(name)):
            op.execute(statement)
    for statement in schema_statements("v0001/drop.sql", THREE_BLOCKS):
        op.execute(statement)
