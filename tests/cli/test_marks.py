"""``mark``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Run


def test_a_mark_is_set_listed_and_removed(run: Run, folder: Path) -> None:
    run("ingest", folder)
    a, b = ((folder / name).as_uri() for name in ("wells.html", "wells-copy.html"))
    done = run("mark", a, b, "--different")
    assert (done.code, done.stdout) == (0, "")
    assert "different" in done.stderr
    (said,) = run("mark").lines
    assert {said["a"], said["b"]} == {a, b}
    assert said["mark"] == "different"
    assert run("analyse", "clusters", "--distance", "3").lines == []
    assert run("mark", b, a, "--remove").code == 0
    assert run("mark", b, a, "--remove").code == 1
    assert len(run("analyse", "clusters", "--distance", "3").lines) == 1


def test_an_unknown_url_and_a_contradiction_name_the_fix(run: Run, folder: Path) -> None:
    run("ingest", folder)
    a, b = ((folder / name).as_uri() for name in ("wells.html", "wells-copy.html"))
    refused = run("mark", a, "https://nowhere.example/", "--same")
    assert refused.code == 1
    assert "ingest the page first" in refused.stderr
    assert run("mark", a, b).code == 2
    assert run("mark", a, "--same").code == 2
    assert run("mark", "--remove").code == 2
    assert run("mark").lines == []
