"""Combine weighted features into one 64-bit simhash by a vote, and into a signature.

Each feature is hashed to 64 bits. A set bit adds the feature's weight at its position; a clear bit
subtracts it. The simhash has a 1 where the sum is above zero (Charikar, "Similarity Estimation
Techniques from Rounding Algorithms", STOC 2002; Manku, Jain, Das Sarma, "Detecting Near-Duplicates
for Web Crawling", WWW 2007, section 2).

Weights are rounded to multiples of 2**-16. So sums are exact, and the order of addition, the
platform and the BLAS cannot change a bit.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import PageError, invalid_argument
from pgsimhash.hashing.bits import BITS, as_simhashes, checked_integer
from pgsimhash.hashing.hashes import HashFunction, murmur3_64, murmur3_mix
from pgsimhash.hashing.signature import SIZE_BITS, SIZE_MAX, SIZE_STEPS

WEIGHT_UNIT: Final = 2.0**-16  # weights are rounded to multiples of this (ties to even)
WEIGHT_SUM_MAX: Final = 2.0**36  # the largest sum of weights; up to here doubles add units exactly
_BIN_BITS: Final = 6
_BINS: Final = 1 << _BIN_BITS
# Other hashes for the signature, so that it is independent of the simhash.
_SECOND: Final = np.uint64(0xEFA6F4A65354892B)
_LEAST_WEIGHT: Final = 2.0**-40
_CHUNK: Final = 4096  # how many features are added at a time: 2 MB of bits as doubles


def simhash(
    features: Iterable[str] | Iterable[int] | Mapping[str, float] | Mapping[int, float],
    *,
    hash_function: HashFunction = murmur3_64,
) -> int:
    """Return the simhash of ``features``.

    Args:
        features: the features, each with weight 1 per occurrence; or a mapping from feature to
            weight. Integers, or an array of dtype uint64, are 64-bit hashes.
        hash_function: the function that hashes strings, such as those of
            :mod:`pgsimhash.hashing.hashes`.

    Returns:
        An ``int`` with 0 <= x < 2**64.

    Raises:
        PageError: no feature has a weight above zero.
        ArgumentError: a weight is negative or not finite, their sum is above 2**36, or a hash is
            not in 0..2**64-1.
        TypeError: ``features`` is one string, mixes strings and hashes, or has a feature that is
            neither.
    """
    if isinstance(features, str | bytes):
        raise TypeError("features is an iterable of strings or hashes, not one string; split it")
    if isinstance(features, np.ndarray):
        hashes = as_simhashes(features)
        return vote(hashes, np.ones(len(hashes)))
    try:
        weighted = features if isinstance(features, Mapping) else Counter(features)
    except TypeError as error:
        raise TypeError(
            f'a feature is a string or a ready hash ({error}); join tokens with " ".join'
        ) from None
    weights = np.fromiter(weighted.values(), dtype=np.float64, count=len(weighted))
    strings = sum(isinstance(feature, str) for feature in weighted)
    if 0 < strings < len(weighted):
        raise TypeError("features are strings, or ready hashes, not some of each")
    if strings:
        return vote(hash_function(cast("Collection[str]", weighted.keys())), weights)
    ready = map(check_hash, cast("Collection[int]", weighted.keys()))
    return vote(np.fromiter(ready, dtype=np.uint64, count=len(weighted)), weights)


def check_hash(value: SupportsIndex) -> int:
    """Return ``value`` as an ``int`` in 0..2**64-1."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"a feature is a string or a ready hash, not {type(value).__name__}; join a window of "
            'tokens with " ".join'
        )
    return checked_integer(value, (1 << BITS) - 1, "a ready hash is in 0..2**64-1")


def vote(hashes: NDArray[np.uint64], weights: NDArray[np.float64]) -> int:
    """Return the simhash that hashes (shape (n,)) with these weights (shape (n,)) vote for."""
    if hashes.shape != weights.shape or hashes.ndim != 1:
        raise ValueError(f"one weight for each hash: {hashes.shape} and {weights.shape} differ")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise invalid_argument("a feature's weight is a finite number, 0 or more")
    if weights.sum() > WEIGHT_SUM_MAX:
        raise invalid_argument("the weights add up to more than 2**36; scale them down")
    units = np.rint(weights / WEIGHT_UNIT)
    total = units.sum()
    if total == 0:
        raise PageError("too_short", "there is no feature to vote, so there is no simhash")
    data = hashes.astype("<u8", copy=False).view(np.uint8)
    ones = np.zeros(64)
    for start in range(0, len(hashes), _CHUNK):
        bits = np.unpackbits(data[8 * start : 8 * (start + _CHUNK)], bitorder="little")
        ones += units[start : start + _CHUNK] @ bits.reshape(-1, 64).astype(np.float64)
    return int.from_bytes(np.packbits(2.0 * ones > total, bitorder="little").tobytes(), "little")


def signature_hashes(
    hashes: NDArray[np.uint64], weights: NDArray[np.float64], votes: NDArray[np.float64]
) -> int:
    """Return the signature of the features with these hashes, an ``int`` with 0 <= x < 2**128.

    The upper 64 bits are the second simhash, with the weights ``votes``. A bin selects the feature
    with the least ``-ln(1 - u) / weight``, where u in 0..1 is the position of its hash in the bin.
    So a feature is selected in proportion to its weight (Moulton, Jiang, "Maximally Consistent
    Sampling and the Jaccard Index of Probability Distributions", ICDM 2018), and light features at
    the edge of a page rarely show in the signature. The lowest 7 bits are the size: 8 times the
    binary logarithm of the sum of the weights, at most 127.
    """
    mixed = murmur3_mix(hashes ^ _SECOND)
    second = vote(mixed, votes)
    bins = (mixed >> np.uint64(BITS - _BIN_BITS)).astype(np.intp)
    keys = (mixed << np.uint64(_BIN_BITS) >> np.uint64(BITS - 53)).astype(np.float64) * 2.0**-53
    keys = -np.log1p(-keys) / np.maximum(weights, _LEAST_WEIGHT)
    best = np.full(_BINS, np.inf)
    np.minimum.at(best, bins, keys)
    chosen = np.flatnonzero(keys == best[bins])
    least = np.zeros(_BINS, dtype=np.uint64)
    # Equal keys need a rule: the larger hash.
    np.maximum.at(least, bins[chosen], mixed[chosen])
    filled = best < np.inf
    numbers = np.arange(_BINS, dtype=np.uint64)
    source = numbers.astype(np.intp)
    if not filled.all():
        sources = bins_to_copy()
        source = sources[source, filled[sources].argmax(axis=1)]
    # The bin's own number keeps a copied hash from giving the same bit twice.
    bits = murmur3_mix(least[source] ^ murmur3_mix(numbers)) & np.uint64(1)
    sampled = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
    total = np.rint(weights / WEIGHT_UNIT).sum() * WEIGHT_UNIT
    size = min(round(SIZE_STEPS * math.log2(max(total, 1.0))), SIZE_MAX)
    return second << BITS | int.from_bytes(sampled, "little") >> SIZE_BITS << SIZE_BITS | size


@cache
def bins_to_copy() -> NDArray[np.intp]:
    """Return for each bin the bins to copy from: itself, then all bins in pseudo-random order."""
    keys = murmur3_mix(np.arange(_BINS**2, dtype=np.uint64)).reshape(_BINS, -1)
    own = np.arange(_BINS)[:, np.newaxis]
    return np.hstack((own, np.argsort(keys, 1))).astype(np.intp)
