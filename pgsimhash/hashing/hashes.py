"""Hash features to 64 bits.

Each function takes features and returns their hashes in order (shape (n,), dtype uint64). It hashes
a feature's UTF-8; a lone surrogate is hashed as ``?``. The functions are not cryptographic: the
author of a page can choose its simhash.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from itertools import repeat
from typing import Final

import mmh3
import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
HashFunction = Callable[[Collection[str]], Hashes]

GOLDEN_RATIO: Final = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: a constant unrelated to any hash."""

# Steps of lookup3's mix (target, source, other, rotation) and final (target, source, rotation).
_MIX: Final = ((0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4))
_FINAL: Final = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def murmur3_64(features: Collection[str]) -> Hashes:
    """Return the first 8 bytes of MurmurHash3 x64 128, seed 0, little-endian (Appleby, 2011)."""
    digest = mmh3.mmh3_x64_128_digest
    joined = b"".join(map(digest, _encoded(features)))
    return np.frombuffer(joined, dtype="<u8")[::2].astype(np.uint64)


def murmur3_mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return MurmurHash3's 64-bit finalizer of each value."""
    mixed = values ^ (values >> np.uint64(33))
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    return mixed


def murmur3_32_32(features: Collection[str]) -> Hashes:
    """Return MurmurHash3 x86 32 twice: the high half with seed 0, the low half seeded with it."""
    encoded = _encoded(features)
    first = list(map(mmh3.mmh3_32_uintdigest, encoded, repeat(0)))
    second = map(mmh3.mmh3_32_uintdigest, encoded, first)
    high = np.array(first, np.uint64) << np.uint64(32)
    return high | np.fromiter(second, np.uint64, len(encoded))


def jenkins_64(features: Collection[str]) -> Hashes:
    """Return Jenkins' lookup3 (2006): ``hashlittle2`` with both seeds 0, as ``c + (b << 32)``."""
    hashes = np.empty(len(features), dtype=np.uint64)
    encoded = _encoded(features)
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for place, data in enumerate(encoded):
        by_length[len(data)].append(place)
    for length, places in by_length.items():
        joined = b"".join([encoded[place] for place in places])
        hashes[places] = _lookup3(np.frombuffer(joined, np.uint8).reshape(len(places), length))
    return hashes


def _encoded(features: Collection[str]) -> list[bytes]:
    # One long string is encoded faster than many short ones.
    encoded = "\0".join(features).encode("utf-8", "replace").split(b"\0")
    if len(encoded) == len(features):
        return encoded
    return [feature.encode("utf-8", "replace") for feature in features]


def _lookup3(data: NDArray[np.uint8]) -> Hashes:
    """Return the hashes of features of one length, a row of bytes each."""
    count, length = data.shape
    state = [np.full(count, 0xDEADBEEF + length & 0xFFFFFFFF, dtype=np.uint32) for _ in range(3)]
    if length:
        # Pads the last 12 bytes with zeros, which add nothing.
        padded = np.zeros((count, -(-length // 12) * 12), dtype=np.uint8)
        padded[:, :length] = data
        words = padded.view("<u4").astype(np.uint32)
        for start in range(0, words.shape[1], 3):
            for place in range(3):
                state[place] = state[place] + words[:, start + place]
            for changed, by, other, rotation in _MIX if start + 3 < words.shape[1] else ():
                state[changed] = (state[changed] - state[by]) ^ _rotated(state[by], rotation)
                state[by] = state[by] + state[other]
        for changed, by, rotation in _FINAL:
            state[changed] = (state[changed] ^ state[by]) - _rotated(state[by], rotation)
    return state[2].astype(np.uint64) | state[1].astype(np.uint64) << np.uint64(32)


def _rotated(values: NDArray[np.uint32], rotation: int) -> NDArray[np.uint32]:
    return values << np.uint32(rotation) | values >> np.uint32(32 - rotation)
