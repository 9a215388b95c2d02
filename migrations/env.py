"""Alembic's environment for `alembic upgrade head` and `pgsimhash migrate`.

The database is that of the caller's connection, else `-x dsn=...`, else the sqlalchemy.url of the
ini, else PGSIMHASH_DSN, DATABASE_URL or libpq's variables; the DSN `embedded` is the embedded
server. The version table is in the schema: the caller's, else that of `-x schema=...`, else of
PGSIMHASH_SCHEMA, else pgsimhash.
With `-x citus=true`, Citus keeps a new schema on one of its nodes; `-x layout=...` is its layout.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

import psycopg
from alembic import context
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text

from pgsimhash.db.connection import describe
from pgsimhash.db.dsn import DSN_VARIABLE, EMBEDDED, configured_dsn, resolve_dsn
from pgsimhash.db.migrate import (
    VERSION_TABLE,
    dsn_of_url,
    engine_for,
    refusals_translated,
    run_revisions,
    search_path_kept,
    wait_for_others,
)
from pgsimhash.db.schema_names import configured_schema
from pgsimhash.errors import PgsimhashError


def _run(connection: Connection | None, schema: str) -> None:
    kept: AbstractContextManager[None] = nullcontext()
    own_transaction = context.config.attributes.get("own_transaction", True)
    if connection is None:
        context.configure(
            dialect_name="postgresql",
            # Any other style would double the percent signs in the script.
            dialect_opts={"paramstyle": "named"},
            version_table=VERSION_TABLE,
            version_table_schema=schema,
            transactional_ddl=own_transaction,
        )
        if not own_transaction:
            kept = search_path_kept(context.execute)
    else:
        context.configure(
            connection=connection,
            version_table=VERSION_TABLE,
            version_table_schema=schema,
        )
        kept = search_path_kept(lambda statement: connection.execute(text(statement)))
    with context.begin_transaction(), kept:
        if connection is not None:
            wait_for_others(connection)
        run_revisions(context.get_context(), schema, citus=_citus(), layout=_layout())


def _dsn() -> str:
    given = context.get_x_argument(as_dictionary=True).get("dsn")
    config = context.config
    # A project without an ini has no such section.
    section = config.config_ini_section
    if not given and config.file_config.has_option(section, "sqlalchemy.url"):
        given = dsn_of_url(config.file_config.get(section, "sqlalchemy.url"))
    if configured_dsn(given) is None:
        raise CommandError(
            f"no database is named: give -x dsn=..., sqlalchemy.url or {DSN_VARIABLE} "
            f"(-x dsn={EMBEDDED} is the embedded server)"
        )
    return resolve_dsn(given)


def _schema() -> str:
    given = context.config.attributes.get("schema")
    try:
        return configured_schema(given or context.get_x_argument(as_dictionary=True).get("schema"))
    except PgsimhashError as error:
        # Alembic shows any other error as a traceback.
        raise CommandError(str(error)) from error


def _citus() -> bool:
    given = context.get_x_argument(as_dictionary=True).get("citus")
    return bool(context.config.attributes.get("citus")) or given in ("true", "yes")


def _layout() -> str | None:
    given = context.get_x_argument(as_dictionary=True).get("layout")
    return context.config.attributes.get("layout") or given


def _run_here(schema: str) -> None:
    try:
        dsn = _dsn()
        with refusals_translated(), engine_for(dsn).connect() as connection:
            own = connection.connection.driver_connection
            assert isinstance(own, psycopg.Connection)
            print(f"Migrations of pgsimhash: schema {schema} in {describe(own)}.", file=sys.stderr)
            _run(connection, schema)
    except PgsimhashError as error:
        raise CommandError(str(error)) from error


if context.is_offline_mode():
    _run(None, _schema())
elif (given := context.config.attributes.get("connection")) is not None:
    _run(given, _schema())
else:
    _run_here(_schema())
