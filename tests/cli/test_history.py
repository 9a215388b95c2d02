"""pgsimhash analyse history."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.harness import Run

URL = "https://a.example/page"


def ingest(run: Run, page: Path, fetched_at: str | None = None) -> None:
    line = {"url": URL, "html": page.read_text(), "fetched_at": fetched_at}
    assert run("ingest", "-", stdin=json.dumps(line)).code == 0


def test_a_line_for_each_version(run: Run, folder: Path) -> None:
    for name in ("wells", "looms", "looms", "wells"):
        ingest(run, folder / f"{name}.html")
    done = run("analyse", "history", URL)
    assert done.code == 0
    assert [line["change"] for line in done.lines] == [None, "rewritten", "rewritten"]
    assert done.lines[2]["distance_to_first"] == 0
    assert done.stderr == ""


def test_what_ingest_keeps_as_updated_is_a_change(run: Run, folder: Path) -> None:
    wells = (folder / "wells.html").read_text()
    for day, html in enumerate((wells, wells.replace("clay", "loam"))):
        line = {"url": URL, "html": html, "fetched_at": f"2026-01-0{day + 1}"}
        verdict = run("ingest", "-", stdin=json.dumps(line)).lines[0]
    assert (verdict["verdict"], verdict["keep"]) == ("updated", True)
    _, version = run("analyse", "history", URL).lines
    assert version["change"] == "edited"
    assert version["distance"] <= 3


def test_an_unchanged_visit_is_when_the_version_was_last_seen(run: Run, folder: Path) -> None:
    ingest(run, folder / "wells.html", "2026-01-01T00:00:00Z")
    ingest(run, folder / "wells.html", "2026-03-02T00:00:00Z")
    (version,) = run("analyse", "history", URL).lines
    assert version["fetched_at"].startswith("2026-01-01")
    assert version["seen_at"].startswith("2026-03-02")


def test_the_table(run: Run, folder: Path) -> None:
    for name in ("wells", "looms"):
        ingest(run, folder / f"{name}.html")
    done = run("analyse", "history", URL, "--summary")
    assert "rewritten" in done.stderr


def test_an_unknown_url_exits_with_1(run: Run, folder: Path) -> None:
    ingest(run, folder / "wells.html")
    done = run("analyse", "history", "https://a.example/none")
    assert done.code == 1
    assert "ingest the page first" in done.stderr
