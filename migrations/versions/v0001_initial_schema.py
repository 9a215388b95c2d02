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
from pgsimhash.schema_names import in_schema
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
    schema = _schema()
    names = text(in_schema("SELECT name FROM pgsimhash.layouts", schema))
    for name in op.get_bind().execute(names).scalars().all():
        for statement in layout_statements("drop", get_layout(name), schema):
            op.execute(statement)
    _run("0001_drop.sql")


def _run(script: str) -> None:
    path = files("pgsimhash.migrations.versions").joinpath(script)
    written = in_schema(path.read_text(encoding="utf-8"), _schema())
    for statement in split_statements(written):
        op.execute(statement)


def _schema() -> str:
    schema: str | None = op.get_context().version_table_schema
    assert schema is not None
    return schema
