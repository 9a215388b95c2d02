"""Provide pytest fixtures for projects that use pgsimhash: a real PostgreSQL, a database per test.

pytest finds them where pgsimhash is installed, and loads what they need when a test uses one;
``pytest --fixtures`` lists them. URLs are SQLAlchemy's, with the driver psycopg.

The server is ``PGSIMHASH_TEST_DSN`` if that is set (its user must be able to create databases).
Otherwise it is a container of ``PGSIMHASH_TEST_IMAGE`` (by default ``postgres:18``), if Docker is
running and testcontainers is installed. Otherwise it is the embedded server with temporary data, in
/dev/shm if that has room. Server and schema are made once. Each test gets a copy of the database,
which is dropped afterwards.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
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
IMAGE_VARIABLE: Final = "PGSIMHASH_TEST_IMAGE"

# Settings that protect data from a crash; tests switch them off.
_DURABILITY: Final = ("fsync", "synchronous_commit", "full_page_writes")


def _image() -> str:
    return os.environ.get(IMAGE_VARIABLE, "postgres:18")


def _docker_answers() -> bool:
    if find_spec("testcontainers") is None:
        return False
    import docker
    from docker.errors import DockerException

    with warnings.catch_warnings():
        # Without an answer, the client leaves its socket to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with contextlib.closing(docker.from_env()) as client:
                return bool(client.ping())
        except DockerException:
            return False
        finally:
            gc.collect()


def _container(stack: ExitStack) -> str:
    from testcontainers.community.postgres import PostgresContainer

    settings = " ".join(f"-c {setting}=off" for setting in _DURABILITY)
    container = PostgresContainer(_image(), driver=None).with_command(settings)
    # In memory, a new database takes a quarter of the time.
    container.with_tmpfs_mount("/pgsimhash").with_env("PGDATA", "/pgsimhash/data")
    stack.enter_context(container)
    return str(container.get_connection_url())


def folder_in_memory() -> Path | None:
    """Return a folder for the data of servers; a database is created there in half the time."""
    memory = Path("/dev/shm")  # noqa: S108
    is_roomy = memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30
    return memory if is_roomy and os.access(memory, os.W_OK) else None


def _embedded(stack: ExitStack) -> str:
    import psycopg
    from psycopg import sql

    from pgsimhash import embedded

    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-test-", dir=folder_in_memory()))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        # With few buffers, a database is created and dropped faster.
        patch.setattr(embedded, "memory_bytes", lambda: 1 << 30)
        dsn = embedded.start(folder)
    stack.callback(embedded.leave, folder)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for setting in _DURABILITY:
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")
    return dsn


@contextmanager
def fresh_database(server_dsn: str, template: str = "template0") -> Iterator[str]:
    """Yield the DSN of a new copy of the database ``template``, and drop the copy afterwards."""
    import psycopg
    from psycopg import conninfo, sql

    name = sql.Identifier(f"pgsimhash_test_{uuid.uuid4().hex[:12]}")
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        # Faster without durability; PostgreSQL 14 always copies files.
        copied = "STRATEGY FILE_COPY" if connection.info.server_version >= 150000 else ""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} {}")
        connection.execute(statement.format(name, sql.Identifier(template), sql.SQL(copied)))
        try:
            yield conninfo.make_conninfo(server_dsn, dbname=name.as_string().strip('"'))
        finally:
            drop = sql.SQL("DROP DATABASE {}").format(name)
            try:
                connection.execute(drop + sql.SQL(" WITH (FORCE)"))
            except psycopg.errors.InsufficientPrivilege:
                # Without a superuser, only the other form also ends autovacuum.
                connection.execute(drop)


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
    from pgsimhash.db.dsn import plain_dsn

    with ExitStack() as stack:
        if given := os.environ.get(DSN_VARIABLE):
            yield plain_dsn(given)
        else:
            yield _container(stack) if _docker_answers() else _embedded(stack)


@pytest.fixture(scope="session")
def pgsimhash_template(pgsimhash_server: str) -> Iterator[str]:
    """The name of a database with the schema, which is copied for each test."""
    import psycopg
    from psycopg import conninfo

    from pgsimhash.schema import migrate

    with fresh_database(pgsimhash_server) as dsn:
        migrate.upgrade(dsn)
        # The first connection after changes writes the cache of the catalogue.
        psycopg.connect(dsn).close()
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
