"""pgsimhash analyse pairs, analyse clusters, find-many."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import psycopg
import pytest

from pgsimhash.batch.parquet import read_clusters
from tests.cli.harness import Run, on_a_terminal
from tests.conftest import ROOT

PAGES = ROOT / "examples" / "pages"


def test_clusters_prints_a_line_for_each(run: Run, folder: Path) -> None:
    run("ingest", folder)
    (cluster,) = run("analyse", "clusters", "--distance", "8").lines
    names = [Path(page["url"]).name for page in cluster["pages"]]
    assert sorted(names) == ["wells-copy.html", "wells.html"]
    assert cluster["canonical"].endswith(names[0])
    (other,) = run(
        "analyse", "clusters", "--canonical", "shortest-url", "--linkage", "complete"
    ).lines
    assert other["canonical"].endswith("wells.html")
    assert run("analyse", "clusters", "--canonical", "best").code == 2


def near(simhashes: Iterable[str], distance: int) -> set[tuple[frozenset[str], int]]:
    """All pairs of distinct simhashes within a distance, by comparing all with all."""
    return {
        (frozenset((a, b)), bits)
        for a, b in combinations(sorted(set(simhashes)), 2)
        if (bits := (int(a, 16) ^ int(b, 16)).bit_count()) <= distance
    }


def ingested(run: Run) -> list[str]:
    """The simhashes of the ingested sample pages."""
    return [line["simhash"] for line in run("ingest", PAGES).lines if line["simhash"]]


def test_pairs_prints_a_line_for_each(run: Run) -> None:
    expected = near(ingested(run), 8)
    found = run("analyse", "pairs", "--distance", "8")
    assert found.code == 0
    pairs = [(frozenset((line["a"], line["b"])), line["distance"]) for line in found.lines]
    assert len(pairs) == len(expected) > 3
    assert set(pairs) == expected


def test_clusters_are_saved(run: Run, dsn: str) -> None:
    ingested(run)
    clusters = run("analyse", "clusters", "--distance", "8").lines
    clusters.sort(key=lambda cluster: cluster["cluster"])
    for distance, expected in (("0", 0), ("8", len(clusters))):
        done = run("analyse", "clusters", "--save", "--distance", distance)
        assert (done.code, done.stdout) == (0, "")
        assert expected == 0 or f"{expected} clusters saved" in done.stderr
    with psycopg.connect(dsn) as connection:
        pages = connection.execute(
            "SELECT url, is_canonical FROM pgsimhash.clusters JOIN pgsimhash.pages "
            "USING (collection_id, page_id) ORDER BY cluster, page_id"
        ).fetchall()
    assert pages == [
        (page["url"], page["url"] == cluster["canonical"])
        for cluster in clusters
        for page in cluster["pages"]
    ]


def test_pairs_of_pages_have_their_urls_and_titles(run: Run) -> None:
    made = {line["url"]: line for line in run("ingest", PAGES).lines if line["simhash"]}
    done = run("analyse", "pairs", "--urls", "--distance", "8")
    assert done.code == 0
    shared = len(made) - len({line["simhash"] for line in made.values()})
    simhashes = [line["simhash"] for line in made.values()]
    assert len(done.lines) == len(near(simhashes, 8)) + shared
    assert [line["distance"] for line in done.lines].count(0) == shared > 3
    for line in done.lines:
        assert line["a_simhash"] == made[line["a"]]["simhash"]
        assert line["b_simhash"] == made[line["b"]]["simhash"]
        assert line["a_title"]


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_on_a_terminal_a_bar_shows_the_progress(run: Run, dsn: str, command: str) -> None:
    ingested(run)
    silent = run("analyse", command)
    assert silent.stderr == ""
    done = on_a_terminal("analyse", command, "--dsn", dsn)
    assert done.code == 0
    assert sorted(done.stdout.splitlines()) == sorted(silent.stdout.splitlines())
    assert "100%" in done.stderr
    if command == "clusters":
        done = on_a_terminal("analyse", command, "--dsn", dsn, "--save")
        assert (done.code, done.stdout) == (0, "")
        assert "100%" in done.stderr
        assert f"{len(silent.lines)} clusters saved" in done.stderr


def test_find_many_answers_a_file_without_adding_it(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known = run("fingerprint", folder / "wells.html").lines[0]["simhash"]
    near = f"{int(known, 16) ^ 0b101:016x}"
    far = f"{int(known, 16) ^ 0xFFFF:016x}"
    queries = [near, "", json.dumps({"url": "https://b.example/", "simhash": known}), far, far]
    (folder / "queries.txt").write_text("\n".join(queries))
    done = run("find-many", folder / "queries.txt", "--distance", "2")
    assert done.code == 0
    assert done.lines == [
        {"simhash": near, "match": known, "distance": 2},
        {"url": "https://b.example/", "simhash": known, "match": known, "distance": 0},
    ]
    assert run("status").lines[0]["simhashes"] == 2


def test_find_many_reports_invalid_lines_and_continues(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known = run("fingerprint", folder / "looms.html").lines[0]["simhash"]
    bad = ["wrong", '{"url": 1}', '{"simhash": 1.5}', '{"simhash": true}', "{", str(2**64)]
    digits = "9" * 5000  # more than Python reads
    bad += [digits, f'{{"simhash": {digits}}}', f'{{"simhash": "{known}", "a": {digits}}}']
    done = run("find-many", "-", stdin="\n".join([*bad, known]))
    assert done.code == 1
    assert [line["match"] for line in done.lines] == [known]
    assert [f"line {n}:" in done.stderr for n in range(1, 11)] == [True] * 9 + [False]


def test_clusters_go_into_a_parquet_file(run: Run, tmp_path: Path) -> None:
    ingested(run)
    file = tmp_path / "groups.parquet"
    clusters = run("analyse", "clusters", "--distance", "8").lines
    made = run("analyse", "clusters", "--parquet", file, "--distance", "8")
    assert f"{len(clusters)} clusters in {file}" in made.stderr
    assert made.stdout == ""
    assert [row.url for row in read_clusters(file)] == [
        page["url"] for cluster in clusters for page in cluster["pages"]
    ]
