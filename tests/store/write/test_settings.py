"""Connections and databases with unusual settings and states."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import conninfo, sql

from pgsimhash import StoreError, Verdict, analysis, connect
from pgsimhash.cli.commands import commands
from pgsimhash.db.connections import open_connection
from pgsimhash.schema import migrate
from tests.database import let, run_sql
from tests.refusals import because, sqlstate
from tests.store.connect.test_sharing import FAR, HTML, URL
from tests.store.content import page_at, rebuild_apart
from tests.store.maintain.test_rebuilding_scheme import WORDS

WHEN = datetime(2025, 2, 1, 3, 4, 5, 678901, tzinfo=UTC)
DAY = timedelta(days=1)
AGE = timedelta(days=40, hours=-5, seconds=6)
SETTINGS = {
    "German": {"DateStyle": "German, DMY", "IntervalStyle": "sql_standard"},
    "SQL": {"DateStyle": "SQL, DMY", "IntervalStyle": "iso_8601"},
    "Postgres": {"DateStyle": "Postgres, MDY", "IntervalStyle": "postgres_verbose"},
    "Latin": {"client_encoding": "LATIN1"},
    "bytes and zone": {"bytea_output": "escape", "TimeZone": "<+09>-9"},
}


@pytest.mark.parametrize("own", [True, False], ids=["its own", "the caller's"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_times_ages_and_texts_come_back_under_any_settings(
    dsn: str, settings: dict[str, str], own: bool
) -> None:
    let(dsn, settings)
    with psycopg.connect(dsn, autocommit=True) as connection:
        if not own and "client_encoding" in settings:
            connection.execute("SET client_encoding TO 'UTF8'")
        with connect(dsn if own else connection, keep_markdown=True) as store:
            set_now = store.set_policy("a.example", max_age=AGE, expire_after=AGE * 9)
            for made in (set_now, *store.policies()):
                assert (made.max_age, made.expire_after) == (AGE, AGE * 9)
                assert made.set_at is not None
                assert made.set_at.tzinfo is not None
            title = "Łódź, 東京 und \U0001f6a2"
            html = f"<title>{title}</title>{HTML}"
            store.start_run("a test")
            for number, days in ((0, 0), (1, 1), (1, 2), (0, 3)):
                store.ingest(f"{URL}{number}", html, fetched_at=WHEN + days * DAY)
            store.add_page(f"{URL}0", FAR, fetched_at=WHEN + 4 * DAY)
            store.mark(f"{URL}0", f"{URL}1", same=True)
            undone = store.start_run("an undone test")
            store.ingest(f"{URL}1", html, fetched_at=WHEN + 5 * DAY)
            store.undo_run(undone)
            found = page_at(store, f"{URL}1")
            times = (found.fetched_at, found.seen_at)
            assert (found.title, *times) == (title, WHEN + DAY, WHEN + 2 * DAY)
            versions = analysis.versions(store, f"{URL}0")
            assert [one.fetched_at for one in versions] == [WHEN, WHEN + 4 * DAY]
            assert versions[0].seen_at == WHEN + 3 * DAY
            assert WHEN + DAY in {page.fetched_at for page in store.near_pages(found.simhash)}
            (cluster,) = store.clusters(8)
            assert {page.fetched_at for page in cluster.pages} == {WHEN + DAY, WHEN + 4 * DAY}
            (run,) = store.runs()
            assert abs(run.finished_at - store.marks()[0].marked_at) < DAY / 99
            assert len(analysis.report(store).changed) == 1
            assert store.should_fetch(f"{URL}0", older_than=AGE)
            explained = analysis.compare_pages(f"{URL}0", f"{URL}1", store=store)
            assert explained.a.fetched_at == WHEN + 4 * DAY
            told: list[Verdict] = []
            store.rebuild(max_age=AGE, replace=True, verdicts=told.append)
            assert len(told) == 3
            rebuild_apart(store, "copy", scheme=WORDS, verdicts=told.append)
            assert [one.kind for one in told[3:]] == ["new", "duplicate", "failed"]
            assert store.expire(AGE).deleted == 3


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
def other_encoding(server_dsn: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The DSN of an empty database with another encoding than UTF-8."""
    name = f"pgsimhash_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        # From 15 on, the locale of a server may support only UTF-8.
        of_libc = connection.info.server_version >= 150000
        statement = sql.SQL(
            "CREATE DATABASE {} ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
            + (" LOCALE_PROVIDER libc" if of_libc else "")
        )
        connection.execute(statement.format(sql.Identifier(name), request.param))
    yield conninfo.make_conninfo(server_dsn, dbname=name)
    run_sql(server_dsn, sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def test_a_database_that_cannot_hold_every_text_is_refused(other_encoding: str) -> None:
    fix = "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
    with psycopg.connect(other_encoding) as connection:
        for use, where in ((connect, other_encoding), (connect, connection)):
            with pytest.raises(StoreError, match=fix):
                use(where)
        with pytest.raises(StoreError, match=fix):
            migrate.upgrade(other_encoding)
        connection.rollback()
        with pytest.raises(psycopg.Error, check=sqlstate("PS030"), match=fix):
            connection.execute(migrate.upgrade_sql().encode())
    for command in (["migrate"], ["status"]):
        done = CliRunner().invoke(commands, [*command, "--dsn", other_encoding])
        assert done.exit_code == 3
        assert len(done.stderr.splitlines()) == 1
        assert fix in done.stderr


def test_a_connection_of_another_encoding_is_refused_and_its_own_has_utf8(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    let(dsn, {"client_encoding": "LATIN2"})
    with open_connection(f"{dsn} client_encoding=LATIN9") as connection:
        assert connection.info.encoding == "utf-8"
    with psycopg.connect(dsn) as connection:
        with pytest.raises(StoreError, match="SET client_encoding TO 'UTF8'"):
            connect(connection)
        connection.execute("SET client_encoding TO 'UTF8'")
        connect(connection)


def test_array_nulls_and_standard_conforming_strings_off_are_refused(dsn: str) -> None:
    with pytest.raises(StoreError, match="SET array_nulls TO on", check=because("unsuitable")):
        connect(f"{dsn} options='-c array_nulls=off'")
    with connect(dsn):
        let(dsn, {"standard_conforming_strings": "off"})
    with pytest.raises(StoreError, match="ALTER DATABASE name RESET standard_conforming_strings"):
        connect(dsn)
    with psycopg.connect(dsn) as connection:
        with pytest.raises(StoreError, match="SET standard_conforming_strings TO on"):
            connect(connection)
        connection.execute("SET standard_conforming_strings TO on")
        connect(connection)


def test_a_pooler_that_mixes_up_prepared_statements_is_named(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        # As another client of the pooler left it.
        connection.execute("PREPARE _pg3_0 AS SELECT 1", prepare=False)
        with pytest.raises(StoreError, match=r"already exists.*prepare_threshold=None"):
            connect(connection)
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection:
        store = connect(connection)
        store.find(0)
        connection.pgconn.exec_(b"DEALLOCATE ALL")
        with pytest.raises(StoreError, match=r"does not exist.*prepare_threshold=None"):
            store.find(0)
        for number in range(9):
            connection.execute(f"PREPARE _pg3_{number} AS SELECT $1 + 1".encode(), prepare=False)
        with pytest.raises(StoreError, match=r"bind message.*prepare_threshold=None"):
            store.find(0)
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("PREPARE _pg3_0 AS SELECT 1")
        store = connect(connection)
        for number in range(20):
            store.add_page(f"{URL}{number}", number)
