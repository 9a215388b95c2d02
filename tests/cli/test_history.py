"""pgsimhash analyse history."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.harness import Run

URL = "https://a.example/page"


def ingest(run: Run, page: Path) -> None:
    line = {"url": URL, "html": page.read_text()}
    assert run("ingest", "-", stdin=json.dumps(line)).code == 0


def test_a_line_for_each_version(run: Run, folder: Path) -> None:
    for name in ("wells", "looms", "looms", "wells"):
        ingest(run, folder / f"{name}.html")
    done = run("analyse", "history", URL)
    assert done.code == 0
    assert [line["change"] for line in done.lines] == [None, "rewritten", "rewritten"]
    assert done.lines[2]["distance_to_first"] == 0
    assert done.stderr == ""
    assert "rewritten" in run("analyse", "history", URL, "--summary").stderr


def test_an_unknown_url_exits_with_1(run: Run, folder: Path) -> None:
    ingest(run, folder / "wells.html")
    done = run("analyse", "history", "https://a.example/none")
    assert done.code == 1
    assert "ingest the page first" in done.stderr
