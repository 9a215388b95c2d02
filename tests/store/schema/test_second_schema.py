"""The tables in a schema with another name: alone in a database, or next to ``pgsimhash``."""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from click.testing import CliRunner

from pgsimhash import Store, connect
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
from pgsimhash.schema import migrate
from pgsimhash.schema.deployed import check_schema, checked_connection, schema_revision
from pgsimhash.schema.scripts import drop_statements, schema_script
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.store.collection import collection_names
from tests.conftest import ROOT
from tests.database import run_sql
from tests.programs import run_program
from tests.refusals import because
from tests.sent_statements import SENT_FILES
from tests.store.calls import CHANGES, DAY, READS, A, B
from tests.store.content import rebuild_apart
from tests.store.maintain.test_rebuilding_scheme import WORDS
from tests.store.pages import page, paragraph
from tests.store.schema.test_schema import dump

CRAWL = "crawl"
NOW = datetime.now(UTC)
PAIR = [("https://c.example/1", 5), ("https://c.example/2", 7)]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSIMHASH_SCHEMA", raising=False)


@pytest.fixture
def both_dsn(dsn: str) -> str:
    """The DSN of a database with both schemas."""
    migrate.upgrade(dsn, schema=CRAWL)
    return dsn


def fill(store: Store) -> None:
    """Fill a collection, as calls of ``tests.store.calls`` need it."""
    for number, age in ((1, 90), (2, 80), (2, 70), (3, 60), (4, 1)):
        html = page(paragraph(number), paragraph(number + age))
        store.ingest(f"https://a.example/{number}", html, fetched_at=NOW - age * DAY)
    list(
        store.add_pages(
            [(A, 0xFFFF << 40), (B, 0xFFFF << 40), *PAIR], scope="global", window_size=9
        )
    )


def test_everything_works_where_there_is_no_schema_pgsimhash(empty_dsn: str) -> None:
    migrate.upgrade(empty_dsn, schema=CRAWL)
    file = ROOT / "examples" / "pages" / "tide-pools.html"
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        for name, where in (("one", empty_dsn), ("two", connection)):
            with connect(
                where, collection=name, create=True, keep_markdown=True, schema=CRAWL
            ) as store:
                fill(store)
                assert [match.url for match in store.find(5, 3)] == [url for url, _ in PAIR]
                assert store.save_clusters(8)
                assert len(list(store.ingest_files([file]))) == 1
                rebuild_apart(store, f"{name} rebuilt", scheme=WORDS)
                store.set_policy("a.example/*", expire_after=30 * DAY)
                assert store.expire().deleted == 4
                for call in {**READS, **CHANGES}.values():
                    call(store)
        connect(connection, collection="one_renamed", schema=CRAWL).delete_collection()
        assert "one_renamed" not in collection_names(connection)
    assert run_sql(empty_dsn, "SELECT to_regnamespace('pgsimhash')") == [(None,)]


@pytest.mark.one_server("it compares with a schema without Citus")
def test_both_schemas_are_equal_except_for_the_name(both_dsn: str) -> None:
    renamed = re.sub(
        rf"\b{CRAWL}\b", SCHEMA, dump(both_dsn, CRAWL).replace('"crawl".', "pgsimhash.")
    )
    assert renamed == dump(both_dsn)


def test_downgrade_drops_one_schema_and_leaves_the_other(both_dsn: str) -> None:
    before = dump(both_dsn)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    for layout in ("5 choose 2", None):
        connect(both_dsn, schema=CRAWL).close()
        down = ["migrate", "--downgrade", "base", "--yes", "--schema", CRAWL, "--dsn", both_dsn]
        assert "The schema crawl is at" in CliRunner().invoke(commands, down).stderr
        assert dump(both_dsn) == before
        assert run_sql(both_dsn, tables, [CRAWL]) == []
        migrate.upgrade(both_dsn, schema=CRAWL, layout=layout)


def test_writers_of_one_do_not_wait_for_those_of_the_other(both_dsn: str) -> None:
    """Their first collections have the same id."""
    with psycopg.connect(both_dsn) as held, psycopg.connect(both_dsn, autocommit=True) as other:
        store = connect(held)
        held.commit()
        store.add_page("https://a.example/", 1)
        other.execute("SET lock_timeout = '5s'")
        same = connect(other, schema=CRAWL)
        assert same.collection.collection_id == store.collection.collection_id
        same.add_page("https://a.example/", 1)
        same.rename("renamed")
        held.rollback()


def test_sent_and_deployed_sql_has_only_the_new_name() -> None:
    texts = [schema_script(CRAWL), migrate.upgrade_sql(schema=CRAWL)]
    texts += [statements.call_of(name, CRAWL) for name in statements._functions()]
    texts += [in_schema(read_sql(name), CRAWL) for name in SENT_FILES]
    texts += [in_schema(read_sql("schema.sql"), CRAWL), *drop_statements(CRAWL)]
    texts += [schema_script(CRAWL, layout) for layout in LAYOUTS.values()]
    for script in texts:
        for line in re.sub("--.*", "", script).splitlines():
            # Only commands in hints, a setting, and names that merely begin with it, remain.
            rest = re.sub(
                r"pgsimhash (mark|collection|policy) |pgsimhash_caller|pgsimhash\.search_path",
                "", line,
            )  # fmt: skip
            assert "pgsimhash" not in rest, line


# A keyword, a name of aliases, and the longest name.
@pytest.mark.parametrize("name", ["user", "c", "x" * 63])
def test_a_plain_name_of_any_kind_can_be_a_schemas(empty_dsn: str, name: str) -> None:
    migrate.upgrade(empty_dsn, schema=name)
    with connect(empty_dsn, schema=name) as store:
        fill(store)
        assert store.find(5)
        store.rebuild(replace=True)
        store.expire(DAY)
        store.rename("renamed")
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
    by_alembic = (sys.executable, "-m", "alembic", "-x", "schema=Crawl", "upgrade", "head")
    said = run_program(*by_alembic, PGSIMHASH_DSN=empty_dsn)
    assert "'Crawl' cannot be the schema's name" in said.stdout + said.stderr
    assert "Traceback" not in said.stdout + said.stderr
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
        store.add_page("https://a.example/", 1)
        for other in (None, SCHEMA, "another"):
            with pytest.raises(
                StoreError, match="uses the schema crawl", check=because("wrong_transaction")
            ):
                connect(connection, schema=other)
        assert connect(connection, schema=CRAWL, create=False).find(1)
        assert schema_of(connection) == CRAWL
        check_schema(connection)
    with connect(both_dsn) as store:
        assert not store.find(1)


def test_the_variable_names_the_schema_where_none_is_given(
    both_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSIMHASH_SCHEMA", CRAWL)
    with connect(both_dsn) as store:
        store.add_page("https://a.example/", 1)
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


def test_a_raw_connection_works_with_the_schema_that_is_configured(
    both_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection of the same name in the other schema stays, and is not checked."""
    for schema in (SCHEMA, CRAWL):
        with connect(both_dsn, schema=schema) as store:
            store.add_page("https://a.example/", 1)
    with psycopg.connect(both_dsn, autocommit=True) as connection:
        connection.execute("UPDATE crawl.pages SET indexed = false")
        monkeypatch.setenv("PGSIMHASH_SCHEMA", CRAWL)
        with connect(connection, create=False) as store:
            assert [one.reason for one in store.check()] == ["simhash_missing"]
    with psycopg.connect(both_dsn, autocommit=True) as connection:
        assert connect(connection, collection="default", create=False).delete_collection() == 1
    left = [len(run_sql(both_dsn, f"SELECT FROM {schema}.pages")) for schema in (SCHEMA, CRAWL)]
    assert left == [1, 0]
