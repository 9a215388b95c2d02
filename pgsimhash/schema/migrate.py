"""Deploy the schema with Alembic."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.resources import files
from typing import Any, Final

import psycopg
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, Text, cast, create_engine, func, select, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from pgsimhash.db import server_errors
from pgsimhash.db.connections import open_connection
from pgsimhash.db.schema_names import configured_schema, in_schema, read_sql
from pgsimhash.errors import SchemaError, StoreError, install_command, invalid_argument
from pgsimhash.schema.deployed import is_compatible, is_other_build
from pgsimhash.schema.scripts import drop_statements, schema_script, split_statements
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, get_layout

__all__ = ["upgrade"]

VERSION_TABLE: Final = "alembic_version"

MIGRATION_LOCK: Final = 0x7067_7369_6D68_6173
"""The advisory lock of migrations, so that only one runs at a time."""

# DO prints nothing, unlike SELECT.
_COPIED_SETTING: Final = (
    "DO $$ BEGIN PERFORM pg_catalog.set_config('{}', pg_catalog.current_setting('{}'), true); "
    "END $$"
)
_PINNED: Final = "SET LOCAL search_path = pg_catalog, pg_temp"


def upgrade(
    dsn: str,
    revision: str = "head",
    *,
    schema: str | None = None,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    """Upgrade the schema of the database at ``dsn`` to ``revision``.

    Args:
        dsn: the database.
        revision: the last revision to apply.
        schema: the schema's name; None means PGSIMHASH_SCHEMA, else ``pgsimhash``.
        citus: whether Citus keeps a new schema on one of its nodes.
        layout: the layout of a new schema, by default 22+21+21; the expected one of an existing
            schema.

    Raises:
        NoServerError: no server answers at ``dsn``.
        SchemaError: this package does not know the schema's revision; or the schema, or an object
            in it, belongs to a role that is neither the user, nor granted to the user, nor a
            superuser.
        StoreError: the user may not change the schema; or the schema has another layout.
    """
    with _connected(dsn) as context:
        migrate_within(context, revision, schema, citus=citus, layout=layout)


def downgrade(dsn: str, revision: str = "base", *, schema: str | None = None) -> None:
    """Downgrade the schema to ``revision``; ``base`` leaves an empty one. See :func:`upgrade`."""
    with _connected(dsn) as context:
        migrate_within(context, revision, schema, up=False)


def upgrade_sql(
    *,
    since: str | None = None,
    transaction: bool = True,
    schema: str | None = None,
    citus: bool = False,
    layout: str | None = None,
) -> str:
    """Return the SQL script that deploys the schema, or upgrades it to the newest revision.

    It upgrades from the revision ``since``; the text is empty if that is the newest one. Without
    ``transaction``, run it in your own transaction; it restores the search_path. A script cannot
    ask for the ``layout``. The other arguments are those of :func:`upgrade`.
    """
    output = io.StringIO()
    with refusals_translated():
        if since is not None and since == known_revisions().get_current_head():
            return ""
        context = _configured(None, {"as_sql": True, "output_buffer": output})
        with context.begin_transaction() if transaction else nullcontext():
            migrate_within(context, "head", schema, since=since, citus=citus, layout=layout)
    return output.getvalue()


def migrate_within(
    outer: MigrationContext,
    revision: str,
    schema: str | None,
    *,
    since: str | None = None,
    up: bool = True,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    """Upgrade or downgrade the schema in the transaction or the script of another context.

    A schema that is already there, or further, stays. See :func:`upgrade` and :func:`upgrade_sql`.
    """
    name = configured_schema(schema)
    if outer.dialect.name != "postgresql":
        raise invalid_argument(
            f"the migration is for a {outer.dialect.name} database; call it where op is "
            "connected to PostgreSQL"
        )
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
    revisions = known_revisions()

    def steps(heads: Any, _context: MigrationContext) -> Iterable[RevisionStep]:
        present = "".join(heads)
        if not up and present < target:
            raise SchemaError(
                "missing",
                "the schema is not in this database, or is older than the revision to go back to; "
                "check the DSN and the schema's name",
            )
        if (present >= target) if up else (present <= target):
            return []
        # What Alembic's own commands call.
        step = revisions._upgrade_revs if up else revisions._downgrade_revs
        return step(target or "base", heads)

    with refusals_translated():
        newest = revisions.get_current_head() or ""
        target = newest if revision == "head" else _revision_id(revisions, revision)
        options: dict[str, Any] = {
            "version_table": VERSION_TABLE,
            "version_table_schema": name,
            "script": revisions,
            "fn": steps,
        }
        if connection is None:
            begin = _revision_id(revisions, since) if since else ("" if up else newest)
            options |= {"starting_rev": begin or None}
            options |= {"as_sql": True, "output_buffer": outer.output_buffer}
        inner = _configured(connection, options)
        inner.execute(_COPIED_SETTING.format("pgsimhash.search_path", "search_path"))
        inner.execute(_PINNED)
        run_revisions(inner, name, citus=citus, layout=layout)
        present = "".join(inner.get_current_heads())
        is_newer = revision == "head" and present > target
        if connection and is_newer and not is_compatible(present, _build_of(connection, name)):
            # Raises, because only a newer package has it.
            revisions.get_revision(present)
        if not up and not target:
            # Autogenerate ignores an empty schema; some versions of Alembic drop it themselves.
            inner.execute(in_schema("DROP TABLE IF EXISTS pgsimhash.alembic_version", name))
        inner.execute(_COPIED_SETTING.format("search_path", "pgsimhash.search_path"))


def _revision_id(revisions: ScriptDirectory, name: str) -> str:
    """Return the id of a revision, which sorts with others; that of ``base`` is empty."""
    ids = ["base", *(script.revision for script in revisions.walk_revisions())]
    if name not in ids:
        raise invalid_argument(
            f"pgsimhash has no revision {name!r}; it has: {', '.join(ids)}; for a newer one, "
            f"upgrade {install_command()}"
        )
    return "" if name == "base" else name


def known_revisions() -> ScriptDirectory:
    """Return this package's revisions."""
    return ScriptDirectory(str(files("pgsimhash.migrations")))


def _configured(connection: Connection | None, options: dict[str, Any]) -> MigrationContext:
    return MigrationContext.configure(
        connection=connection,
        dialect_name="postgresql",
        # Any other style would double the percent signs in a script.
        dialect_opts={"paramstyle": "named"},
        opts=options,
    )


def engine_for(dsn: str) -> Engine:
    """Return a SQLAlchemy engine for ``dsn`` in any form of libpq."""

    def connect() -> psycopg.Connection:
        connection = open_connection(dsn)
        # A migration that waited for another one must see its changes.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        # SQLAlchemy first calls current_schema(), under the user's search_path. Its transaction
        # begins here, and ends later.
        try:
            connection.execute(_PINNED)
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(
        "postgresql+psycopg://",
        creator=connect,
        poolclass=NullPool,
        # Finding hstore would look up names before search_path is set.
        use_native_hstore=False,
    )


@contextmanager
def _connected(dsn: str) -> Iterator[MigrationContext]:
    with refusals_translated(), engine_for(dsn).begin() as connection:
        yield _configured(connection, {})


def run_revisions(
    context: MigrationContext, schema: str, *, citus: bool = False, layout: str | None = None
) -> None:
    """Run the revisions of ``context`` in a schema whose owner is trusted.

    Until the transaction ends, no other migration runs.
    """
    connection = None if context.as_sql else context.connection
    if connection is not None:
        connection.execute(select(func.pg_catalog.pg_advisory_xact_lock(MIGRATION_LOCK)))
    # Alembic creates its version table in the schema, so the schema must exist first.
    foreign_objects = read_sql("foreign_objects.sql").strip()
    for file in ("citus.sql", "schema.sql") if citus else ("schema.sql",):
        script = read_sql(file).replace("${foreign_objects}", foreign_objects)
        for statement in split_statements(in_schema(script, schema)):
            context.execute(statement)
    present = _layout_of(connection, schema, layout)
    context.run_migrations(op=Operations(context), schema=schema, layout=present)
    if connection is None or context.get_current_heads() != (known_revisions().get_current_head(),):
        return
    if is_other_build(_build_of(connection, schema), schema):
        created = split_statements(schema_script(schema, present, tables=False))
        for statement in (*drop_statements(schema, tables=False), *created):
            context.execute(statement)


def _build_of(connection: Connection, schema: str) -> str | None:
    *_, body = connection.exec_driver_sql(in_schema(read_sql("deployed.sql"), schema)).one()
    return None if body is None else str(body)


def _layout_of(connection: Connection | None, schema: str, layout: str | None) -> Layout:
    requested = get_layout(layout or DEFAULT_LAYOUT.name)
    function = in_schema("pgsimhash.layout()", schema)
    deployed = select(cast(func.pg_catalog.to_regprocedure(function), Text))
    if connection is None or connection.scalar(deployed) is None:
        return requested
    present = get_layout(str(connection.scalar(text(f"SELECT {function}"))))
    if layout is not None and present != requested:
        raise StoreError(
            "unsuitable",
            f"schema {schema} has layout {present.name!r}, not {layout!r}; deploy a second schema "
            "(--schema NAME), and move collections by pgsimhash collection rebuild --into-schema",
        )
    return present


@contextmanager
def refusals_translated() -> Iterator[None]:
    """Translate errors of Alembic and the server inside the block to this package's errors."""
    try:
        yield
    except CommandError as error:
        raise SchemaError(
            "newer",
            f"this version of pgsimhash cannot migrate: {error}; upgrade {install_command()}",
        ) from error
    except DBAPIError as error:
        original: Any = error.orig
        # A project may use another driver than psycopg 3.
        words = server_errors.server_words(original) if isinstance(original, psycopg.Error) else ""
        words = words or server_errors.first_line(original)
        state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None) or ""
        known = server_errors.BY_STATE.get(state, _OTHER)
        translation = _NOT_PERMITTED if state == "42501" else known
        # SQLAlchemy does not look for a lost connection in its first statements.
        is_lost = isinstance(error, OperationalError) and server_errors.is_cut(state)
        if error.connection_invalidated or is_lost:
            translation = server_errors.LOST
        raise server_errors.raised_by_schema(state, words) or translation.about(words) from error


_OTHER: Final = server_errors.Translation(
    "refused",
    "the database refuses to migrate, and nothing changed",
    "correct that, and migrate again",
)
_NOT_PERMITTED: Final = server_errors.Translation(
    "not_permitted",
    "the database refuses to migrate",
    "connect as a user who may create a schema in it; or have an administrator run CREATE "
    "SCHEMA ... AUTHORIZATION for this user, or the script that `pgsimhash migrate --sql` "
    "prints",
)
