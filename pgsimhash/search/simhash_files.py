"""Keep simhashes in temporary files, and read them in parts that fit into memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.bits import BITS
from pgsimhash.search.permutation import Block, Permutation

_CHUNK: Final = 1 << 18
_PIECE: Final = 1 << 14
"""How many simhashes are permuted at a time, so that they stay in the processor's cache."""

_BYTES_A_SIMHASH: Final = 40
_SAMPLE: Final = 1_000
"""How many sampled simhashes of each part determine its end."""

_IDENTITY: Final = Permutation(1, (Block(BITS, 0),), ())


class Part(NamedTuple):
    """The simhashes whose prefixes in a permutation are from ``first`` to ``last``."""

    first: int
    last: int


class Spool:
    """A temporary file of simhashes, written once and read several times, in chunks.

    The file has no name and is deleted at the end of the ``with`` block or of the process. A given
    ``file``, open for reading at least, is kept; its contents come first.
    """

    def __init__(
        self, chunks: Iterable[NDArray[np.uint64]] = (), file: BinaryIO | None = None
    ) -> None:
        self._file = tempfile.TemporaryFile() if file is None else file  # noqa: SIM115
        try:
            for chunk in chunks:
                self._file.write(chunk.tobytes())
            self.count = self._file.seek(0, os.SEEK_END) // 8
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def chunks(self) -> Iterator[NDArray[np.uint64]]:
        """Yield all simhashes, from the beginning."""
        self._file.seek(0)
        while data := self._file.read(_CHUNK * 8):
            yield np.frombuffer(data, dtype=np.uint64)

    def read(self) -> NDArray[np.uint64]:
        """Return all simhashes as one array."""
        chunks = list(self.chunks())
        return np.concatenate(chunks) if chunks else np.empty(0, dtype=np.uint64)

    def fits(self, memory: int) -> bool:
        """Return whether ``memory`` bytes suffice to find pairs among all simhashes."""
        return self.count * _BYTES_A_SIMHASH <= memory

    def parts(self, permutation: Permutation, memory: int) -> list[Part]:
        """Return ranges of prefixes whose simhashes fit into memory.

        A sample of the simhashes makes the ranges about equally large for any distribution.
        Simhashes that share one prefix are never separated.
        """
        count = -(-self.count * _BYTES_A_SIMHASH // memory)
        firsts = [0]
        if not self.fits(memory):
            step = max(1, self.count // (count * _SAMPLE))
            sample = np.concatenate([chunk[::step] for chunk in self.chunks()])
            prefixes = np.sort(_prefixes(permutation, sample))
            borders = np.unique(prefixes[[len(prefixes) * at // count for at in range(1, count)]])
            firsts += borders[borders > 0].tolist()
        lasts = [first - 1 for first in firsts[1:]] + [(1 << permutation.width) - 1]
        return [Part(first, last) for first, last in zip(firsts, lasts, strict=True)]

    def read_part(self, permutation: Permutation, part: Part) -> NDArray[np.uint64]:
        """Return the simhashes of a part, in file order."""
        first, last = np.uint64(part.first), np.uint64(part.last)
        pieces = []
        for chunk in self.chunks():
            for start in range(0, len(chunk), _PIECE):
                piece = chunk[start : start + _PIECE]
                prefixes = _prefixes(permutation, piece)
                pieces.append(piece[(prefixes >= first) & (prefixes <= last)])
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint64)


def distinct(simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each simhash once, ascending."""
    # np.unique takes several times as long.
    values = np.sort(simhashes)
    if len(values) < 2:
        return values
    first = np.empty(len(values), dtype=np.bool_)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values if first.all() else values[first]


def ascending(
    arrays: Iterable[NDArray[np.uint64]], memory: int, folder: Path | None = None
) -> Iterator[NDArray[np.uint64]]:
    """Yield the distinct simhashes of all arrays, ascending, in bounded memory.

    Args:
        arrays: arrays of shape (n,) and dtype uint64.
        memory: how many bytes to use, besides one of the arrays.
        folder: the folder of the temporary file, which takes 8 bytes a simhash.
    """
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    with Spool(map(distinct, arrays), file) as spool:
        for part in spool.parts(_IDENTITY, memory):
            yield distinct(spool.read_part(_IDENTITY, part))


def _prefixes(permutation: Permutation, simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return permutation.permute(simhashes) >> np.uint64(BITS - permutation.width)
