"""pgsimhash collection plan and create; migrate --layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgsimhash.search.layout import LAYOUTS
from pgsimhash.search.layout_costs import MARKDOWN_BYTES, PAGE_BYTES, SEEN_BYTES
from tests.cli.harness import Run, on_a_terminal

REBUILD = "collection", "rebuild", "default", "--layout"


def test_plan_compares_all_layouts_and_recommends_one(run: Run) -> None:
    for rows in ("1e6", "50_000_000", "8e9"):
        done = run("collection", "plan", "--rows", rows, "--distance", "3")
        assert done.code == 0
        assert {line["layout"] for line in done.lines} == set(LAYOUTS)
        assert sum(line["recommended"] for line in done.lines) == 1
        sizes = [line["bytes_a_row"] for line in done.lines]
        assert sizes == sorted(sizes)


def test_plan_uses_the_default_distance(run: Run) -> None:
    lines = run("collection", "plan", "--rows", "1e6").lines
    assert lines == run("collection", "plan", "--rows", "1e6", "--distance", "8").lines


def test_plan_predicts_the_size_of_pages(run: Run) -> None:
    alone = run("collection", "plan", "--rows", "5e6").lines
    assert {line["gigabytes_with_pages"] for line in alone} == {None}
    done = run("collection", "plan", "--rows", "5e6", "--pages", "1e7")
    assert done.code == 0
    for line, before in zip(done.lines, alone, strict=True):
        assert line["gigabytes"] == before["gigabytes"]
        pages = line["gigabytes_with_pages"] - line["gigabytes"]
        assert pages == pytest.approx(1e7 * (PAGE_BYTES + SEEN_BYTES) / 1e9, abs=0.002)
        text = line["gigabytes_with_markdown"] - line["gigabytes_with_pages"]
        assert text == pytest.approx(1e7 * MARKDOWN_BYTES / 1e9, abs=0.002)
        more = {"gigabytes_with_pages": None, "gigabytes_with_markdown": None}
        assert {**line, **more} == before
    # The maximum, as if no two pages were equal.
    assert run("collection", "plan", "--pages", "1e7").lines == (
        run("collection", "plan", "--pages", "1e7", "--rows", "1e7").lines
    )
    unsaid = run("collection", "plan")
    assert unsaid.code == 2
    assert "give the expected size: --pages, --rows" in unsaid.stderr
    for pages in ("0", "many", "1e13"):
        assert run("collection", "plan", "--pages", pages).code == 2


def test_on_a_terminal_plan_has_a_table() -> None:
    for more, is_there in (([], False), (["--pages", "1e7"], True)):
        done = on_a_terminal("collection", "plan", "--rows", "1e6", *more)
        assert done.code == 0
        assert ("with 10,000,000 pages, and" in done.stderr) == is_there
        assert "For 1,000,000 simhashes and distance 8" in done.stderr


def test_a_collection_has_the_distance_of_its_scheme(run: Run) -> None:
    (made,) = run("collection", "create", "news", "--scheme", "pgsimhash-interop-1").lines
    assert made["default_distance"] == 3
    (line,) = run("analyse", "explain", "0" * 16, "f" * 16, "--collection", "news").lines
    assert line["max_distance"] == 3
    interop = ["--scheme", "pgsimhash-interop-1"]
    assert run("analyse", "explain", "0" * 16, "f" * 16, *interop).lines[0]["max_distance"] == 3


def test_plan_omits_layouts_that_do_not_support_the_distance(run: Run) -> None:
    lines = run("collection", "plan", "--rows", "1000", "--distance", "12").lines
    assert {line["layout"] for line in lines} == {"22+21+21", "16+16+16+16", "8 choose 2"}


@pytest.mark.parametrize("rows", ["many", "0", "-1", "nan", "1e13"])
def test_plan_refuses_an_invalid_number_of_rows(run: Run, rows: str) -> None:
    done = run("collection", "plan", "--rows", rows)
    assert done.code == 2
    assert "number such as" in done.stderr or "is not from 1" in done.stderr


def test_a_collection_is_created_with_a_layout_and_used(run: Run, folder: Path) -> None:
    (made,) = run("collection", "create", "news", "--layout", "5 choose 2").lines
    assert (made["layout"], made["default_distance"]) == ("5 choose 2", 8)
    assert run("ingest", folder, "--collection", "news").code == 0
    (found,) = run("find", folder / "looms.html", "--collection", "news").lines
    assert found["url"].endswith("looms.html")
    (status,) = run("status").lines
    assert (status["layout"], status["simhashes"]) == ("5 choose 2", 2)


def test_a_default_distance_that_the_layout_does_not_support_is_refused(run: Run) -> None:
    done = run("collection", "create", "news", "--layout", "32+32", "--distance", "8")
    assert done.code == 2
    assert "from 0 to 7" in done.stderr
    assert run("status").lines == []


def test_other_layouts_can_be_named_wherever_one_is(run: Run, empty_dsn: str, folder: Path) -> None:
    plan = ["collection", "plan", "--rows", "1e6"]
    plan += ["--layout", "7 choose 4", "--layout", "9 choose 1", "--layout", "5x4"]
    assert "7 choose 4 is omitted: it supports distances up to 4" in run(*plan).stderr
    lines = run(*plan, "--distance", "3").lines
    assert {line["layout"]: line["columns"] for line in lines}["7 choose 4"] == 35
    assert {line["layout"] for line in lines} == {*LAYOUTS, "7 choose 4", "9 choose 1", "5x4"}
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
    assert "give at least one of" in run("collection", "set", "news").stderr
    assert run("collection", "set", "typo", "--distance", "5").code == 2
