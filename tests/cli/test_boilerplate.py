"""pgsimhash learn-boilerplate, and --boilerplate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.harness import Run


def jsonl(folder: Path) -> Path:
    slogan = "Subscribe to the harbour letter and never miss a tide again."
    lines = []
    for page in range(8):
        words = " ".join(f"word{page}x{n}" for n in range(60))
        html = f"<article><p>{words}</p><p>{slogan}</p></article>"
        lines.append(json.dumps({"url": f"https://bay.example/{page}", "html": html}))
    path = folder / "pages.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_what_is_learnt_is_left_out_in_a_collection_of_its_own(run: Run, tmp_path: Path) -> None:
    pages, learnt = jsonl(tmp_path), tmp_path / "boilerplate.json"
    (line,) = run("learn-boilerplate", pages, "-o", learnt).lines
    assert (line["host"], line["paragraphs"]) == ("bay.example", 1)
    assert run("ingest", pages).code == 0
    mixed = run("ingest", pages, "--boilerplate", learnt)
    assert mixed.code == 2
    assert "such as default-2" in mixed.stderr
    done = run("ingest", pages, "--boilerplate", learnt, "--create", "--collection", "default-2")
    assert [line["verdict"] for line in done.lines] == ["new"] * 8
    first, second = run("status").lines
    assert first["scheme"] == "pgsimhash-article-1"
    assert second["scheme"] == f"pgsimhash-article-1+{line['version']}"


def test_find_reads_a_page_the_same_way(run: Run, tmp_path: Path) -> None:
    pages, learnt = jsonl(tmp_path), tmp_path / "boilerplate.json"
    run("learn-boilerplate", pages, "-o", learnt)
    run("ingest", pages, "--boilerplate", learnt)
    page = tmp_path / "page.html"
    words = " ".join(f"word3x{n}" for n in range(60))
    page.write_text(f"<article><p>{words}</p></article>")
    (found,) = run("find", page, "--boilerplate", learnt).lines
    assert (found["url"], found["distance"]) == ("https://bay.example/3", 0)


def test_a_file_that_is_none_is_refused(run: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_bytes(b"\xff")
    for content in (b"\xff", b"{}"):
        wrong.write_bytes(content)
        assert run("ingest", tmp_path, "--boilerplate", wrong).code == 2
    assert run("learn-boilerplate", jsonl(tmp_path), "-o", wrong, "--share", "2").code == 3


def test_what_is_saved_serves_every_process(run: Run, tmp_path: Path) -> None:
    """Learnt from kept Markdown and saved here; used by name alone in processes of their own."""
    pages = jsonl(tmp_path)
    run("collection", "create", "kept", "--keep-markdown")
    run("ingest", pages, "--collection", "kept")
    (line,) = run("learn-boilerplate", "--collection", "kept", "--save").lines
    assert line["scheme"] == f"pgsimhash-article-1+{line['version']}"
    page = tmp_path / "page.html"
    page.write_text(f"<article><p>{' '.join(f'word3x{n}' for n in range(60))}</p></article>")

    def other(*arguments: str | Path) -> list[dict[str, object]]:
        command = [sys.executable, "-m", "pgsimhash", *arguments, "--collection", "clean"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        return [json.loads(line) for line in done.stdout.splitlines()]

    verdicts = other("ingest", "--create", pages, "--jobs", "2", "--scheme", line["scheme"])
    assert [verdict["verdict"] for verdict in verdicts] == ["new"] * 8
    (found,) = other("find", page)
    assert (found["url"], found["distance"]) == ("https://bay.example/3", 0)
    (sample, *_) = other("evaluate", "--sample", "9")
    assert sample["scheme"] == line["scheme"]
    (why,) = other("explain", "https://bay.example/3", page)
    assert why["distance"] == 0
    assert run("decide", page, "--url", "https://b.example/", "--collection", "clean").code == 1


def test_saved_boilerplate_is_listed_and_deleted(run: Run, tmp_path: Path) -> None:
    pages = jsonl(tmp_path)
    (line,) = run("learn-boilerplate", pages, "--save", "-o", tmp_path / "learnt.json").lines
    (line,) = run("learn-boilerplate", pages, "--save").lines
    made = run("collection", "create", "clean", "--scheme", line["scheme"])
    assert made.lines[0]["scheme"] == line["scheme"]
    (saved,) = run("boilerplates").lines
    del saved["saved_at"]
    assert saved == {
        "version": line["version"],
        "scheme": line["scheme"],
        "hosts": 1,
        "paragraphs": 1,
        "pages": 8,
        "collections": ["clean"],
    }
    used = run("delete-boilerplate", line["version"])
    assert (used.code, "is used by: clean" in used.stderr) == (3, True)
    (fast,) = run("learn-boilerplate", pages, "--save", "--share", "0.6").lines
    assert fast["version"] == line["version"]
    more = tmp_path / "more.jsonl"
    more.write_text(pages.read_text().replace("bay.example", "isle.example"))
    (other,) = run("learn-boilerplate", more, "--save").lines
    assert run("delete-boilerplate", other["version"]).code == 0
    assert [found["version"] for found in run("boilerplates").lines] == [line["version"]]
    assert run("delete-boilerplate", other["version"]).code == 3


def test_ingest_keeps_the_file_that_it_was_given(run: Run, tmp_path: Path) -> None:
    pages, learnt = jsonl(tmp_path), tmp_path / "boilerplate.json"
    (line,) = run("learn-boilerplate", pages, "-o", learnt).lines
    assert run("boilerplates").lines == []
    run("ingest", pages, "--boilerplate", learnt)
    assert [found["scheme"] for found in run("boilerplates").lines] == [line["scheme"]]


def test_schemes_without_it_can_be_evaluated(run: Run, tmp_path: Path) -> None:
    pages = jsonl(tmp_path)
    (line,) = run("learn-boilerplate", pages, "--save").lines
    schemes = ("--scheme", "pgsimhash-article-1", "--scheme", line["scheme"])
    found = run("evaluate", "--sample", "9", pages, *schemes)
    assert {score["scheme"] for score in found.lines} == {"pgsimhash-article-1", line["scheme"]}
    missing = run("evaluate", "--sample", "9", pages, "--scheme", "pgsimhash-article-1+01234567")
    assert (missing.code, "learn-boilerplate --save" in missing.stderr) == (3, True)


def test_nothing_learnt_is_nothing_kept(run: Run, folder: Path) -> None:
    learnt = folder / "boilerplate.json"
    done = run("learn-boilerplate", folder, "-o", learnt, "--save")
    assert (done.code, done.lines, learnt.exists()) == (1, [], False)
    assert "Nothing was learnt from 0 pages; give 5 or more of one host" in done.stderr
    assert run("boilerplates").lines == []


@pytest.mark.parametrize(
    "arguments",
    [
        (".", "--collection", "kept", "--save"),
        ("--save",),
        (".",),
        (".", "-o", "nowhere/learnt.json"),
        (".", "--save", "--scheme", "unheard-of"),
    ],
)
def test_what_is_mistyped_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("learn-boilerplate", *arguments).code == 2


def test_a_scheme_that_is_not_saved_is_refused(run: Run) -> None:
    missing = run("collection", "create", "clean", "--scheme", "pgsimhash-article-1+01234567")
    assert (missing.code, "learn-boilerplate --save" in missing.stderr) == (3, True)
    assert run("collection", "create", "clean", "--scheme", "unheard-of+01234567").code == 2
