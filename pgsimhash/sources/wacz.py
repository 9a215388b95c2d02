"""Read the WARC files in WACZ archives, which are zip files."""

from __future__ import annotations

import io
import struct
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final
from zipfile import ZIP_STORED, ZipFile

from pgsimhash.errors import PageError
from pgsimhash.pages.records import PageFailure
from pgsimhash.sources.files import reader_of
from pgsimhash.sources.page import Reading, SourcePage, failure, one_line, shown
from pgsimhash.sources.streams import DAMAGES, GZIP, Stream, stream_of
from pgsimhash.sources.warc import BEGIN, read_stream

_FOLDER: Final = "archive/"
_DAMAGES: Final = (*DAMAGES, RuntimeError, OverflowError, struct.error)


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


def read(path: Path, reading: Reading) -> Iterator[SourcePage | PageFailure]:
    """Yield the pages of all WARC files in the archive; their records are numbered on.

    In a zip file without its end, records are searched in the gzip data.
    """
    name = shown(path)
    try:
        with path.open("rb") as file:
            yield from _read_zip(file, name, 1, reading)
    except OSError as error:
        yield failure(name, error)


def _read_zip(
    file: BinaryIO, name: str, number: int, reading: Reading, *, is_nested: bool = False
) -> Generator[SourcePage | PageFailure, None, int]:
    """Yield the pages of an archive, which may hold archives; return the next record's number."""
    try:
        zipped = ZipFile(file)
    except _DAMAGES as error:
        detail = f"the zip data is damaged ({one_line(error)}); records were searched in it"
        yield failure(name, PageError("unreadable", detail))
        file.seek(0)
        stream = Stream(file, GZIP)
        if stream.resume(BEGIN):
            number = yield from read_stream(stream, name, number, reading)
        return number
    for entry in zipped.infolist():
        kind = reader_of(entry.filename)
        is_archive = kind == "wacz" and not is_nested
        if not is_archive and (kind != "warc" or not entry.filename.startswith(_FOLDER)):
            continue
        place = f"{name}/{entry.filename}"
        try:
            with zipped.open(entry) as member:
                data: Any = member
                if entry.compress_type == ZIP_STORED:
                    part: Any = _Part(file, file.tell(), entry.file_size)
                    data = io.BufferedReader(part)
                if not is_archive:
                    stream = stream_of(data, file if data is member else None)
                    number = yield from read_stream(stream, name, number, reading)
                elif data is member:
                    raise PageError("unreadable", "it is compressed; unpack it first")
                else:
                    number = yield from _read_zip(data, place, number, reading, is_nested=True)
        except _DAMAGES as error:
            yield PageFailure(place, "unreadable", one_line(error))
    return number
