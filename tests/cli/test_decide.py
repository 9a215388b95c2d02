"""``decide``, and the match settings of ``ingest``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.harness import Run, without_ids


def test_decide_gives_the_verdict_of_ingest_and_stores_nothing(run: Run, folder: Path) -> None:
    run("ingest", folder / "looms.html")
    copy = folder / "wells-copy.html"
    dry = run("decide", copy, "--url", "https://a.example/wells")
    assert dry.code == 0
    assert (dry.lines[0]["url"], dry.lines[0]["reason"]) == (
        "https://a.example/wells",
        "first_seen",
    )
    assert run("status").lines[0]["pages"] == 1
    run("ingest", folder / "wells.html")
    known = run("decide", copy)
    assert known.code == 1
    assert without_ids(known.lines) == without_ids(run("ingest", copy).lines)


def test_decide_reads_stdin_where_it_has_a_url(run: Run, folder: Path) -> None:
    run("ingest", folder)
    html = (folder / "wells.html").read_bytes()
    known = run("decide", "-", "--url", "https://a.example/", stdin=html)
    assert known.lines[0]["reason"] == "same_bytes"
    refused = run("decide", "-", stdin=html)
    assert refused.code == 2
    assert "needs --url" in refused.stderr


def test_options_limit_the_eligible_originals(run: Run, folder: Path) -> None:
    run("ingest", folder / "wells.html")
    copy = folder / "wells-copy.html"

    def keeps(*options: str) -> bool:
        return run("decide", copy, "--url", "https://a.example/", *options).code == 0

    assert not keeps()
    assert keeps("--scope", "host")
    assert not keeps("--scope", "global")
    assert not keeps("--max-age", "1d")
    run("ingest", folder / "looms.html")
    assert keeps("--window-size", "1")
    assert not keeps("--window-size", "2")
    assert run("ingest", copy, "--max-age", "2w", "--scope", "global").lines[0]["verdict"] != "new"


def test_the_canonical_link_counts_with_the_option(run: Run, folder: Path) -> None:
    wells = {"url": "https://a.example/wells", "html": (folder / "wells.html").read_text()}
    run("ingest", "-", stdin=json.dumps(wells))
    looms = "<link rel=canonical href=/wells>" + (folder / "looms.html").read_text()
    (folder / "linked.html").write_text(looms)
    command = ("decide", folder / "linked.html", "--url", "https://a.example/looms")
    assert run(*command).lines[0]["reason"] == "first_seen"
    (line,) = run(*command, "--canonical-link").lines
    assert (line["reason"], line["duplicate_of"]) == ("canonical_link", "https://a.example/wells")
