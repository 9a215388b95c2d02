"""What the README shows of the demo and of the table is so; its code is run by test_docs.py."""

from __future__ import annotations

import subprocess
import sys

import psycopg

from tests.conftest import ROOT
from tests.manual import blocks, commands, environment, text_of


def shown(part: str) -> list[str]:
    """The lines of the one block of plain text that has ``part``."""
    (found,) = [block for block in blocks("README.md", "text") if part in block]
    return found.splitlines()


def test_it_is_short() -> None:
    assert len(text_of("README.md").splitlines()) <= 220
    assert len(commands("README.md")) == 8


def test_the_output_of_the_demo(dsn: str) -> None:
    """The tables in the README are what the command prints, but for the speed."""
    done = subprocess.run(
        [sys.executable, "-m", "pgsimhash", "ingest", "examples/pages", "--summary"],
        check=True,
        cwd=ROOT,
        env={**environment(dsn), "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )

    def but_for_the_speed(lines: list[str]) -> list[str]:
        return [line.rstrip() for line in lines if "pages a second" not in line]

    printed = but_for_the_speed(done.stderr.splitlines())
    assert printed == but_for_the_speed(shown("seilfaehre.html"))


def test_the_columns_of_the_table(connection: psycopg.Connection) -> None:
    rows = [line.split("|") for line in shown("collection_id")[2:]]
    columns = connection.execute(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute "
        "WHERE attrelid = 'pgsimhash.simhashes'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    assert [(row[0].strip(), row[1].strip()) for row in rows] == columns
