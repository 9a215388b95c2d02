"""Output files: an existing file stays until the new one is complete."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.harness import COMMAND, Run


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "why.html"


def explain(run: Run, folder: Path, target: Path) -> int:
    pages = (folder / "wells.html", folder / "looms.html")
    return run("analyse", "explain", *pages, "-o", target).code


def test_a_failed_write_keeps_the_old_file(folder: Path, target: Path) -> None:
    target.write_text("the page before")
    before = set(folder.iterdir())
    pages = [str(folder / "wells.html"), str(folder / "looms.html")]
    command = shlex.join([*COMMAND, "analyse", "explain", *pages, "-o", str(target)])
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 1; {command}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert target.read_text() == "the page before"
    assert set(folder.iterdir()) == before


def test_a_page_keeps_its_mode_and_a_link_its_target(run: Run, folder: Path, target: Path) -> None:
    assert explain(run, folder, target) == 0
    target.with_name("any").touch()
    assert target.stat().st_mode == target.with_name("any").stat().st_mode
    target.write_text("the page before")
    target.chmod(0o640)
    link = target.with_name("link.html")
    link.symlink_to(target)
    assert explain(run, folder, link) == 0
    assert link.is_symlink()
    assert target.read_text().startswith("<!doctype html>")
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_page_can_be_written_to_a_pipe_or_device(folder: Path, target: Path) -> None:
    pages = [str(folder / "wells.html"), str(folder / "looms.html")]
    command = [*COMMAND, "analyse", "explain", *pages, "-o", "/dev/stdout"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "<!doctype html>" in piped.stdout
    with target.open("w") as file:
        subprocess.run(command, stdout=file, check=True)
    assert "<!doctype html>" in target.read_text()
