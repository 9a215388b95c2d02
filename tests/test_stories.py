"""Pages typed from the first line to the last: docs/first-hour.md, and docs/sql-only.md by psql."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgsimhash import connect
from tests.conftest import ROOT
from tests.database import run_sql
from tests.manual import NOT_RUN, all_blocks, blocks, commands, run_commands
from tests.programs import free_port


@pytest.fixture
def empty(empty_dsn: str) -> Iterator[str]:
    """A database without the schema; the role that the page creates belongs to the server."""
    yield empty_dsn
    run_sql(empty_dsn, "DROP OWNED BY crawler")
    run_sql(empty_dsn, "DROP ROLE crawler")


def test_the_first_hour(empty: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    port = str(free_port())
    answers: list[tuple[object, ...]] = []
    for language, block in all_blocks("first-hour.md"):
        content = block.replace("8123", port)
        named = re.match(r"(?:#|--) (\w+\.\w+)\n", content)
        if named:
            (tmp_path / named[1]).write_text(content, encoding="utf-8")
        elif language == "sql":
            answers = run_sql(empty, content)
        else:
            assert language == "sh"
            skipped = (*NOT_RUN, "cp -r ", "export ")
            lines = [line for line in content.splitlines() if not line.startswith(skipped)]
            run_commands(lines, empty, tmp_path)
    verdicts = [line.split()[0] for line in (tmp_path / "crawl.txt").read_text().splitlines()]
    assert len(verdicts) == 25
    assert verdicts.count("new") == 9
    assert verdicts.count("too_short") == 1
    assert {"new", "too_short", "duplicate", "near"} == set(verdicts)
    assert len(answers) > 8
    assert (tmp_path / "glance.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run_sql(empty, "SELECT count(*) FROM articles") == [(9,)]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_sql_only(empty_dsn: str, tmp_path: Path) -> None:
    run_commands(commands("sql-only.md"), empty_dsn, tmp_path)
    for number, content in enumerate(blocks("sql-only.md", "sql")):
        (tmp_path / f"{number}.sql").write_text(content, encoding="utf-8")
    files = [f"-f {number}.sql" for number in range(len(blocks("sql-only.md", "sql")))]
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
    (program,) = blocks("sql-only.md", language)
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
    languages = ("php", "go", "js")
    assert {language for language, _ in all_blocks("sql-only.md")} == {"sh", "sql", *languages}
    for language in languages:
        assert statements(language) == statements("go")
