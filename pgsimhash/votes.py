"""The vote that turns weighted features into one 64-bit simhash.

Each feature is hashed to 64 bits; a set bit adds the feature's weight to that position, a clear
bit takes it away, and the simhash has a 1 wherever the sum is above zero (Charikar, "Similarity
Estimation Techniques from Rounding Algorithms", STOC 2002; Manku, Jain, Das Sarma, "Detecting
Near-Duplicates for Web Crawling", WWW 2007, section 2).

Weights are rounded to multiples of 2**-16, so that every sum is exact and no order of addition,
no platform and no BLAS can change a bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import InvalidWeightError, TooShortError
from pgsimhash.hashes import HashFunction, murmur3_64

WEIGHT_UNIT: Final = 2.0**-16
"""Weights are rounded to multiples of this (ties to even)."""

WEIGHT_SUM_MAX: Final = 2.0**36
"""The largest sum of weights; up to here doubles count in units without rounding."""

_CHUNK: Final = 4096
"""How many features are counted at once: 2 MB of bits as doubles."""


def simhash(
    features: Iterable[str] | Mapping[str, float], *, hash_function: HashFunction = murmur3_64
) -> int:
    """Return the simhash of ``features``.

    Args:
        features: the features, each counting 1 for every time it occurs; or a mapping from
            feature to weight.
        hash_function: what hashes them, one of :mod:`pgsimhash.hashes` or another.

    Returns:
        An ``int`` with 0 <= x < 2**64.

    Raises:
        TooShortError: there is no feature, or none with a weight above zero.
        InvalidWeightError: a weight is negative or not finite, or their sum is above 2**36.
        TypeError: ``features`` is one string, or a feature is no string.
    """
    if isinstance(features, str | bytes):
        raise TypeError("features is an iterable of strings, not one string; split it first")
    weighted = features if isinstance(features, Mapping) else Counter(features)
    weights = np.fromiter(weighted.values(), dtype=np.float64, count=len(weighted))
    return vote(hash_function(weighted.keys()), weights)


def vote(hashes: NDArray[np.uint64], weights: NDArray[np.float64]) -> int:
    """Return the simhash that ``hashes``, each with its weight, vote for.

    Args:
        hashes: shape (n,), dtype uint64.
        weights: shape (n,), dtype float64, none negative.

    Returns:
        An ``int`` with 0 <= x < 2**64; a bit whose sum is exactly zero is 0.

    Raises:
        TooShortError: there is no hash, or none with a weight above zero.
        InvalidWeightError: a weight is negative or not finite, or their sum is above 2**36.
        ValueError: the shapes differ.
    """
    if hashes.shape != weights.shape or hashes.ndim != 1:
        raise ValueError(f"one weight for each hash: {hashes.shape} and {weights.shape} differ")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidWeightError("a feature's weight is a finite number, 0 or more")
    if weights.sum() > WEIGHT_SUM_MAX:
        raise InvalidWeightError("the weights add up to more than 2**36; scale them down")
    units = np.rint(weights / WEIGHT_UNIT)
    total = units.sum()
    if total == 0:
        raise TooShortError("there is no feature to vote, so there is no simhash")
    octets = hashes.astype("<u8", copy=False).view(np.uint8)
    ones = np.zeros(64)
    for start in range(0, len(hashes), _CHUNK):
        bits = np.unpackbits(octets[8 * start : 8 * (start + _CHUNK)], bitorder="little")
        ones += units[start : start + _CHUNK] @ bits.reshape(-1, 64).astype(np.float64)
    return int.from_bytes(np.packbits(2.0 * ones > total, bitorder="little").tobytes(), "little")
