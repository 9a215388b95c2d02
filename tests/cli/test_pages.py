"""Pages in and lookups: one JSON line per page or match."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pgsimhash
from pgsimhash import connect
from pgsimhash.hashing.bits import from_base32, to_base32
from pgsimhash.pages.records import Verdict
from tests.cli.conftest import Run, on_a_terminal
from tests.database import run_sql
from tests.programs import PGSIMHASH, run_program
from tests.sources.content import record


def name(url: str | None) -> str | None:
    return None if url is None else url.rsplit("/", 1)[-1]


def test_a_folder_gives_one_verdict_a_page(run: Run, folder: Path) -> None:
    file = Path(f"{folder}.parquet")
    done = run("ingest", folder, "--parquet", file)
    assert (done.code, done.stderr) == (0, "")
    assert [(name(line["url"]), line["kind"]) for line in done.lines] == [
        ("looms.html", "new"), ("short.html", "too_short"), ("wells.html", "new"),
        ("wells-copy.html", "duplicate"),
    ]  # fmt: skip
    fields = "url kind reason simhash distance duplicate_of detail truncated content_missing keep"
    more = "page_id original_page_id source record fetched_at"
    assert {" ".join(line) for line in done.lines} == {f"{fields} {more}"}
    copy = done.lines[-1]
    assert name(copy["duplicate_of"]) == "wells.html"
    assert copy["distance"] <= 3
    assert len(copy["simhash"]) == 16
    assert [Verdict(**row).as_json() for row in pq.read_table(file).to_pylist()] == done.lines
    # A second run adds nothing.
    done = run("ingest", folder)
    done.ends(0, "Skipped: files already stored (4).")
    assert done.lines == []
    done = run("ingest", folder, "--reread")
    assert done.code == 0
    assert {line["reason"] for line in done.lines} == {"unchanged", "too_short"}


def test_a_folder_of_wget_has_the_urls_of_its_site(run: Run, folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "www.a.example"
    html = (folder / "wells.html").read_text()
    for name in ("index.html", "a b/index.html", "list?page=2&x=1", "100%25.html"):
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<!doctype html>{html}<p>{name}")
    done = run("ingest", site, "--base-url", "https://www.a.example/")
    assert done.code == 0
    assert {line["url"] for line in done.lines} == {
        "https://www.a.example/", "https://www.a.example/a%20b/",
        "https://www.a.example/list?page=2&x=1", "https://www.a.example/100%25.html",
    }  # fmt: skip
    run("ingest", site, "--base-url", "a.example").ends(2, "base_url is a URL with a host")
    # Each file of site/* would be a version of the same page.
    done = run("ingest", *site.glob("i*"), "--base-url", "https://www.a.example/")
    done.ends(2, "index.html: give its folder")


def test_skipped_files_and_failures_are_summarized_in_one_line(run: Run, folder: Path) -> None:
    archive, feed = folder / "crawl.warc.gz", folder / "feed.jsonl"
    (folder / "style.css").write_text("p {}")
    (folder / ".hidden.html").write_text("<p>x")
    archive.write_bytes(record(kind="revisit") + record())
    done = run("ingest", folder)
    assert (done.code, len(done.lines)) == (0, 5)
    assert done.stderr == (
        "Skipped: hidden files and folders (1), files that are not pages by name or content (1), "
        "revisits (1); a file named .html is always read.\n"
    )
    archive.write_bytes(record()[:-20])
    feed.write_text("{\n")
    pages = archive, feed, folder / "wells.html", "--reread"
    done = run("ingest", *pages)
    first, _, last = done.lines
    assert (done.code, last["kind"]) == (1, "unchanged")
    assert done.stderr == f"Failed: 2. The first: {first['url']}: {first['detail']}\n"


def test_verdicts_name_their_capture_and_skipped_records_are_listed(
    run: Run, tmp_path: Path
) -> None:
    pages, file = tmp_path / "pages", tmp_path / "v.parquet"
    archive = pages / "crawl.warc.gz"
    pages.mkdir()
    revisit = record(kind="revisit", url="https://a.example/1")
    archive.write_bytes(revisit + record() + record(warc={"WARC-Segment-Number": "1"}))
    (pages / "style.css").write_text("p {}")
    done = run("ingest", pages, "--list-skipped", "--parquet", file)
    skipped = [line for line in done.lines if line["kind"] == "skipped"]
    assert sorted(skipped, key=lambda line: line["source"]) == [
        {"kind": "skipped", "reason": "revisits", "source": str(archive), "record": 1,
         "url": "https://a.example/1"},
        {"kind": "skipped", "reason": "files that are not pages by name or content",
         "source": f"{pages}/style.css", "record": None, "url": None},
    ]  # fmt: skip
    verdicts = [line for line in done.lines if line["kind"] != "skipped"]
    assert [(line["source"], line["record"], line["fetched_at"]) for line in verdicts] == [
        (str(archive), 2, "2024-05-06T07:08:09+00:00"), (str(archive), 3, None)
    ]  # fmt: skip
    assert [Verdict(**row).as_json() for row in pq.read_table(file).to_pylist()] == verdicts
    again = run("ingest", pages, "--list-skipped").lines
    stored = [line for line in again if line["reason"] == "records already stored"]
    assert [(line["record"], line["url"]) for line in stored] == [(2, "https://example.com/")]
    (line,) = run("ingest", "-", stdin=json.dumps({"url": "https://b.example/", "html": ""})).lines
    assert (line["source"], line["record"]) == ("-", 1)


def test_verdicts_never_overwrite_verdicts_or_pages(run: Run, folder: Path) -> None:
    file = folder.parent / "v.parquet"
    run("ingest", folder, "--parquet", file)
    before = file.read_bytes()
    for options in ([], ["--reread"]):
        run("ingest", folder, "--parquet", file, *options).ends(2, "the file exists; name another")
    pages, hard, link = (folder / f"{name}.parquet" for name in ("pages", "hard", "link"))
    pq.write_table(pa.table({"url": ["https://a.example/"], "html": ["<p>x"]}), pages)
    hard.hardlink_to(pages)
    link.symlink_to(pages)
    for output in (pages, hard, link, folder / ".." / folder.name / "pages.parquet"):
        for source in (pages, folder):
            done = run("ingest", source, "--parquet", output)
            assert (done.code, done.stdout) == (2, "")
    assert pq.read_table(pages).column_names == ["url", "html"]
    assert file.read_bytes() == before
    # A file that is reserved.
    empty = folder.parent / "empty.parquet"
    empty.touch()
    assert len(run("ingest", folder / "wells.html", "--reread", "--parquet", empty).lines) == 1
    assert pq.read_table(empty).num_rows == 1


@pytest.mark.parametrize("command", ["ingest", "fingerprint"])
@pytest.mark.parametrize("is_stdin", [True, False])
def test_a_command_does_not_read_its_own_output(
    dsn: str, tmp_path: Path, command: str, is_stdin: bool
) -> None:
    file, link = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    file.write_text(f"{'0' * 16}\n")
    link.hardlink_to(file)
    with file.open("ab") as output, link.open("rb") as stdin:
        done = subprocess.run(
            [*PGSIMHASH, command, "-" if is_stdin else link],
            env={**os.environ, "PGSIMHASH_DSN": dsn}, stdin=stdin, stdout=output,
            stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"is both read and written" in done.stderr
    assert file.read_text() == f"{'0' * 16}\n"


def test_without_pages_the_exit_code_is_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "noext").write_text("x <p>")
    done = run("ingest", tmp_path)
    assert (done.code, done.stdout) == (1, "")
    done.ends(1, "No page was found. Skipped: files that are not pages by name or content (1)")
    assert run("ingest", "-", stdin="\n").code == 1


def test_the_limits_of_a_page(run: Run, folder: Path) -> None:
    wells, slow = folder / "wells.html", folder / "slow.jsonl"
    size = wells.stat().st_size
    assert run("ingest", wells, "--max-bytes", size).lines[0]["kind"] == "new"
    (line,) = run("ingest", wells, "--max-bytes", size - 1, "--reread").lines
    assert line["detail"] == f"the file is larger than {size - 1:,} bytes (max_bytes)"
    # Each letter has a mark, and there are millions of letters.
    html = "<p>" + "\u05d0\u05b4\u05bc" * 1_600_000
    slow.write_text(json.dumps({"url": "https://a.example/", "html": html}, ensure_ascii=False))
    (line,) = run("ingest", slow, "--page-seconds", "0.3", "--jobs", "2").lines
    assert line["reason"] == "too_slow"
    again = run("ingest", wells, "--page-seconds", "inf", "--reread")
    assert again.lines[0]["kind"] == "unchanged"


def test_a_scheme_for_texts_reads_texts(run: Run, tmp_path: Path) -> None:
    story = " ".join(f"word{n}" for n in range(150))
    texts = [{"url": f"https://a.example/{n}", "text": f"{story} {n}"} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "a.parquet")
    body = f"{story} again".encode()
    (tmp_path / "b.warc.gz").write_bytes(record(body, kind="conversion", mime="text/plain"))
    run("collection", "create", "texts", "--scheme", "pgsimhash-text-1")
    done = run("ingest", tmp_path, "--collection", "texts")
    assert (done.code, done.stderr) == (0, "")
    assert done.lines[0]["kind"] == "new"
    assert {line["kind"] for line in done.lines[1:]} <= {"duplicate", "near"}
    # Pages need "html".
    skipped = "texts, which need a scheme for texts: pgsimhash-text-1 or pgsimhash-short-1 (1)"
    run("ingest", tmp_path).ends(1, "Failed: 1. The first: ", f"Skipped: {skipped}.")


def test_on_a_terminal_there_is_a_bar_and_a_summary(folder: Path, dsn: str) -> None:
    """stderr is a terminal and stdout a pipe: people see statistics, the pipe gets data."""
    done = on_a_terminal("ingest", folder, "--dsn", dsn)
    done.ends(0, "4 pages", "+ 2 new", "= 1 copies", "- 1 too short", "4/4", "2 pages are worth")
    assert len(done.lines) == 4


def test_on_a_terminal_the_bar_of_an_archive_shows_its_bytes(tmp_path: Path, dsn: str) -> None:
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(record(url=f"https://a.example/{n}") for n in range(5000)))
    size = f"{archive.stat().st_size / 1e6:.1f}"
    on_a_terminal("ingest", archive, "--dsn", dsn).ends(0, f"{size}/{size} MB")
    on_a_terminal("ingest", archive, "--dsn", dsn).ends(0, "already stored")


PEOPLE = {
    "ingest PAGES": "4 pages in",
    "ingest PAGES --reread": "· 3 unchanged - 1 too short",
    "ingest PAGES --collection own --create": "found: pgsimhash analyse report --collection own",
    "run list --collection own": "last one: pgsimhash run undo --collection own",
    "status": "6 pages in 2 collections, ",
    "run list": "2 runs run began pages",
    "run list --json": '"run_id": 1,',
    "find PAGE": "2 pages within 8 bits of ",
    "find 0": "No page within 8 bits of 0",
    "decide PAGE": "· Unchanged: not worth keeping",
    "should-fetch https://a.example/": "fetch yes",
    "fingerprint PAGE": "simhash ",
    "policy set a.example --distance 3": "distance 3",
    "policy list": "a.example distance 3",
    "policy set a.example --refetch-after 7d": "refetch after 604,800",
    "collection list": "own pgsimhash-article-1 22+21+21 8 no",
    "analyse pairs": "1 pair distance a b",
    "analyse clusters": "1 cluster pages canonical",
    "analyse history URL": "1 version of ",
    "analyse parameters": "0 parameters",
    "analyse template PAGES": "0 parts",
    "analyse template PAGES --content .story": "content_missing: ",
    "mark": "0 marks",
    "mark URL COPY --same": "Marked as same.",
    "mark --collection default": "1 mark a b same marked /",
    "status --collection own": "3 pages in 1 collection, the schema has ",
    "check": "No violations were found.",
    "run undo": "The run had added no page, so no version was deleted.",
    "expire --older-than 1d": "deleted 0",
}


def test_every_command_answers_people_on_a_terminal(folder: Path, dsn: str) -> None:
    """With colours and without, within 80 columns and 20 lines; JSON lines if asked."""
    page, copy = folder / "wells.html", folder / "wells-copy.html"
    wrong = {}
    words = {"PAGES": str(folder), "PAGE": str(page), "URL": page.as_uri(), "COPY": copy.as_uri()}
    for command, said in PEOPLE.items():
        arguments = [words.get(word, word) for word in command.split()]
        if arguments[0] != "fingerprint" and arguments[1:2] != ["template"]:
            arguments += ["--dsn", dsn]
        shown = on_a_terminal(*arguments, whole=True, TERM="dumb" if "list" in command else "xterm")
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.stderr)
        lines = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
        fits = max(map(len, lines)) <= 80 and len(lines) <= 20 and "{" not in text
        if said not in " ".join(text.split()) or not (fits or "--json" in command):
            wrong[command] = text
    assert wrong == {}


def test_status_has_the_number_that_the_share_of_copies_is_of(dsn: str) -> None:
    with connect(dsn, collection="a" * 30, create=True) as store:
        for n in range(9):
            store.add_page("https://a.example/", 0xFFFF << 5 * n)
        store.add_page("https://b.example/", 0xFFFF << 40)
    shown = on_a_terminal("status", "--dsn", dsn, whole=True, TERM="dumb").stderr
    heads, values = " ".join(shown.split()).partition(" disk ")[2].split(" last write ")
    assert heads == "collection pages versions copies their HTML"
    # Only the name is shortened.
    assert re.match(r"a+…a+ 2 10 \S+ 10% 0 bytes [\d-]+ \d\d:\d\d ", values)


@contextmanager
def ingesting(dsn: str, *options: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], Any, Any]]:
    """Lend a process that ingests its stdin, with its stdin and its stdout."""
    with subprocess.Popen(
        [*PGSIMHASH, "ingest", "-", "--dsn", dsn, *options],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        # Otherwise a missing verdict would block the tests.
        watch = threading.Timer(60, process.kill)
        watch.start()
        yield process, process.stdin, process.stdout
        watch.cancel()
    assert process.returncode == 130


def test_after_sigterm_what_was_printed_is_stored(folder: Path, dsn: str) -> None:
    file = folder / "verdicts.parquet"
    html = (folder / "wells.html").read_text()
    pages = [json.dumps({"url": f"https://a.example/{n}", "html": html}) for n in range(300)]
    everything = "".join(f"{line}\n" for line in pages)
    with ingesting(dsn, "--parquet", file) as (process, stdin, stdout):
        stdin.write(everything.encode())
        first = stdout.readline()
        assert json.loads(first)["kind"] == "new"
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        rest, stderr = process.communicate()
    printed = [json.loads(line) for line in (first + rest).splitlines()]
    assert b"run again to continue" in stderr
    assert 0 < len(printed) < 300
    told = [Verdict(**row).as_json() for row in pq.read_table(file).to_pylist()]
    assert told[: len(printed)] == printed
    stored = {url for (url,) in run_sql(dsn, "SELECT url FROM pgsimhash.pages")}
    assert {line["url"] for line in printed} <= stored
    again = run_program(*PGSIMHASH, "ingest", "-", "--dsn", dsn, stdin=everything)
    verdicts = [json.loads(line) for line in again.stdout.splitlines()]
    assert len(verdicts) == 300
    assert {line["url"] for line in verdicts if line["reason"] == "unchanged"} == stored


@pytest.mark.parametrize(
    ("options", "stop"),
    [([], signal.SIGINT), pytest.param(["--jobs", "1"], signal.SIGHUP, marks=pytest.mark.long)],
)
def test_a_page_from_a_waiting_process_gets_its_verdict_until_it_is_stopped(
    folder: Path, dsn: str, options: list[str], stop: signal.Signals
) -> None:
    if signal.getsignal(stop) is signal.SIG_IGN:
        pytest.skip("these tests were started so that it is ignored")
    html = (folder / "wells.html").read_text()
    with ingesting(dsn, *options) as (process, stdin, stdout):
        for number, verdict in enumerate(["new", "duplicate"]):
            page = json.dumps({"url": f"https://a.example/{number}", "html": html}).encode()
            # The next line is incomplete, like the output of programs that write blocks.
            stdin.write(page + b'\n{"url":')
            assert json.loads(stdout.readline())["kind"] == verdict
            assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.pages") == [(number + 1,)]
            stdin.write(b'"https://b.example/", "html": ""}\n')
            assert json.loads(stdout.readline())["kind"] == "too_short"
        process.send_signal(stop)
        _, stderr = process.communicate()
    assert stderr.startswith(b"Stopped. Committed work stays")
    assert len(stderr.splitlines()) == 1


def test_a_failed_attempt_with_the_wrong_scheme_leaves_no_collection(
    run: Run, tmp_path: Path
) -> None:
    story = " ".join(f"word{n}" for n in range(40))
    texts = [{"url": f"https://a.example/{n}", "text": f"{story} {n}"} for n in range(3)]
    rows, lines = tmp_path / "a.parquet", tmp_path / "a.jsonl"
    pq.write_table(pa.Table.from_pylist(texts), rows)
    lines.write_text("\n".join(map(json.dumps, texts)))
    for file in (rows, lines):
        for options in ([], ["--collection", "texts", "--create"]):
            done = run("ingest", file, *options)
            done.ends(1, "pgsimhash-text-1 or pgsimhash-short-1")
            assert run("collection", "list").lines == []
    taken = run("ingest", lines, "--collection", "texts", "--create", "--parquet", rows)
    taken.ends(2, "the file exists")
    assert run("collection", "list").lines == []
    scheme = ("--collection", "texts", "--create", "--scheme", "pgsimhash-short-1")
    assert run("ingest", rows, *scheme).code == 0
    # An existing one stays.
    run("collection", "create", "empty")
    run("ingest", lines, "--collection", "empty").ends(1)
    assert [line["name"] for line in run("collection", "list").lines] == ["empty", "texts"]


def test_a_version_that_is_older_than_the_one_before_warns(run: Run) -> None:
    lines = [
        json.dumps({
            "url": "https://a.example/", "fetched_at": f"2026-0{month}-01T00:00:00Z",
            "html": "<p>" + " ".join(f"m{month}w{n}" for n in range(80)),
        })
        for month in (1, 3, 2)
    ]  # fmt: skip
    detail = "it is older than the version before it"
    warning = "Older than the version before: 1. The first: https://a.example/"
    # In one batch, and in several.
    done = run("ingest", "-", stdin="\n".join(lines))
    done.ends(0, warning)
    assert [line["detail"] for line in done.lines] == [None, None, detail]
    for number, line in enumerate(lines):
        done = run("ingest", "-", "--collection", "other", "--create", stdin=line)
        assert [line["detail"] for line in done.lines] == [detail if number == 2 else None]
        assert (warning in done.stderr) == (number == 2)


def test_many_failures_of_one_reason_are_reported_once(run: Run) -> None:
    html = f"<p>{'one more word ' * 30}"
    pages = [{"url": f"doc:{n}", "html": html} for n in range(250)]
    pages += [{"url": "https://a.example/", "html": html}]
    done = run("ingest", "-", stdin="\n".join(map(json.dumps, pages)))
    assert done.code == 1
    assert [line["kind"] for line in done.lines] == ["failed"] * 250 + ["new"]
    problem = "'doc:99' is not an absolute http, https or file URL; only texts may have other"
    assert done.stderr.count(f"100 pages failed as invalid_url, such as stdin#100: {problem}") == 1


def test_schemes_for_texts_take_any_id(run: Run) -> None:
    ids = ["doc:0", "7", "SKU 12 b", "https://[", "=1+1", "a/b#c"]
    texts = [{"url": name, "text": f"Round oak dining table number {name}, 120 cm"} for name in ids]
    lines = "\n".join(
        map(json.dumps, [*texts, {"url": " ", "text": "x"}, {"url": "x" * 3000, "text": "x"}])
    )
    options = ("--collection", "t")
    run("collection", "create", "t", "--scheme", "pgsimhash-short-1")
    run("policy", "set", "a.example", "--distance", "2", *options)
    done = run("ingest", "-", *options, stdin=lines)
    assert [line["url"] for line in done.lines[:-2]] == ids
    assert "failed" not in {line["kind"] for line in done.lines[:-2]}
    assert [line["reason"] for line in done.lines[-2:]] == ["invalid_url"] * 2
    fetched = run("should-fetch", *ids, "doc:1", *options).lines
    assert [line["fetch"] for line in fetched] == [False] * len(ids) + [True]


def test_missing_collections_create_nothing(run: Run, folder: Path) -> None:
    run("ingest", folder, "--collection", "nwes").ends(
        2, "'nwes' does not exist, as no collection does yet; check the name, or create it: "
    )
    assert run("collection", "list").lines == []
    assert run("ingest", folder, "--collection", "news", "--create").code == 0
    assert [line["name"] for line in run("status").lines] == ["news"]
    found = run("find", "0" * 16, "--collection", "nwes")
    assert "(the nearest names: news); check the name\n" in found.stderr


def test_decide_gives_the_verdict_of_ingest_and_stores_nothing(run: Run, folder: Path) -> None:
    run("ingest", folder / "looms.html")
    copy, url = folder / "wells-copy.html", "https://a.example/wells"
    dry = run("decide", copy, "--url", url)
    assert dry.code == 0
    assert (dry.lines[0]["url"], dry.lines[0]["reason"]) == (url, "first_seen")
    assert run("status").lines[0]["pages"] == 1
    run("ingest", folder / "wells.html")
    known = run("decide", copy)
    assert known.code == 1
    (decided,), (ingested,) = known.lines, run("ingest", copy).lines
    differing = {name for name, _ in decided.items() ^ ingested.items()}
    assert differing <= {"page_id", "source", "record"}
    html = (folder / "wells.html").read_bytes()
    assert run("decide", "-", "--url", url, stdin=html).lines[0]["reason"] == "same_bytes"
    run("decide", "-", stdin=html).ends(2, "needs --url")


def test_options_limit_the_eligible_originals(run: Run, folder: Path) -> None:
    run("ingest", folder / "wells.html")
    copy = folder / "wells-copy.html"

    def keeps(*options: str) -> bool:
        return run("decide", copy, "--url", "https://a.example/", *options).code == 0

    assert not keeps()
    assert keeps("--scope", "host")
    assert not keeps("--scope", "global")
    assert not keeps("--max-age", "1d")
    run("ingest", folder / "looms.html")
    assert keeps("--window-size", "1")
    assert not keeps("--window-size", "2")
    assert run("ingest", copy, "--max-age", "2w", "--scope", "global").lines[0]["kind"] != "new"
    linked = {"url": "https://a.example/l", "html": (folder / "looms.html").read_text()}
    run("ingest", "-", "--collection", "links", "--create", stdin=json.dumps(linked))
    wells = "<link rel=canonical href=/l>" + (folder / "wells.html").read_text()
    command = ("decide", "-", "--url", "https://a.example/w", "--collection", "links")
    assert run(*command, stdin=wells).lines[0]["reason"] == "first_seen"
    (line,) = run(*command, "--canonical-link", stdin=wells).lines
    assert (line["reason"], line["duplicate_of"]) == ("canonical_link", linked["url"])


def test_pages_that_are_not_known_or_due_are_to_be_fetched(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known, unknown = (folder / "wells.html").as_uri(), "https://nowhere.example/"
    done = run("should-fetch", known, "-", stdin=f"{unknown}\n\n{known}\n")
    assert done.code == 0
    assert [line["url"] for line in done.lines] == [known, unknown, known]
    assert [line["fetch"] for line in done.lines] == [False, True, False]
    assert run("should-fetch", known).code == 1
    old = {"url": unknown, "html": f"<p>{'one more word ' * 30}", "fetched_at": "2026-01-01"}
    run("ingest", "-", stdin=json.dumps(old))
    assert run("should-fetch", unknown).lines == [{"url": unknown, "fetch": False}]
    assert run("should-fetch", unknown, "--older-than", "1d").lines[0]["fetch"]
    run("policy", "set", "nowhere.example", "--refetch-after", "2d")
    assert run("should-fetch", unknown).lines[0]["fetch"]
    # Invalid URLs are reported, and the rest continues.
    done = run("should-fetch", "", "no url", "javascript:x", "https://a.example/")
    done.ends(1, "'javascript:x'")
    assert [line["url"] for line in done.lines] == ["https://a.example/"]
    assert len(done.stderr.splitlines()) == 3
    lines = b"https://a.example/1\n\xff\n \nhttps://a.example/2\n"
    done = run("should-fetch", "-", stdin=lines)
    assert [line["url"][-1] for line in done.lines] == ["1", "2"]
    done.ends(1, "'\\udcff' is not a URL")
    assert len(done.stderr.splitlines()) == 1


def test_find_pages_near_a_url(run: Run, folder: Path) -> None:
    run("ingest", folder)
    wells, copy, looms = (
        (folder / f"{name}.html").as_uri() for name in ("wells", "wells-copy", "looms")
    )
    (near,) = run("find", wells).lines
    assert (near["url"], near["title"]) == (copy, "Wells")
    assert near["distance"] <= 3
    alone = run("find", looms)
    assert (alone.code, alone.stdout, alone.stderr) == (1, "", "")
    unknown = run("find", f"{wells}?print=1")
    unknown.ends(1, f"has no page at {wells}?print=1; ingest the page first")
    assert unknown.stdout == ""
    wide = run("find", wells, "--distance", "12", "--no-verify").lines
    assert [line["url"] for line in wide] == [copy]


def test_find_takes_a_file_stdin_a_url_or_a_simhash(run: Run, dsn: str, folder: Path) -> None:
    run("ingest", folder)
    wells = folder / "wells.html"
    (known,) = run("fingerprint", wells).lines
    with connect(dsn) as store:
        store.add_page("https://a.example/1", int(known["simhash"], 16))
        store.add_page("https://a.example/2", int(known["simhash"], 16) ^ 0b1111)
    pages = run("find", wells)
    first = pages.lines[0]
    assert (pages.code, first["url"], first["title"]) == (0, wells.as_uri(), "Wells")
    files = {(folder / name).as_uri() for name in ("wells.html", "wells-copy.html")}
    added = {"https://a.example/1", "https://a.example/2"}
    assert {line["url"] for line in pages.lines} == files | added
    distances = [line["distance"] for line in pages.lines]
    assert distances == sorted(distances)
    decimal = str(int(known["simhash"], 16))
    assert run("find", "-", stdin=wells.read_bytes()).stdout == pages.stdout
    for what in (known["simhash"], decimal):
        assert run("find", what).stdout == pages.stdout
    for what in (wells, wells.as_uri(), known["simhash"]):
        whole = run("find", what).lines
        assert len(whole) >= 2
        assert run("find", what, "--limit", "2").lines == whole[:2]
    assert run("find", "0x1234").code == 1
    # A file is read as the policies say, like a stored page.
    run("policy", "set", "*", "--ignore", "p:not(.none)")
    run("find", wells).ends(1, "it was cut by ignore")


def test_a_file_named_like_a_url(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("ingest", folder)
    (folder / "x:").mkdir()
    (folder / "x:" / "wells.html").write_bytes((folder / "wells.html").read_bytes())
    monkeypatch.chdir(folder)
    assert run("find", "x://wells.html").stdout == run("find", "wells.html").stdout
    assert "has no page at x://looms.html" in run("find", "x://looms.html").stderr


def test_fingerprint_prints_every_form_and_reports_a_bad_file(run: Run, folder: Path) -> None:
    html = (folder / "wells.html").read_bytes()
    done = run("fingerprint", folder / "short.html", folder / "wells.html")
    (line,) = done.lines
    page = pgsimhash.fingerprint(html)
    assert (line["title"], line["scheme"]) == ("Wells", "pgsimhash-article-1")
    assert line["text_digest"] == f"{page.text_digest:016x}"
    assert int(line["simhash"], 16) == int(line["bigint"]) % 2**64 == page.simhash
    assert from_base32(line["base32"]) == page.simhash
    assert not any(isinstance(value, int) and abs(value) > 2**53 for value in line.values())
    done.ends(1, "short.html")
    assert len(done.stderr.splitlines()) == 1
    alone = run("fingerprint", "-", stdin=html)
    assert (alone.code, alone.lines[0]["simhash"]) == (0, line["simhash"])
    done = run("fingerprint", "--markdown", folder / "wells-copy.html")
    assert "Well number 1 was dug" in done.stdout
    assert "Home" not in done.stdout


def test_simhashes_in_base32_and_distances_by_name_are_accepted(run: Run) -> None:
    with connect() as store:
        store.add_page("https://a.example/", 2**64 - 1)
    found = run("find", to_base32(2**64 - 1 - 0b111111), "--distance", "loose")
    assert [(line["url"], line["distance"]) for line in found.lines] == [("https://a.example/", 6)]
    assert run("find", to_base32(2**64 - 1 - 0b11), "--distance", "close").code == 1


def test_find_many_answers_a_file_and_reports_invalid_lines(run: Run, folder: Path) -> None:
    run("ingest", folder)
    known = run("fingerprint", folder / "wells.html").lines[0]["simhash"]
    near, far = (f"{int(known, 16) ^ bits:016x}" for bits in (0b101, 0xFFFF))
    queries = [near, "", json.dumps({"url": "https://b.example/", "simhash": known}), far, far]
    (folder / "queries.txt").write_text("\n".join(queries))
    done = run("find-many", folder / "queries.txt", "--distance", "2")
    assert (done.code, done.lines) == (0, [
        {"query": near, "simhash": known, "distance": 2},
        {"url": "https://b.example/", "query": known, "simhash": known, "distance": 0},
    ])  # fmt: skip
    assert run("status").lines[0]["simhashes"] == 2
    bad = ["wrong", '{"url": 1}', '{"simhash": 1}', '{"simhash": true}', "{", str(2**64)]
    digits = "9" * 5000  # more than Python reads
    bad += [digits, f'{{"simhash": {digits}}}', f'{{"simhash": "{known}", "a": {digits}}}']
    done = run("find-many", "-", stdin="\n".join([*bad, known]))
    assert (done.code, [line["simhash"] for line in done.lines]) == (1, [known])
    assert [f"line {n}:" in done.stderr for n in range(1, 11)] == [True] * 9 + [False]
