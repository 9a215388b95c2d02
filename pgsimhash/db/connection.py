"""Open connections from DSNs, and check their settings and the schema."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import psycopg
from psycopg import conninfo, pq
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.db.plain import plain
from pgsimhash.db.refusals import first_line, no_connection, translated_errors
from pgsimhash.db.schema_names import (
    SCHEMA,
    bound_to_schema,
    configured_schema,
    in_schema,
    schema_of,
)
from pgsimhash.db.statements import read_sql
from pgsimhash.errors import NoServerError, SchemaError, StoreError, install_command
from pgsimhash.log import logger, tell_of_waits

DSN_VARIABLE: Final = "PGSIMHASH_DSN"

URL_VARIABLE: Final = "DATABASE_URL"
"""The variable of many platforms. It is used if it names PostgreSQL, in SQLAlchemy's form too."""

LIBPQ_VARIABLES: Final = (
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGDATABASE",
    "PGSERVICE",
    "PGUSER",
)
"""libpq's variables that name a server, as for psql."""

EMBEDDED: Final = "embedded"
"""The DSN of the embedded server."""

REVISION: Final = "0001"
"""The schema revision of this package version."""

_WITH_DRIVER: Final = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
_OLDEST_SERVER: Final = 140000
_PREPARED_AFTER: Final = 5
"""How many executions psycopg waits by default before it prepares a statement."""

_SETTINGS: Final = {
    "connect_timeout": "10",
    "application_name": "pgsimhash",
    # Both sides detect a cut network within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Options of libpq that the DSN, the environment or a service file can override."""

_ENCODING: Final = {"client_encoding": "UTF8"}
"""Cannot be overridden: a database, a user or the environment may set another one."""


def configured_dsn(dsn: str | None = None) -> str | None:
    """Return the DSN in libpq's form, None for the embedded server.

    It is ``dsn``, else PGSIMHASH_DSN, else DATABASE_URL. If none is given but one of
    :data:`LIBPQ_VARIABLES`, it is empty, so that libpq's defaults apply.
    """
    given = dsn or os.environ.get(DSN_VARIABLE)
    url = os.environ.get(URL_VARIABLE, "")
    if not given and _WITH_DRIVER.match(url):
        given = url
    if given:
        return plain_dsn(given)
    return "" if any(map(os.environ.get, LIBPQ_VARIABLES)) else None


def plain_dsn(url: str) -> str:
    """Return a DSN without the driver in SQLAlchemy's URLs: ``postgresql+psycopg://``."""
    return _WITH_DRIVER.sub("postgresql://", url)


def is_embedded(dsn: str | None = None) -> bool:
    """Return whether :func:`resolve_dsn` returns the embedded server."""
    return configured_dsn(dsn) in (None, EMBEDDED)


def resolve_dsn(dsn: str | None = None) -> str:
    """Return :func:`configured_dsn`; start the embedded server if it is that.

    Raises:
        NoServerError: the embedded server does not start.
    """
    given = configured_dsn(dsn)
    if not dsn and not os.environ.get(DSN_VARIABLE) and given != "":
        url = f"the server of {URL_VARIABLE}, {_place(given)}" if given else None
        _tell_server(url or "the embedded server")
    if given not in (None, EMBEDDED):
        return given
    # It needs Unix, so only those who use it load it.
    from pgsimhash.embedded import server

    return server.start()


def _place(dsn: str) -> str:
    """Return host, port and database of a DSN, without the user and the password."""
    try:
        known = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return "which is invalid"
    port = f":{known['port']}" if "port" in known else ""
    return f"{known.get('host', '')}{port}/{known.get('dbname', '')}"


@cache
def _tell_server(name: str) -> None:
    """Log, once in a process, which server is used although none was named."""
    logger.warning("no DSN is given: using %s; name another with %s", name, DSN_VARIABLE)


def describe(connection: psycopg.Connection[Any]) -> str:
    """Return one line that names the database of a connection, without the password."""
    info = connection.info
    return f"database {info.dbname!r} on {info.host!r}, port {info.port}, as {info.user!r}"


def open_connection(dsn: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """Connect to PostgreSQL 14 or later; the connection prepares no statements.

    Raises:
        NoServerError: the DSN is invalid, no server answers, or it refuses the login.
        StoreError: the server is older than PostgreSQL 14, or the database does not use UTF-8.
    """
    try:
        given = conninfo.conninfo_to_dict(dsn)
        wanted = conninfo.make_conninfo(dsn, **_settings_beside(given), **_ENCODING)
        connection = psycopg.connect(wanted, autocommit=autocommit, prepare_threshold=None)
    except psycopg.ProgrammingError as error:
        raise NoServerError(
            "invalid_dsn",
            f"the DSN cannot be read: {first_line(error)}; write it like "
            "postgresql://user:password@host:5432/database",
        ) from error
    except (psycopg.OperationalError, UnicodeError) as error:
        # The codec of host names raises this for an invalid name.
        raise no_connection(error) from error
    if connection.info.server_version < _OLDEST_SERVER:
        version = connection.info.server_version // 10000
        connection.close()
        raise StoreError(
            "unsuitable", f"PostgreSQL 14 or later is needed, and this server is {version}"
        )
    try:
        check_settings(connection)
    except BaseException:
        connection.close()
        raise
    tell_of_waits(connection)
    return connection


def _settings_beside(given: Mapping[str, object]) -> dict[str, str]:
    """Return the :data:`_SETTINGS` that neither a DSN nor the environment sets."""
    if "service" in given:
        # Only libpq reads the service file, and the DSN would override it.
        return {}
    present = {
        option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.val is not None
    }
    return {name: value for name, value in _SETTINGS.items() if name not in {*given, *present}}


def _is_direct(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server process is the one named at the start of the connection.

    A pooler reports a number of its own, and may use another process for the next transaction.
    """
    with connection.cursor(row_factory=scalar_row) as cursor:
        present = cursor.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
    return present == connection.info.backend_pid


def check_settings(connection: psycopg.Connection[Any]) -> None:
    """Check the settings that could change stored texts.

    Times and ages need no check: they are read in binary form, which does not depend on settings.

    Raises:
        StoreError: the database or the connection does not use UTF-8, or
            standard_conforming_strings is off.
    """
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        raise StoreError(
            "unsuitable",
            f"the database {connection.info.dbname!r} has the encoding {encoding}, which cannot "
            "store all texts; use one with UTF-8: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0",
        )
    encoding = connection.info.parameter_status("client_encoding")
    if encoding not in (None, "UTF8"):
        raise StoreError(
            "unsuitable",
            f"the connection has the client_encoding {encoding}, and texts are in UTF-8; "
            "run: SET client_encoding TO 'UTF8'",
        )
    if connection.info.parameter_status("standard_conforming_strings") == "off":
        raise StoreError(
            "unsuitable",
            "standard_conforming_strings is off, which changes the meaning of the schema's "
            "functions; run: SET standard_conforming_strings TO on, or permanently: "
            "ALTER DATABASE name RESET standard_conforming_strings",
        )


def open_deployed(
    dsn: str | None, schema: str | None = None, *, prepare: bool | None = None
) -> psycopg.Connection[Any]:
    """Connect in autocommit mode; the embedded server's schema is deployed and upgraded.

    Args:
        dsn: the server.
        schema: the schema's name.
        prepare: whether frequent statements are prepared; None means unless there is a pooler.

    Raises:
        NoServerError: no server answers, it refuses the login, or the embedded server does not
            start.
        ArgumentError: the name of the schema is invalid.
    """
    wanted = configured_schema(schema)
    where = resolve_dsn(dsn)
    own = open_connection(where, autocommit=True)
    try:
        with translated_errors(own):
            direct = _is_direct(own)
        if direct if prepare is None else prepare:
            own.prepare_threshold = _PREPARED_AFTER
        connection = plain(own)
        with bound_to_schema(connection, wanted), translated_errors(connection):
            if is_embedded(dsn) and (schema_revision(connection) or "") < REVISION:
                # Alembic is slow to import and rarely needed.
                from pgsimhash.db.migrate import upgrade

                upgrade(where, schema=wanted)
    except BaseException:
        own.close()
        raise
    return connection


def check_schema(connection: psycopg.Connection[Any]) -> None:
    """Check that the schema has the revision of this package version.

    Raises:
        SchemaError: it is missing, older or newer, or a copy without rows; the message names the
            command to run.
        StoreError: a setting prevents its use.
    """
    schema = schema_of(connection)
    option, argument = (
        ("", "") if schema == SCHEMA else (f" --schema {schema}", f', schema="{schema}"')
    )
    migrate = (
        f"pgsimhash migrate{option}; or, if the schema is part of your own Alembic history, "
        f'add a revision with: pgsimhash.alembic.upgrade(op, revision="{REVISION}"{argument})'
    )
    with connection.cursor(row_factory=tuple_row) as cursor:
        ((is_versioned, has_tables, nulls, has_citus),) = cursor.execute(
            in_schema(read_sql("deployed.sql"), schema)
        )
    if not nulls:
        raise StoreError(
            "unsuitable",
            "array_nulls is off, so missing values would be stored as the text NULL; turn "
            "it on for the role or the connection: SET array_nulls TO on",
        )
    if has_citus:
        _check_node(connection)
    found = _recorded_revision(connection) if is_versioned else None
    if found is None:
        if has_tables:
            raise SchemaError(
                "unversioned",
                f"the schema {schema} has tables but no recorded revision, like a copy "
                "without its rows; load the rows of all tables too (pg_dump --data-only), "
                "or drop the schema and deploy it again",
            )
        raise SchemaError("missing", f"the schema {schema} is not in this database; run: {migrate}")
    if found < REVISION:
        raise SchemaError(
            "older",
            f"the schema {schema} is at revision {found} and this version of pgsimhash needs "
            f"{REVISION}; run: {migrate}",
        )
    if found > REVISION:
        raise SchemaError(
            "newer",
            f"the schema {schema} is at revision {found}, created by a newer pgsimhash than this, "
            f"which knows {REVISION}; upgrade {install_command()}",
        )


def schema_revision(connection: psycopg.Connection[Any]) -> str | None:
    """Return the revision of the schema, None if it is not deployed."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        deployed = in_schema(read_sql("deployed.sql"), schema_of(connection))
        is_versioned = cursor.execute(deployed).fetchone()
    return _recorded_revision(connection) if is_versioned else None


def _check_node(connection: psycopg.Connection[Any]) -> None:
    """Check that the connection is not to a worker of the Citus cluster that has the schema.

    Each node has its own sequences, so a page added here would get an id that is too low.

    Raises:
        StoreError: it is.
    """
    with connection.cursor(row_factory=scalar_row) as cursor:
        if cursor.execute(in_schema(read_sql("worker.sql"), schema_of(connection))).fetchone():
            raise StoreError(
                "unsuitable",
                f"the connection is to a worker of a Citus cluster, and the schema "
                f"{schema_of(connection)} belongs to the whole cluster; connect to the coordinator",
            )


def _recorded_revision(connection: psycopg.Connection[Any]) -> str | None:
    with connection.cursor(row_factory=scalar_row) as cursor:
        revision = "SELECT version_num FROM pgsimhash.alembic_version"
        found = cursor.execute(in_schema(revision, schema_of(connection))).fetchone()
    return None if found is None else str(found)


@contextmanager
def checked_connection(
    dsn: str | None, schema: str | None = None
) -> Iterator[psycopg.Connection[Any]]:
    """Connect in autocommit mode to a database with the schema; translate errors in the block.

    Raises:
        NoServerError: no server answers, it refuses the login, or the embedded server does not
            start.
        ArgumentError: the name of the schema is invalid.
        SchemaError: the schema is missing, or older or newer than this package.
        StoreError: the server refuses a statement in the block.
    """
    with (
        open_deployed(dsn, schema) as connection,
        translated_errors(connection),
    ):
        check_schema(connection)
        yield connection
