"""``run``, ``delete``, ``expire``, ``mark`` and ``policy``."""

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
    assert (undone.code, undone.lines) == (0, [{**last, "deleted": 2}])
    assert run("run", "list").lines == [first]
    run("ingest", folder / "wells.html", "--reread")
    run("run", "undo").ends(0, "had added no page")
    run("run", "undo")
    run("run", "undo").ends(1, "no run to undo")


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
    run("run", "undo", number).ends(1, "pgsimhash run list")


def test_an_old_archive_expires_at_once_unless_its_times_are_left_out(
    run: Run, folder: Path
) -> None:
    run("collection", "create", "default")
    run("expire").ends(2, "pgsimhash policy set '*' --expire-after 90d")
    page = {"url": "https://a.example/", "html": (folder / "wells.html").read_text()}
    old = {**page, "fetched_at": "2024-02-29"}
    for line, deleted, age in ((old, 1, ["--older-than", "90d"]), (old, 1, []), (page, 0, [])):
        run("ingest", "-", stdin=json.dumps(line))
        run("ingest", folder)
        run("policy", "set", "*", "--expire-after", "90d")
        for left in (deleted, 0):
            assert run("expire", *age).lines == [{"deleted": left}]


def test_a_mark_is_set_listed_and_removed(run: Run, folder: Path) -> None:
    run("ingest", folder)
    a, b = ((folder / name).as_uri() for name in ("wells.html", "wells-copy.html"))
    done = run("mark", a, b, "--different")
    done.ends(0, "different")
    assert done.stdout == ""
    run("mark", a, "https://nowhere.example/", "--same").ends(1, "ingest the page first")
    (listed,) = run("mark").lines
    assert ({listed["a"], listed["b"]}, listed["mark"]) == ({a, b}, "different")
    assert run("analyse", "clusters", "--distance", "3").lines == []
    assert run("mark", b, a, "--remove").code == 0
    assert run("mark", b, a, "--remove").code == 1
    assert len(run("analyse", "clusters", "--distance", "3").lines) == 1


def test_the_pairs_of_a_file_are_marked_and_those_that_fail_are_printed(
    run: Run, folder: Path
) -> None:
    run("ingest", folder)
    a, b = ((folder / name).as_uri() for name in ("wells.html", "wells-copy.html"))
    unknown = "https://nowhere.example/"
    labels = folder / "marks.csv"
    labels.write_text(f"a,b,label\n{a},{b},different\n{a},{unknown},same\n")
    done = run("mark", "--from", labels)
    done.ends(1, "Pairs marked: 1, failed: 1.")
    assert [(line["b"], line["reason"]) for line in done.lines] == [(unknown, "unknown_page")]
    assert [line["mark"] for line in run("mark").lines] == ["different"]


def test_a_policy_is_set_shown_listed_applied_and_removed(run: Run, folder: Path) -> None:
    done = run("policy", "set", "a.example/x/*", "--distance", "3", "--expire-after", "90d")
    said = {"pattern": "a.example/x/*", "distance": 3, "expire_after": 7_776_000.0}
    assert (done.code, done.lines) == (0, [said])
    assert run("policy", "set", "*", "--max-copies", "2").code == 0
    assert run("policy", "list").lines == [{"pattern": "*", "max_copies": 2}, said]
    url = "https://a.example/x/1"
    shown = run("policy", "list", url)
    assert shown.lines == [{"url": url, "distance": 3, "max_copies": 2, "expire_after": 7_776_000}]

    (copy,) = (line for line in run("ingest", folder).lines if "copy" in line["url"])
    assert (copy["verdict"], copy["keep"]) == ("duplicate", True)
    again = run("decide", folder / "wells.html", "--url", "https://b.example/")
    assert (again.code, again.lines[0]["keep"]) == (1, False)
    more = run("decide", folder / "wells.html", "--url", "https://b.example/", "--max-copies", "9")
    assert (more.code, more.lines[0]["keep"]) == (0, True)

    assert run("policy", "remove", "*").code == 0
    assert run("policy", "remove", "*").code == 1
    lines = run("ingest", folder, "--min-tokens", "5000", "--reread").lines
    assert {line["reason"] for line in lines} == {"policy", "too_short"}
