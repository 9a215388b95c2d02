"""pgsimhash pairs, clusters, find-many."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg

from tests.cli.harness import Run


def simhash_of(run: Run, page: Path) -> str:
    (line,) = run("fingerprint", page).lines
    return str(line["simhash"])


def test_clusters_prints_a_line_for_each(run: Run, folder: Path) -> None:
    run("ingest", folder)
    (cluster,) = run("clusters", "--distance", "8").lines
    names = [Path(page["url"]).name for page in cluster["pages"]]
    assert sorted(names) == ["wells-copy.html", "wells.html"]
    assert cluster["canonical"].endswith(names[0])
    (other,) = run("clusters", "--canonical", "shortest-url", "--linkage", "complete").lines
    assert other["canonical"].endswith("wells.html")
    assert run("clusters", "--canonical", "best").code == 2


def test_pairs_prints_a_line_for_each(run: Run, folder: Path) -> None:
    lines = [
        json.dumps({"url": f"https://a.example/{n}", "html": page.read_text()})
        for n, page in enumerate(sorted(folder.glob("*.html")))
    ]
    run("ingest", "-", stdin="\n".join(lines))
    found = run("pairs", "--distance", "12")
    assert found.code == 0
    assert found.lines == []


def test_pairs_and_clusters_go_into_tables(run: Run, folder: Path, dsn: str) -> None:
    run("ingest", folder)
    assert "0 pairs in near" in run("pairs", "--table", "near").stderr
    assert "1 clusters in groups" in run("clusters", "--table", "groups").stderr
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM groups").fetchone() == (2,)
    again = run("clusters", "--table", "groups")
    assert again.code == 3
    assert "drop it, or choose another name" in again.stderr


def test_find_many_answers_a_file_without_adding_it(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known = simhash_of(run, folder / "wells.html")
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


def test_find_many_reports_bad_lines_and_goes_on(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known = simhash_of(run, folder / "looms.html")
    bad = ["wrong", '{"url": 1}', '{"simhash": 1.5}', '{"simhash": true}', "{", str(2**64)]
    done = run("find-many", "-", stdin="\n".join([*bad, known]))
    assert done.code == 1
    assert [line["match"] for line in done.lines] == [known]
    assert [f"line {n}:" in done.stderr for n in range(1, 8)] == [True] * 6 + [False]
