"""Verification of matches: 128 bits that estimate how many features two pages share.

A simhash tells how pages differ in direction. Short pages of one template meet by it, and so do
pages whose different parts have little weight. What two pages share of their features is another
question. Asking both removes most false matches and next to no copies.

The sketch is b-bit minwise hashing with b = 1 (Li and König, "b-Bit Minwise Hashing", WWW 2010)
of one permutation (Li, Owen, Zhang, "One Permutation Hashing", NIPS 2012), in which empty bins
borrow from others (Shrivastava, "Optimal Densification for Fast and Accurate Minwise Hashing",
ICML 2017). A feature's hash picks one of 128 bins; the least hash in a bin gives the bin's bit.
Two sets that share the part R of all their features agree in a bit with probability (1 + R) / 2.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final, SupportsIndex

from pgsimhash.bits import BITS, from_bigint, to_bigint
from pgsimhash.errors import ArgumentError, PageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SKETCH_BITS: Final = 128

SAME_BITS_MAX: Final = 22
"""In how many bits the sketches of copies differ at most: a resemblance of 0.66 or more.

In SQL: ``bit_count(a.high # b.high) + bit_count(a.low # b.low) <= 22``.
"""

CLOSE_DISTANCE: Final = 5
"""Up to this distance :data:`CLOSE_BITS_MAX` applies: different pages are hardly ever as near."""

CLOSE_BITS_MAX: Final = 28
"""The same for matches up to :data:`CLOSE_DISTANCE`: a resemblance of 0.56 or more.

Pages that share half of their words resemble each other by a third; their sketches differ in 43
bits, give or take 5.
"""

_BIN_BITS: Final = 7
_LEAST_WEIGHT: Final = 2.0**-40


def sketch(features: Iterable[str]) -> int:
    """Return the sketch of a set of features, an ``int`` with 0 <= x < 2**128.

    Args:
        features: the features; how often one occurs, and a mapping's weights, do not matter.

    Raises:
        PageError: there is no feature.
        TypeError: ``features`` is one string.
    """
    if isinstance(features, str | bytes):
        raise TypeError("features is an iterable of strings, not one string; split it first")
    from pgsimhash.hashes import murmur3_64

    return sketch_hashes(murmur3_64(list(features)))


def sketch_hashes(hashes: NDArray[np.uint64], weights: NDArray[np.float64] | None = None) -> int:
    """Return the sketch of the features with these hashes (shape (n,), dtype uint64).

    Of the features of a bin the one with the least ``-ln(1 - u) / weight`` counts, where u is what
    its hash is in the bin, from 0 to 1: a feature is taken as often as its weight says (Moulton,
    Jiang, "Maximally Consistent Sampling and the Jaccard Index of Probability Distributions",
    ICDM 2018). So what weighs little at the edge of a page hardly ever shows in the sketch. With
    equal weights, which is what None stands for, it is the feature with the least hash.

    Args:
        hashes: the hashes.
        weights: the weight of each feature, above 0 (shape (n,), dtype float64).

    Raises:
        PageError: there is none.
    """
    import numpy as np

    from pgsimhash.hashes import GOLDEN_RATIO, murmur3_mix

    if not len(hashes):
        raise PageError("too_short", "there is no feature, so there is no sketch")
    # Bins and the bits of the simhash come from the same hash: by this they share nothing.
    mixed = murmur3_mix(hashes ^ GOLDEN_RATIO)
    bins = (mixed >> np.uint64(BITS - _BIN_BITS)).astype(np.intp)
    keys = (mixed << np.uint64(_BIN_BITS) >> np.uint64(BITS - 53)).astype(np.float64) * 2.0**-53
    if weights is not None:
        keys = -np.log1p(-keys) / np.maximum(weights, _LEAST_WEIGHT)
    best = np.full(SKETCH_BITS, np.inf)
    np.minimum.at(best, bins, keys)
    chosen = np.flatnonzero(keys == best[bins])
    least = np.zeros(SKETCH_BITS, dtype=np.uint64)
    # Of two that share a key, the larger hash is taken: a rule is needed, whichever.
    np.maximum.at(least, bins[chosen], mixed[chosen])
    filled = best < np.inf
    lenders = _lenders()
    numbers = np.arange(SKETCH_BITS, dtype=np.uint64)
    lender = lenders[numbers, filled[lenders].argmax(axis=1)]
    # The bin's own number goes in: what it borrowed is then no copy of the lender's bit.
    bits = murmur3_mix(least[lender] ^ murmur3_mix(numbers)) & np.uint64(1)
    return int.from_bytes(np.packbits(bits.astype(np.uint8), bitorder="little").tobytes(), "little")


def resemblance(a: SupportsIndex, b: SupportsIndex) -> float:
    """Return the estimated share of common features, 0.0 to 1.0, of two sketches.

    The standard error is 0.06 for a resemblance of 0.7, and 0.09 for 0.

    Raises:
        ArgumentError: one is no sketch.
    """
    differing = (_checked(a) ^ _checked(b)).bit_count()
    return max(1.0 - 2.0 * differing / SKETCH_BITS, 0.0)


def verified(distance: int, a: int | None, b: int | None) -> bool:
    """Return whether the sketches of two pages confirm a match at ``distance``.

    A page without a sketch confirms every match.
    """
    if a is None or b is None:
        return True
    return (a ^ b).bit_count() <= bits_max(distance)


def bits_max(distance: int) -> int:
    """Return in how many bits sketches may differ that confirm a match at ``distance``."""
    return CLOSE_BITS_MAX if distance <= CLOSE_DISTANCE else SAME_BITS_MAX


def to_bigints(value: SupportsIndex) -> tuple[int, int]:
    """Return the two numbers PostgreSQL stores for a sketch, the high half first.

    Raises:
        ArgumentError: it is no sketch.
    """
    high, low = divmod(_checked(value), 1 << BITS)
    return to_bigint(high), to_bigint(low)


def from_bigints(high: int, low: int) -> int:
    """Return the sketch behind two PostgreSQL ``bigint``.

    Raises:
        ArgumentError: one is outside -2**63..2**63-1.
    """
    return from_bigint(high) << BITS | from_bigint(low)


def to_halves(sketch: int | None) -> tuple[int | None, int | None]:
    """Return the two numbers for PostgreSQL, None where there is no sketch."""
    return (None, None) if sketch is None else to_bigints(sketch)


def from_halves(high: int | None, low: int | None) -> int | None:
    """Return the sketch of two numbers from PostgreSQL, None where it has none."""
    return None if high is None or low is None else from_bigints(high, low)


def _checked(value: SupportsIndex) -> int:
    number = operator.index(value)
    if not 0 <= number < 1 << SKETCH_BITS:
        raise ArgumentError(
            "invalid_sketch", f"{number} is outside 0..2**128-1, so it is no sketch"
        )
    return number


@cache
def _lenders() -> NDArray[np.intp]:
    """In each row a bin, then all bins in an order of chance: the first filled one lends."""
    import numpy as np

    from pgsimhash.hashes import murmur3_mix

    chances = murmur3_mix(np.arange(SKETCH_BITS**2, dtype=np.uint64)).reshape(SKETCH_BITS, -1)
    own = np.arange(SKETCH_BITS)[:, np.newaxis]
    return np.hstack((own, np.argsort(chances, 1))).astype(np.intp)
