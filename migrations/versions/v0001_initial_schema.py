"""Collections, simhashes with their prefix columns, pages and the SQL functions.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from alembic.operations import Operations
from sqlalchemy import text

from pgsimhash.db.schema_names import in_schema
from pgsimhash.db.statements import layout_statements, split_statements
from pgsimhash.search.layout import DEFAULT_LAYOUT, get_layout

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade(op: Operations, schema: str) -> None:
    """Run the script of this revision."""
    _run(op, "0001.sql", schema)


def downgrade(op: Operations, schema: str) -> None:
    """Drop all tables, those of other layouts first.

    A script cannot list the layouts; it drops the tables of the default layout, and fails if there
    are others.
    """
    names = [DEFAULT_LAYOUT.name]
    if op.get_context().as_sql:
        op.execute(in_schema(_NO_OTHER_LAYOUT, schema))
    else:
        rows = op.get_bind().execute(text(in_schema(_LAYOUTS, schema)))
        names = list(rows.scalars())
    for name in names:
        for statement in layout_statements("drop", get_layout(name), schema):
            op.execute(statement)
    _run(op, "0001_drop.sql", schema)


_LAYOUTS = "SELECT name FROM pgsimhash.layouts"

_NO_OTHER_LAYOUT = """
DO $$
BEGIN
    IF (SELECT count(*) FROM pgsimhash.layouts) > 1 THEN
        RAISE EXCEPTION 'there are tables of other layouts'
            USING ERRCODE = 'dependent_objects_still_exist',
            HINT = 'Downgrade with a connection in place of a script: it sees which there are.';
    END IF;
END
$$
"""


def _run(op: Operations, script: str, schema: str) -> None:
    path = files("pgsimhash.migrations.versions").joinpath(script)
    written = in_schema(path.read_text(encoding="utf-8"), schema)
    for statement in split_statements(written):
        op.execute(statement)
