"""pgsimhash should-fetch."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.harness import Run


def test_pages_that_are_not_known_or_due_are_to_be_fetched(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known, unknown = (folder / "wells.html").as_uri(), "https://nowhere.example/"
    done = run("should-fetch", known, "-", stdin=f"{unknown}\n\n{known}\n")
    assert done.code == 0
    assert [line["url"] for line in done.lines] == [known, unknown, known]
    assert [line["fetch"] for line in done.lines] == [False, True, False]


def test_known_pages_are_fetched_again_after_a_time(run: Run) -> None:
    url = "https://a.example/"
    line = {"url": url, "html": f"<p>{'one more word ' * 30}", "fetched_at": "2026-01-01"}
    run("ingest", "-", stdin=json.dumps(line))
    assert run("should-fetch", url).lines == [{"url": url, "fetch": False}]
    assert run("should-fetch", url, "--older-than", "1d").lines == [{"url": url, "fetch": True}]
    run("policy", "set", "a.example", "--refetch-after", "2d")
    assert run("should-fetch", url).lines == [{"url": url, "fetch": True}]
    assert run("should-fetch", url, "--older-than", "9999d").code == 1


def test_invalid_urls_are_reported_and_the_rest_continues(run: Run, folder: Path) -> None:
    run("ingest", folder)
    done = run("should-fetch", "", "no url", "javascript:x", "https://a.example/")
    assert [line["url"] for line in done.lines] == ["https://a.example/"]
    assert done.code == 1
    assert len(done.stderr.splitlines()) == 3
    assert "'javascript:x'" in done.stderr
    lines = b"https://a.example/1\n\xff\n \nhttps://a.example/2\n"
    done = run("should-fetch", "-", stdin=lines)
    assert [line["url"][-1] for line in done.lines] == ["1", "2"]
    assert (done.code, done.stderr) == (1, "b'\\xff' is not in UTF-8\n")


def test_the_exit_code_is_1_if_no_page_needs_fetching(run: Run, folder: Path) -> None:
    run("ingest", folder)
    assert run("should-fetch", (folder / "wells.html").as_uri()).code == 1
    assert run("should-fetch").code == 2
