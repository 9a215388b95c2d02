"""``pgsimhash analyse evaluate``: labelled pairs, or a sample of a collection."""

import csv
from pathlib import Path

from pgsimhash import connect
from pgsimhash.schemes import DEFAULT_SCHEME
from tests.cli.harness import Run

EXAMPLES = Path(__file__).parents[2] / "examples"


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_sample_pairs_match_the_sample_pages() -> None:
    pages = rows_of(EXAMPLES / "expected.csv")
    originals = {row["page"]: row["original"] or row["page"] for row in pages}
    rows = rows_of(EXAMPLES / "pairs.csv")
    assert len(rows) > 40
    for row in rows:
        same = originals[row["a"]] == originals[row["b"]]
        assert row["label"] == ("near-dup" if same else "distinct")


def test_each_distance_gets_a_line_and_on_request_a_table(run: Run) -> None:
    done = run("analyse", "evaluate", EXAMPLES / "pairs.csv", "--jobs", "1")
    assert (done.code, done.stderr) == (0, "")
    assert [line["distance"] for line in done.lines] == list(range(17))
    last = done.lines[-1]
    assert last["scheme"] == DEFAULT_SCHEME.name
    assert (last["recall"], last["precision"]) == (1, 1)
    names = ("found", "copies", "false_matches", "distinct")
    assert [last[name] for name in names] == [15, 15, 0, 28]
    assert [last["kinds"]["print"][name] for name in names] == [1, 1, 0, 0]
    assert last["unverified"]["found"] == 15
    mean, worst, page = last["unseen"].values()
    assert 0 < mean < worst < 0.5
    assert page in (EXAMPLES / "pairs.csv").read_text(encoding="utf-8")
    (best,) = [line for line in done.lines if line["recommended"]]
    assert best["recall"] == 1
    assert all(line["recall"] < 1 for line in done.lines[: best["distance"]])

    shown = run("analyse", "evaluate", EXAMPLES / "pairs.csv", "--summary", "--jobs", "2")
    assert shown.stdout == done.stdout
    shares = f"{mean:.1%} of a page's words are in low-weight blocks; at worst, {worst:.1%}: {page}"
    figures = "Distance 7: recall 1.0000, precision 1.0000 (0 false of 15 matches)."
    shown.ends(0, "unverified", figures, shares)


def test_without_a_precise_distance_or_after_failed_pages_the_exit_code_is_1(
    run: Run, folder: Path
) -> None:
    (folder / "labels").mkdir()
    pairs = folder / "labels" / "pairs.csv"
    rows = ["a,b,label", "wells,wells-copy,different", "wells,looms,duplicate"]
    pairs.write_text("\n".join(rows))
    done = run("analyse", "evaluate", pairs, "--pages", folder)
    assert (done.code, done.stderr) == (1, "")
    assert not any(line["recommended"] for line in done.lines)
    (folder / "picture.html").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2000))
    rows = [rows[0], "wells,wells-copy,duplicate", "wells,nowhere,duplicate"]
    rows += ["wells,picture,different", "wells,looms,different", "wells,short,different"]
    pairs.write_text("\n".join(rows))
    done = run("analyse", "evaluate", pairs, "--pages", folder)
    said = "failed: nowhere: no page with this name", "failed: picture: "
    done.ends(1, *said, "1 pages have too little text")
    last = done.lines[-1]
    assert (last["copies"], last["distinct"], last["left_out"]) == (1, 3, 1)


def test_a_sample_is_labelled_and_measured_without_pages(
    run: Run, dsn: str, tmp_path: Path
) -> None:
    with connect(dsn, collection="news") as store:
        for number in range(30):
            store.add(f"https://a.example/{number}", number << 40, distance=0)
            store.add(f"https://b.example/{number}", number << 40 | 0x7F, distance=0)
    pairs = tmp_path / "borderline.csv"
    there = ["--collection", "news", "--summary"]
    done = run("analyse", "evaluate", "--sample", "60", *there, "--borderline", pairs)
    done.ends(0, "pairs up to here")
    assert [line["distance"] for line in done.lines] == list(range(17))
    assert {line["pages"] for line in done.lines} == {60}
    assert done.lines[7]["pairs"] == 30
    rows = rows_of(pairs)
    assert len(rows) > 30
    pairs.write_text(pairs.read_text().replace(",,borderline,", ",duplicate,borderline,"))
    again = run("analyse", "evaluate", pairs, *there)
    again.ends(0, "Distance 10: recall 1.0000")
    assert [line["distance"] for line in again.lines] == list(range(17))
    for line in again.lines:
        within = sum(int(row["distance"]) <= line["distance"] for row in rows)
        assert (line["found"], line["copies"], line["left_out"]) == (within, len(rows), 0)
    assert again.lines[0]["scheme"] == DEFAULT_SCHEME.name
    smaller, same = (run("analyse", "evaluate", "--sample", "20", *there) for _ in range(2))
    assert {line["pages"] for line in smaller.lines} == {20}
    assert smaller.stdout == same.stdout
