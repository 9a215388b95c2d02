"""Find all pairs among more simhashes than fit into memory, resumably, in a folder.

One file has the sorted simhashes. For each permutation of the blocks, it is read once per range of
prefixes. The pairs of a range form a file, which is written once. Reading the file again for each
range costs little compared with sorting, and needs no space for sorted copies. A digest of each
file detects damage before anything is read from it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.bits import (
    NEAR_MAX,
    check_distance,
    check_simhashes,
    hamming_distances,
    simhash_arrays,
)
from pgsimhash.hashing.hashes import murmur3_mix
from pgsimhash.log import logger
from pgsimhash.runtime.progress import MEMORY_BYTES, no_progress
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared, Pairs, in_blocks
from pgsimhash.search.prefix_pairs import layout_for, pairs_by
from pgsimhash.search.simhash_files import Spool, ascending

_SIMHASHES: Final = "simhashes"
_WORK: Final = "work.json"
_BLOCK: Final = 1 << 16
_CHUNK_BYTES: Final = 1 << 20
_DIGEST_BYTES: Final = 32


def pairs_on_disk(
    simhashes: NDArray[np.uint64] | Iterable[NDArray[np.uint64]],
    folder: str | Path,
    distance: int = NEAR_MAX,
    *,
    memory: int = MEMORY_BYTES,
    progress: Compared = no_progress,
) -> Iterator[Pairs]:
    """Yield every pair of distinct simhashes within ``distance`` bits, each once, in arrays.

    It is exact, like :func:`~pgsimhash.search.pairs.find_pairs`, in bounded memory: only the
    simhashes that share a prefix must fit. After an interruption, the same call continues, and
    first yields the earlier pairs from the folder. A damaged file is detected and written again.
    The folder takes 8 bytes per simhash, temporarily 16, and 16 bytes per pair. Delete it at the
    end. Only one process at a time may use it.

    Args:
        simhashes: an array of shape (n,), dtype uint64, or an iterable of arrays, in any order;
            duplicates are removed.
        folder: the working folder; it is created if necessary.
        distance: the largest number of differing bits, 0 to 12.
        memory: bytes of memory for simhashes, besides one of the arrays; fixed by the first call.
        progress: receives the number of compared simhashes and the total; each permutation counts
            all simhashes.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, an array has another shape or dtype, or the
            folder has pairs of other simhashes or for another distance (``other_work``).
        OSError: the folder cannot be written.
    """
    limit = check_distance(distance, DISTANCE_MAX)
    arrays = simhash_arrays(simhashes)
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    work = _prepared(home, map(check_simhashes, arrays), limit, memory)
    return _pairs(home, work, progress)


def _prepared(
    home: Path, arrays: Iterable[NDArray[np.uint64]], distance: int, memory: int
) -> dict[str, Any]:
    """Write the simhashes to the folder if necessary, and return the content of work.json."""
    path = home / _SIMHASHES
    known = _read_work(home / _WORK)
    memory = known.get("memory", memory)
    known_keys = _Given(known.get("keys"))
    if known and _digest_of(path) == known.get("sha256"):
        for _ in known_keys.through(arrays):
            pass
    else:
        with _written(path) as file:
            for array in ascending(known_keys.through(arrays), memory, home):
                file.write(array.tobytes())
    work = {
        "distance": distance,
        "memory": memory,
        "sha256": _digest_of(path),
        **known_keys.described(),
    }
    if known and known != work:
        raise ArgumentError(
            "other_work",
            f"{home} has pairs of other simhashes than these {work['count']:,}, or for "
            f"another distance than {distance} bits; name another folder, or delete this one",
        )
    if not known:
        with _written(home / _WORK) as file:
            file.write(json.dumps(work).encode())
    return work


def _read_work(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes())) if path.exists() else {}
    except (ValueError, TypeError):
        # The work starts again: its files of pairs have the digest of another work.
        logger.warning("%s is damaged: all pairs are computed again", path)
        return {}


class _Given:
    """Identifies a multiset of simhashes, independent of their order and arrays.

    The digest is two sums of mixed simhashes. The keys are random, so that nobody can construct two
    multisets with the same digest.
    """

    def __init__(self, keys: list[int] | None) -> None:
        self._keys = keys or [secrets.randbits(64) for _ in range(2)]
        self._count = 0
        self._sums = np.zeros(len(self._keys), dtype=np.uint64)

    def through(self, arrays: Iterable[NDArray[np.uint64]]) -> Iterator[NDArray[np.uint64]]:
        for array in arrays:
            self._count += len(array)
            for place, key in enumerate(self._keys):
                # Overflow of an array wraps around without a warning.
                mixed = murmur3_mix(array ^ np.uint64(key))
                self._sums[place : place + 1] += mixed.sum(dtype=np.uint64)
            yield array

    def described(self) -> dict[str, Any]:
        return {"count": self._count, "keys": self._keys, "sums": self._sums.tolist()}


def _pairs(home: Path, work: dict[str, Any], progress: Compared) -> Iterator[Pairs]:
    distance, memory = work["distance"], work["memory"]
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
                label = json.dumps([work, name]).encode()
                if not _is_intact(path, label):
                    values = spool.read_part(permutation, part) if whole is None else whole
                    compared = partial(_tell, progress, done, share, total)
                    blocks = pairs_by(permutation, layout, values, distance, compared)
                    _write(path, label, in_blocks(blocks))
                yield from _read(path)
                done += share
        progress(total, total)


def _tell(progress: Compared, done: float, share: float, total: int, here: int) -> None:
    progress(int(done + min(here, share)), total)


def _write(path: Path, label: bytes, blocks: Iterable[Pairs]) -> None:
    """Write pairs, followed by a digest of the label and all rows."""
    digest = sha256(label)
    with _written(path) as file:
        for block in blocks:
            rows = np.stack([block.low, block.high], axis=1).tobytes()
            digest.update(rows)
            file.write(rows)
        file.write(digest.digest())


def _is_intact(path: Path, label: bytes) -> bool:
    """Return whether a file of pairs exists and matches its digest."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        rows = _digest(file, path.stat().st_size - _DIGEST_BYTES, label)
        intact = rows == file.read()
    if not intact:
        logger.warning("%s is damaged or has other simhashes: its pairs are computed again", path)
    return intact


def _digest(file: BinaryIO, size: int, label: bytes = b"") -> bytes:
    digest = sha256(label)
    while size > 0 and (data := file.read(min(size, _CHUNK_BYTES))):
        digest.update(data)
        size -= len(data)
    return digest.digest()


def _digest_of(path: Path) -> str | None:
    """Return the digest of a file, or None if it does not exist."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        return _digest(file, path.stat().st_size).hex()


def _read(path: Path) -> Iterator[Pairs]:
    left = (path.stat().st_size - _DIGEST_BYTES) // 8
    with path.open("rb") as file:
        while left:
            rows = np.fromfile(file, np.uint64, min(left, 2 * _BLOCK)).reshape(-1, 2)
            left -= rows.size
            low, high = rows[:, 0].copy(), rows[:, 1].copy()
            yield Pairs(low, high, hamming_distances(low, high))


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """Lend a file that gets its name when it is complete."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
