"""``pgsimhash analyse evaluate --sample N --collection NAME``."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pgsimhash import connect
from tests.cli.harness import Run

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_sample_of_a_collection_needs_no_pages(run: Run, tmp_path: Path) -> None:
    run("ingest", EXAMPLES / "pages")
    pairs = tmp_path / "pairs.csv"
    done = run(
        "analyse", "evaluate", "--sample", "100", "--collection", "default", "--borderline", pairs
    )
    assert done.code == 0
    (line,) = [line for line in done.lines if line["distance"] == 0]
    assert line["pairs"] > 5
    assert pairs.read_text().startswith("a,b,label,kind,distance,a_title,b_title\n")
    assert run("analyse", "evaluate", "--sample", "100", "--collection", "typo").code == 2
    assert run("analyse", "evaluate", "--collection", "default").code == 2
    assert run("analyse", "evaluate").code == 2


def label(path: Path, labels: list[str]) -> list[dict[str, str]]:
    """Fill in the column ``label``, and return the rows."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, word in zip(rows, labels * len(rows), strict=False):
        row["label"] = word
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_the_labelled_sample_of_a_collection_is_measured_without_pages(
    run: Run, dsn: str, tmp_path: Path
) -> None:
    with connect(dsn, collection="news") as store:
        for number in range(30):
            store.add(f"https://a.example/{number}", number << 40, distance=0)
            store.add(f"https://b.example/{number}", number << 40 | 0x7F, distance=0)
    pairs = tmp_path / "borderline.csv"
    there = ["--collection", "news"]
    done = run("analyse", "evaluate", "--sample", "60", *there, "--borderline", pairs)
    assert done.code == 0
    rows = label(pairs, ["duplicate"])
    assert len(rows) > 30
    again = run("analyse", "evaluate", pairs, *there, "--summary")
    assert (again.code, [line["distance"] for line in again.lines]) == (0, list(range(17)))
    for line in again.lines:
        within = sum(int(row["distance"]) <= line["distance"] for row in rows)
        assert (line["found"], line["copies"], line["left_out"]) == (within, len(rows), 0)
    assert again.lines[0]["scheme"] == "pgsimhash-article-1"
    assert "Distance 10: recall 1.0000" in again.stderr


def test_pairs_with_a_missing_page_are_reported_and_left_out(
    run: Run, dsn: str, tmp_path: Path
) -> None:
    with connect(dsn, collection="news") as store:
        for number in range(3):
            store.add(f"https://a.example/{number}", number, distance=0)
    with connect(dsn) as other:
        other.add("https://b.example/", 1)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "a,b,label\nhttps://a.example/0,https://a.example/1,duplicate\n"
        "https://a.example/0,https://a.example/2,duplicate\n"
        "https://a.example/0,https://b.example/,different\npage,https://a.example/1,different\n"
    )
    done = run("analyse", "evaluate", pairs, "--collection", "news")
    assert done.code == 1
    assert "failed: https://b.example/: collection 'news' has no page with this URL" in done.stderr
    assert "failed: page: " in done.stderr
    assert (done.lines[-1]["found"], done.lines[-1]["left_out"]) == (2, 2)
    assert run("delete", "--collection", "news", "--url", "https://a.example/2").code == 0
    done = run("analyse", "evaluate", pairs, "--collection", "news")
    assert "failed: https://a.example/2: " in done.stderr
    assert (done.lines[-1]["found"], done.lines[-1]["left_out"]) == (1, 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{pairs}", "--collection", "typo"], "collection 'typo' does not exist"),
        (["{wrong}", "--collection", "default"], "'perhaps' is not a label"),
        (["{waiting}", "--collection", "default"], "label some"),
        (["{pairs}", "{pairs}", "--collection", "default"], "one file of pairs"),
        (["--collection", "default"], "give a file of pairs"),
        (["--collection", "default", "--sample", "9", "{pairs}"], "not both"),
        (["{pairs}", "--collection", "default", "--pages", "{pairs}"], "give --pages or"),
        (["missing.csv", "--collection", "default"], "missing.csv does not exist"),
    ],
)
def test_invalid_options_are_reported(
    run: Run, dsn: str, tmp_path: Path, arguments: list[str], said: str
) -> None:
    connect(dsn).close()
    files = {"pairs": "x,y,duplicate", "wrong": "x,y,perhaps", "waiting": "x,y,"}
    paths = {name: tmp_path / f"{name}.csv" for name in files}
    for name, row in files.items():
        paths[name].write_text(f"a,b,label\n{row}\n")
    done = run("analyse", "evaluate", *(argument.format(**paths) for argument in arguments))
    assert (done.code, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
