"""``pgsimhash analyse evaluate``: labelled pairs, or a sample of files or of a collection."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pgsimhash import connect
from pgsimhash.schemes import DEFAULT_SCHEME
from tests.cli.harness import Result, Run

EXAMPLES = Path(__file__).parents[2] / "examples"


def pairs_file(folder: Path, *rows: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text("\n".join(["a,b,label", *rows]))
    return path


def assert_shows_low_weight_blocks(done: Result) -> None:
    """Check each line, and the terminal."""
    (unseen,) = {tuple(line["unseen"].items()) for line in done.lines}
    (_, mean), (_, worst), (_, page) = unseen
    sentence = (
        f"On average, {mean:.1%} of a page's words are in low-weight blocks; at worst, "
        f"{worst:.1%}: {page}"
    )
    assert "".join(sentence.split()) in "".join(done.stderr.split())


def test_the_sample_pairs_match_the_sample_pages() -> None:
    with (EXAMPLES / "expected.csv").open(encoding="utf-8", newline="") as file:
        originals = {row["page"]: row["original"] or row["page"] for row in csv.DictReader(file)}
    with (EXAMPLES / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 40
    for row in rows:
        same = originals[row["a"]] == originals[row["b"]]
        assert row["label"] == ("near-dup" if same else "distinct")


def test_each_distance_gets_a_line(run: Run) -> None:
    done = run("analyse", "evaluate", EXAMPLES / "pairs.csv")
    assert done.code == 0
    assert done.stderr == ""
    assert [line["distance"] for line in done.lines] == list(range(17))
    last = done.lines[-1]
    assert last["scheme"] == DEFAULT_SCHEME.name
    assert (last["recall"], last["precision"]) == (1, 1)
    figures = ("found", "copies", "false_matches", "distinct")
    assert [last[name] for name in figures] == [15, 15, 0, 28]
    assert [last["kinds"]["print"][name] for name in figures] == [1, 1, 0, 0]
    assert last["unverified"]["found"] == 15
    assert 0 < last["unseen"]["mean"] < last["unseen"]["worst"] < 0.5
    assert last["unseen"]["page"] in (EXAMPLES / "pairs.csv").read_text(encoding="utf-8")
    (best,) = [line for line in done.lines if line["recommended"]]
    assert best["recall"] == 1
    assert all(line["recall"] < 1 for line in done.lines[: best["distance"]])


def test_tables_on_request(run: Run) -> None:
    done = run("analyse", "evaluate", EXAMPLES / "pairs.csv", "--summary")
    assert done.code == 0
    assert "recall" in done.stderr
    assert "Distance 5: recall 1.0000, precision 1.0000 (0 false of 15 matches)." in done.stderr
    assert_shows_low_weight_blocks(done)


def test_processes_give_the_same_lines(run: Run) -> None:
    one = run("analyse", "evaluate", EXAMPLES / "pairs.csv", "--jobs", "1")
    two = run("analyse", "evaluate", EXAMPLES / "pairs.csv", "--jobs", "2")
    assert one.stdout == two.stdout


def test_failed_pages_are_reported_and_the_rest_continues(run: Run, folder: Path) -> None:
    (folder / "picture.html").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2000))
    pairs = pairs_file(
        folder,
        "wells,wells-copy,duplicate",
        "wells,looms,different",
        "wells,nowhere,duplicate",
        "wells,picture,different",
        "wells,short,different",
    )
    done = run("analyse", "evaluate", pairs)
    assert done.code == 1
    assert "failed: nowhere: no page with this name" in done.stderr
    assert "failed: picture: " in done.stderr
    assert "1 page has too little text" in done.stderr
    last = done.lines[-1]
    assert (last["copies"], last["distinct"], last["left_out"]) == (1, 3, 1)


def test_without_a_precise_distance_the_exit_code_is_1(run: Run, folder: Path) -> None:
    pairs = pairs_file(folder, "wells,wells-copy,different", "wells,looms,duplicate")
    done = run("analyse", "evaluate", pairs)
    assert done.code == 1
    assert not any(line["recommended"] for line in done.lines)


def test_a_sample_counts_near_pairs_and_writes_a_file_for_labels(run: Run, tmp_path: Path) -> None:
    borderline = tmp_path / "borderline.csv"
    arguments = ["--distance", "2", "--borderline", borderline, "--summary"]
    done = run("analyse", "evaluate", "--sample", "100", EXAMPLES / "pages", *arguments)
    assert done.code == 0
    assert [line["distance"] for line in done.lines] == list(range(17))
    assert {line["pages"] for line in done.lines} == {23}
    assert done.lines[0]["pairs"] > 0
    assert "pairs up to here" in done.stderr
    assert_shows_low_weight_blocks(done)

    rows = label(borderline, "duplicate")
    assert all(row["a_title"] and row["b_title"] for row in rows)
    again = run("analyse", "evaluate", borderline)
    assert again.code == 0
    assert again.lines[4]["found"] == again.lines[4]["copies"] == len(rows)


def test_a_sample_has_the_requested_size_and_is_the_same_again(run: Run) -> None:
    first, again = (run("analyse", "evaluate", "--sample", "12", EXAMPLES / "pages") for _ in "12")
    assert {line["pages"] for line in first.lines} <= {11, 12}
    assert first.stdout == again.stdout


def test_a_sample_of_json_lines_from_stdin(run: Run, folder: Path) -> None:
    lines = [
        json.dumps({"url": f"https://a.example/{name}", "html": (folder / name).read_text()})
        for name in ("wells.html", "wells-copy.html", "looms.html")
    ]
    done = run("analyse", "evaluate", "--sample", "9", "-", stdin="\n".join([*lines, "{broken"]))
    assert done.code == 1
    assert {line["pages"] for line in done.lines} == {3}
    assert sum(line["pairs"] for line in done.lines) == 1
    assert "failed: " in done.stderr


def test_labelled_urls_are_found_in_archives(run: Run, folder: Path) -> None:
    crawl = folder / "crawl.jsonl"
    urls = {name: f"https://a.example/{name}" for name in ("wells.html", "wells-copy.html")}
    crawl.write_text(
        "\n".join(
            json.dumps({"url": url, "html": (folder / name).read_text()})
            for name, url in urls.items()
        )
    )
    pairs = pairs_file(folder, ",".join([*urls.values(), "near-dup"]))
    done = run("analyse", "evaluate", pairs, "--pages", crawl)
    assert done.code == 0
    assert done.lines[3]["recall"] == 1


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


def label(path: Path, word: str) -> list[dict[str, str]]:
    """Fill in the empty column ``label``, and return the rows."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row["label"] == ""
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
    rows = label(pairs, "duplicate")
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
        ([], "give a file of pairs"),
        (["{pairs}", "--scheme", "unheard-of"], "'unheard-of' is not one of"),
        (["{pairs}", "--borderline", "pairs.csv"], "--borderline needs --sample"),
        (["{pairs}", "another.csv"], "one file of pairs, or --sample N"),
        (["{pairs}", "--sample", "5", "--pages", "."], "--pages needs a file of pairs"),
        (["{pairs}", "--sample", "5", "--borderline", "/nowhere/x"], "/nowhere does not exist"),
        (["{wrong}"], "line 2: 'perhaps' is not a label"),
        (["--collection", "typo", "--sample", "9"], "collection 'typo' does not exist"),
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
