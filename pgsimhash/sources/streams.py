"""Read files sequentially, with or without gzip; damage is always a ``DamagedError``."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from pgsimhash.sources.page import one_line

_GZIP_MAGIC: Final = b"\x1f\x8b"
_CHECKSUM_MESSAGES: Final = ("CRC check failed", "Incorrect length of data produced")
_STEP: Final = 1024 * 1024
_LINE_ENDS: Final = b" \t\r\n"

_IDLE_MAX: Final = 512 * 1024 * 1024
"""The number of bytes without pages after which the size of their gzip data is checked."""

_IDLE_COST: Final = 4096
"""Additional bytes that each piece without pages counts, for the time it takes."""

_RATIO_MAX: Final = 100
"""The maximum ratio of data without pages to its gzip data."""


class DamagedError(Exception):
    """The rest cannot be read; the message says why."""


class ChecksumError(DamagedError):
    """The data read last has a wrong checksum."""


class Stream:
    """A file object to read from, with checks."""

    def __init__(self, file: BinaryIO | gzip.GzipFile, compressed: BinaryIO | None = None) -> None:
        self._file = file
        self._compressed = compressed
        self._idle = self._idle_from = 0

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes.

        Raises:
            DamagedError: the file ends early or cannot be read.
        """
        data = self._guarded(self._file.read, size)
        if len(data) < size:
            raise DamagedError("the file ends early")
        return data

    def readline(self, size: int) -> bytes:
        """Return the next line with its end, at most ``size`` bytes, empty at the file's end.

        Raises:
            DamagedError: the file cannot be read.
        """
        return self._guarded(self._file.readline, size)

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes.

        Raises:
            DamagedError: the file ends early or cannot be read.
        """
        while size > 0:
            step = min(size, _STEP)
            self.read(step)
            self.idle(step)
            size -= step

    def skip_empty_lines(self) -> int:
        """Skip the following lines of white space, and return how many there were.

        Some may be left if the file object has no ``peek``.

        Raises:
            DamagedError: the file cannot be read.
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
        """Count ``size`` bytes without pages.

        Raises:
            DamagedError: a little gzip data contains very many such bytes: reading on would take
                long without result.
        """
        self._idle += size + _IDLE_COST
        if self._compressed is None or self._idle < _IDLE_MAX:
            return
        at = self._compressed.tell()
        if (at - self._idle_from) * _RATIO_MAX < self._idle:
            raise DamagedError("the gzip data expands to very much data without pages")
        self._idle, self._idle_from = 0, at

    def _guarded(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except EOFError:
            raise DamagedError("the gzip data ends early") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            is_checksum = str(error).startswith(_CHECKSUM_MESSAGES)
            kind = ChecksumError if is_checksum else DamagedError
            raise kind(f"the gzip data is damaged ({one_line(error)})") from None
        except (OSError, ValueError) as error:
            raise DamagedError(f"reading failed ({one_line(error)})") from None


@contextmanager
def open_stream(path: Path) -> Iterator[Stream]:
    """Open a file, through gzip if its first bytes require it: names are often wrong.

    Raises:
        OSError: the file cannot be opened.
    """
    with path.open("rb") as file:
        if file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
            with gzip.GzipFile(fileobj=file) as unzipped:
                yield Stream(unzipped, file)
        else:
            yield Stream(file)
