"""Arrays of simhashes that need not fit into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

_CHUNK: Final = 1 << 18


class Spool:
    """Simhashes that are written once and read several times, in chunks; in a temporary file.

    The file has no name and goes away with the ``with`` block, or with the process.
    """

    def __init__(self, chunks: Iterable[NDArray[np.uint64]]) -> None:
        self.count = 0
        self._file = tempfile.TemporaryFile(prefix="pgsimhash-")  # noqa: SIM115
        try:
            for chunk in chunks:
                self._file.write(chunk.tobytes())
                self.count += len(chunk)
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
