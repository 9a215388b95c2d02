"""``pgsimhash analyse evaluate``: labelled pairs, or a sample without labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgsimhash.cli.commands import commands
from pgsimhash.schemes import DEFAULT_SCHEME
from tests.cli.harness import Result, Run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run() -> Run:
    """Run ``pgsimhash`` without a database: this command needs none."""

    def run_command(*arguments: str | Path, stdin: str | bytes = b"") -> Result:
        done = CliRunner().invoke(commands, [str(argument) for argument in arguments], input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    return run_command


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
    assert (last["found"], last["copies"], last["false_matches"], last["distinct"]) == (
        15,
        15,
        0,
        28,
    )
    assert last["kinds"]["print"] == {
        "recall": 1,
        "precision": 1,
        "found": 1,
        "copies": 1,
        "false_matches": 0,
        "distinct": 0,
    }
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


def test_invalid_rows_end_the_command_with_their_lines(run: Run, folder: Path) -> None:
    pairs = pairs_file(
        folder, "wells,looms,different", "wells,wells,duplicate", "wells,short,perhaps"
    )
    done = run("analyse", "evaluate", pairs)
    assert done.code == 2
    assert done.stdout == ""
    assert "line 3: a and b are the same page" in done.stderr
    assert "line 4: 'perhaps' is not a label" in done.stderr


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
    done = run(
        "analyse",
        "evaluate",
        pairs_file(folder, "wells,wells-copy,different", "wells,looms,duplicate"),
    )
    assert done.code == 1
    assert not any(line["recommended"] for line in done.lines)


def test_pairs_without_any_label_are_refused(run: Run, folder: Path) -> None:
    done = run("analyse", "evaluate", pairs_file(folder, "wells,looms,"))
    assert done.code == 2
    assert "label some" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scheme", "unheard-of"], "'unheard-of' is not one of"),
        (["--borderline", "pairs.csv"], "--borderline needs --sample"),
        (["another.csv"], "one file of pairs, or --sample N"),
        (["--sample", "5", "--pages", str(EXAMPLES)], "--pages needs a file of pairs"),
        (["--sample", "5", "--borderline", "/nowhere/x.csv"], "folder /nowhere does not exist"),
    ],
)
def test_invalid_options_are_explained(
    run: Run, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("analyse", "evaluate", EXAMPLES / "pairs.csv", *arguments)
    assert done.code == 2
    assert said in " ".join(done.stderr.split())


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

    with borderline.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert {row["label"] for row in rows} == {""}
    for row in rows:
        assert row["a_title"]
        assert row["b_title"]
        row["label"] = "duplicate"
    with borderline.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    again = run("analyse", "evaluate", borderline)
    assert again.code == 0
    assert again.lines[4]["found"] == again.lines[4]["copies"] == len(rows)


def test_a_sample_has_the_requested_size_and_depends_on_the_seed(run: Run) -> None:
    def sampled(seed: str) -> Result:
        return run("analyse", "evaluate", "--sample", "12", EXAMPLES / "pages", "--seed", seed)

    assert all(line["pages"] in (11, 12) for line in sampled("1").lines)
    assert sampled("1").stdout == sampled("1").stdout
    assert len({sampled(seed).stdout for seed in "12345"}) > 1


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
    done = run(
        "analyse",
        "evaluate",
        pairs_file(folder, ",".join([*urls.values(), "near-dup"])),
        "--pages",
        crawl,
    )
    assert done.code == 0
    assert done.lines[3]["recall"] == 1
