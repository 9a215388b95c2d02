"""``ingest_files`` skips what is stored, and nothing else."""

import asyncio
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgsimhash import Store, connect, connect_async
from pgsimhash.sources import FILES_BEFORE, RECORDS_BEFORE, UNKNOWN, work_at
from pgsimhash.sources.page import Skipped
from tests.database import end_others, run_sql
from tests.sources.content import ZSTD, record
from tests.store.content import page_at

LATER = "<p>later"


def html(number: int) -> str:
    return "<p>" + " ".join(f"word{number}x{n} of story{n * number}" for n in range(40))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files with a page each."""
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(3):
        (pages / f"{number}.html").write_text(html(number))
    return pages


def ingested(store: Store, *paths: Path, reread: bool = False) -> tuple[list[str], Counter[str]]:
    """The verdicts of the pages that were read, and the counts of skipped ones."""
    skipped = Counter[str]()
    verdicts = store.ingest_files(paths, reread=reread, skipped=skipped)
    return [verdict.kind for verdict in verdicts], skipped


def line(number: int, page: str) -> str:
    """A JSON line; a page that begins with LATER has a wrong time, an empty one is a bad line."""
    fields = {"url": f"https://a.example/{number}", "html": page}
    if page.startswith(LATER):
        fields["fetched_at"] = "2999-01-01T00:00:00Z"
    return json.dumps(fields if page else {}) + "\n"


def lines(file: Path, *pages: str, first: int = 0) -> Path:
    """A file of JSON lines, one for each page, with numbers in their URLs."""
    file.write_text("".join(line(number, page) for number, page in enumerate(pages, first)))
    return file


def test_tasks_ingest_files_and_stdin(dsn: str, folder: Path) -> None:
    stdin = io.BytesIO(line(7, html(7)).encode())

    async def use() -> list[str]:
        async with await connect_async(dsn) as store:
            verdicts = store.ingest_files([folder, "-"], stdin=stdin)
            return [verdict.kind async for verdict in verdicts]

    assert asyncio.run(use()) == ["new"] * 4


def test_files_are_read_once_until_they_are_modified(store: Store, folder: Path) -> None:
    assert ingested(store, folder) == (["new"] * 3, Counter())
    assert ingested(store, folder) == ([], Counter({FILES_BEFORE: 3}))
    assert ingested(store, folder, reread=True) == (["unchanged"] * 3, Counter())
    (folder / "1.html").write_text(html(7))
    assert ingested(store, folder) == (["updated"], Counter({FILES_BEFORE: 2}))
    # The same size and a different time: only the time shows the change.
    (folder / "1.html").write_text(html(8))
    later = (folder / "1.html").stat().st_mtime_ns + 1
    os.utime(folder / "1.html", ns=(later, later))
    assert ingested(store, folder) == (["updated"], Counter({FILES_BEFORE: 2}))
    assert ingested(store, folder) == ([], Counter({FILES_BEFORE: 3}))


def test_another_collection_reads_the_same_files(store: Store, dsn: str, folder: Path) -> None:
    ingested(store, folder)
    with connect(dsn, collection="second", create=True) as second:
        assert ingested(second, folder) == (["new"] * 3, Counter())


def test_a_page_that_failed_is_read_again(store: Store, tmp_path: Path, folder: Path) -> None:
    (folder / "3.html").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    assert ingested(store, folder)[0] == ["new"] * 3 + ["failed"]
    assert ingested(store, folder) == (["failed"], Counter({FILES_BEFORE: 3}))
    file = lines(tmp_path / "pages.jsonl", html(10), "", html(11), LATER + html(9), html(12))
    first = ingested(store, file)[0]
    assert first == ["new", "failed", "new", "failed", "new"]
    # The file is not recorded as stored: both lines are read again, and get verdicts again.
    assert ingested(store, file) == (["failed", "failed"], Counter({RECORDS_BEFORE: 3}))


def write_pages(file: Path, bodies: list[str]) -> Path:
    """Write a file of its kind, with a page for each body."""
    pages = [(f"https://a.example/{number}", body) for number, body in enumerate(bodies)]
    warc = b"".join(record(body.encode(), url=url) for url, body in pages)
    if file.suffix == ".jsonl":
        return lines(file, *bodies)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([{"url": u, "html": b} for u, b in pages]), file)
    elif file.suffix == ".wacz":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/a.warc.gz", warc)
    else:
        file.write_bytes(warc)
    return file


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.warc.gz", "a.wacz"])
def test_pages_of_an_archive_that_failed_are_stored_by_the_next_run(
    store: Store, tmp_path: Path, name: str
) -> None:
    bodies = [html(number) * (3 if number % 3 else 1) for number in range(12)]
    file = write_pages(tmp_path / name, bodies)
    limited = store.ingest_files([file], max_bytes=len(html(11)) + 100)
    assert [verdict.kind for verdict in limited].count("failed") == 8
    assert ingested(store, file) == (["new"] * 8, Counter({RECORDS_BEFORE: 4}))
    assert ingested(store, file) == ([], Counter({FILES_BEFORE: 1}))
    status = store.status()
    assert status.urls == 12


def test_records_without_a_library_are_stored_when_it_is_there(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brotli, zstd = import_module("brotli"), import_module(ZSTD)
    bodies = [html(number).encode() for number in range(1, 25)]
    pages = [record(body, url=f"http://a.example/{n}") for n, body in enumerate(bodies)]
    plain = record(bodies[2], url="http://a.example/2", zipped=False)
    packed = {"Content-Encoding": "br"}
    pages[5] = record(brotli.compress(bodies[5]), url="http://a.example/5", http=packed)
    file = tmp_path / "a.wacz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/0.warc.gz", b"".join(pages[:2]))
        # The records after it are numbered from its end, which is unknown while it cannot be read.
        archive.writestr("archive/1.warc.zst", zstd.compress(plain) * 3)
        archive.writestr("archive/2.warc.gz", b"".join(pages[3:]))
    with monkeypatch.context() as missing:
        for module in ("brotli", "backports.zstd", "compression.zstd"):
            missing.setitem(sys.modules, module, None)
        first, _ = ingested(store, file)
    assert (len(first), first.count("failed")) == (24, 2)
    again, skipped = ingested(store, file)
    assert (len(again), again.count("failed")) == (24, 0)
    assert skipped == Counter({RECORDS_BEFORE: 2})
    status = store.status()
    assert status.urls == 24
    assert ingested(store, file) == ([], Counter({FILES_BEFORE: 1}))


def test_a_page_of_too_few_words_for_the_policy_is_read_again(store: Store, folder: Path) -> None:
    read = list(store.ingest_files([folder], min_tokens=10_000))
    assert {verdict.reason for verdict in read} == {"policy"}
    assert ingested(store, folder)[0] == ["new"] * 3


def test_a_file_is_read_again_under_another_url(store: Store, folder: Path) -> None:
    assert ingested(store, folder)[0] == ["new"] * 3
    urls = [f"https://a.example/{number}.html" for number in range(3)]
    for expected in (urls, []):
        read = store.ingest_files([folder], base_url="https://a.example")
        assert [verdict.url for verdict in read] == expected


def test_the_index_of_a_folder_has_the_url_of_the_folder(store: Store, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    names = (
        "index.html",
        "c/index.html",
        "c/index.html?page=2",
        "c/subindex.html",
        "index.html.html",
    )
    for number, name in enumerate(names):
        (tmp_path / name).write_text(html(number))
    read = store.ingest_files([tmp_path], base_url="https://a.example/")
    places = ("", "c/", "c/?page=2", "c/subindex.html", "index.html.html")
    assert {verdict.url for verdict in read} == {f"https://a.example/{place}" for place in places}


def test_a_name_that_is_no_utf_8_has_a_url(store: Store, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.html")).write_text(html(1))
    (verdict,) = store.ingest_files([tmp_path], base_url="https://a.example")
    assert (verdict.url, verdict.kind) == ("https://a.example/caf%E9.html", "new")


def test_verdicts_and_skipped_records_name_their_file_as_given(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive, failing = "crawl.warc.gz", record(warc={"WARC-Segment-Number": "1"})
    Path(archive).write_bytes(record() + record(kind="revisit") + failing)
    noted: list[Skipped] = []
    for _ in range(2):  # the second one reads the last record again
        read = list(store.ingest_files([archive], on_skipped=noted.append))
        assert {verdict.source for verdict in read} == {archive}
    assert {item.source for item in noted} == {archive}


def test_an_archive_that_selectors_cut_short_is_read_again(store: Store, tmp_path: Path) -> None:
    archive = lines(tmp_path / "crawl.jsonl", *(html(number) for number in range(3)))
    read = list(store.ingest_files([archive], ignore="p"))
    assert {verdict.reason for verdict in read} == {"cut_short"}
    assert ingested(store, archive) == (["new"] * 3, Counter())


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.warc.gz", "a.wacz", "a.parquet"])
def test_the_bytes_of_archives_are_counted_when_they_are_read_or_skipped(
    store: Store, folder: Path, name: str
) -> None:
    archive = folder / name
    if name.endswith("parquet"):
        urls = [f"https://a.example/{number}" for number in range(9)]
        pq.write_table(pa.table({"url": urls, "html": [*map(html, range(9))]}), archive)
    elif ".jsonl" in name:
        lines(archive, *map(html, range(9)))
        if name.endswith("gz"):
            archive.write_bytes(gzip.compress(archive.read_bytes()))
    else:
        packed = b"".join(record(url=f"http://a.example/{n}") for n in range(9))
        archive.write_bytes(packed)
        if name.endswith("wacz"):
            with zipfile.ZipFile(archive, "w") as file:
                file.writestr("archive/data.warc.gz", packed)
    assert work_at([folder]) == (None, archive.stat().st_size)
    for pages in (12, 0):
        read = list[int]()
        assert len(list(store.ingest_files([folder], on_read=read.append))) == pages
        assert sum(read) == archive.stat().st_size
    assert work_at(["-", folder]) == (None, None)


def test_a_stopped_job_continues_within_an_archive(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "crawl.warc.gz"
    archive.write_bytes(
        b"".join(
            record(kind="request") + record(url=f"http://a.example/{n}", body=html(n).encode())
            for n in range(30)
        )
    )
    monkeypatch.setattr("pgsimhash.store.batches.BATCH_PAGES", 10)
    verdicts = store.ingest_files([archive])
    assert [next(verdicts).kind for _ in range(12)] == ["new"] * 12
    verdicts.close()
    read, skipped = ingested(store, archive)
    # Pages whose verdict may not have arrived are read again.
    assert read == ["unchanged"] * 9 + ["new"] * 10
    assert skipped == Counter({RECORDS_BEFORE: 11})
    assert ingested(store, archive) == ([], Counter({FILES_BEFORE: 1}))


def test_a_stopped_job_without_a_connection_is_stopped(dsn: str, folder: Path) -> None:
    with connect(dsn, retry_seconds=0) as store:
        verdicts = store.ingest_files([folder])
        assert [next(verdicts).kind for _ in range(2)] == ["new"] * 2
        end_others(dsn)
        with pytest.raises(KeyboardInterrupt):
            verdicts.throw(KeyboardInterrupt())
        # Nothing was recorded, so all files are read again.
        assert {one.kind for one in store.ingest_files([folder])} == {"unchanged"}


def archive_of(path: Path, *records: tuple[str, int, dict[str, Any]]) -> Path:
    """A WARC file: the URL, the day in May and the other headers of each record."""
    parts = []
    for url, day, other in records:
        warc = {"WARC-Date": f"2024-05-{day:02}T00:00:00Z", **other.pop("warc", {})}
        parts.append(record(url=url, warc=warc, **{"body": html(7).encode(), **other}))
    path.write_bytes(b"".join(parts))
    return path


GONE: dict[str, Any] = {"status": "404 Not Found"}
SEEN: dict[str, Any] = {
    "kind": "revisit", "body": b"", "warc": {
        "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    },
}  # fmt: skip
U, V, W = (f"https://{name}.example/" for name in "uvw")


@pytest.mark.parametrize("jobs", [1, 2])
def test_answers_without_a_page_are_stored_in_order(
    store: Store, tmp_path: Path, jobs: int
) -> None:
    first = archive_of(
        tmp_path / "1.warc.gz", (U, 1, {}), (U, 2, {**GONE}), (V, 3, {"body": html(8).encode()}),
        (V, 4, {**GONE}), (V, 5, {**SEEN}), (W, 6, {**GONE}), (W, 7, {**SEEN}),
        (W, 8, {"body": html(9).encode(), "warc": {"WARC-Truncated": "length"}}),
    )  # fmt: skip
    skipped = Counter[str]()
    verdicts = list(store.ingest_files([first], skipped=skipped, jobs=jobs))
    assert [(each.kind, each.truncated) for each in verdicts] == [
        ("new", None), ("gone", None), ("new", None), ("gone", None), ("unchanged", None),
        ("new", "length"),
    ]  # fmt: skip
    assert skipped == {UNKNOWN: 2}
    assert ingested(store, first) == ([], Counter({FILES_BEFORE: 1}))
    known, other = page_at(store, U), page_at(store, V)
    assert (known.gone_at, known.seen_at) == (moment(2), moment(1))
    assert (other.gone_at, other.seen_at) == (None, moment(5))


def test_a_revisit_saves_a_page_from_expiry(store: Store, tmp_path: Path) -> None:
    archive_of(tmp_path / "1.warc.gz", (U, 1, {}), (V, 1, {"body": html(8).encode()}))
    archive_of(tmp_path / "2.warc.gz", (U, 30, {**SEEN}))
    assert ingested(store, tmp_path)[0] == ["new", "new", "unchanged"]
    age = datetime.now(UTC) - moment(20)
    assert store.expire(age).gone == [V]


def test_a_stopped_job_continues_after_an_answer_without_a_page(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [(f"{U}{n // 2}", 1, {**GONE} if n % 2 else {}) for n in range(12)]
    archive = archive_of(tmp_path / "1.warc.gz", *records)
    monkeypatch.setattr("pgsimhash.store.batches.BATCH_PAGES", 4)
    verdicts = store.ingest_files([archive], distance=0)
    assert [next(verdicts).kind for _ in range(6)] == ["new", "gone", *["duplicate", "gone"] * 2]
    verdicts.close()
    read, skipped = ingested(store, archive)
    assert skipped == Counter({RECORDS_BEFORE: 5})
    assert read == ["gone", "unchanged", "gone", *["duplicate", "gone"] * 2]
    assert {page_at(store, f"{U}{n}").gone_at for n in range(6)} == {moment(1)}


def moment(day: int) -> datetime:
    return datetime(2024, 5, day, tzinfo=UTC)


def test_deleted_pages_are_read_again(store: Store, folder: Path, tmp_path: Path) -> None:
    file = lines(tmp_path / "pages.jsonl", html(10), html(11))
    store.start_run("files")
    stopped = store.ingest_files([folder])
    next(stopped)
    stopped.close()
    assert ingested(store, folder) == (["unchanged"] * 3, Counter())
    ingested(store, file)
    for name in ("0.html", "1.html"):
        store.delete_page((folder / name).as_uri())
        assert ingested(store, folder) == (["new"], Counter({FILES_BEFORE: 2}))
    # Which of several pages in a file are gone is unknown, but a run is deleted as a whole.
    store.delete_page("https://a.example/0")
    assert ingested(store, file) == ([], Counter({FILES_BEFORE: 1}))
    store.undo_run(store.runs()[0].run_id)
    assert ingested(store, folder, file)[0] == ["new"] * 5


def two_files(folder: Path) -> list[Path]:
    """Two files of 20 pages each."""
    texts = list(map(html, range(40)))
    return [lines(folder / f"{at}.jsonl", *texts[at : at + 20], first=at) for at in (0, 20)]


@pytest.mark.parametrize("decided", [5, 15, 25])
def test_an_undo_beside_a_running_ingest_leaves_no_archive_marked_as_stored(
    store: Store, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: int
) -> None:
    monkeypatch.setattr("pgsimhash.store.batches.BATCH_PAGES", 10)
    monkeypatch.setattr("pgsimhash.store.files._UNWRITTEN_MAX", 10)
    files = two_files(tmp_path)
    verdicts = store.ingest_files(files)
    first = [next(verdicts) for _ in range(decided)]
    with connect(dsn) as other:
        other.undo_run(other.runs()[0].run_id)
    assert len(first + list(verdicts)) == 40
    ingested(store, *files)
    status = store.status()
    assert status.pages == 40
    assert ingested(store, *files) == ([], Counter({FILES_BEFORE: 2}))


def test_a_file_that_begins_during_an_undo_is_not_marked_as_stored(
    store: Store, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgsimhash.store.batches.BATCH_PAGES", 10)
    monkeypatch.setattr("pgsimhash.store.maintenance.BATCH", 5)
    monkeypatch.setattr("pgsimhash.store.files._AT_ONCE", 1)
    files = two_files(tmp_path)
    verdicts = store.ingest_files(files)
    for _ in range(20):
        next(verdicts)

    def go_on(deleted: int) -> None:
        if deleted == 5:
            for _ in range(20):
                next(verdicts)

    with connect(dsn) as other:
        other.undo_run(other.runs()[0].run_id, progress=go_on)
    assert list(verdicts) == []
    ingested(store, *files)
    status = store.status()
    assert status.pages == 40


@pytest.mark.parametrize("undone", [True, False], ids=["after an undo", "without"])
def test_a_second_job_on_a_file_that_is_stopped_loses_no_page(
    store: Store, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undone: bool
) -> None:
    monkeypatch.setattr("pgsimhash.store.batches.BATCH_PAGES", 10)
    monkeypatch.setattr("pgsimhash.store.files._UNWRITTEN_MAX", 10)
    file = lines(tmp_path / "a.jsonl", *map(html, range(60)))
    first = store.ingest_files([file])
    for _ in range(25):
        next(first)
    with connect(dsn) as other:
        if undone:
            other.undo_run(other.runs()[0].run_id)
        second = other.ingest_files([file])
        for _ in range(12):
            next(second)
        second.close()
    assert len(list(first)) == 35
    ingested(store, file)
    status = store.status()
    assert status.urls == 60
    assert ingested(store, file) == ([], Counter({FILES_BEFORE: 1}))


def test_a_skipped_page_is_seen_and_does_not_expire(store: Store, dsn: str, folder: Path) -> None:
    ingested(store, folder)
    run_sql(dsn, "UPDATE pgsimhash.pages SET fetched_at = now() - interval '9 days'")
    assert ingested(store, folder) == ([], Counter({FILES_BEFORE: 3}))
    assert store.expire(timedelta(days=7)).deleted == 0
    page = page_at(store, (folder / "0.html").as_uri())
    assert datetime.now(UTC) - page.seen_at < timedelta(days=1)


def test_failures_are_recorded_up_to_a_limit(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgsimhash.store.files._FAILED_MAX", 2)
    bodies = [html(1), LATER + html(9), html(2), LATER + html(9), html(3), LATER + html(9), html(4)]
    file = lines(tmp_path / "pages.jsonl", *bodies)
    first, _ = ingested(store, file)
    assert first == ["new", "failed"] * 3 + ["new"]
    # Beyond the limit, all records are read again.
    for _ in range(2):
        again, skipped = ingested(store, file)
        assert again == ["failed", "failed", "unchanged", "failed", "unchanged"]
        assert skipped == Counter({RECORDS_BEFORE: 2})


JOB = """
import os, signal, sys
from pgsimhash import connect
with connect(sys.argv[1]) as store:
    for number, _ in enumerate(store.ingest_files(sys.argv[2:])):
        if number == 400:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_no_unstored_file_counts_as_stored(dsn: str, tmp_path: Path) -> None:
    files = [lines(tmp_path / f"{n}.jsonl", html(n), first=n) for n in range(600)]
    done = subprocess.run([sys.executable, "-c", JOB, dsn, *files], check=False)
    assert done.returncode == -signal.SIGKILL
    noted = run_sql(dsn, "SELECT path FROM pgsimhash.sources WHERE last_record IS DISTINCT FROM 0")
    stored = {url for (url,) in run_sql(dsn, "SELECT url FROM pgsimhash.pages")}
    assert 0 < len(noted) < len(stored)
    assert {f"https://a.example/{Path(path).stem}" for (path,) in noted} <= stored
    with connect(dsn) as store:
        read, skipped = ingested(store, *files)
        assert skipped.total() == len(noted)
        assert len(read) == 600 - len(noted)
        status = store.status()
    assert status.pages == 600


def test_a_rollback_of_the_caller_undoes_the_progress(dsn: str, folder: Path) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        connection.commit()
        assert ingested(store, folder)[0] == ["new"] * 3
        connection.rollback()
        assert ingested(store, folder)[0] == ["new"] * 3
        connection.commit()
        assert ingested(store, folder) == ([], Counter({FILES_BEFORE: 3}))
