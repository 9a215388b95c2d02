"""Deploy the schema with Alembic."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TextIO

import psycopg
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, Text, cast, create_engine, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from pgsimhash.db.connection import open_connection
from pgsimhash.db.schema_names import configured_schema, in_schema, read_sql
from pgsimhash.db.server_errors import LOST, Translation, raised_by_schema, server_words
from pgsimhash.errors import SchemaError, StoreError, install_command, invalid_argument
from pgsimhash.log import logger
from pgsimhash.schema.deployed import is_compatible, is_other_build
from pgsimhash.schema.scripts import drop_statements, schema_script, split_statements
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, get_layout

if TYPE_CHECKING:
    from alembic.runtime.migration import RevisionStep

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
    _run(dsn, revision, schema, up=True, citus=citus, layout=layout)


def downgrade(dsn: str, revision: str = "base", *, schema: str | None = None) -> None:
    """Downgrade the schema of the database at ``dsn`` to ``revision`` (``base``: no tables).

    The empty schema and Alembic's version table in it remain. Errors are those of :func:`upgrade`.

    Args:
        dsn: the database.
        revision: the last revision to keep.
        schema: see :func:`upgrade`.
    """
    _run(dsn, revision, schema, up=False)


def upgrade_sql(
    *,
    since: str | None = None,
    transaction: bool = True,
    schema: str | None = None,
    citus: bool = False,
    layout: str | None = None,
) -> str:
    """Return the SQL script that deploys the schema, or upgrades it to the newest revision.

    Args:
        since: the revision of an existing schema, whose upgrade is returned: an empty text if it is
            the newest one. None means an empty database.
        transaction: whether the script begins and commits a transaction. Without, run it in your
            own transaction; it restores the search_path.
        schema: see :func:`upgrade`.
        citus: see :func:`upgrade`.
        layout: the layout of the schema, which a script cannot ask for; by default 22+21+21.
    """
    name = configured_schema(schema)
    if since is not None:
        _check_revision(since)
        if since == known_revisions().get_current_head():
            return ""
    output = io.StringIO()
    context = context_for("head", name, script=output, since=since)
    with context.begin_transaction() if transaction else search_path_kept(context.execute):
        run_revisions(context, name, citus=citus, layout=layout)
    return output.getvalue()


def _run(
    dsn: str,
    revision: str,
    schema: str | None,
    *,
    up: bool,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    name = configured_schema(schema)
    if revision != "head":
        _check_revision(revision)
    with refusals_translated(), engine_for(dsn).begin() as connection:
        logger.info("%s to revision %s", "upgrade" if up else "downgrade", revision)
        # SQLAlchemy ended the transaction in which it was pinned first.
        connection.exec_driver_sql(_PINNED)
        context = context_for(revision, name, up=up, connection=connection)
        present = "".join(context.get_current_heads())
        if up and revision == "head" and is_compatible(present, _build_of(connection, name)):
            return
        run_revisions(context, name, citus=citus, layout=layout)


def _check_revision(revision: str) -> None:
    known = ["base", *(script.revision for script in known_revisions().walk_revisions())]
    if revision not in known:
        raise invalid_argument(
            f"pgsimhash has no revision {revision!r}; it has: {', '.join(known)}"
        )


def known_revisions() -> ScriptDirectory:
    """Return this package's revisions."""
    return ScriptDirectory(str(files("pgsimhash.migrations")))


def context_for(
    revision: str,
    schema: str,
    *,
    up: bool = True,
    connection: Connection | None = None,
    script: TextIO | None = None,
    since: str | None = None,
) -> MigrationContext:
    """Return a context that goes up or down to a revision, over a connection or into a script.

    Over a connection, no other migration runs until its transaction ends. A script begins at the
    revision ``since``, None for an empty database.
    """
    revisions = known_revisions()

    def steps(heads: Any, _context: MigrationContext) -> Iterable[RevisionStep]:
        # What Alembic's own commands call.
        step = revisions._upgrade_revs if up else revisions._downgrade_revs
        return step(revision, heads)

    options = {
        "version_table": VERSION_TABLE,
        "version_table_schema": schema,
        "script": revisions,
        "fn": steps,
    }
    if connection is None:
        options |= {"as_sql": True, "output_buffer": script, "starting_rev": since}
    else:
        wait_for_others(connection)
    return MigrationContext.configure(
        connection=connection,
        dialect_name="postgresql",
        # Any other style would double the percent signs in the script.
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
        connection.execute(_PINNED)
        return connection

    return create_engine(
        "postgresql+psycopg://",
        creator=connect,
        poolclass=NullPool,
        # Finding hstore would look up names before search_path is set.
        use_native_hstore=False,
    )


@contextmanager
def search_path_kept(execute: Callable[[str], object]) -> Iterator[None]:
    """Pin the search_path of a transaction, and restore it after the block."""
    execute(_COPIED_SETTING.format("pgsimhash.search_path", "search_path"))
    execute(_PINNED)
    yield
    execute(_COPIED_SETTING.format("search_path", "pgsimhash.search_path"))


def wait_for_others(connection: Connection) -> None:
    """Take the lock of migrations until the transaction ends."""
    connection.execute(select(func.pg_catalog.pg_advisory_xact_lock(MIGRATION_LOCK)))


def run_revisions(
    context: MigrationContext, schema: str, *, citus: bool = False, layout: str | None = None
) -> None:
    """Run the revisions of ``context`` in a schema whose owner is trusted."""
    # Alembic creates its version table in the schema, so the schema must exist first.
    foreign_objects = read_sql("foreign_objects.sql").strip()
    for file in ("citus.sql", "schema.sql") if citus else ("schema.sql",):
        script = read_sql(file).replace("${foreign_objects}", foreign_objects)
        for statement in split_statements(in_schema(script, schema)):
            context.execute(statement)
    present = layout_of(context, schema, layout)
    context.run_migrations(op=Operations(context), schema=schema, layout=present)
    if functions_differ(context, schema):
        created = split_statements(schema_script(schema, present, tables=False))
        for statement in (*drop_statements(schema, tables=False), *created):
            context.execute(statement)


def functions_differ(context: MigrationContext, schema: str) -> bool:
    """Return whether another build of the newest revision deployed the schema's functions."""
    connection = None if context.as_sql else context.connection
    newest = known_revisions().get_current_head()
    if connection is None or context.get_current_heads() != (newest,):
        return False
    return is_other_build(_build_of(connection, schema), schema)


def _build_of(connection: Connection, schema: str) -> str | None:
    """Return the body of ``_build``, if the schema has it."""
    *_, body = connection.exec_driver_sql(in_schema(read_sql("deployed.sql"), schema)).one()
    return None if body is None else str(body)


def layout_of(context: MigrationContext, schema: str, layout: str | None) -> Layout:
    """Return the layout of a schema, or of a new one."""
    requested = get_layout(layout or DEFAULT_LAYOUT.name)
    connection = None if context.as_sql else context.connection
    if connection is None:
        return requested
    function = in_schema("pgsimhash.layout()", schema)
    deployed = select(cast(func.pg_catalog.to_regprocedure(function), Text))
    if connection.scalar(deployed) is None:
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
        if "not a valid downgrade target" in str(error):
            raise SchemaError(
                "missing",
                "the schema is not in this database, or is older than the revision to go back to; "
                "check the DSN and the schema's name",
            ) from error
        raise SchemaError(
            "newer",
            f"this version of pgsimhash cannot migrate: {error}; upgrade {install_command()}",
        ) from error
    except DBAPIError as error:
        original: Any = error.orig
        # A project may use another driver than psycopg 3.
        own_driver = isinstance(original, psycopg.Error)
        words = server_words(original) if own_driver else str(original).strip()
        state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None) or ""
        translation = LOST if error.connection_invalidated else _BY_STATE.get(state, _OTHER)
        raise raised_by_schema(state, words) or translation.about(words) from error


_REFUSED: Final = "the database refuses to migrate, and nothing changed"
_OTHER: Final = Translation("refused", _REFUSED, "correct that, and migrate again")
_BY_STATE: Final = {
    "25P02": Translation(
        "wrong_transaction",
        "the connection's transaction has failed",
        "roll it back before migrating",
    ),
    "25006": Translation(
        "read_only", "the database is read-only here", "connect to the primary server"
    ),
    "42501": Translation(
        "not_permitted",
        "the database refuses to migrate",
        "connect as a user who may create a schema in it; or have an administrator run CREATE "
        "SCHEMA ... AUTHORIZATION for this user, or the script that `pgsimhash migrate --sql` "
        "prints",
    ),
    "57014": Translation("gave_up", _REFUSED, "raise statement_timeout, if it was that"),
    "55P03": Translation("locked", _REFUSED, "migrate again"),
}
