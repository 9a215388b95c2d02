"""Records of archives, and what is read from files."""

import gzip
import sys
from pathlib import Path
from typing import Any

from pgsimhash.pages.records import PageFailure, PageItem
from pgsimhash.sources import SourcePage, read_pages

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

HTML = b"<!doctype html><title>t</title><p>" + b"many words make a page " * 40


def record(
    body: bytes = HTML,
    *,
    url: str = "https://example.com/",
    kind: str = "response",
    status: str = "200 OK",
    mime: str = "text/html; charset=ISO-8859-1",
    http: dict[str, str] | None = None,
    warc: dict[str, str] | None = None,
    zipped: bool = True,
) -> bytes:
    """Return one record with the headers that crawlers write."""
    if kind in ("response", "revisit"):
        headers = {"Content-Type": mime, **(http or {})}
        body = f"HTTP/1.1 {status}\r\n{lines(headers)}\r\n".encode() + body
        mime = f"application/http; msgtype={kind}"
    headers = {
        "WARC-Type": kind,
        "WARC-Record-ID": "<urn:uuid:12345678-1234-5678-1234-567812345678>",
        "WARC-Target-URI": url,
        "WARC-Date": "2024-05-06T07:08:09Z",
        "Content-Type": mime,
        "Content-Length": str(len(body)),
        **(warc or {}),
    }
    data = f"WARC/1.1\r\n{lines(headers)}\r\n".encode() + body + b"\r\n\r\n"
    return gzip.compress(data, mtime=0) if zipped else data


def lines(headers: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)


def read(path: Path, *parts: bytes, **options: Any) -> list[PageItem]:
    """Return the pages and failures of a file, which is written first if there are parts."""
    if parts:
        path.write_bytes(b"".join(parts))
    return list(read_pages([path], **options))


def urls(items: list[PageItem]) -> list[str]:
    return [item.url for item in items if isinstance(item, SourcePage)]


def failed(item: PageItem, detail: str = "") -> tuple[str, str]:
    assert isinstance(item, PageFailure)
    assert detail in item.detail
    assert "\n" not in item.detail
    assert len(item.detail) < 300
    return item.url, item.reason


def check_damage(
    path: Path, records: list[bytes], begin: bytes = b"", step: int = 1, most: int | None = None
) -> None:
    """Damage at each place of the second record costs that one; ``most`` is the number of items."""
    expected = urls(read(path, begin, *records))
    first, second, *others = records
    for at in range(0, len(second), step):
        changed = second[:at] + bytes([second[at] ^ 0x55]) + second[at + 1 :]
        for damaged in (changed, second[:at]):
            items = read(path, begin, first, damaged, *others)
            assert urls(items) in (expected, expected[:1] + expected[2:]), at
            assert len(items) - len(urls(items)) <= 1, at
            assert most is None or len(items) <= most, at
