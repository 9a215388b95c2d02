"""``policy set``, ``list`` and ``remove``, and their effect on ingest."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Run


def test_a_policy_is_set_shown_listed_applied_and_removed(run: Run, folder: Path) -> None:
    done = run("policy", "set", "a.example/x/*", "--distance", "3", "--expire-after", "90d")
    said = {"pattern": "a.example/x/*", "distance": 3, "expire_after": 7_776_000.0}
    assert (done.code, done.lines) == (0, [said])
    assert run("policy", "set", "*", "--max-copies", "2").code == 0
    assert run("policy", "list").lines == [{"pattern": "*", "max_copies": 2}, said]
    url = "https://a.example/x/1"
    shown = run("policy", "list", url)
    assert shown.lines == [{"url": url, "distance": 3, "max_copies": 2, "expire_after": 7_776_000}]

    verdicts = {Path(line["url"]).name: line for line in run("ingest", folder).lines}
    assert verdicts["wells-copy.html"]["verdict"] == "duplicate"
    assert verdicts["wells-copy.html"]["keep"]
    again = run("decide", folder / "wells.html", "--url", "https://b.example/")
    assert (again.code, again.lines[0]["keep"]) == (1, False)
    more = run("decide", folder / "wells.html", "--url", "https://b.example/", "--max-copies", "9")
    assert (more.code, more.lines[0]["keep"]) == (0, True)

    assert run("policy", "remove", "*").code == 0
    assert run("policy", "remove", "*").code == 1


def test_pages_expire_as_policies_say(run: Run, folder: Path) -> None:
    run("ingest", folder)
    refused = run("expire")
    assert refused.code == 2
    assert "pgsimhash policy set '*' --expire-after 90d" in refused.stderr
    run("policy", "set", "*", "--expire-after", "90d")
    assert run("expire").lines == [{"deleted": 0}]


def test_min_tokens_of_a_policy_apply(run: Run, folder: Path) -> None:
    lines = run("ingest", folder, "--min-tokens", "5000").lines
    assert {line["verdict"] for line in lines} == {"too_short"}
    assert {line["reason"] for line in lines} == {"policy", "too_short"}
