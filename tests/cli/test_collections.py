"""``collection``: ``create``, ``set``, ``rename``, ``rebuild`` and ``delete``."""

from pathlib import Path

import pytest

from pgsimhash import connect
from tests.cli.harness import Run

REBUILD = "collection", "rebuild"
SHINGLES = "--scheme", "pgsimhash-blog-shingles-1"


@pytest.fixture
def kept(run: Run, folder: Path) -> None:
    """The pages in a collection that stores Markdown."""
    run("collection", "create", "kept", "--keep-markdown", "--scheme", "pgsimhash-blog-words-1")
    run("ingest", "--collection", "kept", folder)


def test_settings_of_a_collection_are_those_of_its_scheme_until_they_are_changed(run: Run) -> None:
    (created,) = run("collection", "create", "news", "--scheme", "pgsimhash-interop-1").lines
    assert (created["default_distance"], created["keep_markdown"]) == (3, False)
    done = run("collection", "set", "news", "--distance", "5", "--keep-markdown")
    assert (done.lines[0]["default_distance"], done.lines[0]["keep_markdown"]) == (5, True)
    assert run("collection", "set", "news", "--no-keep-markdown").lines[0]["default_distance"] == 5
    (line,) = run("analyse", "explain", "0" * 16, "f" * 16, "--collection", "news").lines
    assert line["max_distance"] == 5


def test_a_collection_is_rebuilt(run: Run, folder: Path) -> None:
    run("ingest", folder)
    done = run(*REBUILD, "default", "--distance", "6")
    assert done.lines == [
        {
            "collection": "default", "collection_id": 2, "scheme": "pgsimhash-article-1",
            "layout": "22+21+21", "default_distance": 6, "keep_markdown": False,
            "normalize_urls": False,
        }
    ]  # fmt: skip
    assert "pgsimhash collection delete default-2" in done.stderr
    assert run("find", folder / "wells.html").code == 0
    assert run("ingest", folder).code == 0
    simhashes = {line["collection"]: line["simhashes"] for line in run("status").lines}
    assert simhashes == {"default": 2, "default-2": 2}
    assert run(*REBUILD, "default", "--into", "x", "--replace").stderr == ""
    assert len(run("status").lines) == 2


def test_a_rebuild_with_another_scheme_prints_verdicts_and_counts_omitted_pages(
    run: Run, kept: None
) -> None:
    # A page that was added as a simhash has no Markdown.
    with connect(collection="kept") as store:
        store.add("https://a.example/", 1)
    done = run(*REBUILD, "kept", *SHINGLES, "--verdicts")
    done.ends(1, "1 versions were omitted")
    *verdicts, created = done.lines
    assert sorted(line["verdict"] for line in verdicts) == [
        *("duplicate", "failed", "new", "new", "too_short")
    ]
    assert (created["collection"], created["scheme"]) == ("kept", "pgsimhash-blog-shingles-1")
    schemes = {line["collection"]: line["scheme"] for line in run("status").lines}
    assert schemes == {"kept": "pgsimhash-blog-shingles-1", "kept-2": "pgsimhash-blog-words-1"}


def test_ctrl_c_leaves_everything_unchanged(
    run: Run, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr("pgsimhash.cli.show.json_line", interrupt)
        assert run(*REBUILD, "kept", *SHINGLES, "--verdicts").code == 130
    assert [line["collection"] for line in run("collection", "list").lines] == ["kept"]
    assert run(*REBUILD, "kept", *SHINGLES).code == 0
    pages = {line["collection"]: line["pages"] for line in run("status").lines}
    assert (pages["kept"], pages["kept-2"]) == (3, 4)


def test_a_collection_is_copied_into_a_schema_of_another_layout(run: Run, folder: Path) -> None:
    run("ingest", folder)
    rebuild = *REBUILD, "default", "--into-schema", "wide"
    assert run(*rebuild).code == 3
    run("migrate", "--schema", "wide", "--layout", "5 choose 2")
    done = run(*rebuild)
    (copy,) = done.lines
    assert (copy["collection"], copy["layout"]) == ("default", "5 choose 2")
    assert "The old collection" not in done.stderr
    for schema in ("pgsimhash", "wide"):
        (status,) = run("status", "--schema", schema).lines
        assert (status["collection"], status["pages"], status["simhashes"]) == ("default", 3, 2)
    run(*rebuild).ends(2, "pgsimhash collection delete default --schema wide")
    assert run(*rebuild, "--into", "moved", "--replace").lines[0]["collection"] == "moved"
    assert run("collection", "list").lines == []


def test_collections_are_renamed_or_swapped_and_taken_names_refused(run: Run, kept: None) -> None:
    run("collection", "create", "other")
    run(*REBUILD, "kept", "--into", "other").ends(2, "--into")
    run(*REBUILD, "kept", "--scheme", "pgsimhash-interop-1").ends(2, "ingest the pages into")
    renamed = run("collection", "rename", "other", "kept", "--swap")
    assert renamed.lines == [{"collection": "kept", "before": "other", "swapped": True}]
    run("collection", "rename", "kept", "other").ends(2, "--swap")
    run("collection", "rename", "nowhere", "here").ends(2, "does not exist")


def test_the_deletion_of_a_collection_needs_confirmation(run: Run, folder: Path) -> None:
    run("ingest", folder)
    run("collection", "delete", "default").ends(2, "--yes")
    deleted = run("collection", "delete", "default", "--yes").lines
    assert deleted == [{"collection": "default", "pages": 3}]
    assert run("collection", "list").lines == []
