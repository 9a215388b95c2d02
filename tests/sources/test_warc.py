import base64
import gzip
import hashlib
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pgsimhash.pages.records import PageRecord, PageStatus
from pgsimhash.reading.workers import extract
from pgsimhash.sources import SourcePage, bodies, read_pages, streams
from pgsimhash.sources.streams import Stream
from tests.sources.content import HTML, ZSTD, check_damage, failed, read, record, urls


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crawl.warc.gz"


def one(path: Path, data: bytes) -> SourcePage:
    (item,) = read(path, data)
    assert isinstance(item, SourcePage), item
    return item


@pytest.mark.parametrize("zipped", [True, False])
def test_a_response_is_a_page(path: Path, zipped: bool) -> None:
    many = {"mime": "text/html; charset=ISO-8859-1" + ";a" * 30_000}
    for data in (record(zipped=zipped), record(zipped=zipped, **many)):  # type: ignore[arg-type]
        assert one(path, data) == SourcePage(
            "https://example.com/", HTML, "iso-8859-1", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
        )
    # Several records in a single gzip member.
    assert len(read(path, gzip.compress(record(zipped=False) * 3))) == 3


@pytest.mark.parametrize("headers", [
    {"kind": "resource", "mime": "text/html"}, {"mime": "application/xhtml+xml"},
    {"mime": "", "warc": {"WARC-Identified-Payload-Type": "text/html"}}, {"mime": ""},
    {"mime": "application/vnd.wap.xhtml+xml"}, {"mime": "text/plain\r\nContent-Type: text/html"},
    {"kind": "resource", "mime": "", "warc": {"WARC-Identified-Payload-Type": "text/html"}},
    {"status": "100 Continue\r\n\r\nHTTP/1.1 200 OK"},
    {"status": "200 Connection established\r\n\r\nHTTP/1.1 203 OK"},
    {"status": "201 Created"}, {"status": "203 Non-Authoritative Information"}, {"status": "299 x"},
    # Without an HTTP header.
    {"kind": "resource", "warc": {"WARC-Type": "response"}},
])  # fmt: skip
def test_other_records_of_pages(path: Path, headers: dict[str, Any]) -> None:
    page = one(path, record(**{"mime": "text/html", **headers}))
    assert (page.url, page.html, page.charset) == ("https://example.com/", HTML, None)


@pytest.mark.parametrize("body", [b"<div class=a>a", b"\n<P>a", b"<!-- a --> <title>a</title>"])
def test_a_page_without_a_type_begins_like_one(path: Path, body: bytes) -> None:
    assert one(path, record(body, mime="")).html == body
    assert read(path, record(b"<point>" + body, mime="")) == []


STATUS, NO_HTML = "responses by their status", "records that are not HTML"
OTHERS, NO_GET = "records of other kinds", "answers to other requests than GET"
PROFILES = SAME, _, _ = [
    f"http://netpreserve.org/warc/1.{version}/revisit/{profile}"
    for version, profile in (
        (0, "identical-payload-digest"), (1, "server-not-modified"),
        (0, "uri-agnostic-identical-payload-digest"),
    )
]  # fmt: skip
ORIGINAL = "WARC-Refers-To-Target-URI"
TEXTS = "texts, which need a scheme for texts: pgsimhash-text-1 or pgsimhash-short-1"


@pytest.mark.parametrize(("other", "kind"), [
    ({"status": "403 Forbidden"}, STATUS), ({"status": "301 Moved Permanently"}, STATUS),
    ({"status": "206 Partial Content"}, STATUS), ({"mime": "image/png"}, NO_HTML),
    ({"kind": "resource", "warc": {"WARC-Type": "response"}, "body": b"a b"},
     "responses without an HTTP header"),
    ({"mime": "", "body": b"<?xml version='1.0'?><rss><title>t</title></rss>"}, NO_HTML),
    ({"mime": "", "body": b"<svg><title>t</title></svg>"}, NO_HTML),
    ({"mime": "", "body": b"body { color: red }"}, NO_HTML),
    ({"mime": "", "body": b"<html>" + bytes(200_000)}, NO_HTML),
    ({"mime": "text/html\r\nContent-Type: text/plain"}, NO_HTML),
    ({"mime": "", "body": b"", "http": {"Content-Encoding": "gzip"}}, NO_HTML),
    ({"kind": "resource", "mime": "text/css"}, NO_HTML), ({"kind": "revisit"}, "revisits"),
    ({"kind": "resource", "mime": "text/plain", "body": b""}, NO_HTML),
    ({"kind": "conversion", "mime": "text/plain"}, TEXTS), ({"url": "dns:example.com"}, OTHERS),
    ({"kind": "revisit", "warc": {"WARC-Profile": "https://example.com/own"}}, "revisits"),
    ({"kind": "revisit", "warc": {"WARC-Profile": SAME}, "mime": "image/png"}, NO_HTML),
    ({"kind": "revisit", "warc": {"WARC-Profile": SAME}, "status": "302 Found"}, STATUS),
    ({"kind": "revisit", "warc": {"WARC-Profile": SAME, ORIGINAL: "https://example.com/2"}},
     "revisits of other URLs"),
    ({"status": "404 Not Found", "url": "https://example.com/" + "x" * 3000}, NO_HTML),
    # These are no pages that somebody could miss.
    ({"kind": "metadata", "mime": "text/html"}, None),
    ({"kind": "request", "mime": "application/http"}, None),
    ({"kind": "warcinfo", "url": "", "mime": "application/warc-fields"}, None),
])  # fmt: skip
def test_other_records_are_skipped_and_counted(path: Path, other: Any, kind: str | None) -> None:
    path.write_bytes(record(**other) + record(url="https://example.com/page"))
    skipped = Counter[str]()
    (page,) = read_pages([path], skipped=skipped, max_bytes=100_000)
    assert page.url == "https://example.com/page"
    assert skipped == ({kind: 1} if kind else {})


@pytest.mark.parametrize(("other", "is_gone"), [
    ({"status": "404 Not Found"}, True), ({"status": "410 Gone", "mime": ""}, True),
    ({"status": "404 Not Found", "body": bytes(10**6)}, True),
    ({"status": "304 Not Modified", "mime": "", "body": b""}, False),
    *(({"kind": "revisit", "warc": {"WARC-Profile": profile}, **more}, is_gone)
      for profile in PROFILES for more, is_gone in (
        ({"body": b""}, False), ({"body": b"", "mime": ""}, False),
        ({"status": "304 Not Modified"}, False), ({"status": "404 Not Found"}, True),
        ({"warc": {"WARC-Profile": profile, ORIGINAL: "<https://example.com/>"}}, False),
        # Pages that are gone have one body at all URLs.
        ({"warc": {"WARC-Profile": profile, ORIGINAL: "https://example.com/2"},
          "status": "404 Not Found"}, True),
    )),
])  # fmt: skip
@pytest.mark.parametrize("zipped", [True, False])
def test_answers_without_a_page(path: Path, other: Any, is_gone: bool, zipped: bool) -> None:
    http = {"ETag": '"1"', "Last-Modified": "Monday"}
    path.write_bytes(record(http=http, zipped=zipped, **other) + record(zipped=zipped))
    skipped = Counter[str]()
    status, page = read_pages([path], skipped=skipped, max_bytes=100_000)
    moment = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert status == PageStatus("https://example.com/", is_gone, moment, '"1"', "Monday")
    assert isinstance(status, PageStatus)
    assert isinstance(page, SourcePage)
    assert (status.record, page.record, skipped) == (1, 2, {})
    assert list(read_pages([path], texts=True)) == []


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("names", ["request", "answer"])
@pytest.mark.parametrize("request_first", [True, False])
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_an_answer_to_another_method_is_no_version_of_the_page(
    path: Path, method: str, request_first: bool, names: str, zipped: bool
) -> None:
    """The request names its answer, or the answer its request."""
    ids = {"request": "<urn:a>", "answer": "<urn:b>"}
    concurrent = {"WARC-Concurrent-To": ids["answer" if names == "request" else "request"]}
    warc = {
        own: {"WARC-Record-ID": ids[own], **(concurrent if own == names else {})} for own in ids
    }
    asked = record(
        f"{method} / HTTP/1.1\r\n\r\na=1".encode(), kind="request", warc=warc["request"],
        mime="application/http", zipped=zipped,
    )  # fmt: skip
    skipped = Counter[str]()
    answers: list[dict[str, Any]] = [{}, {"status": "404 Not Found"}, {"mime": "image/png"}]
    for other, end in itertools.product(answers, (b"", record(zipped=zipped))):
        answer = record(warc=warc["answer"], zipped=zipped, **other)
        both = [asked, answer] if request_first else [answer, asked]
        path.write_bytes(b"".join([record(zipped=zipped), *both, end]))
        found = [item.record for item in read_pages([path], skipped=skipped)]
        is_read = method == "GET" and other != answers[-1]
        assert found == [1, *[2 + request_first] * is_read, *[4] * (end != b"")]
    assert skipped == {NO_HTML: 2} | ({} if method == "GET" else {NO_GET: 4})
    # It is not the request of another page.
    assert len(read(path, asked, record(zipped=zipped), asked)) == 1


def test_a_revisit_may_have_no_block(path: Path) -> None:
    plain = record(kind="revisit", warc={"WARC-Profile": SAME}, zipped=False)
    header = plain.partition(b"\r\n\r\n")[0]
    header = re.sub(rb"Content-Length: \d+", b"Content-Length: 0", header)
    path.write_bytes(header + b"\r\n\r\n\r\n\r\n" + record(zipped=False))
    status, page = read_pages([path])
    assert isinstance(status, PageStatus)
    assert (status.is_gone, status.etag, page.record) == (False, None, 2)


def test_a_page_has_its_validators_unless_it_is_truncated(path: Path) -> None:
    http = {"ETag": '"1"', "Last-Modified": "Monday"}
    page = one(path, record(http=http))
    assert (page.etag, page.last_modified, page.truncated) == ('"1"', "Monday", None)
    for text, reason in (("length", "length"), ("Time", "time"), ("own", "unspecified")):
        page = one(path, record(http=http, warc={"WARC-Truncated": text}))
        assert (page.etag, page.last_modified, page.truncated) == (None, None, reason)


def test_the_header_for_search_engines_is_read(path: Path) -> None:
    for robots, says in (("noindex, nofollow", True), ("otherbot: noindex", False)):
        assert one(path, record(http={"x-robots-tag": robots})).noindex == says
    # It counts as the tag in the page does.
    html = f"<meta name=robots content=noindex><p>{'words of a page ' * 20}"
    for page in (SourcePage("https://a.example/", html), one(path, record())):
        found = extract(replace(page, noindex=not isinstance(page.html, str)))
        assert isinstance(found, PageRecord)
        assert found.noindex


@pytest.mark.parametrize(("text", "first_moment"), [
    ("", None), ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
    ("2026-02", datetime(2026, 2, 1, tzinfo=UTC)), ("2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
    ("2026-02-03T04:05Z", datetime(2026, 2, 3, 4, 5, tzinfo=UTC)),
    ("2026-02-03T04:05:06.123456789Z", datetime(2026, 2, 3, 4, 5, 6, 123456, UTC)),
    ("20260203040506", datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)),
])  # fmt: skip
def test_a_date_may_say_less(path: Path, text: str, first_moment: datetime | None) -> None:
    assert one(path, record(warc={"WARC-Date": text})).fetched_at == first_moment


@pytest.mark.parametrize("text", ["yesterday", "2026-13", "20261301000000", "202602"])
def test_a_date_that_cannot_be_read_loses_no_page(path: Path, text: str) -> None:
    assert one(path, record(warc={"WARC-Date": text})).fetched_at is None
    sent = record(warc={"WARC-Date": text}, http={"Date": "Mon, 06 Mar 2017 04:02:06 GMT"})
    assert one(path, sent).fetched_at == datetime(2017, 3, 6, 4, 2, 6, tzinfo=UTC)


@pytest.mark.parametrize(("text", "time"), [
    ("2008-10-294T05:21:46-0700", datetime(2008, 10, 20, 12, 21, 46, tzinfo=UTC)),
    ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("2024-060", datetime(2024, 2, 29, tzinfo=UTC)),
    ("2017-03-06T04:02:06.1234567+02:00", datetime(2017, 3, 6, 2, 2, 6, 123456, tzinfo=UTC)),
    *((text, datetime(2017, 3, 6, 4, 2, 6, tzinfo=UTC)) for text in (
        "Mon, 06 Mar 2017 04:02:06 GMT", "Monday, 06-Mar-17 04:02:06 GMT",
        "Mon Mar  6 04:02:06 2017", "2017-03-06t04:02:06z", "2017-03-06 04:02:06 UTC",
        "2017-03-06T04:02:06GMT", "2017-03-06T04:02:06+00:00Z", "2017-03-06T04:02:06Z[UTC]",
        "<2017-03-06T04:02:06Z>", "'2017-03-06T04:02:06Z'", "2017-3-6T4:2:6Z",
        "2017/3/06 04:02:06", "2017-W10-1T04:02:06", "20170306040206123", "1488772926",
        "1488772926000", "1488772926000000", "1488772926000000000",
        "2017-03-06T05:02:06+01:00[Europe/Berlin]", "2017-03-06 04:02:06 +0000 UTC m=+0.012",
    )),
])  # fmt: skip
def test_dates_in_other_forms(path: Path, text: str, time: datetime) -> None:
    assert one(path, record(warc={"WARC-Date": text})).fetched_at == time


def test_urls_as_some_crawlers_write_them(path: Path) -> None:
    plain = record(url="https://example.com/a b", zipped=False)
    wrapped = plain.replace(b"https://example.com/a b", b"<https://example.com/a b>")
    assert one(path, wrapped).url == "https://example.com/a%20b"


CHUNKED = {"Transfer-Encoding": "chunked"}


def encoded(encoding: str, body: bytes) -> dict[str, Any]:
    return {"body": body, "http": {"Content-Encoding": encoding}}


def chunked(body: bytes) -> bytes:
    parts = [body[at : at + 100] for at in range(0, len(body), 100)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def gzipped(data: bytes) -> bytes:
    """The same in each process, because the names of the tests have it."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(("encoding", "body"), [
    ("gzip", gzipped(HTML)), ("X-GZIP", gzipped(HTML)), ("identity", HTML),
    ("deflate", zlib.compress(HTML)), ("deflate", bare_deflate(HTML)),  # as some servers have it
    ("gzip", HTML), ("zstd", HTML),  # headers that outlived their encodings
], ids=str)  # fmt: skip
@pytest.mark.parametrize("cut_up", [True, False])
def test_content_encodings_are_undone(path: Path, encoding: str, body: bytes, cut_up: bool) -> None:
    http = {"Content-Encoding": encoding, **(CHUNKED if cut_up else {})}
    body = chunked(body) if cut_up else body
    assert one(path, record(body, http=http)).html == HTML
    # Without a type, a packed body that begins like HTML is a page.
    if encoding != "zstd":
        assert one(path, record(body, mime="", http=http)).html == HTML


@pytest.mark.parametrize(("body", "html"), [
    (HTML, HTML), (chunked(HTML)[:-2] + b"X-Sum: 12345\r\n\r\n", HTML),
    (chunked(HTML)[:-50], HTML[:-43]), (b"5;a=b\r\n<p>ab\r\n0\r\n", b"<p>ab"),
    (b"5\r\n<p>ab\r\n<p>no chunk", b"<p>ab<p>no chunk"),
    (b"%016x\r\n<p>ab\r\n0\r\n" % 5, b"<p>ab"),
    (b"add\r\n" + HTML * 9, b"add\r\n" + HTML * 9),
], ids=["no chunks", "trailer", "cut", "extension", "no chunk", "zeros", "no size"])  # fmt: skip
def test_damaged_chunks_keep_their_content(path: Path, body: bytes, html: bytes) -> None:
    page = one(path, record(body, http=CHUNKED))
    is_cut = body == chunked(HTML)[:-50]
    assert (page.html, page.truncated) == (html, "unspecified" if is_cut else None)


@pytest.mark.parametrize(("encoding", "library"), [("zstd", [ZSTD]), ("br", ["brotli", "1.2"])])
def test_encodings_of_libraries_are_undone(path: Path, encoding: str, library: list[str]) -> None:
    compress = pytest.importorskip(*library).compress
    body = compress(HTML)
    assert one(path, record(**encoded(encoding, body))).html == HTML
    damaged = (body[:4], body[:8] + b"x" * 20, compress(bytes(10**7)))
    records = [record(**encoded(encoding, body)) for body in damaged]
    items = read(path, *records, max_bytes=100_000)
    assert [failed(item)[1] for item in items] == ["unreadable", "unreadable", "too_large"]
    # Bytes behind it, and another name.
    for name, sent in (
        (encoding, body + b"\0more"),
        ("gzip", body),
        ("deflate, gzip", gzipped(body)),
    ):
        assert one(path, record(**encoded(name, sent))).html == HTML
    large = bytes(range(256)) * 99 + HTML
    assert one(path, record(**encoded(encoding, compress(large) + b" " * 5000))).html == large


@pytest.mark.parametrize("encoding_and_body", [
    ("gzip", gzipped(HTML[:90]) + gzipped(HTML[90:])), ("gzip", gzipped(HTML) + b"\0trailing"),
    ("gzip", gzipped(HTML[:90]) + bytes(9) + gzipped(HTML[90:])),
    ("gzip", gzipped(HTML)[:-8]), ("x-gzip", gzipped(HTML)[:-3]),
    ("gzip", gzipped(HTML)[:-8] + b"not sums"), ("deflate", zlib.compress(HTML)[:-4] + b"sums"),
    ("deflate", zlib.compress(HTML)[:-4]), ("deflate", zlib.compress(HTML) + b"\0\0"),
    ("gzip", gzipped(gzipped(HTML))), ("gzip", gzipped(HTML) + b"\x1f\x8b\x08\xff and more"),
    ("gzip, identity", gzipped(HTML)),
    ("identity, GZIP", gzipped(HTML)), ("none", HTML),
    ("gzip, gzip", gzipped(gzipped(HTML))), ("br", HTML), ("lzw", HTML),
    *((name, gzipped(HTML)) for name in ("br", "utf-8", "gzip;q=1.0", "deflate", "gzip, lzw")),
    ("identity", gzipped(HTML)), ("", gzipped(HTML)), ("gzip, gzip", gzipped(HTML)),
    ("gzip", zlib.compress(HTML)), ("x-gzip", bare_deflate(HTML)),
    ("deflate\r\nContent-Encoding: gzip", gzipped(zlib.compress(HTML))),
    ("deflate\r\nTransfer-Encoding: gzip, chunked", chunked(gzipped(zlib.compress(HTML)))),
])  # fmt: skip
def test_bodies_that_are_not_quite_right_are_read(
    path: Path, encoding_and_body: tuple[str, bytes]
) -> None:
    assert one(path, record(**encoded(*encoding_and_body))).html == HTML


def test_a_page_that_begins_with_text_may_have_an_outlived_header(path: Path) -> None:
    page = b"Notice: a variable is missing on line 3\n" + HTML
    assert one(path, record(**encoded("gzip", page))).html == page


@pytest.mark.parametrize(("encoding", "pack"), [
    ("gzip", gzipped), ("deflate", zlib.compress), ("deflate", bare_deflate),
    ("gzip, gzip", lambda body: gzipped(gzipped(body))),
])  # fmt: skip
def test_of_a_cut_body_the_begin_is_read(
    path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    whole = b"<p>" + b" ".join(b"%d" % (n * n) for n in range(9000))
    body = pack(whole)
    http = {"Content-Encoding": encoding, "ETag": '"1"'}
    page = one(path, record(body[: len(body) // 2], http=http))
    assert isinstance(page.html, bytes)
    assert whole.startswith(page.html)
    assert len(page.html) > len(whole) // 4
    # With the validators of a part, the rest would never be fetched.
    assert (page.truncated, page.etag) == ("unspecified", None)


def test_a_body_of_many_members_is_not_copied_for_each(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    class Decoder:
        def __init__(self) -> None:
            self._decoder = streams.GZIP.decoder()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._decoder, name)

        def decompress(self, data: bytes, room: int) -> bytes:
            given.append(len(data))
            return bytes(self._decoder.decompress(data, room))

    monkeypatch.setattr(bodies, "GZIP", streams.GZIP._replace(decoder=Decoder))
    members = 5000
    body = gzipped(HTML) + gzipped(b" ") * members
    assert one(path, record(**encoded("gzip", body))).html == HTML + b" " * members
    assert sum(given) < 5000 * (members + 2)


@pytest.mark.parametrize(("mime", "charset"), [
    ("text/html charset=utf-8", "utf-8"), ("text/html,text/html;charset=utf-8", "utf-8"),
    ("text/html, charset=utf-8", "utf-8"), ("TEXT/HTML;Charset=UTF-8", "utf-8"),
    ("application/xhtml+xml ;charset=utf-8", "utf-8"), ("text/html utf-8", None),
    *((name, None) for name in ("unknown/unknown", "*/*", "text/xml", "html", '"text/html"')),
    *((name, None) for name in ("text/html/xml", "content-type: text/html", "/")),
])  # fmt: skip
def test_types_that_are_not_quite_right(path: Path, mime: str, charset: str | None) -> None:
    assert one(path, record(mime=mime)).charset == charset
    identified = {"WARC-Identified-Payload-Type": "text/html"}
    assert one(path, record(mime="application/octet-stream", warc=identified)).html == HTML


@pytest.mark.parametrize(("broken", "reason"), [
    (encoded("gzip", gzipped(HTML)[:9]), "unreadable"),
    (encoded("gzip", b"\x1f\x8bnonsense"), "unreadable"),
    (encoded("deflate", zlib.compress(HTML)[:2]), "unreadable"),
    (encoded("zstd", b"\x28\xb5\x2f\xfd"), "unreadable"),
    (encoded("gzip, lzw", b"nonsense"), "unreadable"),
    (encoded(", ".join(["identity"] * 6), HTML), "unreadable"),
    (encoded("gzip", gzipped(bytes(10**8))), "too_large"),
    ({"body": b"<p>" + bytes(10**7)}, "too_large"),
    ({"warc": {"WARC-Segment-Number": "1"}}, "unreadable"),
    ({"http": {"X-Long": "x" * 100_000}}, "unreadable"),
])  # fmt: skip
def test_a_broken_page_is_a_failure(path: Path, broken: dict[str, Any], reason: str) -> None:
    failure, page = read(path, record(url="https://example.com/broken", **broken), record())
    assert failed(failure) == ("https://example.com/broken", reason)
    assert isinstance(page, SourcePage)


def test_no_more_is_read_at_once_than_allowed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Counting(Stream):
        def read(self, size: int) -> bytes:
            asked.append(size)
            return super().read(size)

    monkeypatch.setattr(streams, "Stream", Counting)
    # A large record that is not a page is no failure.
    large = record(bytes(10**7), mime="video/mp4") + record(bytes(10**7))
    assert len(read(path, large, max_bytes=1000)) == 1
    assert max(asked) <= 2**20


@pytest.mark.parametrize("url", ["no-url", "https://"])
def test_a_page_without_a_url_is_named_by_its_number(path: Path, url: str) -> None:
    (item,) = read(path, record(url=url, kind="resource", mime="text/html"))
    assert failed(item) == (f"{path}#1", "invalid_url")
    # A response always has one, unless its header was damaged.
    (item,) = read(path, record(url=""))
    assert failed(item) == (f"{path}#1", "invalid_url")


@pytest.mark.parametrize("zipped", [True, False])
def test_truncation_anywhere_is_reported(path: Path, zipped: bool) -> None:
    records = [record(b"<p>", url=f"https://a.example/{n}", zipped=zipped) for n in range(3)]
    ends = [len(b"".join(records[:n])) for n in range(4)]
    data = b"".join(records)
    pages = read(path, data)
    # Only here is the page complete, or are only the empty lines after it missing.
    harmless = {end - missing for end in ends for missing in range(1 if zipped else 5)}
    for cut in range(len(data)):
        items = read(path, data[:cut])
        found = [item for item in items if isinstance(item, SourcePage)]
        assert found == pages[: len(found)]
        assert len(found) >= sum(end <= cut for end in ends[1:])
        failures = [failed(item) for item in items[len(found) :]]
        expected = [] if cut in harmless else [(f"{path}#{len(found) + 1}", "unreadable")]
        assert failures == expected, cut


def test_a_page_whose_checksum_is_wrong_is_not_yielded(path: Path) -> None:
    changed = bytearray(record())
    changed[-6] ^= 0xFF
    page, broken, after = read(path, record(), bytes(changed), record())
    assert isinstance(page, SourcePage)
    assert isinstance(after, SourcePage)
    assert (page.record, after.record) == (1, 3)
    size = len(changed)
    skipped = f"; skipped from byte {size:,} of the file to the next record at {2 * size:,}"
    assert failed(broken, f"incorrect data check){skipped}") == (f"{path}#2", "unreadable")
    (end,) = read(path, bytes(changed))
    assert failed(end, "record 1 and all after it were not read")


@pytest.mark.parametrize("chunk", [1, 100, 16 * 1024])
def test_damage_costs_one_record(path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"_INPUT": chunk, "_STEP": 300, "_LOOK": 250}.items():
        monkeypatch.setattr(streams, name, size)
    check_damage(path, [record(url=f"https://a.example/{n}") for n in range(4)])


@pytest.mark.parametrize("nested", [b"\x1f\x8b\x08", gzip.compress(b"<p>no record", mtime=0)[:15]])
def test_other_gzip_headers(path: Path, nested: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_LOOKS_MAX", 1000)
    page, broken, again = read(path, record(), nested * 900, record())
    assert isinstance(page, SourcePage)
    assert isinstance(again, SourcePage)
    assert (page.record, again.record) == (1, 3)
    assert failed(broken) == (f"{path}#2", "unreadable")
    _, end = read(path, record(), nested * 1001, record())
    assert failed(end, "record 2 and all after it were not read")


def test_only_so_much_is_read_after_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = bytearray(record())
    changed[-6] ^= 0xFF
    archive = bytes(changed) * 3 + record()
    assert len(read(path, archive)) == 4
    # The first piece that was read has all of the file, so each resumption reads the rest again.
    monkeypatch.setattr(streams, "_AGAIN_MAX", len(archive))
    *_, end = read(path, archive)
    assert failed(end, "all after it were not read")


@pytest.mark.parametrize(("garbage", "zipped"), [
    (b"garbage", True), (b"garbage", False), (b"garbage\r\n", False), (b"two\nlines\n", False),
    (bytes(70_000), False), (b"WARC/1.0", False), (b"WARC/9.9\r\n\r\n", False),
    (b"WARC/1.0\r\n" + b"a: b\r\n" * 100_000, False),  # a header without end
])  # fmt: skip
def test_garbage_is_skipped_and_reported(path: Path, garbage: bytes, zipped: bool) -> None:
    after = record(url="https://example.com/b", zipped=zipped)
    first, broken, last = read(path, record(zipped=zipped), garbage, after)
    assert (first.url, last.url) == ("https://example.com/", "https://example.com/b")
    assert failed(broken) == (f"{path}#2", "unreadable")
    if not zipped:  # The first bytes tell what a file is.
        broken, last = read(path, garbage, after)
        assert (failed(broken)[1], last.url) == ("unreadable", "https://example.com/b")
    assert [failed(item) for item in read(path, HTML * 100)] == [(f"{path}#1", "unreadable")]


@pytest.mark.parametrize("length", ["", "-1", "many", "9" * 30])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_record_without_a_length_ends_at_the_next_one(
    path: Path, length: str, zipped: bool
) -> None:
    wrong = record(warc={"Content-Length": length}, zipped=zipped)
    after = record(url="https://example.com/b", zipped=zipped)
    for records in ((wrong, after), (after, wrong)):
        pages = read(path, *records)
        assert sorted(urls(pages)) == ["https://example.com/", "https://example.com/b"]
        assert {page.html for page in pages if isinstance(page, SourcePage)} == {HTML}
    # Even a request does not hide the record behind it.
    request = record(kind="request", warc={"Content-Length": length}, zipped=zipped)
    assert urls(read(path, request, after)) == ["https://example.com/b"]
    broken, page = read(path, wrong, after, max_bytes=len(HTML))
    assert (failed(broken)[1], page.url) == ("too_large", "https://example.com/b")


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("wrong", [1, 4, 200, 10**9])
def test_the_last_record_may_say_too_much(path: Path, wrong: int, zipped: bool) -> None:
    block = record(zipped=False).split(b"\r\n\r\n", 1)[1]
    last = record(warc={"Content-Length": str(len(block) - 4 + wrong)}, zipped=zipped)
    pages = read(path, record(url="https://example.com/a", zipped=zipped), last)
    assert urls(pages) == ["https://example.com/a", "https://example.com/"]
    texts = [page.html for page in pages if isinstance(page, SourcePage)]
    assert [bytes(text).rstrip() for text in texts if not isinstance(text, str)] == [
        HTML.rstrip()
    ] * 2


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", ["response", "request"])
@pytest.mark.parametrize("wrong", [-1000, -300, -5, -1, 1, 4, 5, 20, 200, 3000])
def test_a_wrong_length_loses_no_record(path: Path, kind: str, wrong: int, zipped: bool) -> None:
    body = HTML + b"</html>\n"

    def records(wrong: int) -> list[bytes]:
        length = len(record(body, zipped=False).split(b"\r\n\r\n", 1)[1]) - 4
        lengths = {"Content-Length": str(max(length + wrong, 0)), "WARC-Type": kind}
        return [
            record(body, warc=lengths, zipped=zipped),
            *(record(body, url=f"https://a.example/{n}", zipped=zipped) for n in (1, 2)),
        ]

    def texts(*records: bytes) -> list[tuple[str, bytes]]:
        pages = [item for item in read(path, *records) if isinstance(item, SourcePage)]
        return [(page.url, page.html.rstrip()) for page in pages if isinstance(page.html, bytes)]

    assert texts(*records(wrong)) == texts(*records(0))
    assert texts(*reversed(records(wrong))) == texts(*reversed(records(0)))


@pytest.mark.parametrize("between", [b"\r\n\r\n", b"\n", b""])
def test_a_block_may_end_anywhere_in_the_next_record(path: Path, between: bytes) -> None:
    body = HTML + b"</html>"
    first, *others = (record(body, url=f"https://a.example/{n}", zipped=False) for n in range(3))
    size = len(first.split(b"\r\n\r\n", 1)[1]) - 4
    for wrong in range(1, others[0].index(b"\r\n\r\n") + 9, 9 - 2 * len(between)):
        longer = first.replace(b": %d\r\n" % size, b": %d\r\n" % (size + wrong))[:-4] + between
        pages = [item for item in read(path, longer, *others) if isinstance(item, SourcePage)]
        assert [page.html.rstrip() for page in pages] == [body] * 3, wrong


@pytest.mark.parametrize("end", [bytes(4), bytes(1000), b"\r\r"])
def test_padding_between_records_loses_none(path: Path, end: bytes) -> None:
    padded = [record(url=f"https://a.example/{n}", zipped=False)[:-4] + end for n in range(3)]
    urls = [item.url for item in read(path, *padded) if isinstance(item, SourcePage)]
    assert urls == [f"https://a.example/{n}" for n in range(3)]


def test_line_ends_that_were_removed_after_counting_lose_no_record(path: Path) -> None:
    data = b"".join(
        record(HTML + b"\r\n</html>", url=f"https://a.example/{n}", zipped=False) for n in range(4)
    )
    assert len(list(read(path, data.replace(b"\r\n", b"\n")))) == 4


def digested(url: str, header: str, name: str = "sha1", encode: Any = base64.b32encode) -> bytes:
    """Return a record with one digest, and with lines at its end that are not the archive's."""
    body = b"%b <!-- %b -->\n</html>\n\n" % (HTML, url.encode())
    block = record(body, zipped=False).split(b"\r\n\r\n", 1)[1][:-4]
    digest = hashlib.new(name, block if "Block" in header else body).digest()
    text = f"{name}:{encode(digest).decode()}"
    return record(body, url=url, warc={header: text}, zipped=False)


@pytest.mark.parametrize("digest", [
    ("WARC-Block-Digest",), ("WARC-Payload-Digest",),
    ("WARC-Block-Digest", "sha256", base64.b16encode), ("WARC-Payload-Digest", "md5"),
])  # fmt: skip
def test_a_hole_in_plain_records_is_a_failure(path: Path, digest: Any) -> None:
    records = [digested(f"https://a.example/{n}", *digest) for n in range(5)]
    pages, data, length = urls(read(path, *records)), b"".join(records), len(records[0])
    # It begins in the text of a page and ends anywhere.
    for begin in (*range(length - len(HTML), length - 30, 49), 3 * length - len(HTML)):
        for size in (9, *range(90, 2 * length, 271)):
            items = read(path, data[:begin] + data[begin + size :])
            broken = [failed(item) for item in items if not isinstance(item, SourcePage)]
            assert broken[0] == (f"{path}#{begin // length + 1}", "unreadable"), (begin, size)
            lost = [url for url in pages if url not in urls(items)]
            ends = begin // length, (begin + size) // length
            assert lost == pages[ends[0] : ends[1] + 1], (begin, size)


def test_a_hole_behind_the_begin_of_a_large_record_is_a_failure(path: Path) -> None:
    warc = {"WARC-Block-Digest": f"sha1:{hashlib.sha1(b'video').hexdigest()}"}
    video = record(bytes(200_000), mime="video/mp4", warc=warc, zipped=False)
    pages = [record(url=f"https://a.example/{n}", zipped=False) for n in range(3)]
    assert len(urls(read(path, video, *pages, max_bytes=1500))) == 3
    rest = b"".join(pages)[len(pages[0]) + 400 :]
    broken, last = read(path, video[:-100], rest, max_bytes=1500)
    assert failed(broken, "bytes are missing") == (f"{path}#1", "unreadable")
    assert last.url == "https://a.example/2"


@pytest.mark.parametrize("digest", ["WARC-Block-Digest", "WARC-Payload-Digest"])
def test_a_wrong_length_alone_is_no_hole(path: Path, digest: str) -> None:
    first, second = (digested(f"https://a.example/{n}", digest) for n in range(2))
    size = len(first.split(b"\r\n\r\n", 1)[1]) - 4
    for records in ((first, second), (second, first)):
        pages = read(path, *records)
        wrong = [part.replace(b": %d\r\n" % size, b": %d\r\n" % (size + 99)) for part in records]
        assert read(path, *wrong) == pages
        # Converted lines have other digests, and digests may be unknown.
        assert len(urls(read(path, *(part.replace(b"\r\n", b"\n") for part in records)))) == 2
        other = [part.replace(b": sha1:", b": own:").replace(b"many", b"") for part in records]
        assert len(urls(read(path, *other))) == 2


def test_damage_says_nothing_on_stderr(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    read(path, record(zipped=False), b"garbage", record(zipped=False)[:-300])
    read(path, record(), record()[:-100])
    read(path, record(gzip.compress(HTML)[:-9], http={"Content-Encoding": "gzip"}))
    assert capfd.readouterr() == ("", "")


def packed(piece: bytes, megabytes: int) -> bytes:
    """Return this many megabytes of ``piece``, as gzip data a thousandth as large."""
    member = gzip.compress(piece * (16 * 1024 * 1024 // len(piece)), 1)
    return member * (megabytes // 16)


def header(length: int) -> bytes:
    return b"WARC/1.0\r\nContent-Length: %d\r\n\r\n" % length


@pytest.mark.parametrize("piece", [b"\n", b" \r\n", b"x", b"no record\n", header(0)])
def test_very_much_data_without_pages_ends_a_file(
    path: Path, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_DATA_MAX", streams._DATA_MAX // 8)
    page, *_, end = read(path, record(), packed(piece, 1024))
    assert isinstance(page, SourcePage)
    assert failed(end, "expands to very much data")[1] == "unreadable"
    if piece == b"\n":
        line = gzip.compress(b'{"url": "https://example.com/", "html": ""}\n')
        lines = read(path.with_name("a.jsonl.gz"), line, packed(piece, 1024))
        assert (len(lines), urls(lines)) == (2, [page.url])
        assert failed(lines[1], "expands to very much data")[1] == "unreadable"


def test_well_compressed_records_are_skipped(path: Path) -> None:
    start = gzip.compress(header(64 * 1024 * 1024))
    page, again = read(
        path, start, packed(b"x", 64), record(), gzip.compress(b"\r\n" * 10_000), record()
    )
    assert isinstance(page, SourcePage)
    assert page == again
    # One larger than its gzip data can be ends an archive.
    (end,) = read(path, gzip.compress(header(9_999_999_999)), packed(b"x", 8192))
    assert failed(end, "expands to very much data")


def test_the_rest_is_not_read_after_a_thousand_places_without_a_record(path: Path) -> None:
    *broken, end = read(path, record(zipped=False), b"WARC/1.0\n\n" * 100_000)
    assert isinstance(broken[0], SourcePage)
    assert len(broken) == 1001
    assert failed(end, "1,001 places")
    # They are counted one after the other.
    items = read(path, (b"WARC/1.0\n\n" * 600 + record(zipped=False)) * 3)
    assert len(urls(items)) == 3
