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
    assert "ALTER TABLE articles ADD COLUMN simhash" in later
    assert revisions(empty_dsn, "alembic_version") == [("0004",)]
    assert revisions(empty_dsn, "pgsimhash.alembic_version") == [("0001",)]


def test_the_example_runs_by_itself(example: Path, empty_dsn: str) -> None:
    commands = ["alembic upgrade head", "alembic check", "alembic downgrade base"]
    run_commands(commands, empty_dsn, example)
    assert revisions(empty_dsn, "alembic_version") == []
    left = "SELECT tablename FROM pg_tables WHERE schemaname IN ('public', 'pgsimhash')"
    assert run_sql(empty_dsn, left) == [("alembic_version",)]


def test_the_indexes_are_built_apart_from_the_columns(example: Path, empty_dsn: str) -> None:
    run_commands(["alembic upgrade 0003"], empty_dsn, example)
    indexes = (
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indisvalid "
        "AND indrelid = 'articles'::regclass AND NOT indisprimary ORDER BY 1"
    )
    assert run_sql(empty_dsn, indexes) == []
    # Left from an attempt that failed later.
    run_sql(empty_dsn, "CREATE INDEX ix_articles_simhash ON articles (simhash)")
    run_commands(["alembic upgrade head", "alembic check"], empty_dsn, example)
    assert run_sql(empty_dsn, indexes) == [
        ("ix_articles_simhash",),
        *((f"ix_articles_simhash_prefix_{bits}",) for bits in ("20_0", "41_21", "63_42")),
    ]
    run_commands(["alembic downgrade 0003"], empty_dsn, example)
    assert run_sql(empty_dsn, indexes) == []
