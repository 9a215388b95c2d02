"""A real PostgreSQL for the tests, and a fresh database for each.

The server is PGSIMHASH_TEST_DSN where that is set, else a container of PGSIMHASH_TEST_IMAGE
(postgres:18 by default) where a Docker engine answers, else the embedded server.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from pgsimhash import Store, connect, migrate, server
from pgsimhash.schemes import registry

DSN_VARIABLE = "PGSIMHASH_TEST_DSN"
IMAGE = os.environ.get("PGSIMHASH_TEST_IMAGE", "postgres:18")
ROOT = Path(__file__).parent.parent

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
"""Settings that protect data from a crash, which tests do without."""


def _docker_answers() -> bool:
    import docker
    from docker.errors import DockerException

    with warnings.catch_warnings():
        # Where nothing answers, the client leaves its socket to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with contextlib.closing(docker.from_env()) as client:
                return bool(client.ping())
        except DockerException:
            return False
        finally:
            gc.collect()


def _route() -> str:
    if os.environ.get(DSN_VARIABLE):
        return DSN_VARIABLE
    return f"testcontainers {IMAGE}" if _docker_answers() else "embedded server"


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a job in the background, whose children could not be stopped with Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)


ROUTE = _route()


def pytest_report_header() -> str:
    return f"PostgreSQL: {ROUTE}"


def _container(stack: ExitStack) -> str:
    from testcontainers.community.postgres import PostgresContainer

    settings = " ".join(f"-c {setting}=off" for setting in DURABILITY)
    container = PostgresContainer(IMAGE, driver=None).with_command(settings)
    stack.enter_context(container)
    return str(container.get_connection_url())


def _embedded(stack: ExitStack) -> str:
    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-test-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    dsn = server.start(folder)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for setting in DURABILITY:
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")
    return dsn


def wait_for_a_lock(dsn: str) -> None:
    """Return when some session waits for another one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(600):
            waiting = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if waiting.fetchone() != (0,):
                return
            connection.execute("SELECT pg_sleep(0.1)")
    pytest.fail("nobody waits")


@pytest.fixture(autouse=True)
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemes that a test registers are deleted after it."""
    monkeypatch.setattr(registry, "_schemes", dict(registry._schemes))


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """The DSN of a server on which the tests may create databases."""
    with ExitStack() as stack:
        if ROUTE == DSN_VARIABLE:
            yield os.environ[DSN_VARIABLE]
        elif ROUTE == "embedded server":
            yield _embedded(stack)
        else:
            yield _container(stack)


def _create(server_dsn: str, name: str, template: str) -> str:
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
    return conninfo.make_conninfo(server_dsn, dbname=name)


def _drop(server_dsn: str, name: str) -> None:
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _fresh_name() -> str:
    return f"pgsimhash_test_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def template(server_dsn: str) -> Iterator[str]:
    """The name of a database with the schema, to be copied for each test."""
    name = _fresh_name()
    migrate.upgrade(_create(server_dsn, name, "template0"))
    yield name
    _drop(server_dsn, name)


@pytest.fixture
def dsn(server_dsn: str, template: str) -> Iterator[str]:
    """The DSN of a fresh database with the schema."""
    name = _fresh_name()
    yield _create(server_dsn, name, template)
    _drop(server_dsn, name)


@pytest.fixture
def empty_dsn(server_dsn: str) -> Iterator[str]:
    """The DSN of a fresh database with nothing in it."""
    name = _fresh_name()
    yield _create(server_dsn, name, "template0")
    _drop(server_dsn, name)


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to a fresh database with the schema; nothing is committed."""
    with psycopg.connect(dsn) as opened:
        yield opened
        opened.rollback()


@pytest.fixture
def store(dsn: str) -> Iterator[Store]:
    """An empty store."""
    with connect(dsn) as opened:
        yield opened
