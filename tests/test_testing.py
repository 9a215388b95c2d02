"""The fixtures for users' own tests, in a separate project."""

import threading

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from psycopg import conninfo
from sqlalchemy import make_url

from pgsimhash.testing import fresh_database, url_of_dsn
from tests.database import as_role, new_role, run_sql
from tests.manual import blocks

pytest_plugins = ["pytester"]

TESTS = """
import psycopg
import sqlalchemy

import pgsimhash


def test_one(pgsimhash_store, pgsimhash_dsn):
    assert pgsimhash_store.add_page("https://a.example/", 7).keep
    with pgsimhash.connect(pgsimhash_dsn, create=False) as other:
        assert other.has_near(7)


def test_two_knows_nothing_of_it(pgsimhash_store):
    assert not pgsimhash_store.has_near(7)


def test_nothing_is_there(pgsimhash_empty_dsn):
    with psycopg.connect(pgsimhash_empty_dsn) as connection:
        names = connection.execute("SELECT to_regnamespace('pgsimhash')").fetchone()
    assert names == (None,)


def test_urls_for_sqlalchemy(pgsimhash_url, pgsimhash_empty_url):
    for url, names in ((pgsimhash_url, ["pgsimhash"]), (pgsimhash_empty_url, [])):
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            found = connection.scalars(sqlalchemy.text(
                "SELECT nspname FROM pg_namespace WHERE nspname = 'pgsimhash'"
            ))
            assert found.all() == names
        engine.dispose()
    with pgsimhash.connect(pgsimhash_url) as store:
        assert not store.has_near(7)


def test_the_first_one_is_gone(pgsimhash_server):
    with psycopg.connect(pgsimhash_server) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_database WHERE datname LIKE 'pgsimhash_test_%'"
        ).fetchone()
    assert left[0] >= 1
"""


def test_each_test_of_theirs_has_a_database_of_its_own(
    pytester: pytest.Pytester, server_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSIMHASH_TEST_DSN", server_dsn)
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess("-q")
    done.assert_outcomes(passed=5)


REVISION = """
from alembic import op
import sqlalchemy
import pgsimhash.alembic

revision, down_revision = "1", None

def upgrade():
    pgsimhash.alembic.upgrade(op, revision="0001")
    op.create_table("articles", sqlalchemy.Column("url", sqlalchemy.Text))
"""
SERVICE = """
import pgsimhash
import sqlalchemy

def test_service(service_url):
    assert "%" in service_url
    with pgsimhash.connect(service_url) as store:
        assert not store.has_near(7)
    engine = sqlalchemy.create_engine(service_url)
    assert sqlalchemy.inspect(engine).has_table("articles")
    engine.dispose()
"""


def test_a_service_with_its_own_history(
    pytester: pytest.Pytester, server_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alembic's own template of a history, and the fixture of docs/testing.md."""
    server = conninfo.make_conninfo(server_dsn, application_name="a%b")
    monkeypatch.setenv("PGSIMHASH_TEST_DSN", server)
    command.init(Config("alembic.ini"), "history")
    (pytester.path / "history" / "versions" / "1.py").write_text(REVISION)
    (recipe,) = (block for block in blocks("testing.md", "python") if "service_url" in block)
    pytester.makeconftest(recipe)
    pytester.makepyfile(SERVICE)
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_a_project_without_such_tests_loads_nothing(pytester: pytest.Pytester) -> None:
    # As before there was an entry point.
    pytester.makeconftest('pytest_plugins = ["pgsimhash.testing"]')
    pytester.makepyfile("""
    import sys

    def test_nothing():
        assert "pgsimhash.testing" in sys.modules
        assert not {"alembic", "docker", "lxml", "numpy", "psycopg", "sqlalchemy"} & {*sys.modules}
    """)
    pytester.runpytest_subprocess("-q", "-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_a_user_who_may_end_no_process_of_others_drops_its_databases(server_dsn: str) -> None:
    with new_role(server_dsn, "CREATEDB") as role:
        with fresh_database(as_role(server_dsn, role)) as dsn:
            name = conninfo.conninfo_to_dict(dsn)["dbname"]
            # It is there for a moment, like autovacuum.
            other = psycopg.connect(conninfo.make_conninfo(server_dsn, dbname=name))
            threading.Timer(0.5, other.close).start()
        known = "SELECT datname FROM pg_database WHERE datname = %s"
        assert run_sql(server_dsn, known, [name]) == []


def test_a_url_has_all_that_the_dsn_has() -> None:
    dsn = (
        "host=/tmp/a,b.example port=5432,5433 user=u@x password='p@ss%word/' dbname=d "
        "sslmode=disable"
    )
    url = url_of_dsn(dsn)
    assert url.startswith("postgresql+psycopg://")
    _, parameters = make_url(url).get_dialect()().create_connect_args(make_url(url))
    assert parameters == conninfo.conninfo_to_dict(dsn)
