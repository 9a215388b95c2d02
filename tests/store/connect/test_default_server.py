"""Which server is used without a DSN, and what is loaded for it."""

import pytest
from psycopg import conninfo

from pgsimhash import connect
from pgsimhash.db import dsn as servers
from tests.programs import python

LIBPQ_NAMES = {
    "host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    for name in (servers.DSN_VARIABLE, "DATABASE_URL", *servers.LIBPQ_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pgsimhash.embedded.start", lambda: dsn)
    servers._log_variable.cache_clear()


def test_one_of_libpqs_variables_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert servers.configured_dsn() is None
    for name in servers.LIBPQ_VARIABLES:
        with monkeypatch.context() as context:
            context.setenv(name, "x")
            assert servers.resolve_dsn() == ""
            assert servers.configured_dsn("embedded") == "embedded"
    monkeypatch.setenv("DATABASE_URL", "mysql://localhost/app")
    assert servers.configured_dsn() is None


def test_libpqs_variables_name_the_server_as_for_psql(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect(dsn).close()
    monkeypatch.setattr("pgsimhash.embedded.start", lambda: pytest.fail("not asked for"))
    for name, value in conninfo.conninfo_to_dict(dsn).items():
        monkeypatch.setenv(LIBPQ_NAMES[name], str(value))
    with connect() as store, store._session.connection_to_read() as connection:
        assert connection.info.dbname == conninfo.conninfo_to_dict(dsn)["dbname"]
    assert not caplog.records


def test_database_url_is_used_and_named(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = "postgresql+asyncpg://ann:se?cret@db.example:5433/crawl?sslmode=require"
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("PGHOST", "elsewhere")
    for _ in range(2):
        assert servers.resolve_dsn() == url.replace("+asyncpg", "")
    (record,) = caplog.records
    assert "using the server of DATABASE_URL; name another" in record.getMessage()
    monkeypatch.setenv(servers.DSN_VARIABLE, dsn)
    assert servers.resolve_dsn() == dsn


def test_a_dsn_needs_no_module_of_unix(dsn: str) -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys(["fcntl", "pwd", "pgsimhash.embedded"]))
import pgsimhash.store
from pgsimhash import connect
with connect({dsn!r}) as store:
    print(store.status())
"""
    connect(dsn).close()
    python(code)
