"""Collections, simhashes with their prefix columns, pages and the SQL functions.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from collections.abc import Sequence

from alembic import op

from pgsimhash.layout import THREE_BLOCKS
from pgsimhash.statements import schema_statements

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for part in ("collections", "simhashes", "pages", "functions"):
        for statement in schema_statements(f"v0001/{part}.sql", THREE_BLOCKS):
            op.execute(statement)


def downgrade() -> None:
    for statement in schema_statements("v0001/drop.sql", THREE_BLOCKS):
        op.execute(statement)
