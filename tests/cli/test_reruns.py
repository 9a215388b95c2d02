"""``collection refingerprint``, ``rejudge`` and ``rename``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgsimhash import connect
from pgsimhash.cli import summary
from tests.cli.harness import Run

AGAIN = "collection", "refingerprint", "--collection", "kept", "--into", "again"
WORDS = "--scheme", "pgsimhash-interop-1", "--approximate"


@pytest.fixture
def kept(run: Run, folder: Path) -> None:
    """The four pages in a collection that keeps Markdown."""
    run("collection", "create", "kept", "--keep-markdown")
    run("ingest", "--collection", "kept", folder)


def test_a_collection_of_another_scheme_takes_the_name(run: Run, kept: None) -> None:
    done = run(*AGAIN, *WORDS, "--summary")
    assert done.code == 0
    assert sorted(line["verdict"] for line in done.lines) == ["identical", "new", "new"]
    assert "pages a second" in done.stderr
    again = run(*AGAIN, *WORDS)
    assert (again.code, again.stdout) == (0, "")
    renamed = run("collection", "rename", "again", "kept", "--swap")
    assert renamed.lines == [{"collection": "kept", "before": "again", "swapped": True}]
    schemes = {line["collection"]: line["scheme"] for line in run("status").lines}
    assert schemes["kept"] == "pgsimhash-interop-1"


def test_pages_that_fail_are_in_the_exit_code(run: Run, kept: None) -> None:
    # A page that came as a simhash has no Markdown.
    with connect(collection="kept") as store:
        store.add("https://a.example/", 1)
    done = run(*AGAIN, *WORDS)
    assert done.code == 1
    assert [line["reason"] for line in done.lines if line["verdict"] == "failed"] == ["no_markdown"]


def test_ctrl_c_leaves_what_was_printed(
    run: Run, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(summary, "print_json", interrupt)
        stopped = run(*AGAIN, *WORDS)
    assert stopped.code == 130
    assert "run again to continue" in stopped.stderr
    assert run(*AGAIN, *WORDS).code == 0
    pages = {line["collection"]: line["pages"] for line in run("status").lines}
    assert pages["again"] == pages["kept"] == 3


def test_what_cannot_be_names_the_fix(run: Run, kept: None) -> None:
    assert run(*AGAIN).code == 2
    refused = run(*AGAIN, "--scheme", "pgsimhash-interop-1")
    assert refused.code == 3
    assert "--approximate" in refused.stderr
    assert run(*AGAIN, "--scheme", "pgsimhash-text-1", "--approximate").code == 0
    other = run(*AGAIN, *WORDS)
    assert other.code == 2
    assert "--into" in other.stderr
    taken = run("collection", "rename", "kept", "again")
    assert taken.code == 2
    assert "--swap" in taken.stderr
    unknown = run("collection", "rename", "nowhere", "here")
    assert unknown.code == 2
    assert "does not exist" in unknown.stderr


def test_verdicts_on_other_terms_are_shown_and_saved(run: Run) -> None:
    def duplicates() -> list[int]:
        return [line["duplicates"] for line in run("status").lines]

    with connect(collection="default") as store:
        list(store.add_many([("https://a.example/", 0), ("https://b.example/", 7)]))
    assert duplicates() == [1]
    strict = run("collection", "rejudge", "--distance", "2", "--summary")
    assert strict.code == 0
    assert [line["verdict"] for line in strict.lines] == ["new", "new"]
    assert "pages a second" in strict.stderr
    assert duplicates() == [1]
    assert run("collection", "rejudge", "--distance", "2", "--save").lines == strict.lines
    assert duplicates() == [0]
    by_host = run("collection", "rejudge", "--scope", "host")
    assert [line["verdict"] for line in by_host.lines] == ["new", "new"]
    assert run("collection", "rejudge", "--collection", "nowhere").code == 2
    assert (
        run("collection", "rejudge", "--min-words", "30").code == 2
    )  # which is about pages to come


def test_ctrl_c_says_whether_anything_was_stored(
    run: Run, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(summary, "print_json", interrupt)
    dry = run("collection", "rejudge", "--collection", "kept")
    assert (dry.code, dry.stderr) == (130, "Stopped. Nothing was stored.\n")
    saved = run("collection", "rejudge", "--collection", "kept", "--save")
    assert saved.code == 130
    assert "run again to continue" in saved.stderr
