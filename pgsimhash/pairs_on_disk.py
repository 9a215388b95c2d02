"""All near-copies among more simhashes than fit into memory, in a folder, from where it was ended.

The simhashes are one file, ascending. For each permutation of the blocks it is read through for one
range of prefixes after the other; the pairs of a range are a file of their own, which is not made
twice. Reading anew for each range costs little beside sorting, and takes no room for sorted copies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import NEAR_MAX, check_distance, check_simhashes, hamming_distances
from pgsimhash.block_pairs import layout_for, pairs_by
from pgsimhash.errors import ArgumentError
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.pairs import Compared, Pairs, in_blocks
from pgsimhash.progress import MEMORY_BYTES, unheard
from pgsimhash.spool import Spool, ascending

_SIMHASHES: Final = "simhashes"
_WORK: Final = "work.json"
_BLOCK: Final = 1 << 16


def pairs_on_disk(
    simhashes: NDArray[np.uint64] | Iterable[NDArray[np.uint64]],
    folder: str | Path,
    distance: int = NEAR_MAX,
    *,
    memory: int = MEMORY_BYTES,
    progress: Compared = unheard,
) -> Iterator[Pairs]:
    """Yield every pair of distinct simhashes within ``distance`` bits, each once, block by block.

    Exact, as :func:`~pgsimhash.pairs.find_pairs`, in bounded memory: only simhashes that share one
    prefix must fit. Ended at any time, the same call goes on where the last one was, and yields the
    pairs of before from the folder. That takes 8 bytes a simhash, as many again in the beginning,
    and 16 a pair; delete it in the end. One process at a time may use it.

    Args:
        simhashes: an array of shape (n,), dtype uint64, or several, one after the other, in any
            order; equal ones are one.
        folder: where the work is kept; made if it is not there.
        distance: the largest number of differing bits, 0 to 12.
        memory: how many bytes to use for simhashes, beside one of the arrays. The first call says.
        progress: told how many simhashes are compared of how many, once for every permutation.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, or an array is none of simhashes; or the folder
            holds pairs of other simhashes or within another distance (``other_work``).
        OSError: the folder cannot be written.
    """
    limit = check_distance(distance, DISTANCE_MAX)
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    arrays = [simhashes] if isinstance(simhashes, np.ndarray) else simhashes
    memory = _prepared(home, map(check_simhashes, arrays), limit, memory)
    return _pairs(home, limit, memory, progress)


def _prepared(home: Path, arrays: Iterable[NDArray[np.uint64]], distance: int, memory: int) -> int:
    """Put the simhashes into the folder, or see that they are there, and return its memory."""
    given = _Given()
    work = home / _WORK
    if work.exists():
        known: dict[str, Any] = json.loads(work.read_text())
        for _ in given.through(arrays):
            pass
        if known["distance"] != distance or known["given"] != given.told():
            raise ArgumentError(
                "other_work",
                f"{home} holds pairs of {known['given']['count']:,} simhashes within "
                f"{known['distance']} bits, and these are others, or within {distance}; name "
                "another folder, or delete this one",
            )
        return int(known["memory"])
    with _written(home / _SIMHASHES) as file:
        for array in ascending(given.through(arrays), memory, home):
            file.write(array.tobytes())
    with _written(work) as file:
        told = {"distance": distance, "given": given.told(), "memory": memory}
        file.write(json.dumps(told).encode())
    return memory


class _Given:
    """What tells simhashes from others, whatever arrays they come in."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = self._mixed = np.uint64(0)

    def through(self, arrays: Iterable[NDArray[np.uint64]]) -> Iterator[NDArray[np.uint64]]:
        for array in arrays:
            self._count += len(array)
            with np.errstate(over="ignore"):
                self._sum += array.sum(dtype=np.uint64)
            self._mixed ^= np.bitwise_xor.reduce(array)
            yield array

    def told(self) -> dict[str, int]:
        return {"count": self._count, "sum": int(self._sum), "xor": int(self._mixed)}


def _pairs(home: Path, distance: int, memory: int, progress: Compared) -> Iterator[Pairs]:
    with Spool(file=(home / _SIMHASHES).open("rb")) as spool:
        layout = layout_for(distance, spool.count)
        done, total = 0.0, spool.count * len(layout.permutations)
        whole = spool.read() if spool.fits(memory) else None
        for permutation in layout.permutations:
            parts = spool.parts(permutation, memory)
            share = spool.count / len(parts)
            for part in parts:
                name = f"{layout.name} {permutation.number} {part.first} {part.last}"
                path = home / name.replace(" ", "-")
                if not path.exists():
                    values = spool.read_part(permutation, part) if whole is None else whole
                    compared = partial(_tell, progress, done, share, total)
                    found = pairs_by(permutation, layout, values, distance, compared)
                    with _written(path) as file:
                        for block in in_blocks(found):
                            file.write(np.stack([block.low, block.high], axis=1).tobytes())
                yield from _read(path)
                done += share
        progress(total, total)


def _tell(progress: Compared, done: float, share: float, total: int, here: int) -> None:
    progress(int(done + min(here, share)), total)


def _read(path: Path) -> Iterator[Pairs]:
    with path.open("rb") as file:
        while len(rows := np.fromfile(file, np.uint64, 2 * _BLOCK).reshape(-1, 2)):
            low, high = rows[:, 0].copy(), rows[:, 1].copy()
            yield Pairs(low, high, hamming_distances(low, high))


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """Give a file that is there under its name once all of it is."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
