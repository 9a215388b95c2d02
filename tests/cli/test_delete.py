"""``runs``, ``undo``, ``delete`` and ``expire``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.harness import Run


def test_runs_are_listed_and_undone(run: Run, folder: Path) -> None:
    run("ingest", folder / "wells.html")
    run("ingest", folder, "--reread")
    last, first = run("run", "list").lines
    assert (first["pages"], first["new"]) == (1, 1)
    assert (last["pages"], last["new"], last["duplicates"], last["unchanged"]) == (3, 1, 1, 1)
    assert last["label"] == f"pgsimhash ingest {folder}"
    undone = run("run", "undo")
    assert undone.code == 0
    assert undone.lines == [{**last, "deleted": 2}]
    assert run("run", "list").lines == [first]
    run("run", "undo")
    refused = run("run", "undo")
    assert refused.code == 1
    assert "no run to undo" in refused.stderr


def test_a_url_a_host_or_a_run_can_be_deleted(run: Run, folder: Path) -> None:
    html = (folder / "wells.html").read_text()
    pages = "\n".join(
        json.dumps({"url": f"https://{host}.example/{n}", "html": html})
        for host in "ab"
        for n in range(2)
    )
    run("ingest", "-", stdin=pages)
    assert run("delete", "--url", "https://a.example/0").lines == [{"deleted": 1}]
    assert run("delete", "--url", "https://a.example/0").code == 1
    assert run("delete", "--host", "B.example").lines == [{"deleted": 2}]
    number = run("run", "list").lines[0]["run"]
    assert run("run", "undo", number).lines == [{"run": number, "deleted": 1}]
    refused = run("run", "undo", number)
    assert refused.code == 1
    assert "pgsimhash run list" in refused.stderr
    url = run("delete", "--host", "https://b.example/")
    assert url.code == 2
    assert "give a name such as example.com" in url.stderr
    assert run("delete").code == run("delete", "--url", "x", "--host", "a.example").code == 2


def test_an_old_archive_expires_at_once_unless_its_times_are_left_out(
    run: Run, folder: Path
) -> None:
    page = {"url": "https://a.example/", "html": (folder / "wells.html").read_text()}
    old = {**page, "fetched_at": "2024-02-29"}
    for line, deleted in ((old, 1), (page, 0)):
        run("ingest", "-", stdin=json.dumps(line))
        run("ingest", folder)
        for left in (deleted, 0):
            assert run("expire", "--older-than", "90d").lines == [{"deleted": left}]
