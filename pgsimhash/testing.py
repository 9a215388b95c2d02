"""Provide pytest fixtures for projects that use pgsimhash: a real PostgreSQL, a database per test.

pytest finds them where pgsimhash is installed, and loads what they need when a test uses one:

- ``pgsimhash_dsn``: the DSN of a new database with the schema.
- ``pgsimhash_store``: a store on it.
- ``pgsimhash_empty_dsn``: the DSN of a new empty database.
- ``pgsimhash_url`` and ``pgsimhash_empty_url``: the same two databases as URLs of SQLAlchemy, with
  the driver psycopg. :func:`url_of_dsn` converts other DSNs.

The server is ``PGSIMHASH_TEST_DSN`` if that is set (its user must be able to create databases).
Otherwise it is the embedded server with temporary data, in /dev/shm if that has room. The schema is
deployed once. Each test gets a copy of the database, which is dropped afterwards.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pgsimhash.store import Store

__all__ = [
    "pgsimhash_dsn",
    "pgsimhash_empty_dsn",
    "pgsimhash_empty_url",
    "pgsimhash_store",
    "pgsimhash_url",
]

DSN_VARIABLE: Final = "PGSIMHASH_TEST_DSN"

# Settings that protect data from a crash; tests switch them off.
_DURABILITY: Final = ("fsync", "synchronous_commit", "full_page_writes")


def folder_in_memory() -> Path | None:
    """Return a folder for the data of servers; a database is created there in half the time."""
    memory = Path("/dev/shm")  # noqa: S108
    is_roomy = memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30
    return memory if is_roomy and os.access(memory, os.W_OK) else None


@contextmanager
def fresh_database(server_dsn: str, template: str = "template0") -> Iterator[str]:
    """Yield the DSN of a new copy of the database ``template``, and drop the copy afterwards."""
    import psycopg
    from psycopg import conninfo, sql

    name = sql.Identifier(f"pgsimhash_test_{uuid.uuid4().hex[:12]}")
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(statement.format(name, sql.Identifier(template)))
    try:
        yield conninfo.make_conninfo(server_dsn, dbname=name.as_string().strip('"'))
    finally:
        with psycopg.connect(server_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def url_of_dsn(dsn: str) -> str:
    """Return a DSN as a URL of SQLAlchemy, for ``create_engine`` and ``create_async_engine``.

    In an ini of Alembic, double each ``%`` of it.
    """
    from psycopg import conninfo
    from sqlalchemy import URL

    parameters = {name: str(value) for name, value in conninfo.conninfo_to_dict(dsn).items()}
    url = URL.create(
        "postgresql+psycopg",
        username=parameters.pop("user", None),
        password=parameters.pop("password", None),
        database=parameters.pop("dbname", None),
        # Hosts and ports too: a host may be the folder of a socket, and there may be several.
        query=parameters,
    )
    return url.render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def pgsimhash_server() -> Iterator[str]:
    """The DSN of a server whose user can create databases."""
    import psycopg
    from psycopg import sql

    from pgsimhash import embedded
    from pgsimhash.db.dsn import plain_dsn

    if given := os.environ.get(DSN_VARIABLE):
        yield plain_dsn(given)
        return
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="pgsimhash-test-", dir=folder_in_memory()))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        dsn = embedded.start(folder)
        stack.callback(embedded.leave, folder)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for setting in _DURABILITY:
                statement = sql.SQL("ALTER SYSTEM SET {} = off")
                connection.execute(statement.format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
        yield dsn


@pytest.fixture(scope="session")
def pgsimhash_template(pgsimhash_server: str) -> Iterator[str]:
    """The name of a database with the schema, which is copied for each test."""
    from psycopg import conninfo

    from pgsimhash.schema import migrate

    with fresh_database(pgsimhash_server) as dsn:
        migrate.upgrade(dsn)
        yield str(conninfo.conninfo_to_dict(dsn)["dbname"])


@pytest.fixture
def pgsimhash_dsn(pgsimhash_server: str, pgsimhash_template: str) -> Iterator[str]:
    """The DSN of a new database with the schema."""
    with fresh_database(pgsimhash_server, pgsimhash_template) as dsn:
        yield dsn


@pytest.fixture
def pgsimhash_empty_dsn(pgsimhash_server: str) -> Iterator[str]:
    """The DSN of a new empty database."""
    with fresh_database(pgsimhash_server) as dsn:
        yield dsn


@pytest.fixture
def pgsimhash_url(pgsimhash_dsn: str) -> str:
    """The URL for SQLAlchemy of a new database with the schema."""
    return url_of_dsn(pgsimhash_dsn)


@pytest.fixture
def pgsimhash_empty_url(pgsimhash_empty_dsn: str) -> str:
    """The URL for SQLAlchemy of a new empty database."""
    return url_of_dsn(pgsimhash_empty_dsn)


@pytest.fixture
def pgsimhash_store(pgsimhash_dsn: str) -> Iterator[Store]:
    """An empty store."""
    from pgsimhash.store import connect

    with connect(pgsimhash_dsn) as store:
        yield store
