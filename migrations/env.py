"""Alembic's environment for `alembic upgrade head`.

The database is that of `-x dsn=...`, else the sqlalchemy.url of the ini, else PGSIMHASH_DSN,
DATABASE_URL or libpq's variables; the DSN `embedded` is the embedded server. The version table is
in the schema: that of `-x schema=...`, else of PGSIMHASH_SCHEMA, else pgsimhash.
With `-x citus=true`, Citus keeps a new schema on one of its nodes; `-x layout=...` is its layout.
"""

import sys
from typing import Any

from alembic import context
from alembic.util.exc import CommandError
from sqlalchemy import Connection

from pgsimhash.db.dsn import DSN_VARIABLE, EMBEDDED, configured_dsn, resolve_dsn
from pgsimhash.db.schema_names import configured_schema
from pgsimhash.errors import PgsimhashError
from pgsimhash.schema.deployed import describe
from pgsimhash.schema.migrate import VERSION_TABLE, engine_for, refusals_translated, run_revisions

_arguments = context.get_x_argument(as_dictionary=True)


def _dsn() -> str:
    config = context.config
    # A project without an ini has no such section.
    url = config.file_config.get(config.config_ini_section, "sqlalchemy.url", fallback=None)
    given = _arguments.get("dsn") or url
    if configured_dsn(given) is None:
        raise CommandError(
            f"no database is named: give -x dsn=..., sqlalchemy.url or {DSN_VARIABLE} "
            f"(-x dsn={EMBEDDED} is the embedded server)"
        )
    return resolve_dsn(given)


def _run(connection: Connection | None, schema: str) -> None:
    context.configure(
        connection=connection,
        dialect_name="postgresql",
        # Any other style would double the percent signs in a script.
        dialect_opts={"paramstyle": "named"},
        version_table=VERSION_TABLE,
        version_table_schema=schema,
    )
    citus = _arguments.get("citus") in ("true", "yes")
    with context.begin_transaction():
        run_revisions(context.get_context(), schema, citus=citus, layout=_arguments.get("layout"))


try:
    schema = configured_schema(_arguments.get("schema"))
    if context.is_offline_mode():
        _run(None, schema)
    else:
        engine = engine_for(_dsn())
        with refusals_translated(), engine.connect() as connection:
            own: Any = connection.connection.driver_connection
            print(f"Migrations of pgsimhash: schema {schema} in {describe(own)}.", file=sys.stderr)
            _run(connection, schema)
except PgsimhashError as error:
    # Alembic shows any other error as a traceback.
    raise CommandError(str(error)) from error
