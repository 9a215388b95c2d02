"""Clusters to damage, and how often: PGSIMHASH_FAULT_ROUNDS, 1 if it is not set.

PGSIMHASH_FAULT_REPORT names a file to which each test appends its measurements as a JSON line:
``python bench/faults.py`` reads it.
"""

import json
import os
import random
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from pgsimhash.schema import migrate
from pgsimhash.testing import folder_in_memory
from tests.faults.cluster import Cluster, programs
from tests.faults.writing import Outcome, Writers

ROUNDS = int(os.environ.get("PGSIMHASH_FAULT_ROUNDS", "1"))
REPORT = os.environ.get("PGSIMHASH_FAULT_REPORT")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and programs() is None:
            item.add_marker(pytest.mark.skip(reason="no PostgreSQL is installed"))


@contextmanager
def a_cluster() -> Iterator[Cluster]:
    """Lend a new cluster, stopped and deleted after the block."""
    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-faults-", dir=folder_in_memory()))
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def running() -> Iterator[Cluster]:
    """A cluster that the tests share, with a database with the schema."""
    with a_cluster() as cluster:
        cluster.make()
        cluster.start()
        cluster.execute("CREATE DATABASE deployed TEMPLATE template0")
        migrate.upgrade(cluster.dsn("deployed"))
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """The same, with its original settings restored afterwards."""
    yield running
    if running.process is None or running.process.poll() is not None:
        running.start()
    running.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")


@pytest.fixture
def where(cluster: Cluster) -> str:
    """A new database with the schema."""
    return fresh(cluster)


def fresh(cluster: Cluster) -> str:
    name = f"faults_{uuid.uuid4().hex[:12]}"
    cluster.execute(f"CREATE DATABASE {name} TEMPLATE deployed")
    return cluster.dsn(name)


@pytest.fixture(params=range(ROUNDS))
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers, reproducible by the number of the round."""
    return random.Random(int(request.param))


@pytest.fixture
def writers_of(tmp_path: Path, told: Callable[..., None]) -> Callable[..., Writers]:
    """Writers of a database, whose outcomes are recorded."""
    return partial(Writers, folder=tmp_path, told=told)


@pytest.fixture
def writers(where: str, writers_of: Callable[..., Writers]) -> Writers:
    return writers_of(where)


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Record the outcomes of a test."""
    figures: Counter[str] = Counter()

    def add(outcome: Outcome, **more: float) -> None:
        counts = outcome._asdict() | {"faults": 1, "violations": len(outcome.violations)}
        largest = {"acknowledged": counts.pop("acknowledged"), **more}
        figures.update(counts)
        for name, value in largest.items():
            figures[name] = max(figures[name], value)

    yield add
    if REPORT is not None:
        name = str(getattr(request.node, "originalname", request.node.name))
        with Path(REPORT).open("a") as report:
            report.write(json.dumps({"test": name, **figures}) + "\n")
