"""The host of https://example.com./ is example.com, and pages count their Markdown.

Not a revision of the package: tests/store/schema/test_revisions.py runs it after the newest one. It
changes the function of a stored generated column, and adds a column that has to be filled.

Revision ID: 0002
Revises: 0001
"""

from alembic.operations import Operations

from pgsimhash.db.schema_names import in_schema, read_sql
from pgsimhash.schema.scripts import split_statements
from pgsimhash.search.layout import Layout

revision: str = "0002"
down_revision: str | None = "0001"

# PostgreSQL computes the column again when its URL is updated.
_HOSTS_AGAIN = "UPDATE pgsimhash.pages SET url = url WHERE url ~ '^[^/]*//[^/]*[.](:|/|$)'"

_UP = """
ALTER TABLE pgsimhash.pages ADD COLUMN markdown_chars integer;

COMMENT ON COLUMN pgsimhash.pages.markdown_chars IS 'How many characters its Markdown has.';

UPDATE pgsimhash.pages SET markdown_chars = length(markdown) WHERE markdown IS NOT NULL;
"""


def upgrade(op: Operations, schema: str, layout: Layout) -> None:
    now = _host_of()
    trimmed = now.replace("RETURN CASE", "RETURN rtrim(CASE").removesuffix("END") + "END, '.')"
    for statement in (*split_statements(_UP), trimmed, _HOSTS_AGAIN):
        op.execute(in_schema(statement, schema))


def downgrade(op: Operations, schema: str, layout: Layout) -> None:
    dropped = "ALTER TABLE pgsimhash.pages DROP COLUMN markdown_chars"
    for statement in (_host_of(), _HOSTS_AGAIN, dropped):
        op.execute(in_schema(statement, schema))


def _host_of() -> str:
    """The function of the previous revision."""
    (created,) = (part for part in split_statements(read_sql("tables.sql")) if _CREATED in part)
    return created[created.index(_CREATED) :].replace("CREATE", "CREATE OR REPLACE", 1)


_CREATED = "CREATE FUNCTION pgsimhash.host_of"
