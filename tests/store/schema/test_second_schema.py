"""The tables in a schema with another name: alone in a database, or next to ``pgsimhash``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql

from pgsimhash import Store, analysis, connect, maintenance
from pgsimhash.cli.commands import commands
from pgsimhash.db import migrate, statements
from pgsimhash.db.connection import check_schema, schema_revision
from pgsimhash.db.dsn import checked_connection
from pgsimhash.db.schema_names import (
    SCHEMA,
    bound_to_schema,
    check_schema_name,
    in_schema,
    schema_of,
)
from pgsimhash.db.scripts import drop_statements, read_sql, schema_script
from pgsimhash.errors import ArgumentError, SchemaError, StoreError
from pgsimhash.maintenance.collections import delete_collection
from pgsimhash.pages.policies import MatchOptions, PolicySettings
from pgsimhash.search.layout import LAYOUTS
from pgsimhash.store.collection import collection_names
from tests.conftest import ROOT
from tests.database import run_sql
from tests.programs import run_program
from tests.refusals import because
from tests.store.content import rebuild_apart
from tests.store.maintain.test_rebuilding_scheme import WORDS
from tests.store.schema.test_schema import dump
from tests.store.test_store import FAR, page, paragraph

CRAWL = "crawl"
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


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


def everything(dsn: str, schema: str) -> dict[str, list[Any]]:
    """All rows of all tables of a schema."""
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = to_regnamespace(%s)",
            [schema],
        ).fetchall()
        return {
            table: connection.execute(
                sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(
                    sql.Identifier(schema, table)
                )
            ).fetchall()
            for (table,) in tables
        }


def fill(store: Store) -> None:
    for number, age in ((1, 90), (2, 80), (2, 70), (3, 60), (4, 1)):
        html = page(paragraph(number), paragraph(number + age))
        store.ingest(f"https://a.example/{number}", html, fetched_at=NOW - age * DAY)
    store.ingest("https://b.example/1", page(paragraph(1), paragraph(91)))
    store.ingest("https://b.example/1", page(paragraph(1), paragraph(91)))
    pages = [("https://c.example/1", 5), ("https://c.example/2", 7)]
    list(store.add_many(pages, window_size=9))
    wide = MatchOptions(scope="global", distance=3, max_age=DAY, verify=True)
    list(store.add_many([("https://c.example/3", FAR)], **wide))


def look_up(store: Store) -> None:
    assert len(store.find(5, 8)) == 2
    assert len(store.find(5, 8, host="c.example", since=NOW - DAY, limit=9)) == 2
    assert len(store.near_pages(5, 8)) == 2
    assert len(store.near_pages("https://c.example/1", 8, limit=3)) == 1
    assert store.exists(5)
    assert len(store.find_many(np.array([5, FAR], dtype=np.uint64)).queries) == 3
    assert len(analysis.simhashes(store)) == 8
    assert len(analysis.sample(store, 100)[0]) == 8
    labelled = [analysis.LabelledPair("https://a.example/1", "https://a.example/2", "copy")]
    assert analysis.evaluate(labelled, store).left_out == 0
    assert store.get("https://a.example/1") is not None
    assert store.decide("https://a.example/9", page(paragraph(4), paragraph(5))).duplicate_of
    analysis.explain(store, "https://a.example/1", "https://b.example/1")
    assert len(analysis.versions(store, "https://a.example/2")) == 2
    assert store.should_fetch("https://a.example/2", older_than=DAY) in (True, False)
    assert analysis.report(store).all_clusters
    assert any(row.pages for row in store.status())
    assert sum(len(block.low) for block in store.pairs(8))
    assert list(analysis.page_pairs(store, 8))
    assert store.save_clusters(8)


def change(store: Store) -> None:
    maintenance.change_settings(store, distance=3)
    maintenance.change_settings(store, distance=8)
    maintenance.mark(store, "https://a.example/1", "https://a.example/2", same=False)
    maintenance.mark(store, "https://a.example/1", "https://c.example/1", same=True)
    assert maintenance.unmark(store, "https://a.example/1", "https://a.example/2")
    assert len(maintenance.marks(store)) == 1
    settings = PolicySettings(max_copies=2, expire_after=30 * DAY)
    maintenance.set_policy(store, "a.example/*", settings)
    maintenance.set_policy(store, "d.example", PolicySettings(window_size=3))
    assert maintenance.policy_for(store, "https://www.a.example/").max_copies == 2
    assert maintenance.remove_policy(store, "e.example") is False
    assert len(maintenance.policies(store)) == 2
    store.ingest("https://d.example/1", page(paragraph(6), paragraph(7)))
    rebuild_apart(store, f"{store.collection} rebuilt", scheme=WORDS)
    maintenance.rebuild(store, distance=3, scope="global", replace=True)
    file = ROOT / "examples" / "pages" / "tide-pools.html"
    assert [len(list(maintenance.ingest_files(store, [file]))) for _ in range(2)] == [1, 0]
    assert list(maintenance.check(store, repair=True)) == []


def remove(store: Store) -> None:
    assert store.expire()
    store.expire(50 * DAY)
    assert store.delete("https://c.example/2").versions == 1
    assert store.delete_host("b.example").versions == 1
    store.start_run("last")
    store.add("https://a.example/5", 99)
    assert maintenance.undo(store)[1].versions == 1
    maintenance.rename(store, f"{store.collection} renamed")


def work_on(dsn: str, schema: str) -> None:
    """Call everything in a schema; at the end it has one collection fewer."""
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        connect(dsn, collection="one", keep_markdown=True, schema=schema) as opened,
    ):
        lent = connect(connection, collection="two", keep_markdown=True, schema=schema)
        for store in (opened, lent):
            fill(store)
            look_up(store)
            change(store)
            remove(store)
        assert "one renamed" in collection_names(connection)
        delete_collection(connection, "one renamed")


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
        assert set(everything(both_dsn, CRAWL)) == {migrate.VERSION_TABLE}
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


class TestCommandLine:
    """``--schema`` and PGSIMHASH_SCHEMA."""

    def run(self, dsn: str, *arguments: str) -> str:
        done = CliRunner().invoke(commands, [*arguments, "--dsn", dsn])
        assert done.exit_code == 0, done.stderr
        assert not os.environ.get("PGSIMHASH_SCHEMA")
        return done.stdout + done.stderr

    def test_it_migrates_writes_reads_and_downgrades(self, empty_dsn: str, dsn: str) -> None:
        told = self.run(empty_dsn, "migrate", "--schema", CRAWL, "--layout", "32+32")
        assert "The schema crawl is at revision 0001" in told
        pages = str(ROOT / "examples" / "pages")
        self.run(empty_dsn, "ingest", pages, "--schema", CRAWL, "--jobs", "1")
        status = self.run(empty_dsn, "status", "--schema", CRAWL)
        assert '"layout": "32+32"' in self.run(empty_dsn, "collection", "list", "--schema", CRAWL)
        assert '"pages": 0' not in status
        told = self.run(empty_dsn, "migrate", "--downgrade", "base", "--yes", "--schema", CRAWL)
        assert "The schema crawl is at revision base" in told
        assert self.run(dsn, "status") == ""

    def test_the_variable_does_the_same(
        self, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.run(empty_dsn, "migrate", "--schema", CRAWL)
        monkeypatch.setenv("PGSIMHASH_SCHEMA", CRAWL)
        done = CliRunner().invoke(commands, ["status", "--dsn", empty_dsn])
        assert (done.exit_code, done.stdout) == (0, "")
        done = CliRunner().invoke(commands, ["status", "--dsn", empty_dsn, "--schema", SCHEMA])
        assert done.exit_code == 3

    @pytest.mark.one_server("Citus sends all statements of a string to the workers")
    def test_the_script_deploys_the_same(self, empty_dsn: str) -> None:
        layout = "5 choose 2"
        migrate.upgrade(empty_dsn, schema=CRAWL, layout=layout)
        before = dump(empty_dsn, CRAWL)
        options = ["--schema", CRAWL, "--layout", layout]
        done = CliRunner().invoke(commands, ["migrate", "--sql", *options])
        run_sql(empty_dsn, "DROP SCHEMA crawl CASCADE")
        run_sql(empty_dsn, done.stdout)
        assert dump(empty_dsn, CRAWL) == before


class TestAlembic:
    """``-x schema=...``."""

    def alembic(self, dsn: str, *arguments: str, **variables: Any) -> str:
        command = (sys.executable, "-m", "alembic", *arguments)
        done = run_program(*command, PGSIMHASH_DSN=dsn, **variables)
        self.code = done.returncode
        return done.stdout + done.stderr

    def test_it_deploys_compares_and_downgrades(self, empty_dsn: str, tmp_path: Path) -> None:
        told = self.alembic(empty_dsn, "-x", f"schema={CRAWL}", "upgrade", "head")
        assert self.code == 0, told
        assert "Migrations of pgsimhash: schema crawl in database" in told
        told = self.alembic(empty_dsn, "check", PGSIMHASH_SCHEMA=CRAWL)
        assert self.code == 0, told
        assert "Warning" not in told
        assert "No new upgrade operations" in told
        told = self.alembic(empty_dsn, "-x", f"schema={CRAWL}", "downgrade", "base")
        assert self.code == 0, told
        assert set(everything(empty_dsn, CRAWL)) == {migrate.VERSION_TABLE}

    def test_it_refuses_other_names_in_one_line(self, empty_dsn: str) -> None:
        told = self.alembic(empty_dsn, "-x", "schema=Crawl", "upgrade", "head")
        assert self.code != 0
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
        left = [
            connection.execute(f"SELECT count(*) FROM {schema}.pages".encode()).fetchone()
            for schema in (SCHEMA, CRAWL)
        ]
    assert left == [(1,), (0,)]
