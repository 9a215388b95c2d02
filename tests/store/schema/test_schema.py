"""Three ways to deploy the schema give the same one."""

import gc
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from psycopg import conninfo

import pgsimhash.alembic
from pgsimhash import NoServerError, SchemaError, StoreError, connect
from pgsimhash.db.schema_names import REVISION, read_sql
from pgsimhash.hashing.bits import NEAR_MAX
from pgsimhash.pages.policies import SETTINGS, MatchOptions
from pgsimhash.pages.records import CAPTURE, Verdict
from pgsimhash.schema import migrate, scripts
from pgsimhash.schema.deployed import check_schema
from pgsimhash.schema.scripts import digests, in_layout
from pgsimhash.search.layout import COLLECTION_SHIFT, DEFAULT_LAYOUT, DISTANCE_MAX
from pgsimhash.sqlalchemy import metadata
from pgsimhash.testing import url_of_dsn
from tests.database import let, run_sql
from tests.faults.cluster import programs
from tests.forks import Run
from tests.programs import PGSIMHASH, run_program
from tests.proxy import STATEMENTS
from tests.refusals import because
from tests.store.connect.conftest import behind_proxy


def binary(name: str) -> Path:
    """A PostgreSQL program."""
    folder = programs()
    assert folder is not None
    return folder / name


def dump(dsn: str, schema: str = "pgsimhash", options: Sequence[str] = ()) -> str:
    """The schema as pg_dump writes it, with Alembic's version."""
    named = (f"--schema={schema}", "--no-owner", *options, "--dbname", dsn)
    done = run_program(binary("pg_dump"), *named)
    assert done.returncode == 0, done.stderr
    # Each dump contains a random word, and some builds of PostgreSQL 15 number each column when it
    # is created. An older server does not know what a newer pg_dump sets.
    stamps = ("restrict ", "pg_attver", "SET transaction_timeout")
    return "\n".join(
        line for line in done.stdout.splitlines() if not any(stamp in line for stamp in stamps)
    )


def psql(dsn: str, script: str) -> None:
    options = ("--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "--dbname", dsn)
    done = run_program(binary("psql"), *options, stdin=script)
    assert done.returncode == 0, done.stderr


@pytest.mark.one_server("it compares dumps with a schema that was deployed without Citus")
@pytest.mark.parametrize(("schema", "layout"), [
    ("pgsimhash", "22+21+21"), pytest.param("crawl", "5 choose 2", marks=pytest.mark.long),
])  # fmt: skip
def test_the_three_routes_give_the_same_dump(
    dsn: str, empty_dsn: str, schema: str, layout: str, with_alembic: Run
) -> None:
    def alembic(*arguments: str) -> str:
        options = ("-x", f"schema={schema}", "-x", f"layout={layout}")
        done = with_alembic("alembic", *options, *arguments, PGSIMHASH_DSN=empty_dsn)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    migrate.upgrade(dsn, schema=schema, layout=layout)
    by_library = dump(dsn, schema)
    assert f"CREATE TABLE {schema}.pages" in by_library

    said = alembic("upgrade", "head")
    assert f"Migrations of pgsimhash: schema {schema} in database" in said
    assert "Warning" not in said
    assert dump(empty_dsn, schema) == by_library

    alembic("downgrade", "base")
    assert run_sql(
        empty_dsn, "SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]
    ) == [(migrate.VERSION_TABLE,)]
    run_sql(empty_dsn, f"DROP SCHEMA {schema} CASCADE")
    options = ("--schema", schema, "--layout", layout)
    psql(empty_dsn, run_program(*PGSIMHASH, "migrate", "--sql", *options).stdout)
    assert dump(empty_dsn, schema) == by_library


def migrate_by_command(dsn: str) -> None:
    done = run_program(*PGSIMHASH, "migrate", PGSIMHASH_DSN=dsn)
    assert done.returncode == 0, done.stderr


@pytest.mark.one_server("it compares dumps with a schema that was deployed without Citus")
@pytest.mark.parametrize(("upgrade", "isolation"), [
    (migrate_by_command, "repeatable read"), (migrate.upgrade, "read committed"),
], ids=["processes, repeatable read", "threads"])  # fmt: skip
def test_of_several_migrations_at_once_one_deploys_and_the_others_wait(
    dsn: str, empty_dsn: str, upgrade: Callable[[str], object], isolation: str
) -> None:
    let(empty_dsn, {"default_transaction_isolation": isolation})
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [empty_dsn] * 3))
    assert dump(empty_dsn) == dump(dsn)


def upgrade_with_ini(
    run: Run, folder: Path, url: str | None, *options: str, variable: str | None = None
) -> subprocess.CompletedProcess[str]:
    """``alembic upgrade head`` in another project."""
    line = f"sqlalchemy.url = {url.replace('%', '%%')}\n" if url else ""
    ini = folder / "alembic.ini"
    ini.write_text(f"[alembic]\nscript_location = pgsimhash.migrations:.\n{line}")
    # An empty DSN counts as no DSN.
    variables = {"PGSIMHASH_DSN": variable or "", "PGSIMHASH_DATA_DIR": str(folder / "data")}
    return run("alembic", *options, "upgrade", "head", folder=folder, **variables)


NOWHERE = "host=nowhere.invalid"


@pytest.mark.parametrize("which", ["x", "ini", "variable"])
def test_alembic_migrates_the_database_it_is_told_and_says_which(
    empty_dsn: str, tmp_path: Path, which: str, with_alembic: Run
) -> None:
    """A source with lower precedence names an unreachable database."""
    if which == "x":
        done = upgrade_with_ini(
            with_alembic,
            tmp_path,
            f"postgresql://{NOWHERE}",
            "-x",
            f"dsn={empty_dsn}",
            variable=NOWHERE,
        )
    elif which == "ini":
        # A password that needs quoting in an ini file.
        password = conninfo.conninfo_to_dict(empty_dsn).get("password") or "p@ss%word"
        url = url_of_dsn(conninfo.make_conninfo(empty_dsn, password=password))
        done = upgrade_with_ini(with_alembic, tmp_path, url, variable=NOWHERE)
    else:
        done = upgrade_with_ini(with_alembic, tmp_path, None, variable=empty_dsn)
    assert done.returncode == 0, done.stderr
    given = conninfo.conninfo_to_dict(empty_dsn)
    assert f"database {given['dbname']!r} on {given['host']!r}" in done.stderr
    assert "p@ss" not in done.stderr + done.stdout
    assert not (tmp_path / "data").exists()
    connect(empty_dsn).close()


@pytest.mark.parametrize(("url", "advice"), [
    (None, "-x dsn=embedded is the embedded server"),
    ("driver://user:pass@localhost/dbname", "write it like postgresql://"),
    ("postgresql://nowhere.invalid/x", "no PostgreSQL server answers"),
])  # fmt: skip
def test_alembic_names_the_fix_where_no_database_can_be_migrated(
    tmp_path: Path, url: str | None, advice: str, with_alembic: Run
) -> None:
    done = upgrade_with_ini(with_alembic, tmp_path, url)
    assert done.returncode != 0
    assert advice in done.stderr + done.stdout
    assert "cannot migrate" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_alembic_migrates_the_embedded_server_by_its_name(with_alembic: Run) -> None:
    # pytest's folders are private, and for root the server runs as another user.
    with tempfile.TemporaryDirectory(prefix="pgsimhash-") as name:
        folder = Path(name)
        done = upgrade_with_ini(
            with_alembic, folder, f"postgresql://{NOWHERE}", "-x", "dsn=embedded"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"database 'postgres' on '{folder}/data/postgres'" in done.stderr
        assert (folder / "data" / "postgres" / "PG_VERSION").exists()


def test_the_sqlalchemy_tables_describe_the_schema(dsn: str) -> None:
    """They have the columns, types and keys that SQLAlchemy reads from the database."""
    deployed = sa.MetaData(schema="pgsimhash")
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    deployed.reflect(engine)
    deployed.remove(deployed.tables["pgsimhash.alembic_version"])
    engine.dispose()

    def described(tables: sa.MetaData) -> dict[str, Any]:
        return {
            name: (
                {each.name: str(each.type.compile(engine.dialect)) for each in table.columns},
                table.primary_key.columns.keys(),
                sorted(f"{key.parent} {key.target_fullname}" for key in table.foreign_keys),
            )
            for name, table in tables.tables.items()
        }

    reflected = described(deployed)
    # Other layouts have other prefix columns.
    columns, *_ = reflected["pgsimhash.pages"]
    assert [columns.pop(f"prefix_{number}") for number in (1, 2, 3)] == ["BIGINT"] * 3
    assert described(metadata) == reflected


def test_the_package_knows_the_newest_revision() -> None:
    assert migrate.known_revisions().get_current_head() == REVISION


def test_a_downgrade_drops_the_objects_of_the_package_and_leaves_yours(dsn: str) -> None:
    before = dump(dsn)
    migrate.upgrade(dsn)
    assert dump(dsn) == before
    with connect(dsn) as store:
        store.add_page("https://a.example/", 5)
    run_sql(dsn, "CREATE TABLE pgsimhash.runs_of_mine (run integer)")
    run_sql(dsn, "CREATE TABLE pgsimhash._runs_1 (run integer)")
    run_sql(dsn, "CREATE FUNCTION pgsimhash.mine() RETURNS integer RETURN 1")
    migrate.downgrade(dsn)
    with psycopg.connect(dsn) as connection:
        left = connection.execute(
            "SELECT c.relname FROM pg_class AS c "
            "WHERE c.relnamespace = 'pgsimhash'::regnamespace AND c.relkind = 'r' "
            "UNION ALL SELECT p.proname FROM pg_proc AS p "
            "WHERE p.pronamespace = 'pgsimhash'::regnamespace "
            "UNION ALL SELECT t.typname FROM pg_type AS t JOIN pg_class AS c "
            "ON c.oid = t.typrelid AND c.relkind = 'c' "
            "WHERE t.typnamespace = 'pgsimhash'::regnamespace ORDER BY 1"
        ).fetchall()
        assert left == [("_runs_1",), ("mine",), ("runs_of_mine",)]
        with pytest.raises(SchemaError, match="run: pgsimhash migrate"):
            check_schema(connection)
        connection.execute(
            "DROP TABLE pgsimhash.runs_of_mine, pgsimhash._runs_1; DROP FUNCTION pgsimhash.mine"
        )
    migrate.upgrade(dsn)
    assert dump(dsn) == before


def test_numbers_of_the_package_stand_in_the_tables_as_they_are() -> None:
    tables = in_layout(read_sql("tables.sql"), DEFAULT_LAYOUT)
    assert f"BETWEEN 1 AND {2 ** (63 - COLLECTION_SHIFT) - 1})" in tables
    assert f"default_distance smallint NOT NULL DEFAULT {NEAR_MAX}, " in tables
    assert tables.count(f"distance BETWEEN 0 AND {DISTANCE_MAX})") == 2
    assert f"(collection_id::bigint << {COLLECTION_SHIFT})" in tables


def test_settings_and_verdicts_have_the_same_fields_in_python_and_sql(
    connection: psycopg.Connection,
) -> None:
    names = (
        "SELECT array_agg(a.attname::text) FROM pg_attribute AS a "
        "WHERE a.attrelid = %s::regclass AND a.attnum > 0"
    )
    ((policy,),) = connection.execute(names, ["pgsimhash.policies"]).fetchall()
    settings = set(policy) - {"policy_id", "collection_id", "host", "path", "set_at"}
    ((parameters,),) = connection.execute(
        "SELECT proargnames FROM pg_proc WHERE oid = 'pgsimhash.set_policy'::regproc"
    ).fetchall()
    assert settings == set(SETTINGS) == set(parameters) - {"collection", "pattern"}
    of_policies = {"expire_after", "refetch_after", "ignore_parameters", "sample_every"}
    assert settings - of_policies == set(MatchOptions.__annotations__)
    ((verdict,),) = connection.execute(names, ["pgsimhash.verdict"]).fetchall()
    of_pages = {"simhash", "html_bytes", "title", "markdown", "detail", "truncated", *CAPTURE}
    of_pages.add("content_missing")
    assert set(verdict) == {each.name for each in fields(Verdict)} - of_pages


def test_every_column_has_a_comment(connection: psycopg.Connection) -> None:
    without = connection.execute(
        "SELECT a.attrelid::regclass, a.attname FROM pg_attribute AS a "
        "JOIN pg_class AS c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'pgsimhash'::regnamespace AND c.relkind = 'r' "
        "AND c.relname <> 'alembic_version' AND a.attnum > 0 "
        "AND col_description(a.attrelid, a.attnum) IS NULL"
    ).fetchall()
    assert without == []


def upgrade_in_own_history(dsn: str, schema: str) -> None:
    engine = migrate.engine_for(dsn)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection)
        pgsimhash.alembic.upgrade(Operations(context), schema=schema)
    engine.dispose()


class TestOtherBuilds:
    """A schema of the newest revision that another build of the package deployed."""

    @pytest.mark.one_server("Citus sends all statements of a string to the workers")
    @pytest.mark.parametrize("by_library", [True, False])
    def test_functions_are_replaced_and_rows_stay(
        self, dsn: str, empty_dsn: str, by_library: bool
    ) -> None:
        schema, layout = "crawl", "16+16+16+16"
        migrate.upgrade(dsn, schema=schema, layout=layout)
        script = migrate.upgrade_sql(schema=schema, layout=layout)
        before = script
        for now, then in (
            (digests()[1], "0" * 16),
            ("_draw_run_1() RETURNS", "_draw_run_1(number integer DEFAULT 0) RETURNS"),
            ("url text, kind text, reason text,", "url text, reason text, kind text,"),
        ):
            assert now in before
            before = before.replace(now, then)
        run_sql(empty_dsn, before)
        # This version has no such function, but the type.
        gone = "crawl._former_1(one crawl._match_1) RETURNS integer RETURN 1"
        run_sql(empty_dsn, f"CREATE FUNCTION {gone}")
        run_sql(empty_dsn, "INSERT INTO crawl.collections (name, scheme) VALUES ('kept', 'x-1')")
        with pytest.raises(
            SchemaError, match=r"functions .* crawl; run: pgsimhash migrate", check=because("older")
        ):
            connect(empty_dsn, schema=schema)
        if by_library:
            migrate.upgrade(empty_dsn, schema=schema)
        else:
            upgrade_in_own_history(empty_dsn, schema)
        assert dump(empty_dsn, schema, ["--schema-only"]) == dump(dsn, schema, ["--schema-only"])
        assert run_sql(empty_dsn, "SELECT name FROM crawl.collections") == [("kept",)]
        with connect(empty_dsn, schema=schema) as store:
            assert store.add_page("https://a.example/", 5).kind == "new"

    @pytest.mark.parametrize("known", [True, False])
    def test_tables_are_refused(self, empty_dsn: str, known: bool) -> None:
        migrate.upgrade(empty_dsn)
        if known:
            of_other_tables = read_sql("build.sql").replace("CREATE", "CREATE OR REPLACE")
            run_sql(empty_dsn, of_other_tables.replace("${build}", f"{'0' * 16} {digests()[1]}"))
        else:
            run_sql(empty_dsn, "DROP FUNCTION pgsimhash._build")
        for use in (connect, migrate.upgrade, lambda dsn: upgrade_in_own_history(dsn, "pgsimhash")):
            with pytest.raises(SchemaError, match="load the data", check=because("older")):
                use(empty_dsn)
        migrate.downgrade(empty_dsn)
        migrate.upgrade(empty_dsn)
        connect(empty_dsn).close()

    def test_comments_and_white_space_of_tables_do_not_matter(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def changed(name: str) -> str:
            return read_sql(name).replace("bigint,", " bigint ,  -- A number.\n")

        present = digests()
        monkeypatch.setattr(scripts, "read_sql", changed)
        tables, functions = digests()
        assert tables == present[0]
        assert functions != present[1]


class TestRefusals:
    def test_a_timeout_is_reported_as_a_timeout(self, empty_dsn: str) -> None:
        impatient = conninfo.make_conninfo(empty_dsn, options="-c statement_timeout=9ms")
        with psycopg.connect(empty_dsn) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [migrate.MIGRATION_LOCK])
            with pytest.raises(StoreError, match="timeout", check=because("gave_up")) as refused:
                migrate.upgrade(impatient)
        assert "who may" not in str(refused.value)

    def test_a_connection_whose_first_statement_fails_is_closed(
        self, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(migrate, "_PINNED", "SET LOCAL statement_timeout TO 'never'")
        with pytest.raises(StoreError, check=because("refused")):
            migrate.upgrade(empty_dsn)
        # A connection that is still open causes a warning.
        gc.collect()

    def test_a_lost_connection_is_told_apart(self, dsn: str) -> None:
        with behind_proxy(dsn) as (between, there):
            between.counts = STATEMENTS
            for number in range(1, 12):
                between.cut_before = between.commits + number
                with pytest.raises(NoServerError, match=r"(lost|now): [\w ]") as caught:
                    migrate.upgrade(there)
                assert caught.value.reason == ("no_server" if number == 1 else "connection_lost")

    def test_a_copy_without_rows_is_detected(self, dsn: str, empty_dsn: str) -> None:
        copy = dump(dsn, options=["--schema-only"])
        psql(empty_dsn, copy)
        for use in (connect, migrate.upgrade, migrate.downgrade):
            with pytest.raises(SchemaError, match="--data-only", check=because("unversioned")):
                use(empty_dsn)

    def test_objects_that_depend_on_the_tables_are_named(self, dsn: str) -> None:
        run_sql(dsn, "CREATE VIEW mine AS SELECT url FROM pgsimhash.pages")
        with pytest.raises(StoreError, match="mine depends on", check=because("refused")):
            migrate.downgrade(dsn)


def test_it_is_deployed_and_used_where_plpgsql_is_strict(empty_dsn: str) -> None:
    strict = conninfo.make_conninfo(
        empty_dsn, options="-c plpgsql.extra_errors=all -c plpgsql.extra_warnings=all"
    )
    migrate.upgrade(strict, layout="32+32")
    with connect(strict) as store:
        store.add_page("https://a.example/1", 5)
        store.add_page("https://a.example/2", 5)
    for verdict in ("new", "duplicate", "unchanged"):
        url = f"https://b.example/{verdict == 'new'}"
        added = "SELECT kind FROM pgsimhash.add_page(%s, -1)"
        assert run_sql(strict, added, [url]) == [(verdict,)]
    assert run_sql(strict, "SELECT pgsimhash.delete_host('b.example')") == [(2,)]
