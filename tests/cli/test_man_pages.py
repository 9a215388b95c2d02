"""The man pages have the help of every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pgsimhash.cli.commands import commands
from tests.cli.harness import names_of

MACROS = {".TH", ".SH", ".PP", ".B", ".TP"}


def test_each_command_has_a_page(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pgsimhash.cli.man_pages", tmp_path / "man"], check=True)
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.1")}
    names = {f"pgsimhash-{name.replace(' ', '-')}.1" for name in names_of(commands)}
    groups = {f"pgsimhash-{name}.1" for name in ("analyse", "collection", "policy", "run")}
    assert set(pages) == names | groups | {"pgsimhash.1"}
    assert "Decide for each page whether it is known, and store it\n" in pages["pgsimhash.1"]
    assert r"\fB\-\-reread\fP" in pages["pgsimhash-ingest.1"]
    assert r"\fB\-\-collection\fP NAME" in pages["pgsimhash-find.1"]
    for text in pages.values():
        # man drops a line of text that begins with a dot.
        found = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
        assert found <= MACROS
