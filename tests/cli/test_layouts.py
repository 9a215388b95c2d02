"""pgsimhash collection create and set; migrate --layout."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Run

REBUILD = "collection", "rebuild", "default", "--layout"


def test_a_collection_has_the_distance_of_its_scheme(run: Run) -> None:
    (made,) = run("collection", "create", "news", "--scheme", "pgsimhash-interop-1").lines
    assert made["default_distance"] == 3
    (line,) = run("analyse", "explain", "0" * 16, "f" * 16, "--collection", "news").lines
    assert line["max_distance"] == 3
    interop = ["--scheme", "pgsimhash-interop-1"]
    assert run("analyse", "explain", "0" * 16, "f" * 16, *interop).lines[0]["max_distance"] == 3


def test_a_collection_is_created_with_a_layout_and_used(run: Run, folder: Path) -> None:
    (made,) = run("collection", "create", "news", "--layout", "5 choose 2").lines
    assert (made["layout"], made["default_distance"]) == ("5 choose 2", 8)
    assert run("ingest", folder, "--collection", "news").code == 0
    (found,) = run("find", folder / "looms.html", "--collection", "news").lines
    assert found["url"].endswith("looms.html")
    (status,) = run("status").lines
    assert (status["layout"], status["simhashes"]) == ("5 choose 2", 2)


def test_other_layouts_can_be_named_wherever_one_is(run: Run, empty_dsn: str, folder: Path) -> None:
    (made,) = run("collection", "create", "default", "--layout", "7 choose 4").lines
    assert (made["layout"], made["default_distance"]) == ("7 choose 4", 4)
    run("ingest", folder)
    assert run("find", folder / "wells.html").code == 0
    # The same blocks as in a layout with another name.
    for layout, name in (("4 choose 1", "16+16+16+16"), ("40+24", "40+24"), ("5x4", "5x4")):
        (moved,) = run(*REBUILD, layout, "--replace").lines
        assert moved["layout"] == name
        assert run("find", folder / "wells.html").code == 0
    assert run("migrate", "--dsn", empty_dsn, "--layout", "5 choose 3").code == 0
    assert run("migrate", "--dsn", empty_dsn, "--downgrade", "base", "--yes").code == 0


def test_migrate_can_choose_the_layout_of_new_collections(
    run: Run, empty_dsn: str, folder: Path
) -> None:
    done = run("migrate", "--dsn", empty_dsn, "--layout", "16+16+16+16")
    assert done.code == 0
    run("ingest", folder, "--dsn", empty_dsn)
    (status,) = run("status", "--dsn", empty_dsn).lines
    assert status["layout"] == "16+16+16+16"
    assert run("migrate", "--sql", "--layout", "32+32").code == 2
    assert run("migrate", "--downgrade", "base", "--layout", "32+32").code == 2


def test_settings_of_a_collection_are_changed(run: Run) -> None:
    run("collection", "create", "news")
    done = run("collection", "set", "news", "--distance", "5", "--keep-markdown")
    assert (done.lines[0]["default_distance"], done.lines[0]["keep_markdown"]) == (5, True)
    assert run("collection", "set", "news", "--no-keep-markdown").lines[0]["default_distance"] == 5
