"""Deploys the schema with Alembic: the same revisions by every route."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib.resources import files
from typing import Final

import psycopg
from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from pgsimhash.connection import open_connection
from pgsimhash.errors import SchemaError, StoreError

VERSION_TABLE: Final = "alembic_version"


def engine_for(dsn: str) -> Engine:
    """Return a SQLAlchemy engine that connects with ``dsn`` in any form libpq understands."""

    def connect() -> psycopg.Connection:
        return open_connection(dsn)

    return create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)


def _config(output: io.StringIO | None = None) -> Config:
    config = Config(output_buffer=output) if output is not None else Config()
    config.set_main_option("script_location", str(files("pgsimhash.migrations")).replace("%", "%%"))
    return config


def upgrade(dsn: str, revision: str = "head") -> None:
    """Bring the schema of the database at ``dsn`` up to ``revision``.

    Raises:
        NoServerError: no server answers at ``dsn``.
        SchemaError: the schema there, or ``revision``, is not one this package knows.
        StoreError: the user may not change the schema.
    """
    _run(command.upgrade, dsn, revision)


def downgrade(dsn: str, revision: str = "base") -> None:
    """Take the schema of the database at ``dsn`` back to ``revision`` (``base``: no tables).

    The empty schema and Alembic's version table in it stay.

    Raises:
        NoServerError: no server answers at ``dsn``.
        SchemaError: the schema there, or ``revision``, is not one this package knows.
        StoreError: the user may not change the schema.
    """
    _run(command.downgrade, dsn, revision)


def _run(step: Callable[[Config, str], None], dsn: str, revision: str) -> None:
    config = _config()
    with engine_for(dsn).connect() as connection:
        config.attributes["connection"] = connection
        try:
            step(config, revision)
        except CommandError as error:
            raise SchemaError(
                f"this version of pgsimhash cannot migrate: {error}; "
                "run: pip install --upgrade pgsimhash"
            ) from error
        except DBAPIError as error:
            raise StoreError(
                f"the database refuses to migrate: {str(error.orig).strip()}; connect as a user "
                "who may create a schema in it, or hand an administrator the script that "
                "`pgsimhash migrate --sql` prints"
            ) from error


def upgrade_sql(revision: str = "head") -> str:
    """Return the SQL script that deploys the schema up to ``revision`` on an empty database."""
    output = io.StringIO()
    command.upgrade(_config(output), revision, sql=True)
    return output.getvalue()
