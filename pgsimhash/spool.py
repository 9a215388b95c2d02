"""Arrays of simhashes that need not fit into memory, and their parts that do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import BITS
from pgsimhash.permutation import Block, Permutation

_CHUNK: Final = 1 << 18
_PIECE: Final = 1 << 14
"""How many simhashes are permuted at a time: they stay in the processor's cache."""

_BYTES_A_SIMHASH: Final = 40
_SAMPLE: Final = 1_000
"""How many simhashes of each part say where it ends."""

_AS_THEY_ARE: Final = Permutation(1, (Block(BITS, 0),), ())


class Part(NamedTuple):
    """The simhashes whose prefixes in a permutation are from ``first`` to ``last``."""

    first: int
    last: int


class Spool:
    """Simhashes that are written once and read several times, in chunks; in a temporary file.

    That file has no name and goes away with the ``with`` block, or with the process. Another
    ``file``, open for reading or both, stays; what it holds already comes first.
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
        """Yield everything again, from the beginning."""
        self._file.seek(0)
        while data := self._file.read(_CHUNK * 8):
            yield np.frombuffer(data, dtype=np.uint64)

    def read(self) -> NDArray[np.uint64]:
        """Return everything as one array."""
        chunks = list(self.chunks())
        return np.concatenate(chunks) if chunks else np.empty(0, dtype=np.uint64)

    def fits(self, memory: int) -> bool:
        """Return whether pairs can be looked for among all of them at once."""
        return self.count * _BYTES_A_SIMHASH <= memory

    def parts(self, permutation: Permutation, memory: int) -> list[Part]:
        """Cut the prefixes of a permutation into ranges of as many simhashes as fit into memory.

        They hold about the same, however prefixes are spread, by a sample of the simhashes. Only
        those that share one prefix are never parted.
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
        """Return the simhashes of a part, in their order."""
        first, last = np.uint64(part.first), np.uint64(part.last)
        kept = []
        for chunk in self.chunks():
            for start in range(0, len(chunk), _PIECE):
                piece = chunk[start : start + _PIECE]
                prefixes = _prefixes(permutation, piece)
                kept.append(piece[(prefixes >= first) & (prefixes <= last)])
        return np.concatenate(kept) if kept else np.empty(0, dtype=np.uint64)


def distinct(simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each simhash once, ascending."""
    # np.unique takes several times as long as sorting does.
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
    """Yield the simhashes of arrays in any order each once, ascending, in bounded memory.

    Args:
        arrays: shape (n,), dtype uint64 each.
        memory: how many bytes to use, beside one of the arrays.
        folder: where the temporary file is, of 8 bytes a simhash.
    """
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    with Spool(map(distinct, arrays), file) as spool:
        for part in spool.parts(_AS_THEY_ARE, memory):
            yield distinct(spool.read_part(_AS_THEY_ARE, part))


def _prefixes(permutation: Permutation, simhashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return permutation.permute(simhashes) >> np.uint64(BITS - permutation.width)
