"""Deploy the package's schema from your own Alembic history.

In a revision::

    import pgsimhash.alembic

    def upgrade():
        pgsimhash.alembic.upgrade(op, revision="0001")

    def downgrade():
        pgsimhash.alembic.downgrade(op)

Both run on your connection and in your transaction, or write to the script of ``--sql``. The schema
records its own revision, as with ``pgsimhash migrate``; your ``alembic_version`` does not contain
it.

For your own tables there are :func:`add_simhash` and :func:`drop_simhash`, also as the operations
``op.add_simhash`` and ``op.drop_simhash``. Alembic has these operations wherever this package is
installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.alembic.own_tables import Op, add_simhash, drop_simhash
from pgsimhash.db.schema_names import configured_schema
from pgsimhash.errors import StoreError, invalid_argument

if TYPE_CHECKING:
    from alembic.migration import MigrationContext

__all__ = ["add_simhash", "downgrade", "drop_simhash", "upgrade"]


def upgrade(
    op: Op,
    revision: str = "0001",
    schema: str | None = None,
    *,
    since: str | None = None,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    """Upgrade the schema to ``revision``; do nothing if it has that or a later revision.

    Args:
        op: Alembic's ``op``.
        revision: the last revision to apply. Name one, so that your history always does the same.
        schema: see :func:`pgsimhash.schema.migrate.upgrade`, also for more errors.
        since: the present revision, for ``--sql``, which cannot ask the database; None means that
            the schema does not exist yet.
        citus: see there.
        layout: see there.

    Raises:
        StoreError: the connection is not in a transaction (an ``autocommit_block``), or in one that
            failed or is read-only.
    """
    _migrate(op, revision, schema, since, up=True, citus=citus, layout=layout)


def downgrade(
    op: Op,
    revision: str = "base",
    schema: str | None = None,
    *,
    since: str | None = None,
    layout: str | None = None,
) -> None:
    """Downgrade the schema to ``revision``; do nothing if it has that or an earlier revision.

    ``base`` leaves an empty schema.

    Args:
        op: Alembic's ``op``.
        revision: the last revision to keep.
        schema: see :func:`upgrade`.
        since: the present revision, for ``--sql``; None means the newest that this package knows.
        layout: the layout of the schema, for ``--sql``, by default 22+21+21.

    Raises:
        SchemaError: the schema has a revision of a newer package. Others as for :func:`upgrade`.
    """
    _migrate(op, revision, schema, since, up=False, layout=layout)


def _migrate(
    op: Op,
    revision: str,
    schema: str | None,
    since: str | None,
    *,
    up: bool,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    from pgsimhash.schema import migrate

    outer: MigrationContext = op.get_context()
    if outer.dialect.name != "postgresql":
        raise invalid_argument(
            f"the migration is for a {outer.dialect.name} database; call it where op is "
            "connected to PostgreSQL"
        )
    name = configured_schema(schema)
    with migrate.refusals_translated():
        revisions = migrate.known_revisions()
        script = revisions.get_revision(revision)
        target = "" if script is None else script.revision
        if since is None and not up:
            since = revisions.get_current_head()
        # A script has none.
        connection = None if outer.as_sql else outer.connection
        # Every driver of SQLAlchemy has this attribute.
        driver = None if connection is None else connection.connection.dbapi_connection
        if getattr(driver, "autocommit", False):
            raise StoreError(
                "wrong_transaction",
                "the schema is migrated in one transaction, and the connection is in none; call it "
                "outside of op.get_context().autocommit_block(), and without isolation_level "
                "AUTOCOMMIT",
            )
        inner = migrate.context_for(
            target or "base",
            name,
            up=up,
            connection=connection,
            script=outer.output_buffer,
            since=since,
        )
        with migrate.search_path_kept(inner.execute):
            present = "".join(inner.get_current_heads())
            if (present >= target) if up else (present <= target):
                if up:
                    migrate.layout_of(inner, name, layout)
                if not up or not migrate.functions_differ(inner, name):
                    return
            migrate.run_revisions(inner, name, citus=citus, layout=layout)
            if not up and not target:
                # Autogenerate ignores an empty schema.
                inner.execute(f'DROP TABLE "{name}".{migrate.VERSION_TABLE}')
