"""``analyse``: ``explain``, ``history``, ``report``, ``pairs``, ``clusters`` and ``evaluate``."""

import csv
import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pgsimhash import Store, analysis, connect
from pgsimhash.analysis import compare_pages
from pgsimhash.cli.terminal import bar, plain
from pgsimhash.schemes.registry import DEFAULT_SCHEME
from tests.analysis.test_crawls import crawled as crawled
from tests.cli.conftest import Run, on_a_terminal
from tests.conftest import ROOT
from tests.database import run_sql

EXAMPLES = ROOT / "examples"
PAGES = EXAMPLES / "pages"


def test_explain_needs_no_database_for_files_stdin_and_simhashes(run: Run, folder: Path) -> None:
    nowhere = ("--dsn", "postgresql://none.invalid")
    wells, looms = folder / "wells.html", folder / "looms.html"
    done = run("analyse", "explain", wells, looms, *nowhere)
    assert (done.code, done.stderr) == (0, "")
    (line,) = done.lines
    assert line["reason"] == "beyond_distance"
    assert {pair["kind"] for pair in line["blocks"]} >= {"only_a", "only_b"}
    known = run("fingerprint", wells).lines[0]["simhash"]
    (line,) = run("analyse", "explain", "-", known, *nowhere, stdin=wells.read_bytes()).lines
    assert (line["reason"], line["distance"], line["max_distance"]) == ("same_simhash", 0, 8)
    interop = ["--scheme", "pgsimhash-interop-1", *nowhere]
    assert run("analyse", "explain", "0" * 16, "f" * 16, *interop).lines[0]["max_distance"] == 3


def test_explain_reads_a_known_url_from_the_collection(run: Run, folder: Path) -> None:
    url, kept = "https://a.example/w", ("--collection", "kept")
    run("collection", "create", "kept", "--keep-markdown")
    page = json.dumps({"url": url, "html": (folder / "wells.html").read_text()})
    run("ingest", "-", *kept, stdin=page)
    (line,) = run("analyse", "explain", url, folder / "wells-copy.html", *kept).lines
    assert (line["a"]["text"], line["b"]["text"]) == ("markdown", "page")
    unknown = run("analyse", "explain", "https://a.example/none", "0", *kept)
    unknown.ends(1, "does not know https://a.example/none")
    assert run("analyse", "explain", folder / "short.html", "0").code == 1


def test_explain_does_not_overwrite_a_page_that_it_reads(run: Run, folder: Path) -> None:
    wells, link = folder / "wells.html", folder / "link.html"
    before = wells.read_bytes()
    link.symlink_to(wells)
    for output in (wells, link, folder / ".." / folder.name / "wells.html"):
        done = run("analyse", "explain", folder / "looms.html", wells, "-o", output)
        done.ends(2, "is both read and written; write to another file")
    assert wells.read_bytes() == before


@pytest.mark.parametrize("command", ["analyse explain 1 2", "analyse report", "dedup FILE"])
def test_a_minus_is_no_file_to_write(run: Run, folder: Path, command: str) -> None:
    arguments = [str(folder / "wells.html") if word == "FILE" else word for word in command.split()]
    run(*arguments, "-o", "-").ends(2, "- only stands for stdin; write to a file")


def test_explain_shows_the_skyline_and_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sides = [PAGES / "repair-cafe.html", PAGES / "repair-cafe-corrected.html"]
    target = Path("why.html")
    shown = {}
    for name, variables in {
        "color": {},
        "plain": {"NO_COLOR": "1"},
        "dumb": {"TERM": "dumb"},
    }.items():
        done = on_a_terminal("analyse", "explain", *sides, "-o", target, whole=True, **variables)
        assert done.code == 0
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in done.stderr.splitlines()]
        assert max(map(len, lines)) <= 80
        assert len(lines) <= 20
        shown[name] = " ".join(" ".join(lines).split())
    found = compare_pages(*(page.read_bytes() for page in sides))
    for text in shown.values():
        assert f"{found.headline}, the limit is 8" in text
        assert " ".join(found.summary.split()) in text
        assert text.endswith(f"written to {target}")
    assert "the tables, and 1,496 1,521 of them could" in shown["color"]
    for name in ("plain", "dumb"):
        assert re.search(r" \^+ ", shown[name])
        assert "the tables, and [-1,496-] {+1,521+} of them could" in shown[name]
    assert f"<h1>{found.headline}</h1>" in target.read_text()
    # Programs can ask for JSON on a terminal too.
    done = on_a_terminal("analyse", "explain", *sides, "--json", whole=True)
    assert json.loads(done.stderr)["distance"] == found.distance


def test_history_prints_a_line_for_each_version(run: Run, folder: Path) -> None:
    url = "https://a.example/page"
    for name in ("wells", "looms", "looms", "wells"):
        page = {"url": url, "html": (folder / f"{name}.html").read_text()}
        assert run("ingest", "-", stdin=json.dumps(page)).code == 0
    done = run("analyse", "history", url)
    assert (done.code, done.stderr) == (0, "")
    assert [line["change"] for line in done.lines] == [None, "rewritten", "rewritten"]
    assert done.lines[2]["distance_to_first"] == 0
    run("analyse", "history", "https://a.example/none").ends(1, "ingest the page first")


def test_the_report_is_a_json_line_and_a_file(run: Run, folder: Path) -> None:
    run("ingest", folder)
    target = folder / "report.html"
    done = run("analyse", "report", "-o", target)
    assert (done.code, done.stderr) == (0, "")
    (line,) = done.lines
    assert (line["pages"], line["duplicates"], line["report"]["all_clusters"]) == (3, 1, 1)
    assert line["report"]["clusters"][0]["canonical"].startswith("file:")
    page = target.read_text()
    assert page.startswith("<!doctype html>")
    assert "<h1>1 in 3 pages is a copy</h1>" in page
    narrow = run("analyse", "report", "--distance", "3", "--canonical", "newest", "--clusters", "0")
    assert narrow.lines[0]["report"]["distance"] == 3
    assert narrow.lines[0]["report"]["clusters"] == []


def test_on_a_terminal_the_report_is_an_answer_and_a_file_of_its_own(
    run: Run, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("ingest", PAGES)
    command = ("analyse", "report", "--dsn", dsn)
    Path("report.html").write_text("<!doctype html>mine")
    shown = set()
    for variables in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
        done = on_a_terminal(*command, whole=True, **variables)
        assert done.code == 0
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stderr)
        text = text.replace("\r\n", "\n").rpartition("\r")[2]
        lines = text.strip().splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) <= 20
        shown.add(" ".join(" ".join(lines).split()))
    (text,) = shown
    assert re.match("(Half of the|[1-9] in [1-9]) pages (is a copy|are copies)", text)
    assert text.endswith("written to report-2.html · for programs: --json")
    assert Path("report.html").read_text() == "<!doctype html>mine"
    assert {path.name for path in tmp_path.glob("*.html")} == {"report.html", "report-2.html"}
    assert "Biggest clusters" in Path("report-2.html").read_text()
    done = on_a_terminal(*command, "--json", whole=True)
    assert json.loads(done.stderr[done.stderr.index("{") :])["name"] == "default"


def test_on_a_terminal_a_host_has_no_cause_that_few_of_its_copies_have(
    dsn: str, tmp_path: Path
) -> None:
    with connect(dsn, create=True) as store:
        for n in range(1, 25):
            simhash = n * 0x9E37_79B9_7F4A_7C15 % 2**64
            for url in (f"h{n}.example/", f"copies.example/{n}", f"copies.example/{n}?sid=1"):
                if n < 6 or "sid" not in url:
                    store.add_page(f"https://{url}", simhash)
    done = on_a_terminal(
        "analyse", "report", "--dsn", dsn, "-o", tmp_path / "x.html", whole=True, NO_COLOR="1"
    )
    assert re.search(r"^29  copies\.example  - *\r$", done.stderr, re.MULTILINE)
    assert re.search(r"written to /\S+…\S*/x\.html · for programs: --json", done.stderr)


def ordered(rows: Iterable[dict[str, str]]) -> list[list[tuple[str, str]]]:
    return sorted(sorted(row.items()) for row in rows)


def ingested(run: Run) -> list[str]:
    return [line["simhash"] for line in run("ingest", PAGES).lines if line["simhash"]]


def test_pairs_have_urls_and_titles(run: Run, dsn: str) -> None:
    ingested(run)
    with connect(dsn) as store:
        pages = [pair.as_json() for pair in analysis.page_pairs(store, 8)]
    done = run("analyse", "pairs", "--distance", "8")
    assert (done.code, done.lines) == (0, pages)
    assert len(pages) > 3
    lines = run("analyse", "pairs").lines
    table = csv.DictReader(run("analyse", "pairs", "--csv").stdout.splitlines())
    assert ordered(table) == ordered({k: str(v) for k, v in line.items()} for line in lines)


def test_on_a_terminal_the_biggest_clusters_come_first(run: Run, dsn: str) -> None:
    ingested(run)
    done = on_a_terminal("analyse", "clusters", "--dsn", dsn, whole=True)
    sizes = [int(size) for size in re.findall(r"^ +(\d+)  /", done.stderr, re.MULTILINE)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_a_bar_of_nothing_is_empty() -> None:
    assert bar({"copies": 0, "unchanged": 0}, 4).plain == "────"


def test_a_number_is_a_whole_one_only_if_it_is() -> None:
    assert [*map(plain, (1.0, 0.99999, 0.00001, 1_234.0))] == ["1", "1.0000", "0.0000", "1,234"]


def test_clusters_are_saved_or_go_into_a_parquet_file(run: Run, dsn: str, tmp_path: Path) -> None:
    ingested(run)
    clusters = run("analyse", "clusters", "--distance", "8").lines
    file = tmp_path / "groups.parquet"
    made = run("analyse", "clusters", "--parquet", file, "--distance", "8")
    made.ends(0, f"{len(clusters)} clusters in {file}")
    assert made.stdout == ""
    options = ("--canonical", "shortest-url", "--linkage", "complete")
    for cluster in run("analyse", "clusters", *options).lines:
        assert cluster["canonical"] == min((page["url"] for page in cluster["pages"]), key=len)
    table = list(csv.DictReader(run("analyse", "clusters", "--csv").stdout.splitlines()))
    assert {row.pop("canonical_problems") for row in table} >= {"outside"}
    assert all(int(row.pop("words")) > 12 for row in table)
    assert all(50 < int(row.pop("shared_percent")) <= 100 for row in table)
    assert {row.pop("host") for row in table} == {""}
    assert all(row.pop("path_pattern").endswith("/*") for row in table)
    rows = [
        {**page, "cluster": cluster["cluster"], "canonical": cluster["canonical"]}
        for cluster in clusters
        for page in cluster["pages"]
    ]
    assert ordered(table) == ordered(
        {key: "" if value is None else str(value) for key, value in row.items()} for row in rows
    )
    assert pq.read_table(file)["url"].to_pylist() == [row["url"] for row in rows]
    for distance, expected in (("0", 0), ("8", len(clusters))):
        done = run("analyse", "clusters", "--save", "--distance", distance)
        assert (done.code, done.stdout) == (0, "")
        assert expected == 0 or f"{expected} clusters saved" in done.stderr
    pages = run_sql(
        dsn,
        "SELECT url, is_canonical FROM pgsimhash.clusters JOIN pgsimhash.pages "
        "USING (collection_id, page_id) ORDER BY cluster, page_id",
    )
    rows.sort(key=lambda row: row["cluster"])
    assert pages == [(row["url"], row["url"] == row["canonical"]) for row in rows]


def test_the_table_of_clusters_has_titles_and_canonical_links(run: Run, tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(40))
    long = 'A,  "quoted"\n title' + "x" * 400
    link = '<link rel="canonical" href="https://b.example/"><title>=1+1</title>'
    # Spreadsheets read full-width signs as the others.
    formulas = ["+1", "-1", "@SUM(1)", "＝1+1", "＋1", "－1", "＠SUM(1)"]  # noqa: RUF001
    heads = [f"<title>{long}</title>", link, *(f"<title>{each}</title>" for each in formulas)]
    lines = [
        {"url": f"https://a.example/{n}", "html": f"<html><head>{head}</head><p>{words}"}
        for n, head in enumerate(heads, 1)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("ingest", tmp_path)
    table = list(csv.DictReader(run("analyse", "clusters", "--csv").stdout.splitlines()))
    assert [row["canonical_url"] for row in table[:3]] == ["", "https://b.example/", ""]
    assert [row["canonical_problems"] for row in table[:3]] == ["missing", "outside", "missing"]
    assert {row["path_pattern"] for row in table} == {"/*"}
    escaped = [f"'{title}" for title in ("=1+1", *formulas)]
    assert [row["title"] for row in table] == [" ".join(long.split())[:300], *escaped]


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_on_a_terminal_a_bar_shows_the_progress(run: Run, dsn: str, command: str) -> None:
    ingested(run)
    silent = run("analyse", command)
    assert silent.stderr == ""
    done = on_a_terminal("analyse", command, "--dsn", dsn)
    done.ends(0, "100%")
    assert sorted(done.stdout.splitlines()) == sorted(silent.stdout.splitlines())
    if command == "clusters":
        done = on_a_terminal("analyse", command, "--dsn", dsn, "--save")
        done.ends(0, "100%", f"{len(silent.lines)} clusters saved")
        assert done.stdout == ""


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
    (best,) = [line for line in done.lines if line["recommended"]]
    assert (best["distance"], best["recall"]) == (6, 1)
    assert all(line["recall"] < 1 for line in done.lines[:6])

    shown = on_a_terminal("analyse", "evaluate", EXAMPLES / "pairs.csv", "--jobs", "2", whole=True)
    figures = "Distance 6: recall 1.0000, precision 1.0000 (0 false of 15 matches)."
    shown.ends(0, "unverified", figures, "recommended")


def test_the_exit_code_without_a_precise_distance_or_after_failures(run: Run, folder: Path) -> None:
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
    assert (last["copies"], last["distinct"], last["omitted"]) == (1, 3, 1)


def test_crawls_are_json_lines_a_table_a_screen_or_a_page(
    run: Run, dsn: str, crawled: Store, tmp_path: Path
) -> None:
    kept = ("--collection", "site")
    done = run("analyse", "crawls", "1", "2", *kept)
    assert (done.code, done.stderr) == (0, "")
    with connect(dsn, collection="site") as store:
        changes = [change.as_json() for change in analysis.compare_crawls(store, 1, 2).changes]
    assert done.lines == changes
    for crawls in (("2026-11-25", "2026-11-26"), ("day 1", "day 2")):
        assert run("analyse", "crawls", *crawls, *kept).lines == changes
    assert run("analyse", "crawls", "2", "3", *kept).lines == run("analyse", "crawls", *kept).lines
    table = list(
        csv.DictReader(run("analyse", "crawls", "1", "2", *kept, "--csv").stdout.splitlines())
    )
    assert [(row["change"], row["url"], row["pages"]) for row in table] == [
        (line["change"], line["url"] or "", str(line["pages"])) for line in changes
    ]
    assert (table[1]["removed"], table[1]["added"]) == ("aprice40", "fell")
    run("analyse", "crawls", "9", *kept).ends(1, "has no run 9")
    run("analyse", "crawls", "yesterday", *kept).ends(1, "has no run yesterday")
    arguments = ("analyse", "crawls", "1", "2", *kept, "--dsn", dsn)
    for variables, words in (
        ({}, "aprice40 fell"),
        ({"NO_COLOR": "1"}, "[-aprice40-] {+fell+}"),
    ):
        lines = screen(*arguments, **variables)
        text = "\n".join(lines)
        print(text)
        assert (
            lines[0] == "2 changed, 2 moved, 1 new, 1 gone, 1 missing, 3 not visited, 5 unchanged"
        )
        assert lines[1] == "run 1, 2026-11-25 00:00 → run 2, 2026-11-26 00:00"
        assert words in text
        assert "  a.example/old/story\n  → a.example/new/story" in text
        assert lines[-1].startswith("all of them: --json or --csv")
    target = tmp_path / "crawls.html"
    history = ("analyse", "history", "https://a.example/price", *kept, "--dsn", dsn)
    for command in (arguments, history):
        shown = "".join(screen(*command, "-o", target))
        assert re.search(r"written to /\S+…\S+/crawls\.html$", shown)
    assert run("analyse", "crawls", "1", "2", *kept, "-o", target).stdout == ""
    page = target.read_text(encoding="utf-8")
    assert "<h1>Pages: 2 changed, 2 moved, 1 new, 1 gone, 1 missing, 3 not visited, 5 unc" in page
    assert "<del>aprice40</del>" in page
    run("analyse", "history", "https://a.example/price", *kept, "-o", target).ends(0)
    assert "<h1>3 versions of " in target.read_text(encoding="utf-8")


def screen(*arguments: str | Path, **variables: str) -> list[str]:
    """What a command shows on a terminal of 80 columns, in 20 lines without its colours."""
    done = on_a_terminal(*arguments, whole=True, **variables)
    assert done.code == 0, done.stderr
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in done.stderr.splitlines()]
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 20
    return lines


def test_history_shows_the_words_that_changed(run: Run, dsn: str, crawled: Store) -> None:
    url, kept = "https://a.example/price", ("--collection", "site")
    lines = run("analyse", "history", url, *kept).lines
    assert [(line["removed"], line["added"]) for line in lines] == [
        (None, None), (["aprice40"], ["fell"]), (["aprice41"], ["again"]),
    ]  # fmt: skip
    shown = screen("analyse", "history", url, *kept, "--dsn", dsn, NO_COLOR="1")
    print("\n".join(shown))
    assert shown[0] == "3 versions of a.example/price"
    assert "[-aprice41-] {+again+}" in shown[-3]
    assert lines[-1]["gone_at"] is None
    crawled.gone(url)
    (_, _, last) = run("analyse", "history", url, *kept).lines
    gone = datetime.fromisoformat(last["gone_at"])
    shown = screen("analyse", "history", url, *kept, "--dsn", dsn, NO_COLOR="1")
    assert f"gone at {gone:%Y-%m-%d %H:%M}" in "".join(shown)


def test_parts_of_a_site_and_the_effect_of_selectors(run: Run, tmp_path: Path) -> None:
    frame = "<div class=frame>" + "".join(f"<p>All about ferry number {n}" for n in range(30))
    lines = [
        {
            "url": f"https://a.example/{name}",
            "html": f"<title>{name}</title><main>The {name} {'sails at noon ' * 9}</main>{frame}",
        }
        for name in ("gull", "heron", "tern")
    ]
    file = tmp_path / "site.jsonl"
    file.write_text("\n".join(map(json.dumps, [*lines, {"url": "https://a.example/x"}])))
    found = run("analyse", "template", file)
    assert [(part["selector"], part["pages"], part["same"]) for part in found.lines] == [
        (".frame", 3, 3), ("main", 3, 1)
    ]  # fmt: skip
    found.ends(0, 'site.jsonl#4: "html" is missing')
    tried = run("analyse", "template", file, "--content", ".old", "--ignore", ".frame")
    tried.ends(0, "content_missing: 3")
    for options, said in {
        ("--content", ".old"): "content_missing: 3",
        (): "2 parts host selector",
        ("--ignore", ".frame, main"): "too_short gull",
    }.items():
        shown = on_a_terminal("analyse", "template", file, *options, whole=True).stderr
        assert said in " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).split())
