"""pgsimhash analyse explain."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.harness import Run
from tests.conftest import ROOT


def test_two_files_need_no_database(run: Run, folder: Path) -> None:
    done = run(
        "analyse",
        "explain",
        folder / "wells.html",
        folder / "looms.html",
        "--dsn",
        "postgresql://none.invalid",
    )
    assert done.code == 0
    (line,) = done.lines
    assert line["reason"] == "beyond_distance"
    assert line["features"]["only_a"]["top"]
    assert line["difference"]["rows"]
    assert done.stderr == ""


def test_a_file_from_stdin_and_a_simhash(run: Run, folder: Path) -> None:
    known = run("fingerprint", folder / "wells.html").lines[0]["simhash"]
    (line,) = run(
        "analyse", "explain", "-", known, stdin=(folder / "wells.html").read_bytes()
    ).lines
    assert (line["reason"], line["distance"], line["max_distance"]) == ("same_simhash", 0, 8)


def test_a_known_url_is_looked_up_in_the_collection(run: Run, folder: Path) -> None:
    run("collection", "create", "kept", "--keep-markdown")
    page = json.dumps({"url": "https://a.example/w", "html": (folder / "wells.html").read_text()})
    run("ingest", "-", "--collection", "kept", stdin=page)
    (line,) = run(
        "analyse",
        "explain",
        "https://a.example/w",
        folder / "wells-copy.html",
        "--collection",
        "kept",
    ).lines
    assert line["layout"] == "22+21+21"
    assert line["a"]["text"] == "markdown"
    assert line["b"]["text"] == "page"
    # Markdown has no elements, which the weights of its blocks need.
    assert line["features"]["only_a"]["bits_off"] < 12


def test_an_unknown_url_and_a_page_without_text_exit_with_1(run: Run, folder: Path) -> None:
    run("ingest", folder)
    unknown = run("analyse", "explain", "https://a.example/none", "0")
    assert unknown.code == 1
    assert "does not know https://a.example/none" in unknown.stderr
    assert run("analyse", "explain", folder / "short.html", "0").code == 1


def test_the_summary_shows_bits_features_and_texts(run: Run, folder: Path) -> None:
    shown = run(
        "analyse", "explain", folder / "wells.html", folder / "wells-copy.html", "--summary"
    ).stderr
    assert "They have the same simhash" in shown or "they match at" in shown
    assert "prefix_3" in shown
    assert "only in B" in shown
    assert "simhash without a page" in run("analyse", "explain", "1", "2", "--summary").stderr


def test_small_weights_are_shown(run: Run, tmp_path: Path) -> None:
    pages = ROOT / "examples" / "pages"
    sides = [pages / "tide-pools.html", pages / "tide-pools-one-comment.html"]
    target = tmp_path / "why.html"
    done = run("analyse", "explain", *sides, "--summary", "-o", target)
    feature, weight = done.lines[0]["features"]["only_a"]["top"][0]
    assert 0 < weight < 0.05
    shown = " ".join(done.stderr.split())
    assert f"{feature} {weight:.2g}," in shown
    assert " 0.0," not in shown
    html = target.read_text()
    assert f'{feature}</bdi> <span class="quiet">{weight:.2g}</span>' in html


def test_low_weight_blocks_are_shown(run: Run, tmp_path: Path) -> None:
    page = ROOT / "examples" / "pages" / "tide-pools.html"
    target = tmp_path / "why.html"
    done = run("analyse", "explain", page, "0", "--summary", "-o", target)
    page_a, page_b = (done.lines[0][side] for side in "ab")
    assert 0 < page_a["unseen"] < 0.5
    assert len(page_a["unseen_blocks"]) == 5
    shown = " ".join(done.stderr.split())
    assert f"in low-weight blocks of A: {page_a['unseen']:.1%} of the words" in shown
    assert "in low-weight blocks of B" not in shown
    html = target.read_text()
    assert f"A: {page_a['unseen']:.1%} of the words" in html
    for beginning in page_a["unseen_blocks"]:
        assert beginning in shown
        assert f"<li><bdi>{beginning}</bdi></li>" in html
    assert (page_b["unseen"], page_b["unseen_blocks"]) == (None, [])
