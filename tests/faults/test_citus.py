"""Processes of a Citus cluster are killed while writers run: nothing is lost or doubled."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
from psycopg import conninfo

from tests.database import run_sql
from tests.faults.writing import PATIENCE, Writers

pytestmark = pytest.mark.skipif(
    "PGSIMHASH_TEST_CITUS_DSN" not in os.environ, reason="it is about Citus"
)

WRITERS = range(1, 9)

CRASH = "PGSIMHASH_TEST_CITUS_CRASH"
"""A shell command that kills the node $NODE_HOST:$NODE_PORT and starts it again."""


@pytest.fixture
def writers(dsn: str, writers_of: Callable[..., Writers]) -> Writers:
    return writers_of(dsn, numbers=WRITERS, pages=60)


def kill_a_process(node: str, database: str) -> None:
    """Kill a process of a node's server that serves a database; the server then recovers."""
    clients = (
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = %s AND backend_type = 'client backend' ORDER BY random()"
    )
    for (process,) in run_sql(elsewhere(node), clients, [database]):
        # It may have ended since.
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            return


def wait_for(node: str) -> None:
    """Wait until a node's server answers."""
    latest = time.monotonic() + PATIENCE
    while time.monotonic() < latest:
        try:
            psycopg.connect(elsewhere(node), connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the node does not come back")


def elsewhere(node: str) -> str:
    """Return the DSN of another database of a node."""
    return conninfo.make_conninfo(node, dbname="postgres")


def test_killed_writers_on_citus(writers: Writers, chance: random.Random) -> None:
    writers.survive(writers.kill, writers.moments(chance))


@pytest.fixture(params=["process", "server"])
def kill(request: pytest.FixtureRequest, dsn: str) -> Callable[[str], None]:
    """Kill one process of a node, or its server."""
    database = str(conninfo.conninfo_to_dict(dsn)["dbname"])
    if request.param == "server" and CRASH not in os.environ:
        pytest.skip(f"it needs {CRASH}, a command that kills a node and starts it again")

    def kill(node: str) -> None:
        if request.param == "server":
            place = conninfo.conninfo_to_dict(node)
            variables = {"NODE_HOST": str(place["host"]), "NODE_PORT": str(place["port"])}
            command = ["/bin/sh", "-c", os.environ[CRASH]]
            subprocess.run(command, env={**os.environ, **variables}, check=True)
        elif conninfo.conninfo_to_dict(node).get("host") in ("127.0.0.1", "localhost"):
            kill_a_process(node, database)
        else:
            pytest.skip("its processes are on another machine")
        wait_for(node)

    return kill


@pytest.mark.parametrize("role", ["coordinator", "worker"])
def test_a_killed_node(
    role: str, dsn: str, citus_nodes: list[str], writers: Writers, kill: Callable[[str], None],
    chance: random.Random,
) -> None:  # fmt: skip
    node = citus_nodes[0] if role == "coordinator" else node_of_the_schema(dsn)
    writers.survive(lambda: kill(node), writers.moments(chance))


def test_a_schema_moves_while_writers_run(dsn: str, writers: Writers) -> None:
    database = conninfo.conninfo_to_dict(dsn)["dbname"]

    def move() -> None:
        present = node_of_the_schema(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            others = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0"
            for place in connection.execute(others).fetchall():
                node = conninfo.make_conninfo(dsn, host=place[0], port=place[1], dbname=database)
                if node != present:
                    connection.execute("SELECT citus_schema_move('pgsimhash', %s, %s)", place)
                    return

    writers.survive(move, [50, 200])


def node_of_the_schema(dsn: str) -> str:
    """Return the DSN of the worker that has the tables."""
    shards = "SELECT nodename, nodeport FROM citus_shards"
    ((host, port),) = run_sql(dsn, f"{shards} WHERE table_name = 'pgsimhash.pages'::regclass")
    return conninfo.make_conninfo(dsn, host=host, port=port)
