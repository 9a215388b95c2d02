"""A Citus cluster for the tests: a new database on each node, not on a single server."""

import os
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import psycopg
import pytest
from psycopg import conninfo

from pgsimhash.schema import migrate
from tests.database import run_sql

DSN_VARIABLE: Final = "PGSIMHASH_TEST_CITUS_DSN"
"""The coordinator of a cluster on which the tests may create databases, as a superuser."""

coordinator_dsn = os.environ.get(DSN_VARIABLE)


def workers(dsn: str) -> list[str]:
    nodes = run_sql(
        dsn, "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid"
    )
    return [conninfo.make_conninfo(dsn, host=host, port=port) for host, port in nodes]


@contextmanager
def fresh_cluster(nodes: Sequence[str], template: str | None = None) -> Iterator[str]:
    """Yield the DSN of a database on all nodes, the coordinator first, and drop it afterwards.

    Args:
        nodes: the DSNs of the nodes.
        template: the database to copy; None makes an empty one that knows its workers.
    """
    name = f"pgsimhash_test_{uuid.uuid4().hex[:12]}"
    own = [conninfo.make_conninfo(node, dbname=name) for node in nodes]
    _execute_on_all(
        nodes,
        f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}",
        # Settings of a database are not copied.
        f"ALTER DATABASE {name} SET citus.allow_nested_distributed_execution TO on",
        f"ALTER DATABASE {name} SET citus.propagate_set_commands TO local",
    )
    try:
        if template is None:
            _join(own)
        yield own[0]
    finally:
        for some in ([nodes[0]], nodes[1:]):
            with ThreadPoolExecutor() as threads:
                list(threads.map(_drop, some, [name] * len(some)))


def _drop(node: str, name: str) -> None:
    """Drop a database of a node.

    A process of Citus that was just starting may have connected after the others were terminated;
    PostgreSQL then waits for it, so this terminates it at the next attempt.
    """
    with psycopg.connect(node, autocommit=True) as connection:
        for seconds in (1, 2, 4, 60):
            connection.execute(f"SET statement_timeout TO '{seconds}s'".encode())
            try:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            except psycopg.errors.QueryCanceled:
                continue
            return


def _close(nodes: Sequence[str], name: str) -> None:
    """Refuse connections to a database, to copy it; Citus has a background process in each."""
    _execute_on_all(
        nodes,
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'",
    )


def _join(nodes: Sequence[str]) -> None:
    coordinator, *others = nodes
    _execute_on_all(nodes, "CREATE EXTENSION citus")
    assert coordinator_dsn is not None
    with psycopg.connect(coordinator_dsn, autocommit=True) as lock:
        # Citus sends the settings of roles, which two sessions cannot write at the same time.
        lock.execute("SELECT pg_advisory_lock(1)")
        joins = [("citus_add_node", other) for other in others]
        for function, node in [("citus_set_coordinator_host", coordinator), *joins]:
            where = conninfo.conninfo_to_dict(node)
            run_sql(coordinator, f"SELECT {function}('{where['host']}', {where['port']})")


def _execute_on_all(nodes: Sequence[str], *statements: str) -> None:
    def execute(node: str) -> None:
        for statement in statements:
            run_sql(node, statement)

    with ThreadPoolExecutor() as threads:
        list(threads.map(execute, nodes))


@pytest.fixture(scope="session")
def citus_nodes() -> list[str]:
    assert coordinator_dsn is not None
    return [coordinator_dsn, *workers(coordinator_dsn)]


@pytest.fixture(scope="session")
def citus_templates(citus_nodes: list[str]) -> Iterator[tuple[str, str]]:
    """The names of a database without the schema and of one with it, to be copied."""
    with fresh_cluster(citus_nodes) as empty, fresh_cluster(citus_nodes) as deployed:
        migrate.upgrade(deployed, citus=True)
        names = [str(conninfo.conninfo_to_dict(dsn)["dbname"]) for dsn in (empty, deployed)]
        for name in names:
            _close(citus_nodes, name)
        yield names[0], names[1]


@pytest.fixture(scope="session")
def pgsimhash_server() -> str:
    assert coordinator_dsn is not None
    return coordinator_dsn


@pytest.fixture
def pgsimhash_dsn(citus_nodes: list[str], citus_templates: tuple[str, str]) -> Iterator[str]:
    with fresh_cluster(citus_nodes, citus_templates[1]) as dsn:
        yield dsn


@pytest.fixture
def pgsimhash_empty_dsn(citus_nodes: list[str], citus_templates: tuple[str, str]) -> Iterator[str]:
    with fresh_cluster(citus_nodes, citus_templates[0]) as dsn:
        yield dsn
