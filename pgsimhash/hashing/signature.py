"""Verification of matches: a second simhash, and how much of a page another page has.

A simhash compares the directions of two feature vectors by 64 samples, so pages can be near by
chance. The upper 64 bits of a signature are a second simhash, of other hashes of the same features.

Short pages of one template can have near directions, and so can pages that differ in features of
little weight. So 56 bits estimate the share of common features. They are b-bit minwise hashing with
b = 1 (Li and König, "b-Bit Minwise Hashing", WWW 2010) with one permutation (Li, Owen, Zhang, "One
Permutation Hashing", NIPS 2012). Empty bins copy from others (Shrivastava, "Optimal Densification
for Fast and Accurate Minwise Hashing", ICML 2017). A feature's hash picks a bin; the least hash in
a bin gives the bin's bit. If two sets share the part R of all their features, a bit is equal with
probability (1 + R) / 2. The standard error of R is 0.10 for 0.7, and 0.13 for 0.

The lowest 7 bits are the size: 8 times the binary logarithm of the sum of the features' weights.
With the sizes, R gives the share of the smaller page that the larger one has. An edited copy keeps
most of the page and adds to it. Another page of the same template replaces a part by its own. Plain
texts have no template, so less is asked of them; the bit above the size marks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from pgsimhash.hashing.bits import BITS, checked_integer, from_bigint, to_bigint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["from_halves", "to_halves", "verified"]

SIGNATURE_BITS: Final = 128
SIZE_BITS: Final = 8  # with the mark of plain texts
SIZE_STEPS: Final = 8  # the steps of a size between a page and one twice as large
SIZE_MAX: Final = 127
PLAIN_TEXT: Final = 128  # the mark

_SAMPLED: Final = BITS - SIZE_BITS
_SAMPLES: Final = (1 << BITS) - (1 << SIZE_BITS)
_LEAST: Final = 0.6298  # the containment of copies; at 0.63, rounding would decide some matches
_SHORT: Final = 50  # a size (76): each feature changes more bits
_OF_A_BIT: Final = ((0.018, 0.015), (0.014, 0.01))  # of pages and texts, of which the second short


def verified(distance: int, a: int | None, b: int | None) -> bool:
    """Return whether the signatures of two pages confirm a match at ``distance``.

    A page without a signature confirms every match.
    """
    return a is None or b is None or containment(a, b) >= containment_min(distance, a, b)


def containment(a: int, b: int) -> float:
    """Return the estimated share of the smaller page that the larger one has, 0 to 1."""
    differing = ((a ^ b) & _SAMPLES).bit_count()
    resemblance = max(1 - 2 * differing / _SAMPLED, 0.0)
    # Beyond a ratio of 2, the estimate says little.
    ratio = math.exp2(min(abs((a & SIZE_MAX) - (b & SIZE_MAX)), SIZE_STEPS) / SIZE_STEPS)
    return min(resemblance * (1 + ratio) / (1 + resemblance), 1.0)


def containment_min(distance: int, a: int, b: int) -> float:
    """Return the least :func:`containment` of copies whose simhashes differ in ``distance`` bits.

    It is 0.63, and 0.018 for each bit in which these or the second simhashes differ: 0.015 if
    one page is short, 0.014 for plain texts, 0.01 for short ones. Nothing is a copy above 1.
    """
    is_short = min(a & SIZE_MAX, b & SIZE_MAX) < _SHORT
    of_a_bit = _OF_A_BIT[a & b & PLAIN_TEXT > 0][is_short]
    return _LEAST + of_a_bit * (distance + ((a ^ b) >> BITS).bit_count())


def confirmations(
    signatures: Sequence[int | None],
) -> Callable[[int | NDArray[np.int64], NDArray[np.int64], NDArray[Any]], NDArray[np.bool_]]:
    """Return :func:`verified` for one or many of the signatures and others, by their distances."""
    import numpy as np

    size = SIGNATURE_BITS // 8
    data = b"".join(each.to_bytes(size, "little") for each in signatures if each is not None)
    signed = np.array([each is not None for each in signatures], dtype=np.bool_)
    high, low = np.zeros((2, len(signatures)), dtype=np.uint64)
    low[signed], high[signed] = np.frombuffer(data, dtype="<u8").reshape(-1, 2).T
    sizes = (low & np.uint64(SIZE_MAX)).astype(np.int64)
    is_plain = (low & np.uint64(PLAIN_TEXT)) > 0
    low &= np.uint64(_SAMPLES)
    of_a_bit = np.array(_OF_A_BIT)

    def confirmed(
        one: int | NDArray[np.int64], others: NDArray[np.int64], distances: NDArray[Any]
    ) -> NDArray[np.bool_]:
        differing = np.bitwise_count(low[others] ^ low[one]).astype(np.int64)
        resemblance = np.maximum(1 - 2 * differing / _SAMPLED, 0)
        ratio = np.exp2(np.minimum(abs(sizes[others] - sizes[one]), SIZE_STEPS) / SIZE_STEPS)
        share = np.minimum(resemblance * (1 + ratio) / (1 + resemblance), 1)
        is_short = np.minimum(sizes[others], sizes[one]) < _SHORT
        kinds = (is_plain[others] & is_plain[one]).astype(np.intp), is_short.astype(np.intp)
        least = _LEAST + of_a_bit[kinds] * (distances + np.bitwise_count(high[others] ^ high[one]))
        result: NDArray[np.bool_] = ~(signed[others] & signed[one]) | (share >= least)
        return result

    return confirmed


def to_halves(signature: SupportsIndex | None) -> tuple[int | None, int | None]:
    """Return the two numbers PostgreSQL stores for a signature, the high half first."""
    if signature is None:
        return None, None
    largest = (1 << SIGNATURE_BITS) - 1
    value = checked_integer(signature, largest, "a signature is an integer in 0..2**128-1")
    return to_bigint(value >> BITS), to_bigint(value % (1 << BITS))


def from_halves(high: int | None, low: int | None) -> int | None:
    """Return the signature of two numbers from PostgreSQL, None for NULL."""
    return None if high is None or low is None else from_bigint(high) << BITS | from_bigint(low)
