"""Read the HTML pages in WARC archives.

warcio parses the headers. Its iterator does not report a truncated file, so the records are
separated here, and every missing part is a failure. After damage, reading resumes at the next
record, in gzip data at the next member that begins with one.
"""

import hashlib
import io
import re
from base64 import b16encode, b32encode, b64encode
from collections.abc import Generator, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, BinaryIO, Final, NamedTuple

from warcio.recordloader import ArcWarcRecordLoader
from warcio.statusandheaders import (
    StatusAndHeaders,
    StatusAndHeadersParser,
    StatusAndHeadersParserException,
)

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure, PageItem, PageStatus, SourcePage
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import says_noindex, too_large
from pgsimhash.sources.bodies import decode_body
from pgsimhash.sources.page import (
    TEXT_SCHEME,
    Reading,
    content_type,
    failure,
    looks_like_html,
    read_time,
)
from pgsimhash.sources.streams import (
    ChecksumError,
    DamagedError,
    PackedError,
    ShortError,
    Stream,
    stream_of,
)

_HTML_TYPES: Final = ("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml")
# What browsers read as a missing type (MIME Sniffing, sections 4.4 and 7), or as XHTML if it is.
_NO_TYPE: Final = re.compile(
    r"(?![\w.+-]+/[\w.+-]+(?:[\s,;]|$))"
    r"|(?:(?:unknown|application)/unknown|(?:text|application)/xml)(?=[\s;]|$)",
    re.I,
)
_NO_HTML: Final = "records that are not HTML"
_NO_GET: Final = "answers to other requests than GET"
_NO_TEXTS: Final = "records that are not texts"
_NO_PAGES: Final = {
    **dict.fromkeys(("request", "metadata", "warcinfo"), ""),
    "revisit": "revisits",
    "conversion": f"texts, which need {TEXT_SCHEME}",
}
_OTHER_METHOD: Final = re.compile(rb"(?!GET )[A-Z]+ \S+ HTTP/")
_HTTP: Final = re.compile(r"https?:|\Z", re.I)  # a damaged header has none
_OK: Final = re.compile(r"2(?!06)\d\d")
_NO_BODY: Final = ("304", "404", "410")
_REVISIT: Final = re.compile(r"/revisit/[a-z-]*(identical-payload-digest|server-not-modified)\b")
_MAX_HEADERS: Final = 64 * 1024
_MAX_BROKEN: Final = 1000  # consecutive places without a record end the reading
RECORD_BEGIN: Final = b"WARC/"
_VERSION: Final = re.compile(rb"WARC/\d+\.\d+\r?\n\Z")
# A record within the block of another one, which has a wrong length.
_RECORD: Final = re.compile(rb"(?<=[\n\r>\0])(WARC/\d+\.\d+\r?\n)(?:[A-Za-z-]+:|\Z)")
_BLOCK_ENDS: Final = (b"\r\n\r\n", b"\n\n")
_WHOLE: Final = re.compile(rb"</html>\s*\Z", re.IGNORECASE)


class _NoRecordError(Exception):
    """There is no record here; the next one may begin in ``line`` or after it."""

    def __init__(self, message: str, line: bytes = b"\n") -> None:
        super().__init__(message)
        self.line = line


class _Record(NamedTuple):
    """One record of the archive: its headers, and its block, of a large one the begin."""

    headers: Any
    block: bytes
    size: int  # of the whole block
    may_be_cut: bool  # the file may end within the block
    has_hole: bool = False  # bytes are missing in it or behind it

    @property
    def url(self) -> str:
        return self._url("WARC-Target-URI")

    def _url(self, header: str) -> str:
        # Some crawlers write the URL in angle brackets or with spaces.
        return self._header(header).removeprefix("<").removesuffix(">").replace(" ", "%20")

    def is_other_request(self, answer: "_Record") -> bool:
        """Return whether this is the request of a record, by another method than GET."""
        link, own = "WARC-Concurrent-To", "WARC-Record-ID"
        pairs = (self, answer), (answer, self)
        is_linked = any(one._header(link) == other._header(own) != "" for one, other in pairs)
        return is_linked and _OTHER_METHOD.match(self.block) is not None

    def item(self, name: str, number: int, reading: Reading) -> PageItem | str:
        """Return the page, its failure, or why there is no page; empty if it is about the crawl."""
        if self.has_hole:
            detail = "bytes are missing in it or up to the next record"
            return PageFailure(f"{name}#{number}", "unreadable", detail, number)
        kind, texts = self._header("WARC-Type").lower(), reading.texts
        http, body, status = StatusAndHeaders("", []), self.block, ""
        if texts and kind in ("response", "resource", "revisit"):
            return _NO_TEXTS
        if kind == ("conversion" if texts else "resource"):
            declared = self._header("Content-Type") if texts else self._declared(self.headers)
        elif kind in ("response", "revisit") and _HTTP.match(self.url):
            http, body = _split_http(self.block[:_MAX_HEADERS])
            body += self.block[_MAX_HEADERS:] if body else b""
            declared, status = self._declared(http), http.get_statuscode()
            if not status.isdigit() and kind == "response" and looks_like_html(self.block):
                http, body, declared, status = StatusAndHeaders("", []), self.block, "", "200"
            if kind == "revisit":
                if not _REVISIT.search(self._header("WARC-Profile")):
                    return "revisits"
                if declared and content_type(declared).get_content_type() not in _HTML_TYPES:
                    return _NO_HTML
                if _OK.fullmatch(status or "200"):  # its header may be missing
                    # With the body of another page, it may have changed.
                    if self._url("WARC-Refers-To-Target-URI") not in ("", self.url):
                        return "revisits of other URLs"
                    status = "304"
            if status not in _NO_BODY and not _OK.fullmatch(status):
                why = "by their status" if status.isdigit() else "without an HTTP header"
                return f"responses {why}"
        else:
            return _NO_PAGES.get(kind, "records of other kinds")
        if status in _NO_BODY:
            about = self._date(http), *_validators(http)
            with suppress(PageError):
                return PageStatus(check_url(self.url), status != "304", *about, record=number)
            return _NO_HTML
        try:
            return self._page(http, body, declared, number, reading)
        except PageError as error:
            if not declared:
                return _NO_HTML
            place = f"{name}#{number}"
            with suppress(PageError):
                place = check_url(self.url)
            return failure(place, error, number)

    def _declared(self, headers: Any) -> str:
        """Return the type of a page, as its server or the crawler names it, of several the last."""
        types = [value for name, value in headers.headers if name.lower() == "content-type"]
        mime = (types or [""])[-1].strip("\"' ")
        mime = "" if _NO_TYPE.match(mime) else mime
        identified = self._header("WARC-Identified-Payload-Type")
        if not mime or content_type(identified).get_content_type() in _HTML_TYPES:
            return mime if "html" in mime.lower() else identified
        return mime

    def _page(
        self, http: Any, body: bytes, declared: str, number: int, reading: Reading
    ) -> SourcePage | str:
        """Return the page, or why the record has no page."""
        texts, max_bytes = reading.texts, reading.max_bytes
        kind, accepted = content_type(declared), ("text/plain",) if texts else _HTML_TYPES
        if declared and kind.get_content_type() not in accepted:
            return _NO_TEXTS if texts else _NO_HTML
        url = check_url(self.url)
        if not body and self.size > _MAX_HEADERS:
            raise PageError("unreadable", "its HTTP header does not end")
        if len(body) + self.size - len(self.block) > max_bytes:
            raise too_large("the record", max_bytes)
        if self._header("WARC-Segment-Number"):
            raise PageError("unreadable", "the record is one segment of several")
        transfer, encoding = (
            ",".join(value for name, value in http.headers if name.lower() == header)
            for header in ("transfer-encoding", "content-encoding")
        )
        body, is_whole = decode_body(body, transfer, encoding, max_bytes)
        if not (declared or texts or looks_like_html(body)):
            return _NO_HTML
        cut = self._header("WARC-Truncated").lower()
        if cut not in ("length", "time", "disconnect") and (cut or self.may_be_cut or not is_whole):
            cut = "unspecified"
        # With the validators of a part, the rest would never be fetched.
        validators = (None, None) if cut else _validators(http)
        charset, date = kind.get_content_charset(), self._date(http)
        robots = [value for name, value in http.headers if name.lower() == "x-robots-tag"]
        noindex = any(map(says_noindex, robots))
        return SourcePage(
            url, body, charset, date, number, *validators, cut or None, noindex=noindex
        )

    def _date(self, http: Any) -> datetime | None:
        """Return when the page was fetched, or else sent; None if neither can be read."""
        dates = map(read_time, (self._header("WARC-Date"), http.get_header("Date") or ""))
        return next(filter(None, dates), None)

    def _header(self, name: str) -> str:
        return (self.headers.get_header(name) or "").strip()


def read_warc(file: BinaryIO, name: str, reading: Reading) -> Iterator[PageItem]:
    """Yield the pages of an archive, packed or not.

    These are resources, and responses to GET with a status of 200 to 299 except 206 (partial
    content), whose type is HTML or that begin like HTML without a type; of texts, the conversions
    to plain text. ``skipped`` counts the others, except records about the crawl. Bytes between
    records, and the damaged end of a file, are failures of ``path#record``.
    """
    return read_stream(stream_of(file), name, 1, reading)


def read_stream(
    stream: Stream, name: str, number: int, reading: Reading
) -> Generator[PageItem, None, int]:
    """Yield the pages of an archive; return the number after that of its last record."""
    resumed = True
    while resumed:
        number, resumed = yield from _read_records(stream, name, number, reading)
    return number


def _read_records(
    stream: Stream, name: str, number: int, reading: Reading
) -> Generator[PageItem, None, tuple[int, bool]]:
    """Yield records up to damage; return the next number, and whether to resume there."""
    broken, before = 0, _Record(StatusAndHeaders("", []), b"", 0, False)
    held: list[PageItem] = []  # of the record before this one, which may be its request
    try:
        _, line = _next_line(stream)
        while line:
            try:
                if not _VERSION.match(line):
                    raise _NoRecordError("there is no record here", line)
                record, line, damage = _read_record(stream, line, reading.max_bytes)
                broken = 0
                if held and record.is_other_request(before):
                    held.clear()
                    reading.skip(_NO_GET, name, number - 1, before.url or None)
                yield from _taken(held)
                item = record.item(name, number, reading)
                if not isinstance(item, str) and before.is_other_request(record):
                    item = _NO_GET
                before = record._replace(block=record.block[:_MAX_HEADERS])
                if not isinstance(item, str):
                    held.append(item)
                else:
                    stream.idle(len(record.block))
                    if item:
                        reading.skip(item, name, number, record.url or None)
                if damage is not None:
                    number += 1
                    raise damage
            except _NoRecordError as error:
                detail = f"{error}; skipped to the next record"
                broken += 1
                if broken > _MAX_BROKEN:
                    raise DamagedError(f"there are no records in {broken:,} places") from None
                line = _next_version(stream, error.line)
                yield from _taken(held)
                yield PageFailure(f"{name}#{number}", "unreadable", detail, number)
            number += 1
        yield from _taken(held)
    except DamagedError as damage:
        yield from _taken(held)
        skipped = stream.resume(RECORD_BEGIN) if isinstance(damage, PackedError) else None
        lost = f"record {number} and all after it were not read"
        if skipped is not None:
            begin, end = skipped
            lost = f"skipped from byte {begin:,} of the file to the next record at {end:,}"
        yield PageFailure(f"{name}#{number}", "unreadable", f"{damage}; {lost}", skipped and number)
        return number + 1, skipped is not None
    return number, False


def _taken(held: list[PageItem]) -> Iterator[PageItem]:
    while held:
        yield held.pop()


def _read_record(
    stream: Stream, version: bytes, max_bytes: int
) -> tuple[_Record, bytes, DamagedError | None]:
    """Return the record after its first line, the first line of the next one, and damage there."""
    try:
        parser = StatusAndHeadersParser(ArcWarcRecordLoader.WARC_TYPES)
        headers = parser.parse(_header_lines(stream), version)
    except StatusAndHeadersParserException:
        raise _NoRecordError(f"{version!r} is not a known version of WARC") from None
    length = (headers.get_header("Content-Length") or "").strip()
    is_number = length.isascii() and length.isdigit() and len(length) < 20
    if not (is_number or headers.get_header("WARC-Type")):
        raise _NoRecordError("it has neither a Content-Length nor a WARC-Type")
    # Without a length, the block ends at the next record, as it does with a wrong length.
    size = int(length) if is_number else 0
    kept = min(size, max_bytes + _MAX_HEADERS)
    block, skipped = b"", b""
    is_short = may_be_cut = False
    try:
        block = stream.read(kept)
        skipped = stream.skip(size - kept)
    except ShortError as short:
        may_be_cut, is_short = _may_be_cut(short), True
        block, skipped = (block, short.data) if block else (short.data, b"")
    record, member = _Record(headers, block, size, may_be_cut), stream.member
    try:
        # Reading further makes gzip verify the checksum of this record.
        blanks, line = _next_line(stream)
        is_wrong = is_short or (line != b"" and not _VERSION.match(line))
        read = block + skipped + blanks + line if is_wrong else b""
        # Empty lines are behind the block, or in a header of the next record.
        if is_short or (is_wrong and not blanks) or _RECORD.search(read):
            line, real = _real_block(stream, read, max_bytes)
            # The digest of a large block cannot be compared, so it is another one.
            record = record._replace(has_hole=is_number and _lacks_bytes(headers, real, size))
            if kept == size or (is_short and not skipped):
                record = record._replace(block=real, size=len(real))
        return record, line, None
    except DamagedError as damage:
        if isinstance(damage, ChecksumError) and stream.member == member:
            raise
        return record, b"", damage


def _may_be_cut(short: ShortError) -> bool:
    """Return whether the file may end within its last record, which has a wrong length."""
    if _WHOLE.search(short.data[-1000:]) or _RECORD.search(short.data):
        return False
    # Its last lines are empty, as those of a record, or the file was cut there.
    is_header = short.data.startswith(b"HTTP/") and not _split_http(short.data)[1].strip()
    if is_header or not short.data.endswith(_BLOCK_ENDS):
        raise short
    return True


def _header_lines(stream: Stream) -> io.BytesIO:
    header = bytearray()
    while (line := stream.readline(_MAX_HEADERS)).strip():
        header += line
        if len(header) > _MAX_HEADERS:
            raise _NoRecordError("its header does not end")
    if not line.endswith(b"\n"):
        raise DamagedError("the file ends early")
    return io.BytesIO(header)


def _next_line(stream: Stream) -> tuple[bytes, bytes]:
    """Return up to 4 bytes of empty lines, and the first line that is not empty."""
    blanks = b""
    while (line := stream.readline(_MAX_HEADERS)) and not line.strip():
        stream.idle(len(line))
        blanks += line[: 4 - len(blanks)]
    return blanks, line


def _real_block(stream: Stream, read: bytes, max_bytes: int) -> tuple[bytes, bytes]:
    """Return the first line of the next record, and the block before it, of a large one the begin.

    Some of it may be in ``read``, what was read of a record with a wrong length.
    """
    if (record := _RECORD.search(read)) is not None:
        stream.push_back(read[record.end(1) :])
        line, block = record[1], read[: record.start()]
    else:
        lines, size = [read], len(read)
        while (line := stream.readline(_MAX_HEADERS)) and not _VERSION.match(line):
            stream.idle(len(line))
            if size <= max_bytes:
                lines.append(line)
            size += len(line)
        block = b"".join(lines)
    ends = (end for end in _BLOCK_ENDS if block.endswith(end))
    return line, block.removesuffix(next(ends, b""))


def _lacks_bytes(headers: Any, block: bytes, size: int) -> bool:
    """Return whether a block with a wrong size also has none of the digests in its header."""
    lines, ends = block.count(b"\n"), block.count(b"\r\n")
    if len(block) == size or (ends in (0, lines) and abs(len(block) - size) <= lines):
        return False  # its line ends may have been converted since
    parts = block, _split_http(block[:_MAX_HEADERS])[1] + block[_MAX_HEADERS:]
    expected, found = set[str](), set[str]()
    for header in ("WARC-Block-Digest", "WARC-Payload-Digest"):
        name, _, digest = (headers.get_header(header) or "").strip().lower().partition(":")
        if name in ("md5", "sha1", "sha256", "sha512"):
            expected.add(digest.strip("="))
            own = [hashlib.new(name, part, usedforsecurity=False).digest() for part in parts]
            texts = [encode(each) for each in own for encode in (b16encode, b32encode, b64encode)]
            found.update(text.decode().lower().strip("=") for text in texts)
    return bool(expected) and expected.isdisjoint(found)


def _next_version(stream: Stream, line: bytes) -> bytes:
    # Bytes without a line end precede the version on the same line.
    while line and not (version := _VERSION.search(line)):
        stream.idle(len(line))
        line = stream.readline(_MAX_HEADERS)
    return version[0] if line and version else b""


def _split_http(head: bytes) -> tuple[Any, bytes]:
    """Return the last HTTP header and what follows it; a proxy's may precede it."""
    http, body = StatusAndHeaders("", []), head
    while body is head or body.startswith(b"HTTP/"):
        lines = io.BytesIO(body)
        try:
            http = StatusAndHeadersParser([], verify=False).parse(lines)
        except EOFError:
            return StatusAndHeaders("", []), b""
        body = lines.read()
    return http, body


def _validators(http: Any) -> tuple[str | None, str | None]:
    return http.get_header("ETag"), http.get_header("Last-Modified")
