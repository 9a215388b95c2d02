"""docs/first-hour.md, typed from its first line to its last in one folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.database import run_sql
from tests.manual import NOT_RUN, all_blocks, run_commands
from tests.programs import free_port

PAGE = "first-hour.md"


@pytest.fixture
def empty(empty_dsn: str) -> Iterator[str]:
    """A database without the schema; the role that the page creates belongs to the server."""
    yield empty_dsn
    run_sql(empty_dsn, "DROP OWNED BY crawler")
    run_sql(empty_dsn, "DROP ROLE crawler")


def test_every_step_works(empty: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    port = str(free_port())
    answers: list[tuple[object, ...]] = []
    for language, block in all_blocks(PAGE):
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
