"""The tables in a schema with another name: alone in a database, or next to ``pgsimhash``."""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from pgsimhash import Store, connect, maintenance
from pgsimhash.cli.commands import commands
from pgsimhash.db import statements
from pgsimhash.db.schema_names import (
    SCHEMA,
    bound_to_schema,
    check_schema_name,
    in_schema,
    read_sql,
    schema_of,
)
from pgsimhash.errors import ArgumentError, SchemaError, StoreError
from pgsimhash.maintenance.collections import delete_collection
from pgsimhash.pages.policies import MatchOptions, PolicySettings
from pgsimhash.schema import migrate
from pgsimhash.schema.deployed import check_schema, checked_connection, schema_revision
from pgsimhash.schema.scripts import drop_statements, schema_script
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.store.collection import collection_names
from tests.conftest import ROOT
from tests.database import run_sql
from tests.programs import run_program
from tests.refusals import because
from tests.store.calls import CHANGES, DAY, READS, A, B
from tests.store.content import rebuild_apart
from tests.store.maintain.test_rebuilding_scheme import WORDS
from tests.store.schema.test_schema import dump
from tests.store.test_store import FAR, page, paragraph

CRAWL = "crawl"
NOW = datetime.now(UTC)
PAIR = [("https://c.example/1", 5), ("https://c.example/2", 7)]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSIMHASH_SCHEMA", raising=False)


@pytest.fixture
def crawl_dsn(empty_dsn: str) -> str:
    """The DSN of a database that only has the schema ``crawl``."""
    migrate.upgrade(empty_dsn, schema=CRAWL)
    return empty_dsn


@pytest.fixture
def both_dsn(dsn: str) -> str:
    """The DSN of a database with both schemas."""
    migrate.upgrade(dsn, schema=CRAWL)
    return dsn


def tables(dsn: str, schema: str) -> list[Any]:
    return run_sql(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])


def fill(store: Store) -> None:
    for number, age in ((1, 90), (2, 80), (2, 70), (3, 60), (4, 1)):
        html = page(paragraph(number), paragraph(number + age))
        store.ingest(f"https://a.example/{number}", html, fetched_at=NOW - age * DAY)
    for url in (A, B, B):
        store.ingest(url, page(paragraph(1), paragraph(91)))
    list(store.add_many(PAIR, window_size=9))
    wide = MatchOptions(scope="global", distance=3, max_age=DAY, verify=True)
    list(store.add_many([("https://c.example/3", FAR)], **wide))


def work_on(dsn: str, schema: str) -> None:
    """Call everything in a schema; at the end it has one collection fewer."""
    file = ROOT / "examples" / "pages" / "tide-pools.html"
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        connect(dsn, collection="one", keep_markdown=True, schema=schema) as opened,
    ):
        lent = connect(connection, collection="two", keep_markdown=True, schema=schema)
        for store in (opened, lent):
            fill(store)
            assert [match.url for match in store.find(5, 3)] == [url for url, _ in PAIR]
            for read in READS.values():
                read(store)
            assert store.save_clusters(8)
            assert [len(list(maintenance.ingest_files(store, [file]))) for _ in range(2)] == [1, 0]
            rebuild_apart(store, f"{store.collection} rebuilt", scheme=WORDS)
            maintenance.rebuild(store, distance=3, scope="global", replace=True)
            assert list(maintenance.check(store, repair=True)) == []
            maintenance.set_policy(store, "a.example/*", PolicySettings(expire_after=30 * DAY))
            assert store.expire().versions == 4
            for change in CHANGES.values():
                change(store)
        assert "one_renamed" in collection_names(connection)
        delete_collection(connection, "one_renamed")


def test_everything_works_where_there_is_no_schema_pgsimhash(crawl_dsn: str) -> None:
    work_on(crawl_dsn, CRAWL)
    assert run_sql(crawl_dsn, "SELECT to_regnamespace('pgsimhash')") == [(None,)]


@pytest.mark.one_server("it compares with a schema without Citus")
def test_both_schemas_are_equal_except_for_the_name(both_dsn: str) -> None:
    renamed = dump(both_dsn, CRAWL).replace('"crawl".', "pgsimhash.").replace(CRAWL, SCHEMA)
    assert renamed == dump(both_dsn)


def test_downgrade_drops_one_schema_and_leaves_the_other(both_dsn: str) -> None:
    before = dump(both_dsn)
    for layout in ("5 choose 2", None):
        connect(both_dsn, schema=CRAWL).close()
        migrate.downgrade(both_dsn, schema=CRAWL)
        assert dump(both_dsn) == before
        assert tables(both_dsn, CRAWL) == [(migrate.VERSION_TABLE,)]
        migrate.upgrade(both_dsn, schema=CRAWL, layout=layout)


def test_writers_of_one_do_not_wait_for_those_of_the_other(both_dsn: str) -> None:
    """Their first collections have the same id."""
    with psycopg.connect(both_dsn) as held, psycopg.connect(both_dsn, autocommit=True) as other:
        store = connect(held)
        held.commit()
        store.add("https://a.example/", 1)
        other.execute("SET lock_timeout = '5s'")
        same = connect(other, schema=CRAWL)
        assert same.opened.collection_id == store.opened.collection_id
        same.add("https://a.example/", 1)
        maintenance.rename(same, "renamed")
        held.rollback()


def test_sent_and_deployed_sql_has_only_the_new_name() -> None:
    texts = [schema_script(CRAWL), migrate.upgrade_sql(schema=CRAWL)]
    texts += [statements.call_of(name, CRAWL) for name in statements._functions()]
    texts += [in_schema(read_sql(name), CRAWL) for name in ("deployed.sql", "worker.sql")]
    texts += [in_schema(read_sql("schema.sql"), CRAWL), *drop_statements(CRAWL)]
    texts += [schema_script(CRAWL, layout) for layout in LAYOUTS.values()]
    for script in texts:
        for line in re.sub("--.*", "", script).splitlines():
            # Only commands in hints, and names that merely begin with it, remain.
            rest = re.sub(r"pgsimhash (mark|collection|policy) |pgsimhash_caller", "", line)
            assert "pgsimhash" not in rest, line


# A keyword, a name of aliases, and the longest name.
@pytest.mark.parametrize("name", ["user", "c", "x" * 63])
def test_a_plain_name_of_any_kind_can_be_a_schemas(empty_dsn: str, name: str) -> None:
    migrate.upgrade(empty_dsn, schema=name)
    with connect(empty_dsn, schema=name) as store:
        fill(store)
        assert store.find(5)
        maintenance.rebuild(store, replace=True)
        store.expire(DAY)
        maintenance.rename(store, "renamed")
    migrate.downgrade(empty_dsn, schema=name)


OTHER_NAMES = (
    *("", 'x"; DROP SCHEMA pgsimhash CASCADE; --', "x'", "a.b", "a b", "a-b", "x\n", "%s", "{}"),
    *("Crawl", "é", "\uff41", "1x", "x" * 64, "pg_x", "pg_catalog", "information_schema", "public"),
)


def test_any_other_name_is_refused_and_nothing_is_done(empty_dsn: str) -> None:
    for name in OTHER_NAMES:
        refused: list[Callable[[str], object]] = [
            check_schema_name,
            lambda name: connect(empty_dsn, schema=name),
            lambda name: migrate.upgrade(empty_dsn, schema=name),
            lambda name: migrate.downgrade(empty_dsn, schema=name),
            lambda name: migrate.upgrade_sql(schema=name),
        ]
        for call in refused:
            with pytest.raises(
                ArgumentError, match="give one of 1 to 63", check=because("invalid_argument")
            ):
                call(name)
        done = CliRunner().invoke(commands, ["migrate", "--dsn", empty_dsn, "--schema", name])
        assert done.exit_code == 2
        assert "give one of 1 to 63" in done.stderr
    made = run_sql(
        empty_dsn,
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|citus)' "
        "AND nspname NOT IN ('public', 'information_schema')",
    )
    assert made == []


def test_a_connection_works_with_one_schema(both_dsn: str) -> None:
    with psycopg.connect(both_dsn, autocommit=True) as connection:
        with pytest.raises(
            SchemaError, match=r"nowhere is not in .*: pgsimhash migrate --schema now"
        ):
            connect(connection, schema="nowhere")
        assert schema_of(connection) == SCHEMA
        store = connect(connection, schema=CRAWL)
        store.add("https://a.example/", 1)
        for other in (SCHEMA, "another"):
            with pytest.raises(
                StoreError, match="uses the schema crawl", check=because("wrong_transaction")
            ):
                connect(connection, schema=other)
        assert connect(connection, create=False).find(1)
        assert schema_of(connection) == CRAWL
        check_schema(connection)
    with connect(both_dsn) as store:
        assert not store.find(1)


def test_the_variable_names_the_schema_where_none_is_given(
    both_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSIMHASH_SCHEMA", CRAWL)
    with connect(both_dsn) as store:
        store.add("https://a.example/", 1)
    with checked_connection(both_dsn) as connection:
        assert collection_names(connection) == ["default"]
    with checked_connection(both_dsn, SCHEMA) as connection:
        assert collection_names(connection) == []
    migrate.downgrade(both_dsn)
    with psycopg.connect(both_dsn) as connection, bound_to_schema(connection):
        assert schema_revision(connection) is None
    monkeypatch.setenv("PGSIMHASH_SCHEMA", "Crawl")
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        connect(both_dsn)
    monkeypatch.setenv("PGSIMHASH_SCHEMA", "")
    with connect(both_dsn) as store:
        assert store.find(1) == []


def run(dsn: str, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(commands, [*arguments, "--dsn", dsn])
    assert done.exit_code == code, done.stderr
    return done.stdout + done.stderr


def test_commands_take_a_schema_by_their_option_or_the_variable(
    empty_dsn: str, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ["--schema", CRAWL]
    told = run(empty_dsn, "migrate", *there, "--layout", "32+32")
    assert "The schema crawl is at revision 0001" in told
    run(empty_dsn, "ingest", str(ROOT / "examples" / "pages"), *there, "--jobs", "1")
    assert '"pages": 0' not in run(empty_dsn, "status", *there)
    monkeypatch.setenv("PGSIMHASH_SCHEMA", CRAWL)
    assert '"layout": "32+32"' in run(empty_dsn, "collection", "list")
    run(empty_dsn, "status", "--schema", SCHEMA, code=3)
    monkeypatch.delenv("PGSIMHASH_SCHEMA")
    told = run(empty_dsn, "migrate", "--downgrade", "base", "--yes", *there)
    assert "The schema crawl is at revision base" in told
    assert run(dsn, "status") == ""


@pytest.mark.one_server("Citus sends all statements of a string to the workers")
def test_the_script_deploys_the_same(empty_dsn: str) -> None:
    options = ["--schema", CRAWL, "--layout", "5 choose 2"]
    run(empty_dsn, "migrate", *options)
    before = dump(empty_dsn, CRAWL)
    run_sql(empty_dsn, "DROP SCHEMA crawl CASCADE")
    run_sql(empty_dsn, run(empty_dsn, "migrate", "--sql", *options))
    assert dump(empty_dsn, CRAWL) == before


def test_alembic_deploys_and_downgrades_a_schema(empty_dsn: str) -> None:
    def alembic(*arguments: str, fails: bool = False) -> str:
        command = (sys.executable, "-m", "alembic", *arguments)
        done = run_program(*command, PGSIMHASH_DSN=empty_dsn)
        assert bool(done.returncode) == fails, done.stderr
        return done.stdout + done.stderr

    told = alembic("-x", f"schema={CRAWL}", "upgrade", "head")
    assert "Migrations of pgsimhash: schema crawl in database" in told
    assert "Warning" not in told
    alembic("-x", f"schema={CRAWL}", "downgrade", "base")
    assert tables(empty_dsn, CRAWL) == [(migrate.VERSION_TABLE,)]
    told = alembic("-x", "schema=Crawl", "upgrade", "head", fails=True)
    assert "'Crawl' cannot be the schema's name" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("opened", [False, True], ids=["by the environment", "by its store"])
def test_a_raw_connection_works_with_the_schema_that_is_configured(
    both_dsn: str, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    """A collection of the same name in the other schema stays, and is not checked."""
    for schema in (SCHEMA, CRAWL):
        with connect(both_dsn, schema=schema) as store:
            store.add("https://a.example/", 1)
    with psycopg.connect(both_dsn, autocommit=True) as connection:
        connection.execute("UPDATE crawl.pages SET indexed = false")
        if opened:
            connect(connection, schema=CRAWL)
        else:
            monkeypatch.setenv("PGSIMHASH_SCHEMA", CRAWL)
        with connect(connection, create=False) as store:
            assert [one.reason for one in maintenance.check(store)] == ["simhash_missing"]
    with psycopg.connect(both_dsn, autocommit=True) as connection:
        if opened:
            connect(connection, schema=CRAWL)
        assert maintenance.delete_collection(connection, "default") == 1
    left = [len(run_sql(both_dsn, f"SELECT FROM {schema}.pages")) for schema in (SCHEMA, CRAWL)]
    assert left == [1, 0]
