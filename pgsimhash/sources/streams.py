"""Read files sequentially, with or without gzip; damage is always a ``DamagedError``."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from pgsimhash.sources.page import one_line

_GZIP_MAGIC: Final = b"\x1f\x8b"
_MEMBER: Final = b"\x1f\x8b\x08"
_CHECKSUM_MESSAGES: Final = ("incorrect data check", "incorrect length check")
_GZIP: Final = 16 + zlib.MAX_WBITS
_INPUT: Final = 16 * 1024
_BUFFER: Final = 128 * 1024
_STEP: Final = 1024 * 1024
_LINE_ENDS: Final = b" \t\r\n"

_IDLE_MAX: Final = 512 * 1024 * 1024
"""The number of bytes without pages after which the size of their gzip data is checked."""

_IDLE_COST: Final = 4096
"""Additional bytes that each piece without pages counts, for the time it takes."""

_RATIO_MAX: Final = 100
"""The maximum ratio of data without pages to its gzip data."""

_LOOK: Final = 4096
"""How many bytes of gzip data show whether a member begins as required."""

_LOOKS_MAX: Final = 100_000
"""How many places of a file are tried as beginnings of members after damage."""

_AGAIN_MAX: Final = 1024 * 1024 * 1024
"""How many bytes of a file are read again after damage."""


class DamagedError(Exception):
    """The rest cannot be read; the message says why."""


class GzipError(DamagedError):
    """The gzip data is damaged; :meth:`Stream.resume` may find more."""


class ChecksumError(GzipError):
    """The present member has a wrong checksum."""


class _Members(io.RawIOBase):
    """The data of gzip members; unlike ``GzipFile`` it knows where the present member begins."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._input = b""
        self.begin = self._read = self._looks = self._again = 0
        self._decoder: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if not self._input:
                self._input = self._file.read(_INPUT)
                self._read += len(self._input)
            if self._decoder is None or self._decoder.eof:
                if not self._input:
                    return 0
                # Zeros between members are padding.
                self._input = self._input.lstrip(b"\0")
                if not self._input:
                    continue
                self.begin = self._read - len(self._input)
                self._decoder = zlib.decompressobj(_GZIP)
            elif not self._input:
                raise EOFError
            data = self._decoder.decompress(self._input, len(buffer))
            is_over = self._decoder.eof
            self._input = self._decoder.unused_data if is_over else self._decoder.unconsumed_tail
        buffer[: len(data)] = data
        return len(data)

    def resume(self, begin: bytes) -> tuple[int, int] | None:
        """Go to the next member whose data begins with ``begin``; return the skipped bytes."""
        damaged = self.begin
        for at, data in self._places(damaged + 1) if self._file.seekable() else ():
            self._looks += 1
            if self._looks > _LOOKS_MAX:
                return None
            try:
                is_found = zlib.decompressobj(_GZIP).decompress(data, len(begin)) == begin
            except zlib.error:
                continue
            if is_found:
                self._again += max(0, self._read - at)
                if self._again > _AGAIN_MAX:
                    return None
                self._file.seek(at)
                self._input, self._read, self.begin, self._decoder = b"", at, at, None
                return damaged, at
        return None

    def _places(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Yield the places from ``at`` on where a member may begin, and the bytes there."""
        while True:
            self._file.seek(at)
            window = self._file.read(_STEP)
            is_last = len(window) < _STEP
            end = len(window) - (0 if is_last else _LOOK)
            offset = window.find(_MEMBER)
            while 0 <= offset < end:
                yield at + offset, window[offset : offset + _LOOK]
                offset = window.find(_MEMBER, offset + 1)
            if is_last:
                return
            at += end


class Stream:
    """A file object to read from; each method raises ``DamagedError`` if it cannot be read."""

    def __init__(self, file: BinaryIO, *, is_gzip: bool = False) -> None:
        self._compressed = file if is_gzip else None
        self._members = _Members(file) if is_gzip else None
        self._file = io.BufferedReader(self._members, _BUFFER) if self._members else file
        self._idle = self._idle_from = 0

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes."""
        data = self._guarded(self._file.read, size)
        if len(data) < size:
            raise DamagedError("the file ends early")
        return data

    def readline(self, size: int) -> bytes:
        """Return the next line with its end, at most ``size`` bytes, empty at the file's end."""
        return self._guarded(self._file.readline, size)

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes."""
        while size > 0:
            step = min(size, _STEP)
            self.read(step)
            self.idle(step)
            size -= step

    def skip_empty_lines(self) -> int:
        """Skip the following lines of white space, and return how many there were.

        Some may be left if the file object has no ``peek``.
        """
        lines = 0
        peek = getattr(self._file, "peek", None)
        while peek is not None:
            ahead = self._guarded(peek, 1)
            blank = len(ahead) - len(ahead.lstrip(_LINE_ENDS))
            blank = ahead.rfind(b"\n", 0, blank) + 1
            if not blank:
                break
            lines += ahead.count(b"\n", 0, blank)
            self.read(blank)
            self.idle(blank)
        return lines

    def idle(self, size: int) -> None:
        """Count ``size`` bytes without pages; very many in little gzip data end the file."""
        self._idle += size + _IDLE_COST
        if self._compressed is None or self._idle < _IDLE_MAX:
            return
        at = self._compressed.tell()
        if (at - self._idle_from) * _RATIO_MAX < self._idle:
            raise DamagedError("the gzip data expands to very much data without pages")
        self._idle, self._idle_from = 0, at

    @property
    def member(self) -> int:
        """The place of the gzip member that was read last."""
        return 0 if self._members is None else self._members.begin

    def resume(self, begin: bytes) -> tuple[int, int] | None:
        """After a :class:`GzipError`, continue at the next member whose data begins with ``begin``.

        Returns:
            The first skipped byte of the file and the one where it continues, or None if there is
            no such member.
        """
        if self._members is None:
            return None
        try:
            skipped = self._members.resume(begin)
        except OSError:
            return None
        if skipped is not None:
            # A new buffer; the old one must not close the file.
            if isinstance(self._file, io.BufferedReader):
                self._file.detach()
            self._file = io.BufferedReader(self._members, _BUFFER)
            self._idle_from = min(self._idle_from, skipped[1])
        return skipped

    def _guarded(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except EOFError:
            raise GzipError("the gzip data ends early") from None
        except zlib.error as error:
            is_checksum = str(error).endswith(_CHECKSUM_MESSAGES)
            kind = ChecksumError if is_checksum else GzipError
            raise kind(f"the gzip data is damaged ({one_line(error)})") from None
        except (OSError, ValueError) as error:
            raise DamagedError(f"reading failed ({one_line(error)})") from None


@contextmanager
def open_stream(path: Path) -> Iterator[Stream]:
    """Open a file, through gzip if its first bytes require it: names are often wrong."""
    with path.open("rb") as file:
        yield Stream(file, is_gzip=file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC))
