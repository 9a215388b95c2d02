"""docs/sql-only.md: all its commands and statements in order, by psql alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import psycopg
import pytest

from pgsimhash import connect
from tests.manual import all_blocks, blocks, commands, run_commands

PAGE = "sql-only.md"

LANGUAGES = ("php", "go", "js")


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_every_statement_works(empty_dsn: str, tmp_path: Path) -> None:
    run_commands(commands(PAGE), empty_dsn, tmp_path)
    for number, content in enumerate(blocks(PAGE, "sql")):
        (tmp_path / f"{number}.sql").write_text(content, encoding="utf-8")
    files = [f"-f {number}.sql" for number in range(len(blocks(PAGE, "sql")))]
    psql = 'psql "$PGSIMHASH_DSN" -X -q -A -t -v ON_ERROR_STOP=1'
    printed = run_commands([f"{psql} {' '.join(files)}"], empty_dsn, tmp_path).splitlines()
    assert printed[0] == "new|||t"
    assert re.fullmatch(r"(duplicate|near)\|\d\|https://example.com/tides\|f", printed[1])
    assert re.fullmatch(r"https://mirror.example/tides\|\d", printed[2])
    assert printed[3] == "new|20"
    clusters = [line.split("|") for line in printed[4:]]
    assert [int(pages) for _, pages, _ in clusters] == [3] * 20 + [2]
    with connect(empty_dsn, collection="articles", create=False) as store:
        expected = {frozenset(page.url for page in cluster.pages) for cluster in store.clusters()}
    assert {frozenset(urls[1:-1].split(",")) for _, _, urls in clusters} == expected
    _run_the_statements_of_programs(empty_dsn)


def statements(language: str) -> list[str]:
    """The SQL in the program of a language, with PostgreSQL's placeholders."""
    (program,) = blocks(PAGE, language)
    found = re.findall(r'"(SELECT [^"]+)"', program)
    return [one.replace("?", "$1", 1).replace("?", "$2", 1) for one in found]


def _run_the_statements_of_programs(dsn: str) -> None:
    add, find = statements("go")
    text = " ".join(f"word{n}" for n in range(50))
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        values = ["https://example.com/mine", text]
        assert connection.execute(add, values).fetchall() == [("new", None, True)]
        assert connection.execute(find, [text]).fetchall() == [("https://example.com/mine", 0)]


def test_the_programs_send_the_same_statements() -> None:
    assert {language for language, _ in all_blocks(PAGE)} == {"sh", "sql", *LANGUAGES}
    for language in LANGUAGES:
        assert statements(language) == statements("go")
