"""pgsimhash learn-boilerplate, and --boilerplate."""

from __future__ import annotations

import json
from pathlib import Path

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
    assert mixed.code == 3
    assert "--collection default-2" in mixed.stderr
    done = run("ingest", pages, "--boilerplate", learnt, "--collection", "default-2")
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
