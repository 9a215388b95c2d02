"""A real PostgreSQL for the tests, and a new database for each: see ``pgsimhash.testing``."""

import os
import signal
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings

from pgsimhash import Store, testing
from pgsimhash.html import implementation
from pgsimhash.schemes import registry

pytest_plugins = ["pgsimhash.testing", "tests.sent_statements", "tests.forks"]

ON_CITUS = bool(os.environ.get("PGSIMHASH_TEST_CITUS_DSN"))

if ON_CITUS:
    # Over those of the same names in pgsimhash.testing.
    pytest_plugins.append("tests.citus")

# A busy machine says nothing about the code.
settings.register_profile("pgsimhash", deadline=None)
settings.load_profile("pgsimhash")

ROOT = Path(__file__).parent.parent

LONG = (
    "alembic", "batch/test_parquet.py", "batch/test_spark.py", "embedded", "faults",
    "html/test_hostile_html.py", "html_reports/test_in_a_browser.py",
    "schemes/test_blog.py", "store/connect/test_pooler.py", "store/schema/test_hijacking.py",
    "store/schema/test_second_schema.py", "store/write/test_ingest_job.py", "test_docs.py",
    "test_examples.py", "test_scrapy", "test_testing.py", "test_web_service.py",
)  # fmt: skip
"""Tests that only `./run check` runs; more are marked one by one."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Background jobs ignore Ctrl-C, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)


HAS_READABILITY = find_spec("readability") is not None
"""Not with Python 3.15 or later."""

collect_ignore = [] if HAS_READABILITY else ["schemes/test_blog.py"]


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than cores: tests wait too, for the server and for processes."""
    return (yield) + 1


def pytest_report_header() -> list[str]:
    server = testing.DSN_VARIABLE if os.environ.get(testing.DSN_VARIABLE) else "embedded server"
    if server == "embedded server" and testing._docker_answers():
        server = f"testcontainers {testing._image()}"
    return [f"PostgreSQL: {server}", f"pgsimhash: pages are read in {implementation()}"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of LONG, and on Citus those that cannot hold there."""
    for item in items:
        for mark in item.iter_markers("one_server") if ON_CITUS else ():
            item.add_marker(pytest.mark.skip(reason=f"not on Citus: {mark.args[0]}"))
        if item.path.as_posix().removeprefix(f"{ROOT.as_posix()}/tests/").startswith(LONG):
            item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the schemes that a test registers."""
    monkeypatch.setattr(registry, "_schemes", dict(registry._schemes))


@pytest.fixture(scope="session")
def server_dsn(pgsimhash_server: str) -> str:
    return pgsimhash_server


@pytest.fixture
def dsn(pgsimhash_dsn: str) -> str:
    return pgsimhash_dsn


@pytest.fixture
def empty_dsn(pgsimhash_empty_dsn: str) -> str:
    return pgsimhash_empty_dsn


@pytest.fixture
def store(pgsimhash_store: Store) -> Store:
    return pgsimhash_store


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to a new database with the schema; nothing is committed."""
    with psycopg.connect(dsn) as opened:
        yield opened
        opened.rollback()
