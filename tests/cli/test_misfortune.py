"""Failures of a command end in one line with the fix, not in a traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.harness import COMMAND, Run

NO_TEXT = os.fsdecode(b"\xff")
"""An argument that is not UTF-8, as Python represents it."""


def without_stdin(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``pgsimhash`` as a job with closed stdin."""
    command = shlex.join([*COMMAND, *arguments])
    return subprocess.run(
        ["sh", "-c", f"{command} <&-"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "command",
    [
        ("status", "--collection", NO_TEXT),
        ("collection", "create", NO_TEXT),
        ("collection", "rename", "default", NO_TEXT),
        ("delete", "--url", NO_TEXT),
        ("delete", "--host", NO_TEXT),
        ("policy", "set", NO_TEXT, "--distance", "3"),
        ("policy", "list", f"https://a.example/{NO_TEXT}"),
        ("analyse", "history", NO_TEXT),
        ("mark", NO_TEXT, "https://a.example/", "--same"),
    ],
)
def test_an_argument_that_is_not_utf8_is_one_clear_line(run: Run, command: tuple[str, ...]) -> None:
    assert run("collection", "create", "default").code == 0
    done = run(*command)
    assert done.code in (1, 2, 3)
    *usage, line = done.stderr.splitlines()
    assert len(usage) in (0, 2, 3)
    assert "surrogates not allowed" in line or "a str in valid UTF-8" in line


@pytest.mark.parametrize(
    "command", [("ingest", ".", "--create", "--collection", ""), ("collection", "create", "")]
)
def test_an_empty_name_of_a_collection_is_refused(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.code == 2
    assert "is empty; give one" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "ingest -",
        "decide - --url https://a.example/",
        "find -",
        "find-many -",
        "fingerprint -",
        "should-fetch -",
        "analyse explain - 0",
        "analyse evaluate -",
        "collection delete default",
        "migrate --downgrade base",
    ],
)
def test_a_closed_stdin_is_one_clear_line(run: Run, command: str) -> None:
    run("collection", "create", "default")
    done = without_stdin(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "stdin" in done.stderr.splitlines()[-1] or "confirm with --yes" in done.stderr


@pytest.mark.usefixtures("run")
def test_a_closed_stdin_does_not_matter_unless_it_is_read(folder: Path) -> None:
    done = without_stdin("ingest", str(folder / "wells.html"))
    assert done.returncode == 0
    assert "first_seen" in done.stdout


@pytest.mark.parametrize("option", ["--window-size", "--max-copies", "--min-tokens"])
def test_a_number_too_large_for_the_database_is_refused(run: Run, option: str) -> None:
    assert run("policy", "set", "a.example", option, str(2**31)).code == 2
    assert run("policy", "set", "a.example", option, str(2**31 - 1)).code == 0


def test_stopping_any_command_exits_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    run("collection", "create", "default")
    monkeypatch.setattr("pgsimhash.maintenance.undo", stopped)
    done = run("run", "undo")
    assert done.code == 130
    assert "run again to continue" in done.stderr


def test_a_full_disk_under_stdout_is_one_clear_line(run: Run, folder: Path) -> None:
    run("collection", "create", "default")
    for command in (["status"], ["ingest", str(folder)]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run([*COMMAND, *command], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 3
        (line,) = done.stderr.splitlines()
        assert b"No space left on device; free space" in line


@pytest.mark.parametrize("command", ["status", "ingest", "ingest --parquet verdicts.parquet"])
def test_a_closed_stdout_ends_silently_with_its_own_code(
    run: Run, folder: Path, command: str
) -> None:
    run("collection", "create", "default")
    arguments = [*command.split(), *([str(folder)] if "ingest" in command else [])]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE, cwd=folder, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_the_embedded_server_gets_its_schema_from_any_command(
    run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGSIMHASH_DSN")
    monkeypatch.setattr("pgsimhash.embedded.server.start", lambda: empty_dsn)
    assert run("status").code == 0


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("click", ["status"]),
        ("pgsimhash.cli.options", ["status"]),
        ("psycopg", ["status"]),
        ("numpy", ["find-many", os.devnull]),
    ],
)
def test_ctrl_c_while_modules_are_loaded_ends_in_one_line(
    run: Run, module: str, command: list[str]
) -> None:
    run("collection", "create", "default")
    code = f"""
import sys

class Interruption:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interruption())
from pgsimhash.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "Stopped. Committed work stays; run again to continue.\n"


def test_a_deletion_needs_confirmation(run: Run, folder: Path) -> None:
    run("ingest", folder)
    asked = run("collection", "delete", "default")
    assert (asked.code, "--yes" in asked.stderr) == (2, True)
    assert run("collection", "delete", "defualt", "--yes").code == 2
    assert run("collection", "delete", "default", "--yes").lines == [
        {"collection": "default", "pages": 3}
    ]
    assert run("collection", "list").lines == []
