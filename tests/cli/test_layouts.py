"""``collection create`` and ``set``, ``migrate --layout`` and ``rebuild --into-schema``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Run


def test_a_collection_has_the_distance_of_its_scheme(run: Run) -> None:
    (made,) = run("collection", "create", "news", "--scheme", "pgsimhash-interop-1").lines
    assert made["default_distance"] == 3
    (line,) = run("analyse", "explain", "0" * 16, "f" * 16, "--collection", "news").lines
    assert line["max_distance"] == 3
    interop = ["--scheme", "pgsimhash-interop-1"]
    assert run("analyse", "explain", "0" * 16, "f" * 16, *interop).lines[0]["max_distance"] == 3


def test_a_new_schema_has_a_layout_and_is_used(run: Run, empty_dsn: str, folder: Path) -> None:
    there = "--dsn", empty_dsn
    for layout, name, distance in (
        ("4 choose 1", "16+16+16+16", 8),
        ("7 choose 4", "7 choose 4", 4),
        ("40+24", "40+24", 7),
        ("5 choose 3", "5 choose 3", 4),
    ):
        assert run("migrate", *there, "--layout", layout).code == 0
        assert run("migrate", *there, "--layout", name).code == 0
        (made,) = run("collection", "create", "news", *there).lines
        assert (made["layout"], made["default_distance"]) == (name, distance)
        assert run("ingest", folder, "--collection", "news", *there).code == 0
        (found,) = run("find", folder / "looms.html", "--collection", "news", *there).lines
        assert found["url"].endswith("looms.html")
        (status,) = run("status", *there).lines
        assert (status["layout"], status["simhashes"]) == (name, 2)
        assert run("migrate", *there, "--downgrade", "base", "--yes").code == 0


def test_the_layout_of_a_schema_is_not_changed(run: Run) -> None:
    refused = run("migrate", "--layout", "16+16+16+16")
    assert (refused.code, refused.stdout) == (3, "")
    assert "has layout '22+21+21', not '16+16+16+16'; deploy a second schema" in refused.stderr
    assert run("migrate", "--layout", "7 choose 8").code == 2
    assert run("migrate", "--downgrade", "base", "--layout", "32+32").code == 2
    assert "RETURN '32+32'" in run("migrate", "--sql", "--layout", "32+32").stdout


def test_a_collection_is_copied_into_a_schema_of_another_layout(run: Run, folder: Path) -> None:
    run("ingest", folder)
    rebuild = "collection", "rebuild", "default", "--into-schema", "wide"
    missing = run(*rebuild)
    assert missing.code == 3
    assert "the schema wide is not in this database; run: pgsimhash migrate --schema wide" in (
        missing.stderr
    )
    run("migrate", "--schema", "wide", "--layout", "5 choose 2")
    done = run(*rebuild)
    (copy,) = done.lines
    assert (copy["collection"], copy["layout"]) == ("default", "5 choose 2")
    assert "The old collection" not in done.stderr
    for schema in ("pgsimhash", "wide"):
        (status,) = run("status", "--schema", schema).lines
        assert (status["collection"], status["pages"], status["simhashes"]) == ("default", 3, 2)
        found = run("find", folder / "wells.html", "--schema", schema).lines
        assert [line["distance"] for line in found] == [0]
    taken = run(*rebuild)
    assert taken.code == 2
    assert "pgsimhash collection delete default --schema wide" in taken.stderr
    assert run(*rebuild, "--into", "moved", "--replace").lines[0]["collection"] == "moved"
    assert run("collection", "list").lines == []
    run("migrate", "--schema", "narrow", "--layout", "32+32")
    back = "collection", "rebuild", "moved", "--schema", "wide", "--into-schema", "narrow"
    assert "from 0 to 7" in run(*back).stderr
    assert run(*back, "--distance", "5").lines[0]["default_distance"] == 5


def test_settings_of_a_collection_are_changed(run: Run) -> None:
    run("collection", "create", "news")
    done = run("collection", "set", "news", "--distance", "5", "--keep-markdown")
    assert (done.lines[0]["default_distance"], done.lines[0]["keep_markdown"]) == (5, True)
    assert run("collection", "set", "news", "--no-keep-markdown").lines[0]["default_distance"] == 5
