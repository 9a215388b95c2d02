"""Databases with the schema: its revision, connections for it, and its roles."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final, LiteralString

import psycopg

from pgsimhash.db.connections import open_connection, unsuitable
from pgsimhash.db.dsn import EMBEDDED, configured_dsn, resolve_dsn
from pgsimhash.db.schema_names import (
    REVISION,
    SCHEMA,
    bound_to_schema,
    configured_schema,
    in_schema,
    read_sql,
    schema_of,
)
from pgsimhash.db.server_errors import first_line, translated_errors
from pgsimhash.db.statements import close, execute, fetch, in_thread
from pgsimhash.errors import SchemaError, StoreError, install_command
from pgsimhash.schema.scripts import digests

_own_digests: Final = cache(digests)
_PREPARED_AFTER: Final = 5  # executions before psycopg prepares a statement, its default


def check_schema(connection: psycopg.Connection[Any]) -> None:
    """Check that the schema can be used, at this version's revision or a compatible later one."""
    schema = schema_of(connection)
    option, argument = (
        ("", "") if schema == SCHEMA else (f" --schema {schema}", f', schema="{schema}"')
    )
    migrate = (
        f"pgsimhash migrate{option}; or, if the schema is part of your own Alembic history, "
        f'add a revision with: pgsimhash.alembic.upgrade(op, revision="{REVISION}"{argument})'
    )
    is_versioned, has_tables, nulls, has_citus, body = _row(connection, read_sql("deployed.sql"))
    if not nulls:
        raise unsuitable(
            "array_nulls is off, so missing values would be stored as the text NULL; turn "
            "it on for the role or the connection: SET array_nulls TO on"
        )
    if has_citus and _row(connection, read_sql("citus_worker.sql"))[0]:
        # Each node has its own sequences, so a page added here would get an id that is too low.
        raise unsuitable(
            f"the connection is to a worker of a Citus cluster, and the schema {schema} belongs "
            "to the whole cluster; connect to the coordinator"
        )
    revision = _recorded_revision(connection) if is_versioned else None
    if revision is None and has_tables:
        raise SchemaError(
            "unversioned",
            f"the schema {schema} has tables but no recorded revision, like a copy "
            "without its rows; load the rows of all tables too (pg_dump --data-only "
            "--disable-triggers), or drop the schema and deploy it again",
        )
    if revision is None:
        raise SchemaError("missing", f"the schema {schema} is not in this database; run: {migrate}")
    if revision < REVISION:
        raise SchemaError(
            "older",
            f"the schema {schema} is at revision {revision} and this version of pgsimhash needs "
            f"{REVISION}; run: {migrate}",
        )
    if revision > REVISION and not is_compatible(revision, body):
        raise SchemaError(
            "newer",
            f"the schema {schema} is at revision {revision}, which needs a newer pgsimhash than "
            f"this, for {REVISION}; upgrade {install_command()}",
        )
    if revision == REVISION and is_other_build(body, schema):
        raise SchemaError(
            "older",
            f"another build of pgsimhash deployed the functions of the schema {schema}; run: "
            f"{migrate}",
        )


def is_compatible(revision: str, body: str | None) -> bool:
    """Return whether a later revision serves this version too, given the body of ``_build``."""
    declared = re.search(r"revision (\w+) compatible_from (\w+)", body or "")
    # A later revision that does not replace the function declares nothing.
    return declared is not None and declared[2] <= REVISION < declared[1] == revision


def is_other_build(body: str | None, schema: str) -> bool:
    """Return whether another build deployed the functions, given the body of ``_build``.

    Another build's tables are a ``SchemaError``.
    """
    tables, functions = _own_digests()
    if tables not in (body or ""):
        raise SchemaError(
            "older",
            f"another build of pgsimhash deployed the tables of the schema {schema}, and no "
            "revision changes them; dump its data, drop the schema, deploy it again and load the "
            "data",
        )
    return functions not in (body or "")


def schema_revision(connection: psycopg.Connection[Any]) -> str | None:
    """Return the revision of the schema, None if it is not deployed."""
    is_versioned = _row(connection, read_sql("deployed.sql"))[0]
    return _recorded_revision(connection) if is_versioned else None


def _recorded_revision(connection: psycopg.Connection[Any]) -> str | None:
    row = _row(connection, "SELECT version_num FROM pgsimhash.alembic_version")
    return None if row is None else str(row[0])


def _row(connection: psycopg.Connection[Any], query: LiteralString) -> Any:
    """Return the first row of a query on the schema that is no function of it."""
    rows = execute(connection, in_schema(query, schema_of(connection)))
    return rows[0] if rows else None


def describe(connection: psycopg.Connection[Any]) -> str:
    """Return one line that names the database of a connection, without the password."""
    info = connection.info
    return f"database {info.dbname!r} on {info.host!r}, port {info.port}, as {info.user!r}"


def open_deployed(
    dsn: str | None, schema: str | None = None, *, asynchronous: bool = False
) -> psycopg.Connection[Any]:
    """Connect in autocommit mode; the embedded server's schema is deployed and upgraded."""
    schema = configured_schema(schema)
    server = in_thread(partial(resolve_dsn, dsn), asynchronous)
    connection = open_connection(server, autocommit=True, asynchronous=asynchronous)
    try:
        with bound_to_schema(connection, schema), translated_errors(connection):
            # A pooler names another process, and may use yet another for the next transaction.
            ((process,),) = execute(connection, "SELECT pg_catalog.pg_backend_pid()")
            if process == connection.info.backend_pid:
                connection.prepare_threshold = _PREPARED_AFTER
            if configured_dsn(dsn) in (None, EMBEDDED):
                try:
                    check_schema(connection)
                except SchemaError as error:
                    if error.reason in ("missing", "older"):
                        # Alembic is slow to import and rarely needed.
                        from pgsimhash.schema.migrate import upgrade

                        in_thread(partial(upgrade, server, schema=schema), asynchronous)
    except BaseException:
        close(connection)
        raise
    return connection


@contextmanager
def checked_connection(
    dsn: str | None, schema: str | None = None
) -> Iterator[psycopg.Connection[Any]]:
    """Connect in autocommit mode to a database with the schema; translate errors in the block."""
    with open_deployed(dsn, schema) as connection, translated_errors(connection):
        check_schema(connection)
        yield connection


def create_roles(dsn: str, prefix: str | None = None, *, schema: str | None = None) -> list[str]:
    """Create the roles PREFIX_owner, _writer and _reader, or grant their rights again; return them.

    The owner role becomes the owner of the schema, the writer role adds, marks and deletes pages,
    and the reader role looks up. They cannot log in: grant them to your users.

    Existing roles must come from an earlier call for the schema, because members of a role get its
    rights. ``prefix`` is by default ``DATABASE_SCHEMA``: roles belong to the server, so each
    database needs its own. The user is a superuser, or the schema's owner with CREATEROLE.
    """
    with checked_connection(dsn, schema) as connection:
        try:
            ((names,),) = fetch(connection, "create_roles", {"prefix": prefix})
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(
                "not_permitted",
                f"the database refuses to create the roles: {first_line(error)}; connect as a "
                "superuser, or as the schema's owner with CREATEROLE and CREATE on the database",
            ) from error
        return list(names or [])
