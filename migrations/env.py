"""How Alembic reaches the database: for `alembic upgrade head` and for `pgsimhash migrate`.

The DSN is the connection handed over by the caller, else `-x dsn=...`, else PGSIMHASH_DSN,
else the embedded server. The version table lives in the schema that it versions.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.schema import CreateSchema

from pgsimhash.connection import resolve_dsn
from pgsimhash.migrate import VERSION_TABLE, engine_for
from pgsimhash.tables import SCHEMA, metadata, simhashes


def _include_name(name: str | None, kind: str, _parents: object) -> bool:
    if kind == "table":
        # The tables of other layouts come and go as collections choose them.
        return not (name or "").startswith(f"{simhashes.name}_")
    return kind != "schema" or name == SCHEMA


def _run(connection: Connection | None) -> None:
    if connection is None:
        context.configure(
            dialect_name="postgresql",
            # Any other style would double the percent signs in the script.
            dialect_opts={"paramstyle": "named"},
            version_table=VERSION_TABLE,
            version_table_schema=SCHEMA,
            target_metadata=metadata,
        )
    else:
        context.configure(
            connection=connection,
            version_table=VERSION_TABLE,
            version_table_schema=SCHEMA,
            target_metadata=metadata,
            include_schemas=True,
            include_name=_include_name,
        )
    with context.begin_transaction():
        # The version table needs its schema before Alembic creates it.
        context.execute(CreateSchema(SCHEMA, if_not_exists=True))
        context.run_migrations()


if context.is_offline_mode():
    _run(None)
elif (given := context.config.attributes.get("connection")) is not None:
    _run(given)
else:
    dsn = context.get_x_argument(as_dictionary=True).get("dsn")
    with engine_for(resolve_dsn(dsn)).connect() as connection:
        _run(connection)
