"""JSON lines, Parquet, WACZ archives, zstd and plain texts, as the tools that write them do."""

import copy
import gzip
import io
import json
import os
import random
import struct
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scrapy.exporters import JsonLinesItemExporter
from warcio.warcwriter import WARCWriter

from pgsimhash.pages.records import PageFailure, PageItem
from pgsimhash.schemes import BUILT_IN
from pgsimhash.schemes.registry import reads_texts
from pgsimhash.sources import SourcePage, read_pages, streams
from pgsimhash.sources.page import TEXT_SCHEME
from tests.programs import python
from tests.sources.content import HTML, ZSTD, check_damage, failed, read, record, urls

URL = "https://example.com/"
TIME = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
PAGE = SourcePage(URL, "<p>Grüße")

zstd = pytest.importorskip(ZSTD)


def records(count: int) -> list[bytes]:
    return [record(url=f"{URL}{number}") for number in range(count)]


@pytest.mark.parametrize(("fields", "texts", "expected"), [
    ({"text": "Grüße"}, True, "Grüße"), ({"text": "Grüße", "html": "<p>"}, True, "Grüße"),
    ({"text": "Grüße", "html": "<p>"}, False, "<p>"), ({"html": "<p>"}, True, '"text"'),
    ({"text": "Grüße"}, False, "or pgsimhash-short-1, and texts=True in Python"),
    ({"text": None}, True, '"text" is not a string'), ({"text": 1}, True, '"text" is not a string'),
    ({}, True, '"text"'), ({"body": ""}, False, '"html"'),
])  # fmt: skip
def test_the_text_of_a_line_and_of_a_row_or_why_it_has_none(
    tmp_path: Path, fields: dict[str, Any], texts: bool, expected: str
) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps({"url": URL, **fields}))
    for path in (lines, write_rows(tmp_path / "a.parquet", [{"url": URL, **fields}])):
        (item,) = read(path, texts=texts)
        if isinstance(item, SourcePage):
            assert item == SourcePage(URL, expected)
        else:
            assert failed(item, expected)[1] == "unreadable"


def test_the_schemes_for_texts_are_named() -> None:
    named = [name for name in BUILT_IN if reads_texts(name)]
    assert f"a scheme for texts: {' or '.join(named)}" == TEXT_SCHEME


def test_the_page_list_of_a_crawler_is_skipped_unless_its_texts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    for has_text in (True, False):
        head = {"format": "json-pages-1.0", "id": "pages", "hasText": has_text}
        path.write_text(f"{json.dumps(head)}\n{json.dumps({'url': URL, 'text': 'Grüße'})}\n")
        for texts in (True, False):
            skipped = Counter[str]()
            is_read = has_text and texts
            assert read(path, texts=texts, skipped=skipped) == [SourcePage(URL, "Grüße")][:is_read]
            assert skipped == ({} if is_read else {"page lists of archives": 1})


def test_texts_of_common_crawl(tmp_path: Path) -> None:
    data = io.BytesIO()
    writer = WARCWriter(data, gzip=True, warc_version="WARC/1.0")
    text = "Grüße".encode()
    make = partial(
        writer.create_warc_record, length=len(text), warc_headers_dict={"WARC-Date": "2024-05-06"}
    )
    for kind, mime in (("conversion", "text/plain"), ("conversion", "image/png"),
                       ("resource", "text/html")):  # fmt: skip
        writer.write_record(make(URL, kind, payload=io.BytesIO(text), warc_content_type=mime))
    path = tmp_path / "CC-MAIN-20240506-00000.warc.wet.gz"
    path.write_bytes(data.getvalue() + record() + records(1)[0][:-20])
    skipped = Counter[str]()
    page, end = read(path, texts=True, skipped=skipped)
    assert page == SourcePage(URL, text, fetched_at=datetime(2024, 5, 6, tzinfo=UTC))
    assert failed(end) == (f"{path}#5", "unreadable")
    assert skipped == {"records that are not texts": 3}


def write_rows(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def test_rows_are_pages(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"url": URL, "html": PAGE.html, "other": 1, "fetched_at": TIME},
        {"url": "nowhere", "html": "", "other": 2, "fetched_at": None},
        {"url": URL, "html": None, "other": 3, "fetched_at": None},
        {"url": URL, "html": "x" * 1001, "other": 3, "fetched_at": None},
        {"url": URL, "html": PAGE.html, "other": 3, "fetched_at": None},
    ]
    path = write_rows(tmp_path / "pages.parquet", rows)
    first, *failures, last = read(path, max_bytes=1000)
    assert first == SourcePage(URL, PAGE.html, fetched_at=TIME)
    assert [failed(item)[1] for item in failures] == ["invalid_url", "unreadable", "too_large"]
    assert (last, last.record) == (PAGE, 5) if isinstance(last, SourcePage) else None
    categories = pa.table({"url": [URL], "html": pa.array([HTML]), "charset": ["latin-1"]})
    pq.write_table(categories, path)
    assert read(path) == [SourcePage(URL, HTML, "latin-1")]
    # A text that is not valid UTF-8.
    odd = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    pq.write_table(pa.table({"url": [URL], "html": odd}), path)
    (item,) = read(path)
    assert failed(item, "utf-8") == (f"{path}#1", "unreadable")


def test_a_damaged_row_group_costs_its_rows(tmp_path: Path) -> None:
    rows = [{"url": f"{URL}{n}", "html": f"<p>{n} {os.urandom(99).hex()}"} for n in range(300)]
    path = tmp_path / "a.parquet"
    write_rows(path, rows, row_group_size=100, compression="none", write_page_checksum=True)
    data = bytearray(path.read_bytes())
    at = data.index(b"<p>150 ")
    data[at : at + 50] = bytes(50)
    path.write_bytes(data)
    items = read(path)
    assert [failed(item, "rows 101 to 200 were not read") for item in items[100:101]] == [
        (f"{path}#101", "unreadable")
    ]
    assert [item.url for item in items[:100] + items[101:]] == [
        f"{URL}{n}" for n in (*range(100), *range(200, 300))
    ]
    last = items[-1]
    assert isinstance(last, SourcePage)
    assert last.record == 300
    path.write_bytes(data[:-20])
    (item,) = read(path)
    assert failed(item) == (str(path), "unreadable")
    write_rows(path, [{"url": URL, "body": ""}])
    (item,) = read(path)
    assert failed(item, 'the columns url, body, not "url" and "html"') == (str(path), "unreadable")
    (item,) = read(path, texts=True)
    assert failed(item, 'not "url" and "text"') == (str(path), "unreadable")


def test_a_wacz_archive_and_its_damage(tmp_path: Path) -> None:
    path = tmp_path / "crawl.wacz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("datapackage.json", "{}")
        file.writestr("archive/a.warc.gz", b"".join(records(3)))
        file.writestr("archive/b.warc", record(url=f"{URL}b", zipped=False), zipfile.ZIP_DEFLATED)
        file.writestr("indexes/index.cdx.gz", records(1)[0])
        file.writestr("archive/c.warc.gz", record(url=f"{URL}c"))
    found = [(item.url, item.record) for item in read(path) if isinstance(item, SourcePage)]
    assert found == [(URL + name, n) for n, name in enumerate(("0", "1", "2", "b", "c"), 1)]
    data = path.read_bytes()
    # A damaged record, a checksum of zip data, a lost directory.
    at = data.index(records(3)[1])
    path.write_bytes(data[: at + 30] + bytes(20) + data[at + 50 :])
    items = read(path)
    assert urls(items) == [URL + name for name in ("0", "2", "b", "c")]
    assert [failed(item)[0] for item in items if isinstance(item, PageFailure)] == [f"{path}#2"]
    at = data.index(b"archive/b.warc") + 40
    path.write_bytes(data[:at] + b"\xff\xff\xff" + data[at + 3 :])
    items = read(path)
    assert urls(items) == [URL + name for name in ("0", "1", "2", "c")]
    assert len(items) == 5
    # Its end is missing, or bytes in a record are.
    at, end = data.index(records(3)[1]) + 30, data.index(b"archive/c.warc") - 40
    damages = (end, b"", "012"), (at, data[at + 3 :], "02"), (at + 1, data[at:], "02")
    for begin, rest, names in damages:
        path.write_bytes(data[:begin] + rest)
        items = read(path)
        assert failed(items[0], "the zip data is damaged") == (str(path), "unreadable")
        assert urls(items)[: len(names)] == [URL + name for name in names]


def test_an_archive_without_its_directory_is_one_failure(tmp_path: Path) -> None:
    path = tmp_path / "crawl.wacz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/a.warc.gz", b"".join(records(2)))
        file.writestr("archive/b.warc.gz", record(url=f"{URL}b"))
        file.writestr("pages/pages.jsonl", "{}")
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"PK\1\2")])
    damage, *pages = read(path)
    assert failed(damage, "the zip data is damaged") == (str(path), "unreadable")
    found = [(item.url, item.record) for item in pages if isinstance(item, SourcePage)]
    assert found == [(f"{URL}{name}", n) for n, name in enumerate(("0", "1", "b"), 1)]
    assert len(pages) == 3


def test_an_archive_may_have_other_folders_and_says_what_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "crawl.wacz"

    def archive(name: str, data: bytes, other: str = "datapackage.json") -> list[PageItem]:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name, data)
            file.writestr(other, b"other data")
        return read(path)

    for folder in ("crawl/archive/", "a/b/ARCHIVE/", "warcs/", "", "archive\\"):
        items = archive(f"{folder}a.warc.gz", b"".join(records(3)))
        assert urls(items) == [f"{URL}{n}" for n in range(3)], folder
    (item,) = archive("archive/a.warc.gz", b"")
    assert failed(item, "no records in WARC files of") == (str(path), "unreadable")
    for name in ("archive/b.arc.gz", "archive/b.warc.bz2"):
        *pages, item = archive("archive/a.warc", record(zipped=False), name)
        assert len(urls(pages)) == 1
        assert failed(item, f"not read: 1 file in archive/, such as {name}")[1] == "unreadable"
    for name in ("archive/.DS_Store", "__MACOSX/archive/._a.warc", ".git/archive/b.warc"):
        (page,) = archive("archive/a.warc", record(zipped=False), name)
        assert page.url == URL, name
    # A WARC file with the name of an archive.
    for zipped in (True, False):
        path.write_bytes(b"".join(record(url=f"{URL}{n}", zipped=zipped) for n in range(3)))
        assert urls(read(path)) == [f"{URL}{n}" for n in range(3)]
    # Some programs write the folder, too.
    assert urls(archive("./archive/a.warc", record(zipped=False))) == [URL]


def test_archives_in_an_archive(tmp_path: Path) -> None:
    whole, path = io.BytesIO(), tmp_path / "multi.wacz"
    with zipfile.ZipFile(whole, "w") as file:
        file.writestr("archive/a.warc.gz", b"".join(records(2)))
        file.writestr("deeper.wacz", b"not read")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("1.wacz", whole.getvalue())
        file.writestr("packed.wacz", whole.getvalue(), zipfile.ZIP_DEFLATED)
        file.writestr("cut.wacz", whole.getvalue()[:-30])
        file.writestr("archive/c.warc", record(url=f"{URL}c", zipped=False))
    items = read(path)
    assert urls(items) == [URL + name for name in ("0", "1", "0", "1", "c")]
    assert failed(items.pop(2), "unpack that first") == (f"{path}/1.wacz/deeper.wacz", "unreadable")
    numbers = [item.record for item in items if isinstance(item, SourcePage)]
    assert numbers == sorted({*numbers})
    packed, cut = items[2:4]
    assert failed(packed, "unpack it first") == (f"{path}/packed.wacz", "unreadable")
    assert failed(cut, "the zip data is damaged") == (f"{path}/cut.wacz", "unreadable")


def dictionary(*, is_packed: bool) -> tuple[Any, bytes]:
    samples = [record(url=f"{URL}{number}", zipped=False) for number in range(200)]
    trained = zstd.train_dict(samples, 2000)
    data = trained.dict_content
    data = zstd.compress(data) if is_packed else data
    return trained, struct.pack("<II", 0x184D2A5D, len(data)) + data


def frames(trained: Any = None, count: int = 4) -> list[bytes]:
    plain = [record(url=f"{URL}{number}", zipped=False) for number in range(count)]
    options = {zstd.CompressionParameter.checksum_flag: 1}
    return [zstd.compress(data, zstd_dict=trained, options=options) for data in plain]


@pytest.mark.parametrize("is_packed", [True, False, None])
def test_zstd_with_a_dictionary_and_without(tmp_path: Path, is_packed: bool | None) -> None:
    path = tmp_path / "crawl.warc.zst"
    trained, begin = (None, b"")
    if is_packed is not None:
        trained, begin = dictionary(is_packed=is_packed)
    parts = frames(trained)
    assert urls(read(path, begin, *parts)) == [f"{URL}{number}" for number in range(4)]
    check_damage(path, parts, begin, step=7, most=4)
    *_, end = read(path, begin, b"".join(parts)[:-5])
    assert failed(end, "the zstd data ends early") == (f"{path}#4", "unreadable")


def test_a_dictionary_that_is_missing_or_damaged_and_zstd_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "crawl.warc.zst"
    trained, begin = dictionary(is_packed=False)
    path.write_bytes(frames(trained)[0])
    (item,) = read(path)
    assert failed(item, "Dictionary mismatch") == (f"{path}#1", "unreadable")
    path.write_bytes(begin[:8] + bytes(len(begin) - 8) + frames(trained)[0])
    (item,) = read(path)
    assert failed(item, "dictionary is damaged") == (str(path), "unreadable")
    # Very much data without pages.
    path.write_bytes(frames()[0] + zstd.compress(bytes(16 * 1024 * 1024)) * 512)
    assert failed(read(path)[-1], "the zstd data expands to very much data")
    lines = tmp_path / "a.jsonl.zst"
    packed = zstd.compress(json.dumps({"url": URL, "html": PAGE.html}).encode() + b"\n")
    # Before each frame, pzstd writes one that is skipped.
    for begin in (b"", struct.pack("<III", 0x184D2A50, 4, len(packed))):
        assert read(lines, begin, packed, begin, packed) == [PAGE, PAGE]
    pipe = tmp_path / "pipe.jsonl.zst"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[packed])
    writer.start()
    assert read(pipe) == [PAGE]
    writer.join()


@pytest.mark.parametrize(("module", "name", "data", "fix"), [
    ("pyarrow", "a.parquet", b"PAR1", "pip install -e '.[parquet]'"),
    ("backports.zstd", "a.warc.zst", frames()[0], "pip install -e '.[zstd]'"),
    ("brotli", "a.warc.gz", record(b"\x1b\0", http={"Content-Encoding": "br"}),
     "pip install 'brotli>=1.2'"),
], ids=["pyarrow", "zstd", "brotli"])  # fmt: skip
def test_a_library_that_is_missing_is_named(
    tmp_path: Path, module: str, name: str, data: bytes, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in (module, "compression.zstd"):
        monkeypatch.setitem(sys.modules, known, None)
    (item,) = read(tmp_path / name, data)
    assert failed(item, fix) == (URL if module == "brotli" else f"{tmp_path / name}", "unreadable")


@pytest.mark.long
@pytest.mark.parametrize("name", ["a.parquet", "a.wacz", "a.warc.zst", "a.warc.wet.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    body, many, path = HTML * 60, 2500, tmp_path / name
    if name == "a.wacz":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("archive/a.warc.gz", record(body) * many)
    elif name == "a.parquet":
        # Few distinct cells would be a dictionary, packed ones a small column, and many a page.
        rows = [{"url": f"{URL}{n}", "html": f"{n}{body.decode()}"} for n in range(many)]
        write_rows(path, rows, use_dictionary=False, compression="none", write_batch_size=10)
    elif name == "a.warc.zst":
        path.write_bytes(zstd.compress(record(body, zipped=False)) * many)
    else:
        path.write_bytes(record(body, kind="conversion", mime="text/plain") * many)
    told = python(
        "from pathlib import Path; from pgsimhash.sources import read_pages\n"
        "import pyarrow.parquet, pgsimhash.sources.warc\n"
        # Not of resource, which begins with the peak of the parent.
        "status = Path('/proc/self/status')\n"
        "peak = lambda: int(status.read_text().split('VmHWM:')[1].split()[0]) // 1024\n"
        f"before = peak(); texts = {name.startswith('a.warc.wet')}\n"
        f"print(sum(1 for _ in read_pages([{str(path)!r}], texts=texts)), peak() - before)"
    )
    pages, grown = map(int, told.split())
    assert pages == many
    # Arrow keeps some memory that it does not use.
    assert grown < len(body) * many // 2**20 * (0.75 if name == "a.parquet" else 0.25)


def test_a_folder_has_all_kinds_of_files_but_the_output_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"url": URL, "html": "<p>"}) + "\n")
    (tmp_path / "b.warc.gz").write_bytes(record())
    write_rows(tmp_path / "c.parquet", [{"url": URL, "html": "<p>"}])
    skipped = (
        "from collections import Counter; from pgsimhash.sources import read_pages\n"
        f"count = Counter(); print(len(list(read_pages([{str(tmp_path)!r}], skipped=count))))\n"
        "print(dict(count))"
    )
    output = tmp_path / "d.jsonl"
    with output.open("w") as file:
        subprocess.run([sys.executable, "-c", skipped], stdout=file, check=True)
    assert output.read_text() == "3\n{'own output': 1}\n"


@pytest.mark.parametrize("name", ["a.parquet", "a.wacz", "a.warc.zst"])
def test_no_damage_raises(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        rows = [{"url": f"{URL}{n}", "html": f"<p>{n}", "fetched_at": TIME} for n in range(200)]
        write_rows(path, rows, row_group_size=100)
    elif name == "a.wacz":
        with zipfile.ZipFile(path, "w") as file:
            for member, kind in (("a", zipfile.ZIP_STORED), ("b", zipfile.ZIP_DEFLATED)):
                file.writestr(f"archive/{member}.warc.gz", b"".join(records(2)), kind)
    else:
        trained, begin = dictionary(is_packed=True)
        path.write_bytes(begin + b"".join(frames(trained)))
    data = path.read_bytes()
    rng = random.Random(7)
    for _ in range(300):
        damaged, at = bytearray(data), rng.randrange(len(data))
        damaged[at : at + rng.choice((1, 1, 30))] = rng.randbytes(rng.randrange(30))
        path.write_bytes(damaged)
        assert {type(item) for item in read(path)} <= {SourcePage, PageFailure}


def test_no_flipped_bit_loses_rows_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [{"url": f"{URL}{n}", "html": "<p>"} for n in range(4)]
    write_rows(path, rows, row_group_size=2, write_page_checksum=True)
    data = path.read_bytes()
    for at in range(4, len(data) - 8):
        for bit in (1, 2):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            items = read(path)
            assert len(urls(items)) == 4 or len(items) > len(urls(items)), (at, bit)


GOOD = b'{"url": "https://example.com/good", "html": "<p>good"}'
GOOD_PAGE = SourcePage("https://example.com/good", "<p>good")


def read_lines(data: bytes, max_bytes: int = 10_000) -> list[PageItem]:
    return list(read_pages(["-"], stdin=io.BytesIO(data), max_bytes=max_bytes))


def test_lines_and_rows_have_validators(tmp_path: Path) -> None:
    pairs: list[tuple[Any, Any]] = [
        ('"1"', "Monday"),
        (None, "x" * 600),
        (5, {"a": 1}),
        ("a\nb", ""),
    ]
    kept = [('"1"', "Monday"), *[(None, None)] * 3]
    fields = {"url": "https://example.com/a", "html": "<p>"}
    lines = [{**fields, "etag": etag, "last_modified": modified} for etag, modified in pairs]
    data = "\n".join(map(json.dumps, lines)).encode()
    pages = [page for page in read_lines(data) if isinstance(page, SourcePage)]
    assert [(page.etag, page.last_modified) for page in pages] == kept
    path = tmp_path / "pages.parquet"
    moment = datetime(2024, 5, 6, tzinfo=UTC)
    pq.write_table(pa.table({**{key: [each] for key, each in fields.items()}, "etag": ['"1"'],
                             "last_modified": [moment]}), path)  # fmt: skip
    (page,) = read_pages([path])
    assert isinstance(page, SourcePage)
    assert (page.etag, page.last_modified) == ('"1"', None)


@pytest.mark.parametrize(("kind", "value", "time"), [
    (pa.timestamp("ns"), 1_714_979_289_123_456_789, TIME.replace(microsecond=123_456)),
    (pa.timestamp("ns", "Asia/Tokyo"), 1_714_979_289_123_456_789,
     TIME.replace(microsecond=123_456)),
    (pa.timestamp("s"), 1_714_979_289, TIME), (pa.timestamp("s", "Z"), 1_714_979_289, TIME),
    (pa.date32(), date(2024, 5, 6), datetime(2024, 5, 6, tzinfo=UTC)),
    (pa.string(), "2024-05-06T07:08:09Z", TIME), (pa.int64(), 1_714_979_289, TIME),
    (pa.float64(), 1_714_979_289_000.0, TIME),
    (pa.string(), "Mon, 06 May 2024 07:08:09 GMT", TIME), (pa.string(), "20240506070809", TIME),
    (pa.int64(), 1_714_979_289_000_000_000, TIME), (pa.binary(), b"2024-05-06T07:08:09Z", TIME),
])  # fmt: skip
def test_rows_have_times_of_any_type(tmp_path: Path, kind: Any, value: Any, time: datetime) -> None:
    path = tmp_path / "pages.parquet"
    times = pa.array([value], kind)
    for url in (URL, URL.encode()):
        pq.write_table(pa.table({"url": [url], "html": ["<p>"], "fetched_at": times}), path)
        assert read(path) == [SourcePage(URL, "<p>", fetched_at=time)]


def test_a_line_is_a_page(tmp_path: Path) -> None:
    line = json.dumps({
        "url": "https://example.com/a", "html": "<p>Grüße", "charset": "windows-1252",
        "fetched_at": "2024-05-06T07:08:09+02:00", "anything": ["else", "is", "ignored"],
    })  # fmt: skip
    assert read_lines(line.encode()) == [
        SourcePage(
            "https://example.com/a", "<p>Grüße", "windows-1252",
            datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2))),
        )
    ]  # fmt: skip
    # A time without a zone is UTC.
    times: dict[bytes, datetime | None] = {b'"2024-05-06T07:08:09Z"': TIME}
    times |= {b'"2024-05-06 07:08:09"': TIME, b"null": None}
    for written, time in times.items():
        data = GOOD.replace(b"}", b', "charset": null, "fetched_at": %b}' % written)
        assert read_lines(data) == [replace(GOOD_PAGE, fetched_at=time)]
    # A feed of Scrapy.
    path = tmp_path / "items.jl"
    JsonLinesItemExporter(file := io.BytesIO()).export_item(
        {"url": URL, "html": PAGE.html, "title": "more", "fetched_at": TIME}
    )
    path.write_bytes(file.getvalue())
    assert read(path) == [SourcePage(URL, PAGE.html, fetched_at=TIME)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.NDJSON", "a.jsonl.gz", "a.ndjson.gz"])
@pytest.mark.parametrize("zipped", [True, False])
def test_the_first_bytes_tell_gzip_not_the_name(tmp_path: Path, name: str, zipped: bool) -> None:
    data = GOOD + b"\n" + GOOD
    (tmp_path / name).write_bytes(gzip.compress(data) if zipped else data)
    assert list(read_pages([tmp_path / name])) == [GOOD_PAGE, GOOD_PAGE]


@pytest.mark.parametrize(("line", "reason", "said"), [
    (b"{", "unreadable", "the line is not JSON: Expecting property name"),
    (b"[" * 100_000, "unreadable", "the line is not JSON"),
    (b'["url", "html"]', "unreadable", "the line is not a JSON object"),
    (b'{"html": ""}', "unreadable", '"url" is missing'),
    (b'{"url": "https://a.example"}', "unreadable", '"html" is missing'),
    (b'{"url": 1, "html": ""}', "unreadable", '"url" is not a string'),
    (b'{"url": "https://a.example", "html": null}', "unreadable", '"html" is not a string'),
    (b'{"url": "/page", "html": ""}', "invalid_url", "absolute"),
    (b'{"url": "https://a.example/\\u0000", "html": ""}', "invalid_url", "invisible"),
    (b'{"url": "https://a.example/\\ud800", "html": ""}', "invalid_url", "is not a URL"),
    (b'{"url": "https://a.example", "html": "", "charset": 8}', "unreadable", '"charset" is'),
    (b'{"url": "https://a.example", "html": "", "fetched_at": 8}', "unreadable", "ISO 8601 like"),
    (b'{"url": "https://a.example", "html": "", "fetched_at": "x"}', "unreadable", "a time"),
    (b'{"url": "https://a.example", "html": "\xff"}', "unreadable", "not UTF-8 (byte 39)"),
    (b'{"url": "https://a.example/%b", "html": ""}' % (b"x" * 5_000), "invalid_url", ""),
])  # fmt: skip
def test_a_broken_line_fails_and_the_next_follows(line: bytes, reason: str, said: str) -> None:
    before, broken, after = read_lines(GOOD + b"\n" + line + b"\n" + GOOD, max_bytes=1_000_000)
    assert before == after == GOOD_PAGE
    assert failed(broken, said) == ("stdin#2", reason)


class LongLine(io.BytesIO):
    """A stream that generates the line after its first ones, and records the sizes of reads."""

    left = 10**9
    largest = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0
        self.largest = max(self.largest, size)
        if line := super().readline(size):
            return line
        self.left -= size
        return b"x" * size if self.left > 0 else b""


def test_a_line_over_the_limit_is_never_held_whole() -> None:
    stdin = LongLine(GOOD + b"\n")
    page, long = read_pages(["-"], stdin=stdin, max_bytes=1000)
    assert page == GOOD_PAGE
    detail = "the line is larger than 1,000 bytes (max_bytes)"
    assert long == PageFailure("stdin#2", "too_large", detail)
    assert stdin.largest <= 2**20
    items = read_lines(GOOD + b"\n" + b"x" * 3_000_000 + b"\n" + GOOD, max_bytes=len(GOOD))
    assert [item.url for item in items] == [GOOD_PAGE.url, "stdin#2", GOOD_PAGE.url]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_gzip_data_ends_the_file_with_one_failure(tmp_path: Path, damage: str) -> None:
    good = gzip.compress(GOOD + b"\n")
    rest = good[:-10] if damage == "cut" else good[:-10] + bytes([good[-10] ^ 0xFF]) + good[-9:]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(good + rest)
    page, broken = read_pages([path])
    assert page == GOOD_PAGE
    assert failed(broken, "the lines after line 1 were not read") == (f"{path}#2", "unreadable")
    assert failed(broken, "gzip data")


def test_empty_lines_count_as_lines_and_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert read_lines(b"\xef\xbb\xbf" + GOOD + b"\r\n\n  \n" + GOOD) == [GOOD_PAGE, GOOD_PAGE]
    path = tmp_path / "pages.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n \r\n" * 20_000 + b"\t" + GOOD + b"\n\n\nx\n" + GOOD))
    first, broken, last = read(path)
    assert first == last == GOOD_PAGE
    assert failed(broken) == (f"{path}#40004", "unreadable")


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the data read from packed files, which may be 16 MB before they are checked."""
    sizes: list[int] = []
    read_into = streams._Members.readinto

    def counted(members: streams._Members, buffer: Any) -> int:
        sizes.append(read_into(members, buffer))
        return sizes[-1]

    monkeypatch.setattr(streams._Members, "readinto", counted)
    monkeypatch.setattr(streams, "_DATA_MAX", 10 * MEGABYTES_16)
    return sizes


MEGABYTES_16 = 16 * 1024 * 1024
BOMB = gzip.compress(b"x" * MEGABYTES_16)


def test_a_bomb_with_many_names_is_read_once(tmp_path: Path, inflated: list[int]) -> None:
    path = tmp_path / "crawl.wacz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/a.warc.gz", records(1)[0] + BOMB)
        first = file.getinfo("archive/a.warc.gz")
        for number in range(2000):
            again = copy.copy(first)
            again.filename = again.orig_filename = f"archive/{number}.warc.gz"
            again.header_offset += number % 2
            file.filelist.append(again)
        file.writestr("archive/b.warc.gz", records(1)[0])
    refused, page, bomb, rest = read(path)
    assert failed(refused, "2,000 entries overlap others") == (str(path), "unreadable")
    assert urls([page]) == [f"{URL}0"]
    for end in (bomb, rest):
        assert failed(end, "the gzip data expands to very much data")
    assert sum(inflated) < 2 * MEGABYTES_16


def test_many_bombs_of_an_archive_have_one_budget(tmp_path: Path, inflated: list[int]) -> None:
    path = tmp_path / "crawl.wacz"
    with zipfile.ZipFile(path, "w") as nested:
        for number in range(50):
            nested.writestr(f"archive/{number}.warc.gz", BOMB)
    bombs = path.read_bytes()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("nested.wacz", bombs)
        for number in range(50):
            file.writestr(f"archive/{number}.warc.gz", BOMB)
    items = read(path)
    assert len(items) == 100
    assert sum(inflated) < 2 * MEGABYTES_16 + 100 * path.stat().st_size
    assert failed(items[-1], "the gzip data expands to very much data")


def test_pages_packed_twice_have_a_budget(tmp_path: Path, inflated: list[int]) -> None:
    path = tmp_path / "crawl.wacz"
    page = record(b"<p>" + b"many words " * 90_000, zipped=False)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/a.warc.gz", gzip.compress(page, mtime=0) * 2000)
        file.writestr("archive/b.warc.gz", b"".join(records(3)))
    *pages, end, after = read(path)
    for damage in (end, after):
        assert failed(damage, "the gzip data expands to very much data")
    assert 100 < len(urls(pages)) == len(pages) < 1000
    # One time packed, the same pages are read.
    path = tmp_path / "crawl.warc.gz"
    path.write_bytes(gzip.compress(page, mtime=0) * 200)
    assert len(urls(read(path))) == 200
