"""``migrate`` and ``status``, and what is said when the database cannot be used."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from pgsimhash.layout import DEFAULT_LAYOUT
from tests.cli.harness import Run


def test_migrate_creates_the_schema_and_says_so(run: Run, empty_dsn: str, folder: Path) -> None:
    refused = run("ingest", folder, "--dsn", empty_dsn)
    assert refused.code == 3
    assert "run: pgsimhash migrate" in refused.stderr
    done = run("migrate", "--dsn", empty_dsn)
    assert done.code == 0
    assert done.stdout == ""
    assert "revision 0001" in done.stderr
    assert run("ingest", folder, "--dsn", empty_dsn).code == 0


def test_migrate_can_go_back(run: Run, dsn: str) -> None:
    done = run("migrate", "--downgrade", "base")
    assert done.code == 0
    assert "revision base" in done.stderr
    assert "run: pgsimhash migrate" in run("status").stderr


def test_migrate_can_print_the_script_without_a_server(run: Run) -> None:
    done = run("migrate", "--sql", "--dsn", "host=nowhere.invalid")
    assert done.code == 0
    assert done.stdout.startswith("BEGIN;")
    assert all(permutation.column in done.stdout for permutation in DEFAULT_LAYOUT.permutations)
    assert run("migrate", "--sql", "--downgrade", "base").code == 2


def test_status_shows_every_collection(run: Run, folder: Path) -> None:
    assert run("status").lines == []
    run("ingest", folder)
    run("ingest", folder, "--collection", "second")
    first, second = run("status").lines
    assert (first["collection"], second["collection"]) == ("default", "second")
    assert first["pages"] == second["pages"] == 3
    assert first["simhashes"] == 2
    assert first["duplicates"] == 1
    assert first["duplicate_bytes"] > 0


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


def test_a_user_who_may_not_create_a_schema_is_told(run: Run, empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE pgsimhash_reader LOGIN PASSWORD 'reader'")
    settings = {"user": "pgsimhash_reader", "password": "reader"}
    done = run("migrate", "--dsn", conninfo.make_conninfo(empty_dsn, **settings))
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE pgsimhash_reader")
    assert done.code == 3
    assert "who may create a schema" in done.stderr


def test_help_names_every_command(run: Run) -> None:
    done = run("--help")
    for command in ("ingest", "find", "fingerprint", "compare", "evaluate", "status", "migrate"):
        assert command in done.stdout
        assert run(command, "--help").code == 0
