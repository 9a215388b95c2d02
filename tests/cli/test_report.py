"""pgsimhash analyse report."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Run


def test_the_report_is_a_json_line_and_a_file(run: Run, folder: Path) -> None:
    run("ingest", folder)
    target = folder / "report.html"
    done = run("analyse", "report", "-o", target)
    assert done.code == 0
    (line,) = done.lines
    assert (line["pages"], line["duplicates"], line["report"]["all_clusters"]) == (3, 1, 1)
    assert line["report"]["clusters"][0]["canonical"].startswith("file:")
    assert done.stderr == ""
    page = target.read_text()
    assert page.startswith("<!doctype html>")
    assert "Near-duplicates in default" in page


def test_the_limits_of_a_report_are_options(run: Run, folder: Path) -> None:
    run("ingest", folder)
    options = ("--clusters", "0", "--distance", "3", "--canonical", "newest")
    done = run("analyse", "report", *options, "--summary")
    figures = done.lines[0]["report"]
    assert (figures["clusters"], figures["all_clusters"], figures["distance"]) == ([], 1, 3)
    assert "bytes saved" in done.stderr
