"""Shell completion, called like the shell calls it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pgsimhash import connect
from pgsimhash.db import migrate
from pgsimhash.embedded import server
from tests.cli.harness import Run

CODE = "from pgsimhash.cli import main; main()"


def completed(line: str, dsn: str | None, **variables: str) -> list[str]:
    """The completions that bash gets for a line."""
    environment = {name: value for name, value in os.environ.items() if name != "PGSIMHASH_DSN"}
    if dsn is not None:
        environment["PGSIMHASH_DSN"] = dsn
    environment |= {
        "_PGSIMHASH_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(shlex.split(line)) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**environment, **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return [offer.removeprefix("plain,") for offer in done.stdout.split()]


@pytest.fixture
def names(run: Run) -> None:
    for name in ("news", "news-2", "shop"):
        run("collection", "create", name)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    "line",
    [
        "pgsimhash ingest --collection n",
        "pgsimhash status --collection n",
        "pgsimhash collection delete n",
        "pgsimhash collection rename n",
        "pgsimhash run list --collection n",
        "pgsimhash analyse explain --collection n",
    ],
)
def test_names_of_collections_are_completed(line: str, dsn: str) -> None:
    assert completed(line, dsn) == ["news", "news-2"]


@pytest.mark.usefixtures("names")
def test_the_dsn_may_be_on_the_command_line(dsn: str) -> None:
    assert completed(f"pgsimhash find --dsn '{dsn}' --collection s", None) == ["shop"]


def test_without_an_answer_completion_is_empty_and_silent(dsn: str, tmp_path: Path) -> None:
    line = "pgsimhash find --collection s"
    assert completed(line, "host=/nowhere") == []
    assert completed(line, "no DSN") == []
    # Completion starts no server.
    assert completed(line, None, PGSIMHASH_DATA_DIR=str(tmp_path / "data")) == []
    assert not (tmp_path / "data").exists()
    assert completed(line, dsn, PGSIMHASH_SCHEMA="nowhere") == []


def test_names_of_a_running_embedded_server_are_completed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    dsn = server.start(folder)
    migrate.upgrade(dsn)
    with connect(dsn, collection="kept"):
        line = "pgsimhash find --collection k"
        assert completed(line, None, PGSIMHASH_DATA_DIR=str(folder)) == ["kept"]
