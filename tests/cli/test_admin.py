"""``migrate`` and ``status``, and the errors of unusable databases."""

from __future__ import annotations

import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo
from psycopg.pq import TransactionStatus

from pgsimhash import connect
from pgsimhash.search.layout import DEFAULT_LAYOUT
from tests.cli.harness import Run
from tests.conftest import ROOT
from tests.roles import dropped_afterwards

PAGES = ROOT / "examples" / "pages"


def test_migrate_creates_the_schema_and_says_so(run: Run, empty_dsn: str, folder: Path) -> None:
    refused = run("ingest", folder, "--dsn", empty_dsn)
    assert (refused.code, "run: pgsimhash migrate" in refused.stderr) == (3, True)
    parts: dict[str, Any] = {"password": "s3cret", **conninfo.conninfo_to_dict(empty_dsn)}
    name, user, password = (str(parts[key]) for key in ("dbname", "user", "password"))
    done = run("migrate", "--dsn", conninfo.make_conninfo(**parts))
    assert (done.code, done.stdout) == (0, "")
    assert f"is at revision 0001 in database '{name}' on " in done.stderr
    assert password not in done.stderr.replace(f"as {user!r}", "").replace(name, "")
    assert run("ingest", folder, "--dsn", empty_dsn).code == 0


def test_migrate_requires_a_dsn(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSIMHASH_DSN")
    monkeypatch.setattr("pgsimhash.embedded.start", lambda: pytest.fail("it was not asked for"))
    done = run("migrate")
    assert done.code == 2
    assert "--dsn embedded is the embedded server" in " ".join(done.stderr.split())


def test_the_embedded_server_has_a_name_and_gets_its_schema_from_any_command(
    run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGSIMHASH_DSN")
    monkeypatch.setattr("pgsimhash.embedded.start", lambda: empty_dsn)
    for command in (["status"], ["status", "--dsn", "embedded"], ["migrate", "--dsn", "embedded"]):
        assert run(*command).code == 0


def test_migrate_can_go_back(run: Run, dsn: str) -> None:
    refused = run("migrate", "--downgrade", "base")
    assert (refused.code, "confirm with --yes" in refused.stderr) == (2, True)
    assert run("status").code == 0
    done = run("migrate", "--downgrade", "base", "--yes")
    assert done.code == 0
    assert "revision base" in done.stderr
    assert "run: pgsimhash migrate" in run("status").stderr


def test_an_unknown_revision_is_an_invalid_option(run: Run) -> None:
    done = run("migrate", "--downgrade", "9999", "--yes")
    assert done.code == 2
    assert "no revision '9999'; it has: base, 0001" in done.stderr


def test_migrate_makes_roles_on_request(run: Run, dsn: str) -> None:
    prefix = f"test_{uuid.uuid4().hex[:12]}"
    made = [f"{prefix}_{what}" for what in ("owner", "writer", "reader")]
    done = run("migrate", "--roles", prefix)
    with dropped_afterwards(dsn, made):
        assert done.code == 0
        assert f"Its roles are {', '.join(made)}." in done.stderr
    assert run("migrate", "--sql", "--roles").code == 2
    assert run("migrate", "--downgrade", "base", "--roles").code == 2
    assert run("migrate", "--yes").code == 2


def test_migrate_can_print_the_script_without_a_server(run: Run) -> None:
    done = run("migrate", "--sql", "--dsn", "host=nowhere.invalid")
    assert done.code == 0
    assert done.stdout.startswith("BEGIN;")
    assert all(permutation.column in done.stdout for permutation in DEFAULT_LAYOUT.permutations)
    assert run("migrate", "--sql", "--downgrade", "base").code == 2


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
    done = run("collection", "create", "news", "--dsn", empty_dsn)
    assert done.code == 0
    assert run("migrate", "--no-transaction").code == 2


def test_status_shows_every_collection(run: Run, folder: Path) -> None:
    assert run("status").lines == []
    run("ingest", folder)
    run("ingest", folder, "--create", "--collection", "second")
    first, second = run("status").lines
    assert (first["collection"], second["collection"]) == ("default", "second")
    assert first["pages"] == second["pages"] == 3
    assert first["simhashes"] == 2
    assert first["duplicates"] == 1
    assert first["duplicate_bytes"] > 0
    assert first["duplicate_percent"] == 33.3
    assert not first["estimated"]
    assert datetime.fromisoformat(first["last_write"]) <= datetime.fromisoformat(
        second["last_write"]
    )
    assert 0 <= second["last_write_age"] <= first["last_write_age"] < 600
    assert first["schema_bytes"] == second["schema_bytes"] > 0


def test_status_of_an_empty_collection_is_all_zeros(run: Run) -> None:
    run("collection", "create", "empty")
    (line,) = run("analyse", "report", "--collection", "empty").lines
    zero = ("pages", "urls", "duplicates", "duplicate_bytes", "simhashes")
    assert {line[name] for name in zero} == {0}
    assert {line[name] for name in ("last_write", "last_write_age", "duplicate_percent")} == {None}
    settings = ("made_at", "distance", "linkage")
    assert not any(value for name, value in line["report"].items() if name not in settings)


def test_status_of_a_collection_with_an_unregistered_scheme(run: Run, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.collections (name, scheme) VALUES ('[foreign]', 'elsewhere-1')"
        )
        store = connect(connection, collection="[foreign]")
        list(store.add_many([("https://a.example/1", 0), ("https://a.example/2", 1)]))
    for command in (["status"], ["analyse", "report", "--collection", "[foreign]"]):
        done = run(*command)
        assert done.code == 0
        (line,) = done.lines
        assert (line["scheme"], line["pages"], line["duplicates"]) == ("elsewhere-1", 2, 1)
    assert line["report"]["all_clusters"] == 1


@pytest.mark.parametrize("command", ["status", "migrate", "ingest", "find"])
def test_no_server_is_one_clear_line(run: Run, command: str, folder: Path) -> None:
    needed: dict[str, list[str | Path]] = {"ingest": [folder], "find": ["1"]}
    done = run(command, *needed.get(command, []), "--dsn", "host=127.0.0.1 port=1 user=x dbname=y")
    assert done.code == 3
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "no PostgreSQL server answers" in done.stderr
    assert "PGSIMHASH_DSN" in done.stderr


def test_a_dsn_that_cannot_be_read_shows_one_that_can(run: Run) -> None:
    done = run("status", "--dsn", "what is this")
    assert done.code == 3
    assert "postgresql://user:password@host:5432/database" in done.stderr


def test_a_missing_database_and_a_wrong_password_are_told_apart(run: Run, dsn: str) -> None:
    done = run("status", "--dsn", conninfo.make_conninfo(dsn, dbname="missing_database"))
    assert done.code == 3
    assert 'database "missing_database" does not exist; create it' in done.stderr
    with psycopg.connect(dsn, autocommit=True) as connection:
        rules = connection.execute(
            "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method LIKE 'scram%'"
        ).fetchone()
        connection.execute("DROP ROLE IF EXISTS pgsimhash_stranger")
        connection.execute("CREATE ROLE pgsimhash_stranger LOGIN PASSWORD 'right'")
    settings = {"user": "pgsimhash_stranger", "password": "wrong"}
    done = run("status", "--dsn", conninfo.make_conninfo(dsn, **settings))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE pgsimhash_stranger")
    assert done.code == 3
    if rules and rules[0]:
        assert "the server refused the login" in done.stderr
        assert "check user and password" in done.stderr
    else:  # a server that trusts everyone lets the stranger in, but not to the tables
        assert "permission denied" in done.stderr
    assert "wrong" not in done.stderr


def test_a_missing_right_to_create_a_schema_is_reported(run: Run, empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE pgsimhash_reader LOGIN PASSWORD 'reader'")
    settings = {"user": "pgsimhash_reader", "password": "reader"}
    done = run("migrate", "--dsn", conninfo.make_conninfo(empty_dsn, **settings))
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE pgsimhash_reader")
    assert done.code == 3
    assert "who may create a schema" in done.stderr
