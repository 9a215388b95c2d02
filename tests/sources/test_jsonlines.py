import gzip
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from pgsimhash.pages.records import PageFailure
from pgsimhash.sources import SourcePage, read_pages

GOOD = b'{"url": "https://example.com/good", "html": "<p>good"}'
PAGE = SourcePage("https://example.com/good", "<p>good")


def read(data: bytes, max_bytes: int = 10_000) -> list[SourcePage | PageFailure]:
    return list(read_pages(["-"], stdin=io.BytesIO(data), max_bytes=max_bytes))


def test_a_line_is_a_page() -> None:
    line = json.dumps({
        "url": "https://example.com/a", "html": "<p>Grüße", "charset": "windows-1252",
        "fetched_at": "2024-05-06T07:08:09+02:00", "anything": ["else", "is", "ignored"],
    })  # fmt: skip
    assert read(line.encode()) == [
        SourcePage(
            "https://example.com/a", "<p>Grüße", "windows-1252",
            datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2))),
        )
    ]  # fmt: skip


@pytest.mark.parametrize(("time", "fetched_at"), [
    (b'"2024-05-06T07:08:09Z"', datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
    (b'"2024-05-06 07:08:09"', datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)), (b"null", None),
])  # fmt: skip
def test_a_time_without_a_zone_is_utc(time: bytes, fetched_at: datetime | None) -> None:
    line = GOOD.replace(b"}", b', "charset": null, "fetched_at": %b}' % time)
    assert read(line) == [replace(PAGE, fetched_at=fetched_at)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.NDJSON", "a.jsonl.gz", "a.ndjson.gz"])
@pytest.mark.parametrize("zipped", [True, False])
def test_the_first_bytes_tell_gzip_not_the_name(tmp_path: Path, name: str, zipped: bool) -> None:
    data = GOOD + b"\n" + GOOD
    (tmp_path / name).write_bytes(gzip.compress(data) if zipped else data)
    assert list(read_pages([tmp_path / name])) == [PAGE, PAGE]


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
    (b'{"url": "https://a.example", "html": "", "fetched_at": 8}', "unreadable", "string"),
    (b'{"url": "https://a.example", "html": "", "fetched_at": "x"}', "unreadable", "ISO-8601"),
    (b'{"url": "https://a.example", "html": "\xff"}', "unreadable", "not UTF-8 (byte 39)"),
    (b'{"url": "https://a.example/%b", "html": ""}' % (b"x" * 5_000), "invalid_url", ""),
])  # fmt: skip
def test_a_broken_line_is_a_failure_and_the_next_follows(
    line: bytes, reason: str, said: str
) -> None:
    before, broken, after = read(GOOD + b"\n" + line + b"\n" + GOOD, max_bytes=1_000_000)
    assert before == after == PAGE
    assert isinstance(broken, PageFailure)
    assert (broken.url, broken.reason) == ("stdin#2", reason)
    assert said in broken.detail
    assert "\n" not in broken.detail
    assert len(broken.detail) < 200


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
    assert page == PAGE
    detail = "the line is larger than 1,000 bytes (max_bytes)"
    assert long == PageFailure("stdin#2", "too_large", detail)
    assert stdin.largest <= 2**20
    items = read(GOOD + b"\n" + b"x" * 3_000_000 + b"\n" + GOOD, max_bytes=len(GOOD))
    assert [item.url for item in items] == [PAGE.url, "stdin#2", PAGE.url]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_gzip_data_ends_the_file_with_one_failure(tmp_path: Path, damage: str) -> None:
    good = gzip.compress(GOOD + b"\n")
    rest = good[:-10] if damage == "cut" else good[:-10] + bytes([good[-10] ^ 0xFF]) + good[-9:]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(good + rest)
    page, broken = read_pages([path])
    assert page == PAGE
    assert isinstance(broken, PageFailure)
    assert (broken.url, broken.reason) == (f"{path}#2", "unreadable")
    assert "gzip data" in broken.detail
    assert "the lines after line 1 were not read" in broken.detail


def test_empty_lines_count_as_lines_and_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert read(b"\xef\xbb\xbf" + GOOD + b"\r\n\n  \n" + GOOD) == [PAGE, PAGE]
    path = tmp_path / "pages.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n \r\n" * 20_000 + b"\t" + GOOD + b"\n\n\nx\n" + GOOD))
    assert [item.url for item in read_pages([path])] == [PAGE.url, f"{path}#40004", PAGE.url]
