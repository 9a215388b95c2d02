"""Collections, simhashes with their prefix columns, pages and the SQL functions.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from alembic import op
from sqlalchemy import text

from pgsimhash.layout import get_layout
from pgsimhash.statements import layout_statements, split_statements

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Run the script as it was when this revision was released."""
    _run("0001.sql")


def downgrade() -> None:
    """Drop what is there, the tables of all layouts first."""
    deployed = op.get_bind().execute(text("SELECT name FROM pgsimhash.layouts")).scalars().all()
    for name in deployed:
        for statement in layout_statements("drop", get_layout(name)):
            op.execute(statement)
    _run("0001_drop.sql")


def _run(script: str) -> None:
    path = files("pgsimhash.migrations.versions").joinpath(script)
    for statement in split_statements(path.read_text(encoding="utf-8")):
        op.execute(statement)
