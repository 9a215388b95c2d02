"""Read the HTML pages in WACZ archives, which are zip files of WARC archives."""

import io
import re
import struct
import warnings
from collections.abc import Generator
from typing import Any, BinaryIO, Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure, PageItem
from pgsimhash.sources.page import Reading, failure, one_line, shown
from pgsimhash.sources.streams import DAMAGES, GZIP, ZIPPED, Budget, Stream, stream_of
from pgsimhash.sources.warc import RECORD_BEGIN, read_stream

_ZIP_HEADER: Final = 30  # bytes before the name and data of an entry
# WARC files belong in the folder archive/; some programs write them to others.
_READ: Final = re.compile(r".*\.(?:warc(?:\.wet)?(?:\.gz|\.zst)?|wacz)", re.IGNORECASE | re.DOTALL)
# What programs, macOS first, leave in folders that they pack.
_HIDDEN: Final = re.compile(r"(?:.*[/\\])?(?:\.(?![/\\])|__MACOSX[/\\]).*", re.DOTALL)
_ZIP_DAMAGES: Final = (*DAMAGES, RuntimeError, OverflowError, struct.error)


def read_wacz(
    file: BinaryIO, name: str, reading: Reading, number: int = 1, outer: Budget | None = None
) -> Generator[PageItem, None, int]:
    """Yield the pages of all WARC files in the archive, and in archives in it; number records on.

    In a zip file without its end, or with lost or added bytes, records are searched in the gzip
    data. Returns the next number.
    """
    try:
        zipped = ZipFile(file)
        # If bytes were lost or added behind the first entry, no entry before them is at its place.
        if (entry := next(iter(zipped.infolist()), None)) and entry.header_offset:
            zipped.open(entry).close()
    except _ZIP_DAMAGES as error:
        detail = f"the zip data is damaged ({one_line(error)}); records were searched in it"
        yield failure(name, PageError("unreadable", detail))
        file.seek(0)
        # A WARC file may have this name.
        is_warc = file.read(5).startswith((GZIP.magic, RECORD_BEGIN))
        file.seek(0)
        stream = stream_of(file) if is_warc else Stream(file, ZIPPED)
        while is_warc or stream.resume(RECORD_BEGIN):
            number = yield from read_stream(stream, name, number, reading)
            is_warc = False
        return number
    file_size, end, overlapping = file.seek(0, io.SEEK_END), 0, set[ZipInfo]()
    entries = [entry for entry in zipped.infolist() if not _HIDDEN.fullmatch(entry.filename)]
    for entry in sorted(zipped.infolist(), key=lambda entry: entry.header_offset):
        if entry.header_offset < end and _READ.fullmatch(entry.filename):
            overlapping.add(entry)
        end = max(end, entry.header_offset + _ZIP_HEADER + _size_of(entry))
    if overlapping:
        detail = f"{len(overlapping):,} entries overlap others, as in a bomb, and were not read"
        yield failure(name, PageError("unreadable", detail))
    first = number
    budget = Budget() if outer is None else outer
    for entry in entries:
        is_archive = entry.filename.lower().endswith(".wacz")
        if entry in overlapping or not _READ.fullmatch(entry.filename):
            continue
        place = f"{name}/{entry.filename}"
        try:
            if is_archive and outer:
                detail = "it is in an archive in an archive; unpack that first"
                raise PageError("unreadable", detail)
            # Newer Pythons warn of entries that overlap others, which are skipped above.
            with warnings.catch_warnings(action="ignore"):
                member = zipped.open(entry)
            with member:
                data: Any = member
                if entry.compress_type == ZIP_STORED:
                    part: Any = _Part(file, file.tell(), entry.file_size)
                    data = io.BufferedReader(part)
                if not is_archive:
                    budget.packed += min(_size_of(entry), file_size)
                    stream = stream_of(data, file if data is member else None, budget)
                    number = yield from read_stream(stream, name, number, reading)
                elif data is member:
                    raise PageError("unreadable", "it is compressed; unpack it first")
                else:
                    number = yield from read_wacz(data, place, reading, number, budget)
        except _ZIP_DAMAGES as error:
            yield PageFailure(place, "unreadable", one_line(error))
    if number == first:
        detail = "there are no records in WARC files of the zip file"
        yield failure(name, PageError("unreadable", detail))
    names = (entry.filename for entry in entries if not entry.is_dir())
    if other := [file for file in names if "archive/" in file and not _READ.fullmatch(file)]:
        files = "1 file" if len(other) == 1 else f"{len(other):,} files"
        detail = f"not read: {files} in archive/, such as {shown(other[0])}"
        yield failure(name, PageError("unreadable", detail))
    return number


def _size_of(entry: ZipInfo) -> int:
    return entry.file_size if entry.compress_type == ZIP_STORED else entry.compress_size


class _Part(io.RawIOBase):
    """A part of a file; unlike ``ZipExtFile`` it goes back at no cost, and verifies no checksum.

    That of a zip file would cost all records for the damage of one.
    """

    def __init__(self, file: BinaryIO, begin: int, size: int) -> None:
        self._file, self._begin, self._size, self._at = file, begin, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._begin + self._at)
        data = self._file.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
