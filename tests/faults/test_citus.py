"""Processes of a Citus cluster are killed while writers run: nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from tests.faults.writing import PATIENCE, Writers, survive

pytestmark = pytest.mark.skipif(
    "PGSIMHASH_TEST_CITUS_DSN" not in os.environ, reason="it is about Citus"
)

WRITERS = range(1, 9)


@pytest.fixture
def writers(dsn: str, tmp_path: Path) -> Writers:
    return Writers(dsn, tmp_path, WRITERS, pages=60)


def moments(chance: random.Random, writers: Writers) -> list[int]:
    """Two moments of a run, as numbers of pages."""
    return sorted(chance.randrange(1, len(WRITERS) * writers.pages) for _ in range(2))


def kill_a_process(node: str, database: str) -> None:
    """Kill a process of a node's server that serves a database; the server then begins again."""
    elsewhere = conninfo.make_conninfo(node, dbname="postgres")
    with psycopg.connect(elsewhere, autocommit=True) as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = %s AND backend_type = 'client backend' "
            "ORDER BY random() LIMIT 1",
            [database],
        ).fetchone()
    if found is not None:
        os.kill(found[0], signal.SIGKILL)
    latest = time.monotonic() + PATIENCE
    while time.monotonic() < latest:
        try:
            psycopg.connect(elsewhere, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the node does not come back")


def test_killed_writers_on_citus(
    writers: Writers, chance: random.Random, told: Callable[..., None]
) -> None:
    for outcome in survive(writers, writers.kill, moments(chance, writers)):
        told(outcome)


@pytest.mark.parametrize("whose", ["coordinator", "worker"])
def test_killed_nodes_of_citus(
    dsn: str,
    citus_nodes: list[str],
    writers: Writers,
    whose: str,
    chance: random.Random,
    told: Callable[..., None],
) -> None:
    database = str(conninfo.conninfo_to_dict(dsn)["dbname"])
    node = citus_nodes[0] if whose == "coordinator" else node_of_the_schema(dsn)
    if conninfo.conninfo_to_dict(node).get("host") not in ("127.0.0.1", "localhost"):
        pytest.skip("its processes are on another machine")
    for outcome in survive(
        writers, lambda: kill_a_process(node, database), moments(chance, writers)
    ):
        told(outcome)


def test_a_schema_moves_while_writers_run(
    dsn: str, writers: Writers, told: Callable[..., None]
) -> None:
    database = conninfo.conninfo_to_dict(dsn)["dbname"]

    def move() -> None:
        present = node_of_the_schema(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            nodes = connection.execute(
                "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0"
            ).fetchall()
            for host, port in nodes:
                node = conninfo.make_conninfo(dsn, host=host, port=port, dbname=database)
                if node != present:
                    connection.execute(
                        "SELECT citus_schema_move('pgsimhash', %s, %s)", [host, port]
                    )
                    return

    for outcome in survive(writers, move, [50, 200]):
        told(outcome)


def node_of_the_schema(dsn: str) -> str:
    """Return the DSN of the worker that has the tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        place = connection.execute(
            "SELECT nodename, nodeport FROM citus_shards "
            "WHERE table_name = 'pgsimhash.pages'::regclass"
        ).fetchone()
    assert place is not None
    return conninfo.make_conninfo(dsn, host=place[0], port=place[1])
