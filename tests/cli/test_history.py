"""pgsimhash analyse history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.harness import Run

URL = "https://a.example/page"


def ingest(run: Run, page: Path, fetched_at: str | None = None) -> None:
    line = {"url": URL, "html": page.read_text(), "fetched_at": fetched_at}
    assert run("ingest", "-", stdin=json.dumps(line)).code == 0


def test_a_line_for_each_version_and_one_with_the_hint(run: Run, folder: Path) -> None:
    for name in ("wells", "looms", "looms", "wells"):
        ingest(run, folder / f"{name}.html")
    done = run("analyse", "history", URL)
    assert done.code == 0
    *versions, last = done.lines
    assert [line["change"] for line in versions] == [None, "rewritten", "rewritten"]
    assert versions[2]["distance_to_first"] == 0
    assert last["recrawl"]["changes"] == 2
    assert done.stderr == ""


def test_what_ingest_keeps_as_updated_is_a_change(run: Run, folder: Path) -> None:
    wells = (folder / "wells.html").read_text()
    for day, html in enumerate((wells, wells.replace("clay", "loam"))):
        line = {"url": URL, "html": html, "fetched_at": f"2026-01-0{day + 1}"}
        verdict = run("ingest", "-", stdin=json.dumps(line)).lines[0]
    assert (verdict["verdict"], verdict["keep"]) == ("updated", True)
    _, version, last = run("analyse", "history", URL).lines
    assert (version["change"], last["recrawl"]["changes"]) == ("edited", 1)
    assert version["distance"] <= 3
    assert run("should-fetch", URL).lines[0]["recrawl"] == last["recrawl"]


def test_an_unchanged_visit_lengthens_the_interval(run: Run, folder: Path) -> None:
    def interval() -> int:
        version, last = run("analyse", "history", URL).lines
        assert version["fetched_at"].startswith("2026-01-01")
        return int(last["recrawl"]["interval_seconds"])

    ingest(run, folder / "wells.html", "2026-01-01T00:00:00Z")
    before = interval()
    ingest(run, folder / "wells.html", "2026-03-02T00:00:00Z")
    assert (before, interval()) == (30 * 86_400, 42 * 86_400)
    assert "2026-03-02T00:00" in run("analyse", "history", URL, "--summary").stderr


def test_an_unchanged_visit_can_be_given(run: Run, folder: Path) -> None:
    ingest(run, folder / "wells.html", "2024-01-01T00:00:00Z")
    known = run("analyse", "history", URL).lines[-1]["recrawl"]
    later = run("analyse", "history", URL, "--seen-at", "2025-06-01T02:00:00+02:00")
    seen = later.lines[-1]["recrawl"]
    assert known["interval_seconds"] == 30 * 86_400 < seen["interval_seconds"]
    assert seen["known_until"] == "2025-06-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("time", "advice"),
    [("2126-01-01", "in the future; correct it"), ("tuesday", "is not a time such as")],
)
def test_an_invalid_time_of_a_visit_is_refused(run: Run, time: str, advice: str) -> None:
    refused = run("analyse", "history", URL, "--seen-at", time)
    assert refused.code == 2
    assert advice in " ".join(refused.stderr.split())


def test_the_table(run: Run, folder: Path) -> None:
    for name in ("wells", "looms"):
        ingest(run, folder / f"{name}.html")
    done = run("analyse", "history", URL, "--summary")
    assert "rewritten" in done.stderr
    assert "Fetch it again after" in done.stderr


def test_an_unknown_url_exits_with_1(run: Run, folder: Path) -> None:
    ingest(run, folder / "wells.html")
    done = run("analyse", "history", "https://a.example/none")
    assert done.code == 1
    assert "ingest the page first" in done.stderr
