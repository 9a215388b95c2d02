"""Open connections, and check their settings."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import conninfo, pq

from pgsimhash.db.server_errors import first_line, no_connection
from pgsimhash.db.statements import close, in_thread, waited
from pgsimhash.errors import NoServerError, StoreError, check_type
from pgsimhash.log import log_warnings

_OLDEST_SERVER: Final = 140000
# Options of libpq that the DSN, the environment or a service file can override.
_SETTINGS: Final = {
    "connect_timeout": "10",
    "application_name": "pgsimhash",
    # Both sides detect a cut network within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


def open_connection(
    dsn: str, *, autocommit: bool = False, asynchronous: bool = False
) -> psycopg.Connection[Any]:
    """Connect to PostgreSQL 14 or later, in a greenlet if asynchronous; prepare no statements."""
    check_type(dsn, str, "a DSN is a str")
    driver: Any = psycopg.AsyncConnection if asynchronous else psycopg.Connection
    try:
        settings = _missing_settings(conninfo.conninfo_to_dict(dsn))
        # A database, a user or the environment may set another encoding.
        server = conninfo.make_conninfo(dsn, **settings, client_encoding="UTF8")
        connection: psycopg.Connection[Any] = waited(
            driver.connect(server, autocommit=autocommit, prepare_threshold=None)
        )
    except psycopg.ProgrammingError as error:
        # libpq quotes what it cannot read, with the password.
        problem = first_line(error).replace(dsn, "...") if dsn else first_line(error)
        raise NoServerError(
            "invalid_dsn",
            f"the DSN cannot be read: {problem}; write it like "
            "postgresql://user:password@host:5432/database",
        ) from error
    except (psycopg.OperationalError, UnicodeError) as error:
        # The codec of host names raises this for an invalid name.
        raise in_thread(partial(no_connection, error), asynchronous) from error
    try:
        if connection.info.server_version < _OLDEST_SERVER:
            version = connection.info.server_version // 10000
            raise unsuitable(f"PostgreSQL 14 or later is needed, and this server is {version}")
        check_settings(connection)
    except BaseException:
        close(connection)
        raise
    log_warnings(connection)
    return connection


def check_settings(connection: psycopg.Connection[Any]) -> None:
    """Check the settings that could change stored texts.

    Times and ages need no check: they are read in binary form, which does not depend on settings.
    """
    status = connection.info.parameter_status
    if (encoding := status("server_encoding")) not in (None, "UTF8"):
        raise unsuitable(
            f"the database {connection.info.dbname!r} has the encoding {encoding}, which cannot "
            "store all texts; use one with UTF-8: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    if (encoding := status("client_encoding")) not in (None, "UTF8"):
        raise unsuitable(
            f"the connection has the client_encoding {encoding}, and texts are in UTF-8; "
            "run: SET client_encoding TO 'UTF8'"
        )
    if status("standard_conforming_strings") == "off":
        raise unsuitable(
            "standard_conforming_strings is off, which changes the meaning of the schema's "
            "functions; run: SET standard_conforming_strings TO on, or permanently: "
            "ALTER DATABASE name RESET standard_conforming_strings"
        )


def _missing_settings(given: Mapping[str, object]) -> dict[str, str]:
    """Return the :data:`_SETTINGS` that neither a DSN nor the environment sets."""
    if "service" in given:
        # Only libpq reads the service file, and the DSN would override it.
        return {}
    present = {
        option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.val is not None
    }
    return {name: value for name, value in _SETTINGS.items() if name not in {*given, *present}}


def unsuitable(problem: str) -> StoreError:
    """Return the error for a server or settings that the package cannot work with."""
    return StoreError("unsuitable", problem)
