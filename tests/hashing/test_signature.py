"""Signatures of sets of features, and the resemblance that they estimate."""

import itertools
import statistics

import numpy as np
import pytest

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.hashes import GOLDEN_RATIO, murmur3_64, murmur3_mix
from pgsimhash.hashing.signature import (
    SAME_BITS_MAX,
    SIGNATURE_BITS,
    from_halves,
    to_halves,
)
from pgsimhash.hashing.votes import signature_hashes
from tests.refusals import because


def words(start: int, stop: int) -> list[str]:
    return [f"word {number}" for number in range(start, stop)]


def signature(features: list[str]) -> int:
    return signature_hashes(murmur3_64(features))


def resemblance(a: int, b: int) -> float:
    """The share of common features, which the equal bits estimate."""
    return 1 - 2 * (a ^ b).bit_count() / SIGNATURE_BITS


def test_equal_sets_have_equal_signatures_whose_values_never_change() -> None:
    made = signature(words(0, 300))
    assert 0 <= made < 2**SIGNATURE_BITS
    assert signature(["a", "b", "c"]) == 0x8881EDD765337998C6493DB28573CC1C
    assert signature(words(0, 1000)) == 0xA8CACC80CD4E325D233E317DD986898F
    assert signature(words(0, 300)[::-1]) == made
    assert signature(words(0, 300) * 2) == made


@pytest.mark.parametrize("size", [1, 20, 3000])
def test_each_bit_is_that_of_the_least_hash_in_its_bin(size: int) -> None:
    """The definition, for sets that fill few bins or every one."""
    mixed = murmur3_mix(murmur3_64(words(0, size)) ^ GOLDEN_RATIO)
    least = {int(value) >> 57: value for value in np.sort(mixed)[::-1]}
    numbers = np.arange(SIGNATURE_BITS, dtype=np.uint64)
    made = 0
    for number in range(SIGNATURE_BITS):
        others = np.argsort(murmur3_mix(SIGNATURE_BITS * number + numbers)).tolist()
        source = next(bin_ for bin_ in (number, *others) if bin_ in least)
        bits = murmur3_mix(least[source] ^ murmur3_mix(numbers[number : number + 1]))
        made |= int(bits[0] & 1) << number
    assert signature(words(0, size)) == made


@pytest.mark.parametrize(("size", "shared"), [(30, 0.5), (150, 0.0), (1000, 0.7), (3000, 0.9)])
def test_the_estimate_is_right_on_average(size: int, shared: float) -> None:
    """Pairs of sets that share the part ``shared`` of all their features."""
    both = round(size * shared)
    only = (size - both) // 2
    estimates = []
    for start in range(0, 100 * size, size):
        common = words(start, start + both)
        a = signature(common + words(start + both, start + both + only))
        b = signature(common + words(start + both + only, start + both + 2 * only))
        estimates.append(resemblance(a, b))
    assert statistics.mean(estimates) == pytest.approx(both / (both + 2 * only), abs=0.05)
    # What the module says about the error.
    assert statistics.stdev(estimates) == pytest.approx(0.06, abs=0.015) or shared != 0.7


@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_small_sets_that_share_nothing_look_like_it(size: int) -> None:
    made = [signature(words(start, start + size)) for start in range(0, 60 * size, size)]
    estimates = [resemblance(a, b) for a, b in itertools.pairwise(made)]
    assert statistics.mean(estimates) < 0.1
    assert max(estimates) < 1 - 2 * SAME_BITS_MAX / SIGNATURE_BITS


def test_two_bigints_hold_a_signature() -> None:
    for value in (0, 1, 2**63, 2**64, 2**127, 2**128 - 1, signature(words(0, 50))):
        high, low = to_halves(value)
        assert all(half is not None and -(2**63) <= half < 2**63 for half in (high, low))
        assert from_halves(high, low) == value


def test_an_invalid_signature_is_refused() -> None:
    for wrong in (-1, 2**128):
        with pytest.raises(ArgumentError, match="a signature is"):
            to_halves(wrong)
    with pytest.raises(ArgumentError, match="bigint"):
        from_halves(2**63, 0)
    with pytest.raises(PageError, check=because("too_short")):
        signature([])
