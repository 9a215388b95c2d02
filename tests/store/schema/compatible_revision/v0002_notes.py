"""Pages and other rows have a note, and `find` a limit.

Not a revision of the package: it is the model of one that is compatible with the previous one, and
tests/store/schema/test_compatible_revision.py runs it.

Revision ID: 0002
Revises: 0001
"""

from alembic.operations import Operations

from pgsimhash.schema.scripts import schema_script
from pgsimhash.search.layout import Layout
from tests.store.schema import next_release
from tests.store.schema.replacing import lock_statement, replace_statements

revision: str = "0002"
down_revision: str | None = "0001"

_TABLES = "collections", "last_seen", "marks", "pages", "policies", "redirects", "runs", "sources"
_RECREATED = "find", "verdict", "add_page", "add_pages", "decide_pages"


def upgrade(op: Operations, schema: str, layout: Layout) -> None:
    script = schema_script(schema, layout, tables=False)
    replaced = replace_statements(script, schema, recreated=_RECREATED)
    _run(op, schema, replaced, "ADD COLUMN note text")


def downgrade(op: Operations, schema: str, layout: Layout) -> None:
    # A released revision has this script as a file.
    with next_release.package_at("0001"):
        script = schema_script(schema, layout, tables=False)
    recreated = *_RECREATED, "note"
    replaced = replace_statements(script, schema, recreated=recreated, dropped=r"_\w+_2")
    _run(op, schema, replaced, "DROP COLUMN note")


def _run(op: Operations, schema: str, replaced: list[str], change: str) -> None:
    changes = [f'ALTER TABLE "{schema}".{table} {change}' for table in _TABLES]
    for statement in (*replaced, lock_statement(schema, *_TABLES), *changes):
        op.execute(statement)
