"""``collection rebuild`` and ``rename``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgsimhash import connect
from pgsimhash.cli import rebuild
from tests.cli.harness import Run

REBUILD = "collection", "rebuild"
SHINGLES = "--scheme", "pgsimhash-blog-shingles-1"


@pytest.fixture
def kept(run: Run, folder: Path) -> None:
    """The pages in a collection that stores Markdown."""
    run("collection", "create", "kept", "--keep-markdown", "--scheme", "pgsimhash-blog-words-1")
    run("ingest", "--collection", "kept", folder)


def test_a_collection_is_rebuilt(run: Run, folder: Path) -> None:
    run("ingest", folder)
    done = run(*REBUILD, "default", "--distance", "6")
    assert done.lines == [
        {
            "collection": "default",
            "collection_id": 2,
            "scheme": "pgsimhash-article-1",
            "layout": "22+21+21",
            "default_distance": 6,
            "keep_markdown": False,
            "normalize_urls": False,
        }
    ]
    assert "pgsimhash collection delete default-2" in done.stderr
    assert run("find", folder / "wells.html").code == 0
    assert run("ingest", folder).code == 0
    assert {line["collection"]: line["simhashes"] for line in run("status").lines} == {
        "default": 2,
        "default-2": 2,
    }
    assert run(*REBUILD, "default", "--into", "x", "--replace").stderr == ""
    assert len(run("status").lines) == 2


def test_a_rebuild_with_another_scheme_prints_verdicts(run: Run, kept: None) -> None:
    *verdicts, made = run(*REBUILD, "kept", *SHINGLES, "--verdicts").lines
    assert sorted(line["verdict"] for line in verdicts) == ["duplicate", "new", "new", "too_short"]
    assert (made["collection"], made["scheme"]) == ("kept", "pgsimhash-blog-shingles-1")
    schemes = {line["collection"]: line["scheme"] for line in run("status").lines}
    assert schemes == {"kept": "pgsimhash-blog-shingles-1", "kept-2": "pgsimhash-blog-words-1"}


def test_pages_that_fail_are_in_the_exit_code(run: Run, kept: None) -> None:
    # A page that was added as a simhash has no Markdown.
    with connect(collection="kept") as store:
        store.add("https://a.example/", 1)
    done = run(*REBUILD, "kept", *SHINGLES)
    assert done.code == 1
    assert "1 versions were omitted" in done.stderr


def test_ctrl_c_leaves_everything_unchanged(
    run: Run, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(rebuild, "print_json", interrupt)
        assert run(*REBUILD, "kept", *SHINGLES, "--verdicts").code == 130
    assert [line["collection"] for line in run("collection", "list").lines] == ["kept"]
    assert run(*REBUILD, "kept", *SHINGLES).code == 0
    pages = {line["collection"]: line["pages"] for line in run("status").lines}
    assert (pages["kept"], pages["kept-2"]) == (3, 4)


def test_verdicts_with_other_settings_replace_the_stored_ones(run: Run) -> None:
    with connect(collection="default") as store:
        list(store.add_many([("https://a.example/", 0), ("https://b.example/", 7)]))
    assert [line["duplicates"] for line in run("status").lines] == [1]
    run(*REBUILD, "default", "--distance", "2", "--replace")
    assert [line["duplicates"] for line in run("status").lines] == [0]
    assert run("collection", "list").lines[0]["default_distance"] == 2
    run("collection", "set", "default", "--distance", "8")
    run(*REBUILD, "default", "--replace")
    assert [line["duplicates"] for line in run("status").lines] == [1]


def test_impossible_rebuilds_name_the_fix(run: Run, kept: None) -> None:
    assert run(*REBUILD).code == 2
    refused = run(*REBUILD, "kept", "--scheme", "pgsimhash-interop-1")
    assert "ingest the pages into another" in refused.stderr
    run("collection", "create", "taken")
    other = run(*REBUILD, "kept", "--into", "taken")
    assert other.code == 2
    assert "--into" in other.stderr
    assert run(*REBUILD, "nowhere").code == 2


def test_collections_are_renamed_and_swapped(run: Run, kept: None) -> None:
    run("collection", "create", "other")
    renamed = run("collection", "rename", "other", "kept", "--swap")
    assert renamed.lines == [{"collection": "kept", "before": "other", "swapped": True}]
    taken = run("collection", "rename", "kept", "other")
    assert taken.code == 2
    assert "--swap" in taken.stderr
    unknown = run("collection", "rename", "nowhere", "here")
    assert unknown.code == 2
    assert "does not exist" in unknown.stderr
