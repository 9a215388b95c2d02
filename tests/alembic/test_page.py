"""docs/alembic.md from its first line to its last, in a copy of examples/alembic."""

import re
import shutil
from pathlib import Path

import pytest

from pgsimhash.testing import url_of_dsn
from tests.conftest import ROOT
from tests.database import run_sql
from tests.manual import all_blocks, run_commands, run_python

EXAMPLE = ROOT / "examples" / "alembic"


@pytest.fixture
def example(empty_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DATABASE_URL", url_of_dsn(empty_dsn))
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def revisions(dsn: str, table: str) -> list[object]:
    return run_sql(dsn, f"SELECT version_num FROM {table}")


def test_every_step_works(example: Path, empty_dsn: str) -> None:
    for language, block in all_blocks("alembic.md"):
        named = re.match(r"# (history/\S+)\n", block)
        if named:
            # The page shows what the example contains.
            assert (example / named[1]).read_text(encoding="utf-8") == block[named.end() :]
        elif language == "python":
            run_python(block, empty_dsn, example)
        else:
            run_commands(block.splitlines(), empty_dsn, example)
    later = (example / "later.sql").read_text(encoding="utf-8")
    assert "ALTER TABLE articles ADD COLUMN IF NOT EXISTS simhash" in later
    assert revisions(empty_dsn, "alembic_version") == [("0003",)]
    assert revisions(empty_dsn, "pgsimhash.alembic_version") == [("0001",)]


def test_the_example_runs_by_itself(example: Path, empty_dsn: str) -> None:
    commands = ["alembic upgrade head", "alembic check", "alembic downgrade base"]
    run_commands(commands, empty_dsn, example)
    assert revisions(empty_dsn, "alembic_version") == []
    left = "SELECT tablename FROM pg_tables WHERE schemaname IN ('public', 'pgsimhash')"
    assert run_sql(empty_dsn, left) == [("alembic_version",)]
