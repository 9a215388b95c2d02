"""Files read from front to back, gzip or not, in which damage shows as one error."""

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


class DamagedError(Exception):
    """Nothing can be read from here on; the message says why."""


class ChecksumError(DamagedError):
    """What was read last is not what was written."""


class Stream:
    """The reading half of a file object."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes.

        Raises:
            DamagedError: there are fewer, or the file cannot be read.
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
        """Pass over ``size`` bytes without keeping them.

        Raises:
            DamagedError: there are fewer, or the file cannot be read.
        """
        while size > 0:
            size -= len(self.read(min(size, _STEP)))

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
    """Open a file, through gzip where its first bytes say so: names are often wrong about it.

    Raises:
        OSError: the file cannot be opened.
    """
    with path.open("rb") as file:
        if file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
            with gzip.GzipFile(fileobj=file) as unzipped:
                yield Stream(unzipped)
        else:
            yield Stream(file)
