"""``migrate``, ``status`` and ``check``, and the errors of unusable databases."""

import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.shell_completion import ShellComplete
from psycopg import conninfo
from psycopg.pq import TransactionStatus

from pgsimhash import connect
from pgsimhash.cli.commands import commands
from pgsimhash.search.layout import DEFAULT_LAYOUT
from tests.cli.conftest import Run, on_a_terminal
from tests.database import dropped_afterwards, run_sql


def test_migrate_creates_the_schema_and_says_so(run: Run, empty_dsn: str, folder: Path) -> None:
    run("ingest", folder, "--dsn", empty_dsn).ends(3, "run: pgsimhash migrate")
    parts: dict[str, Any] = {"password": "s3cret", **conninfo.conninfo_to_dict(empty_dsn)}
    name, user, password = (str(parts[key]) for key in ("dbname", "user", "password"))
    done = run("migrate", "--dsn", conninfo.make_conninfo(**parts))
    assert (done.code, done.stdout) == (0, "")
    assert f"is at revision 0001 in database '{name}' on " in done.stderr
    assert password not in done.stderr.replace(f"as {user!r}", "").replace(name, "")
    assert run("ingest", folder, "--dsn", empty_dsn).code == 0


def test_the_embedded_server(run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSIMHASH_DSN")
    monkeypatch.setattr("pgsimhash.embedded.start", lambda: empty_dsn)
    for command in (["status"], ["status", "--dsn", "embedded"], ["migrate"]):
        assert run(*command).code == 0


def test_migrate_can_go_back(run: Run) -> None:
    run("migrate", "--downgrade", "base").ends(2, "confirm with --yes")
    run("migrate", "--downgrade", "9999", "--yes").ends(2, "no revision '9999'; it has: base, 0001")
    assert run("status").code == 0
    run("migrate", "--downgrade", "base", "--yes").ends(0, "revision base")
    assert "run: pgsimhash migrate" in run("status").stderr
    run("migrate", "--downgrade", "0001", "--yes").ends(3, "check the DSN and the schema's name")


def test_migrate_creates_roles_on_request(run: Run, dsn: str) -> None:
    prefix = f"test_{uuid.uuid4().hex[:12]}"
    roles = [f"{prefix}_{right}" for right in ("owner", "writer", "reader")]
    done = run("migrate", "--roles", prefix)
    with dropped_afterwards(dsn, roles):
        done.ends(0, f"Its roles are {', '.join(roles)}.")


def test_migrate_can_print_the_script_without_a_server(run: Run) -> None:
    done = run("migrate", "--sql", "--dsn", "host=nowhere.invalid")
    assert done.code == 0
    assert done.stdout.startswith("BEGIN;")
    assert all(f"prefix_{each.number}" in done.stdout for each in DEFAULT_LAYOUT.permutations)
    assert "RETURN '32+32'" in run("migrate", "--sql", "--layout", "32+32").stdout
    # From the newest revision it is empty.
    done = run("migrate", "--sql", "--from", "0001")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr == "Revision 0001 is the newest one: there is nothing to do.\n"
    for revision in ("9999", "-1", "head"):
        unknown = run("migrate", "--sql", "--from", revision)
        unknown.ends(2, f"no revision '{revision}'; it has: base, 0001")
        assert unknown.stdout == ""


@pytest.mark.one_server("Citus sends all statements of a string to the workers")
def test_the_script_can_omit_the_transaction(run: Run, empty_dsn: str) -> None:
    script = run("migrate", "--sql", "--no-transaction").stdout
    assert not {"BEGIN;", "COMMIT;"} & set(script.splitlines())
    schema = "SELECT pg_catalog.to_regnamespace('pgsimhash') IS NOT NULL"
    with psycopg.connect(empty_dsn) as connection:
        connection.execute("CREATE TABLE mine ()")
        connection.execute("SET LOCAL search_path = mine, public")
        connection.execute(script)
        assert connection.info.transaction_status == TransactionStatus.INTRANS
        assert connection.execute("SHOW search_path").fetchone() == ("mine, public",)
        assert connection.execute(schema).fetchone() == (True,)
        connection.rollback()
        assert connection.execute(schema).fetchone() == (False,)
        assert connection.execute("SELECT to_regclass('mine') IS NULL").fetchone() == (True,)
        connection.execute(script)
    assert run("collection", "create", "news", "--dsn", empty_dsn).code == 0


def test_status_shows_every_collection(run: Run, folder: Path) -> None:
    assert run("status").lines == []
    run("ingest", folder)
    run("ingest", folder, "--create", "--collection", "second")
    first, second = run("status").lines
    assert (first["name"], second["name"]) == ("default", "second")
    assert first["pages"] == second["pages"] == 3
    writes = [datetime.fromisoformat(line["last_write"]) for line in (first, second)]
    assert writes == sorted(writes)
    assert 0 <= second["last_write_age"] <= first["last_write_age"] < 600
    assert first["schema_bytes"] == second["schema_bytes"] > 0


def test_status_of_a_collection_with_an_unregistered_scheme(run: Run, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.collections (name, scheme) VALUES ('[foreign]', 'elsewhere-1')"
        )
        store = connect(connection, collection="[foreign]", create=True)
        list(store.add_pages([("https://a.example/1", 0), ("https://a.example/2", 1)]))
    for command in (["status"], ["analyse", "report", "--collection", "[foreign]"]):
        done = run(*command)
        (line,) = done.lines
        assert (done.code, line["scheme"]) == (0, "elsewhere-1")
        assert (line["pages"], line["duplicates"]) == (2, 1)
    assert line["report"]["all_clusters"] == 1


def test_check_prints_each_violation_and_repairs_it(run: Run, folder: Path, dsn: str) -> None:
    run("ingest", folder)
    checked = run("check")
    checked.ends(0, "No violations were found")
    assert checked.stdout == ""
    run_sql(dsn, "UPDATE pgsimhash.pages SET indexed = false WHERE url LIKE '%looms.html'")
    run_sql(dsn, "UPDATE pgsimhash.pages SET duplicate_of = page_id WHERE distance = 0")
    found = run("check", "--collection", "default")
    assert found.code == 1
    assert {line["reason"] for line in found.lines} == {"simhash_missing", "original_missing"}
    fields = "collection reason page_id url simhash repair repaired object"
    assert set(found.lines[0]) == set(fields.split())
    repaired = run("check", "--repair")
    repaired.ends(0, "2 found, 2 of them repaired")
    assert {line["repaired"] for line in repaired.lines} == {True}
    assert run("check").lines == []


def test_on_a_terminal_many_violations_are_at_most_20_lines_and_their_number(dsn: str) -> None:
    with connect(dsn, create=True) as store:
        list(store.add_pages((f"https://a.example/{number}", number) for number in range(30)))
    run_sql(dsn, "UPDATE pgsimhash.pages SET indexed = false WHERE duplicate_of IS NULL")
    run_sql(dsn, "UPDATE pgsimhash.pages SET duplicate_of = page_id")
    shown = on_a_terminal("check", "--dsn", dsn, whole=True)
    lines = shown.stderr.splitlines()
    assert shown.code == 1
    assert "violations" in lines[0]
    assert any("original_missing" in line for line in lines)
    assert "of them repaired" in lines[-1]
    assert 10 < len(lines) <= 21


def test_a_grant_to_others_is_one_line(run: Run, folder: Path, dsn: str) -> None:
    run_sql(dsn, "GRANT TRIGGER ON pgsimhash.pages TO PUBLIC")
    for arguments in ([], ["--create"], ["--create", "--collection", "second"]):
        if arguments:
            run("ingest", folder, *arguments)
        found = run("check", "--repair")
        found.ends(1, "1 found, 0 of them repaired")
        assert [line["reason"] for line in found.lines] == ["foreign_grant"]


@pytest.mark.parametrize("command", [
    "status", "migrate", "ingest .", "find 1", "check", "expire --older-than 1d",
    "collection rebuild default --replace",
])  # fmt: skip
def test_no_server_is_one_clear_line(run: Run, command: str) -> None:
    done = run(*command.split(), "--dsn", "host=127.0.0.1 port=1 user=x dbname=y")
    assert (done.code, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert "no PostgreSQL server answers" in line
    assert "PGSIMHASH_DSN" in line


def test_the_reason_why_a_database_cannot_be_used(run: Run, dsn: str, empty_dsn: str) -> None:
    def error(*command: str, dsn: str, **settings: str) -> str:
        done = run(*command, "--dsn", conninfo.make_conninfo(dsn, **settings) if settings else dsn)
        assert done.code == 3
        return done.stderr

    invalid = error("status", dsn="what is this")
    assert "postgresql://user:password@host:5432/database" in invalid
    missing = error("status", dsn=dsn, dbname="missing_database")
    assert 'database "missing_database" does not exist; correct user, password, database' in missing
    database = conninfo.conninfo_to_dict(empty_dsn)["dbname"]
    run_sql(empty_dsn, f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC")
    (rules,) = run_sql(
        dsn, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method LIKE 'scram%'"
    )
    run_sql(dsn, "DROP ROLE IF EXISTS pgsimhash_stranger")
    run_sql(dsn, "CREATE ROLE pgsimhash_stranger LOGIN PASSWORD 'right'")
    with dropped_afterwards(dsn, ["pgsimhash_stranger"]):
        refused = error("status", dsn=dsn, user="pgsimhash_stranger", password="wrong")
        stranger = {"user": "pgsimhash_stranger", "password": "right"}
        kept_out = error("migrate", dsn=empty_dsn, **stranger)
        run_sql(empty_dsn, f"GRANT CONNECT ON DATABASE {database} TO PUBLIC")
        unprivileged = error("migrate", dsn=empty_dsn, **stranger)
    if rules and rules[0]:
        assert "the server refuses the login" in refused
    else:  # a server that trusts everyone lets the stranger in, but not to the tables
        assert "permission denied" in refused
    assert "wrong" not in refused
    assert f'permission denied for database "{database}"; correct' in kept_out
    assert "who may create a schema" in unprivileged


def test_the_shell_completes_collections(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("news", "nets", "shop"):
        run("collection", "create", name)

    def completed(*words: str) -> list[str]:
        shell = ShellComplete(commands, {}, "pgsimhash", "_PGSIMHASH_COMPLETE")
        return [item.value for item in shell.get_completions([*words[:-1]], words[-1])]

    assert completed("status", "--collection", "ne") == ["nets", "news"]
    assert completed("collection", "rename", "s") == ["shop"]
    assert completed("analyse", "report", "--collection", "") == ["nets", "news", "shop"]
    # A server that cannot be asked is no error, and none is created.
    monkeypatch.setenv("PGSIMHASH_DSN", "postgresql://a.invalid/x?connect_timeout=1")
    assert completed("status", "--collection", "ne") == []
    monkeypatch.delenv("PGSIMHASH_DSN")
    monkeypatch.setenv("PGSIMHASH_DATA_DIR", "/nonexistent")
    assert completed("status", "--collection", "ne") == []
