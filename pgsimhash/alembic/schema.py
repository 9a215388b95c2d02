"""Deploy the schema in revisions of your own history."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlalchemy import Connection, text

from pgsimhash.db.schema_names import configured_schema
from pgsimhash.errors import StoreError, invalid_argument

if TYPE_CHECKING:
    from alembic.migration import MigrationContext
    from alembic.runtime.migration import RevisionStep


class HasContext(Protocol):
    """Alembic's ``op``, as a revision imports it, or your own ``Operations``."""

    def get_context(self) -> MigrationContext:
        """Return the context of the migration."""


def upgrade(
    op: HasContext,
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
        schema: the schema's name; None means PGSIMHASH_SCHEMA, else ``pgsimhash``.
        since: the present revision, for ``--sql``, which cannot ask the database; None means that
            the schema does not exist yet.
        citus: whether Citus keeps a new schema on one of its nodes.
        layout: the layout of a new schema, by default 22+21+21.

    Raises:
        ArgumentError: the name of the schema or layout is invalid, or the database is not
            PostgreSQL.
        SchemaError: this package does not know ``revision``; or the schema, or an object in it,
            belongs to a role that is neither the user, nor granted to the user, nor a superuser.
        StoreError: the connection is not in a transaction (an ``autocommit_block``), or in one that
            failed or is read-only; or the user may not create the schema.
    """
    _migrate(op, revision, schema, since, up=True, citus=citus, layout=layout)


def downgrade(
    op: HasContext,
    revision: str = "base",
    schema: str | None = None,
    *,
    since: str | None = None,
) -> None:
    """Downgrade the schema to ``revision``; do nothing if it has that or an earlier revision.

    ``base`` leaves an empty schema.

    Args:
        op: Alembic's ``op``.
        revision: the last revision to keep.
        schema: see :func:`upgrade`.
        since: the present revision, for ``--sql``; None means the newest that this package knows.

    Raises:
        ArgumentError: see :func:`upgrade`.
        SchemaError: see :func:`upgrade`; or the schema has a revision of a newer package.
        StoreError: see :func:`upgrade`.
    """
    _migrate(op, revision, schema, since, up=False)


def _migrate(
    op: HasContext,
    revision: str,
    schema: str | None,
    since: str | None,
    *,
    up: bool,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    # Imported here because Alembic does not have these when it loads the plugin.
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    from pgsimhash.db import migrate

    outer = op.get_context()
    if outer.dialect.name != "postgresql":
        raise invalid_argument(
            f"the migration is for a {outer.dialect.name} database; call it where op is "
            "connected to PostgreSQL"
        )
    wanted_schema = configured_schema(schema)
    with migrate.refusals_translated():
        scripts = ScriptDirectory.from_config(migrate.config_for(wanted_schema))
        script = scripts.get_revision(revision)
        wanted = "" if script is None else script.revision
        if since is None and not up:
            since = scripts.get_current_head()

        def steps(heads: Any, _context: MigrationContext) -> Iterable[RevisionStep]:
            if up:
                return scripts._upgrade_revs(wanted, heads)
            return scripts._downgrade_revs(wanted or "base", heads)

        options = {
            "version_table": migrate.VERSION_TABLE,
            "version_table_schema": wanted_schema,
            "script": scripts,
            "fn": steps,
        }
        if outer.as_sql:
            script_options = {"output_buffer": outer.output_buffer, "starting_rev": since}
            inner = MigrationContext.configure(
                dialect_name="postgresql",
                # Percent signs are not doubled.
                dialect_opts={"paramstyle": "named"},
                opts={**options, "as_sql": True, **script_options},
            )
            kept: AbstractContextManager[None] = migrate.search_path_kept(inner.execute)
        else:
            connection = outer.connection
            assert isinstance(connection, Connection)
            _check_connection(connection)
            migrate.wait_for_others(connection)
            inner = MigrationContext.configure(connection=connection, opts=options)
            kept = migrate.search_path_kept(lambda statement: connection.execute(text(statement)))
        with kept:
            found = "".join(inner.get_current_heads())
            if (found >= wanted) if up else (found <= wanted):
                return
            migrate.run_revisions(inner, wanted_schema, citus=citus, layout=layout)
            if not up and not wanted:
                # Autogenerate ignores an empty schema.
                table = f'"{wanted_schema}".{migrate.VERSION_TABLE}'
                inner.execute(f"DROP TABLE {table}")


_MARKED: Final = text("SELECT pg_catalog.set_config('pgsimhash.in_transaction', 'yes', true)")

_STATE: Final = text(
    "SELECT pg_catalog.current_setting('pgsimhash.in_transaction', true), "
    "pg_catalog.current_setting('transaction_read_only')"
)


def _check_connection(connection: Connection) -> None:
    connection.execute(_MARKED)
    in_transaction, read_only = connection.execute(_STATE).one()
    if in_transaction != "yes":
        raise StoreError(
            "wrong_transaction",
            "the schema is migrated in one transaction, and the connection "
            "is in none; call it outside of op.get_context().autocommit_block(), and without "
            "isolation_level AUTOCOMMIT",
        )
    if read_only == "on":
        raise StoreError(
            "read_only",
            "the database is read-only; connect to the primary server to migrate",
        )
