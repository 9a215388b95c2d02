"""Read files sequentially, packed or not; damage is always a ``DamagedError``."""

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, Final, NamedTuple
from zipfile import BadZipFile

from pgsimhash.errors import PageError, install_command
from pgsimhash.pages.values import MAX_BYTES
from pgsimhash.sources.page import one_line

_GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_DICTIONARY_MAGIC: Final = b"\x5d\x2a\x4d\x18"
CHECKSUM_MESSAGES: Final = (
    "incorrect data check",
    "incorrect length check",
    "doesn't match checksum",
)
_INPUT: Final = 16 * 1024
_BUFFER: Final = 128 * 1024
_STEP: Final = 1024 * 1024

_IDLE_WEIGHT: Final = 10  # how often bytes without pages count
_IDLE_COST: Final = 4096  # more bytes that each piece without pages counts, for its time
_DATA_MAX: Final = _IDLE_WEIGHT * 512 * 1024 * 1024  # weighed bytes before the packed size counts
_RATIO_MAX: Final = 1000  # of the sizes of weighed data and its packed data
_LOOK: Final = 4096  # bytes of packed data that show whether a member begins as required
_LOOKS_MAX: Final = 100_000  # places tried as beginnings of members after damage
_AGAIN_MAX: Final = 1024 * 1024 * 1024  # bytes of a file read again after damage

DAMAGES: Final = (OSError, ValueError, EOFError, BadZipFile, zlib.error)
"""What files, also those in zip files, raise for damage."""


class DamagedError(Exception):
    """The rest cannot be read; the message says why."""


class ShortError(DamagedError):
    """The file ends early; ``data`` is what there was."""

    def __init__(self, data: bytes) -> None:
        super().__init__("the file ends early")
        self.data = data


class PackedError(DamagedError):
    """The packed data is damaged; :meth:`Stream.resume` may find more."""


class ChecksumError(PackedError):
    """The present member has a wrong checksum."""


class Codec(NamedTuple):
    """A format of packed data: how its members begin, and their decoder."""

    name: str
    magic: bytes
    decoder: Callable[[], Any]
    error: type[Exception]


GZIP: Final = Codec(
    "gzip", b"\x1f\x8b\x08", partial(zlib.decompressobj, 16 + zlib.MAX_WBITS), zlib.error
)

ZIPPED: Final = GZIP._replace(name="zip")
"""The gzip data of an entry of a zip file, which ends at the header of the next one."""


def zstd_codec(file: BinaryIO, begin: bytes) -> Codec:
    """Return the codec of a file of zstd frames with this beginning, after its dictionary if any.

    A WARC file may begin with a dictionary for all its records, in a skippable frame.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            zstd = import_module(name)
            break
    else:
        problem = f"it is packed with zstd; install what reads it {install_command('zstd')}"
        raise PageError("unreadable", problem)
    decoder, dictionary = zstd.ZstdDecompressor, None
    if begin.startswith(_DICTIONARY_MAGIC):
        try:
            data = file.read(min(int.from_bytes(file.read(8)[4:], "little"), MAX_BYTES))
            if data.startswith(ZSTD_MAGIC):
                data = decoder().decompress(data, MAX_BYTES)
            dictionary = zstd.ZstdDict(data)
            decoder(dictionary)
        except (zstd.ZstdError, ValueError) as error:
            problem = f"its zstd dictionary is damaged ({one_line(error)})"
            raise PageError("unreadable", problem) from None
    return Codec("zstd", ZSTD_MAGIC, partial(decoder, dictionary), zstd.ZstdError)


class _Members(io.RawIOBase):
    """The data of packed members; unlike ``GzipFile`` it knows where the present member begins."""

    def __init__(self, file: BinaryIO, codec: Codec) -> None:
        self.file, self._codec = file, codec
        self._input = b""
        self.begin = self._read = file.tell() if file.seekable() else 0
        self._looks = self._again = 0
        self._decoder: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            is_new = self._decoder is None or self._decoder.eof
            # Decoders of zstd keep what they have not decoded yet, those of gzip give it back.
            is_hungry = is_new or getattr(self._decoder, "needs_input", True)
            if is_hungry and not self._input:
                self._input = self.file.read(_INPUT)
                self._read += len(self._input)
            if is_new:
                if not self._input:
                    return 0
                # Zeros between members are padding.
                self._input = self._input.lstrip(b"\0")
                if not self._input:
                    continue
                if self._codec is ZIPPED and self._input.startswith(b"PK"):
                    return 0
                self.begin = self._read - len(self._input)
                self._decoder = self._codec.decoder()
            elif is_hungry and not self._input:
                raise EOFError
            try:
                data = self._decoder.decompress(self._input, len(buffer))
            except self._codec.error as error:
                name, message = self._codec.name, one_line(error)
                kind = ChecksumError if message.endswith(CHECKSUM_MESSAGES) else PackedError
                raise kind(f"the {name} data is damaged ({message})") from None
            rest = "unused_data" if self._decoder.eof else "unconsumed_tail"
            self._input = getattr(self._decoder, rest, b"")
        buffer[: len(data)] = data
        return len(data)

    def resume(self, begin: bytes) -> tuple[int, int] | None:
        """Go to the next member whose data begins with ``begin``; return the skipped bytes."""
        damaged = self.begin
        for at, data in self._places(damaged + 1) if self.file.seekable() else ():
            self._looks += 1
            if self._looks > _LOOKS_MAX:
                return None
            try:
                is_found = self._codec.decoder().decompress(data, len(begin)) == begin
            except self._codec.error:
                continue
            if is_found:
                self._again += max(0, self._read - at)
                if self._again > _AGAIN_MAX:
                    return None
                self.file.seek(at)
                self._input, self._read, self.begin, self._decoder = b"", at, at, None
                return damaged, at
        return None

    def _places(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Yield the places from ``at`` on where a member may begin, and the bytes there."""
        while True:
            self.file.seek(at)
            window = self.file.read(_STEP)
            is_last = len(window) < _STEP
            end = len(window) - (0 if is_last else _LOOK)
            offset = window.find(self._codec.magic)
            while 0 <= offset < end:
                yield at + offset, window[offset : offset + _LOOK]
                offset = window.find(self._codec.magic, offset + 1)
            if is_last:
                return
            at += end


class Budget:
    """How many packed bytes several streams have, and the weighed bytes of data so far."""

    packed = data = 0


class Stream:
    """A file object to read from; each method raises ``DamagedError`` if it cannot be read."""

    def __init__(
        self,
        file: BinaryIO,
        codec: Codec | None = None,
        packed: BinaryIO | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._name = codec.name if codec else "packed"
        self._packed = file if codec and not packed else packed
        self._members = _Members(file, codec) if codec else None
        self._file: Any = io.BufferedReader(self._members, _BUFFER) if self._members else file
        self._budget, self._is_alone = budget or Budget(), budget is None
        self._pushed = io.BytesIO()

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes."""
        data = self._pushed.read(size)
        if len(data) < size:
            data += self._guarded(self._file.read, size - len(data))
        if len(data) < size:
            raise ShortError(data)
        return data

    def readline(self, size: int) -> bytes:
        """Return the next line with its end, at most ``size`` bytes, empty at the file's end."""
        line = self._pushed.readline(size)
        if len(line) < size and not line.endswith(b"\n"):
            line += self._guarded(self._file.readline, size - len(line))
        return line

    def push_back(self, data: bytes) -> None:
        """Let the next calls read ``data`` again."""
        self._pushed = io.BytesIO(data + self._pushed.read())

    def skip(self, size: int) -> bytes:
        """Skip ``size`` bytes; return the last of them, a megabyte at most."""
        last = b""
        while size > 0:
            step = min(size, _STEP)
            last = self.read(step)
            self.idle(step)
            size -= step
        return last

    def idle(self, size: int) -> None:
        """Count ``size`` bytes without pages; very many in little packed data end the file."""
        self._count(_IDLE_WEIGHT * (size + _IDLE_COST))

    def _count(self, weighed: int) -> None:
        budget = self._budget
        budget.data += weighed
        if self._packed is None or budget.data < _DATA_MAX:
            return
        packed = self._packed.tell() if self._is_alone else budget.packed
        if packed * _RATIO_MAX < budget.data:
            raise DamagedError(f"the {self._name} data expands to very much data")

    @property
    def member(self) -> int:
        """The place of the packed member that was read last."""
        return 0 if self._members is None else self._members.begin

    def resume(self, begin: bytes) -> tuple[int, int] | None:
        """After a :class:`PackedError`, continue at the next member with data that starts so.

        Return the first skipped byte and the one where it continues, or None without a member.
        """
        if self._members is None or self._packed is not self._members.file:
            return None
        try:
            skipped = self._members.resume(begin)
        except DAMAGES:
            return None
        if skipped is not None:
            # A new buffer; the old one must not close the file.
            self._file.detach()
            self._file = io.BufferedReader(self._members, _BUFFER)
            self._pushed = io.BytesIO()
        return skipped

    def _guarded(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            data = read(size)
        except EOFError:
            raise PackedError(f"the {self._name} data ends early") from None
        except DAMAGES as error:
            raise DamagedError(f"reading failed ({one_line(error)})") from None
        self._count(len(data))
        return data


def stream_of(file: Any, packed: BinaryIO | None = None, budget: Budget | None = None) -> Stream:
    """Return a stream, through gzip or zstd if the first bytes require it: names are often wrong.

    ``packed`` is the file whose packed data ``file`` has; going back in it would be slow.
    """
    begin = file.peek(4)
    if begin.startswith(_GZIP_MAGIC):
        return Stream(file, GZIP, packed, budget)
    is_zstd = begin[1:4] in (ZSTD_MAGIC[1:], _DICTIONARY_MAGIC[1:])  # also any frame to skip
    return Stream(file, zstd_codec(file, begin) if is_zstd else None, packed, budget)
