"""The hash functions, the vote and the signature, by published vectors and their definitions."""

import math
import random
import statistics
from typing import Any

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing import hashes
from pgsimhash.hashing.hashes import jenkins_64, murmur3_64, murmur3_mix
from pgsimhash.hashing.signature import (
    SIGNATURE_BITS,
    containment,
    containment_min,
    from_halves,
    to_halves,
    verified,
)
from pgsimhash.hashing.votes import WEIGHT_SUM_MAX, signature_hashes, simhash, vote
from tests.refusals import because

TOP_BIT = 1 << 63
WRONG_WEIGHTS = [-1.0, math.nan, math.inf, -math.inf, WEIGHT_SUM_MAX * 2]


def voted(hashes: list[int], weights: list[float]) -> int:
    return vote(np.array(hashes, dtype=np.uint64), np.array(weights, dtype=np.float64))


def by_definition(weights: dict[int, float]) -> int:
    units = {value: round(weight * 65536) for value, weight in weights.items()}
    ones = [sum(units[value] for value in units if value >> bit & 1) for bit in range(64)]
    return sum((2 * one > sum(units.values())) << bit for bit, one in enumerate(ones))


@given(st.dictionaries(
    st.integers(0, 2**64 - 1), st.floats(2.0**-10, 2.0**20), min_size=1, max_size=50
))  # fmt: skip
def test_the_vote_is_its_definition(features: dict[int, float]) -> None:
    assert voted([*features], [*features.values()]) == by_definition(features)


def test_many_features_are_counted_in_parts_and_in_any_order() -> None:
    chance = random.Random(1)
    hashes = [chance.getrandbits(64) for _ in range(10_000)]
    weights = [chance.choice([1.0, 1.5, 2.25]) for _ in hashes]
    assert voted(hashes, weights) == by_definition(dict(zip(hashes, weights, strict=True)))
    # Sums of doubles depend on their order; sums of units do not.
    features = {f"word{number}": 1 + math.log(1 + number) for number in range(500)}
    expected = simhash(features)
    for _ in range(20):
        shuffled = list(features.items())
        chance.shuffle(shuffled)
        assert simhash(dict(shuffled)) == expected


def test_features_are_counted_and_those_without_weight_do_not_vote() -> None:
    assert simhash(["a", "b", "a", "c", "a"]) == simhash({"a": 3.0, "b": 1.0, "c": 1.0})
    assert simhash(word for word in ("low", "tide")) == simhash(["low", "tide"])
    assert simhash({"tide": 1.0, "pool": 0.0}) == simhash(["tide"])
    assert simhash(["tide"], hash_function=jenkins_64) == int(jenkins_64(["tide"])[0])


@pytest.mark.parametrize("nothing", [
    [], {}, {"tide": 0.0}, {"tide": 1e-9}, np.array([], dtype=np.uint64)
])  # fmt: skip
def test_no_features_give_no_simhash(nothing: Any) -> None:
    with pytest.raises(PageError, check=because("too_short")):
        simhash(nothing)


@pytest.mark.parametrize(("error", "match", "wrong"), [
    (ArgumentError, "weight", [{"tide": 1.0, "pool": weight} for weight in WRONG_WEIGHTS]),
    (ArgumentError, r"in 0\.\.2\*\*64-1", [[1, -1], [1, 2**64]]),
    (ArgumentError, "row 0", [np.array([1.0, 2.0])]), (TypeError, "one string", ["tide pool"]),
    (TypeError, "ready hash", [["tide", 1], [1.0, 2.0], [True], [b"tide"], [("low", "tide")]]),
    (TypeError, "ready hash", [[["low", "tide"]]]),
])  # fmt: skip
def test_invalid_features_are_refused(error: type[Exception], match: str, wrong: list[Any]) -> None:
    for features in wrong:
        with pytest.raises(error, match=match):
            simhash(features)


def test_integers_are_ready_hashes() -> None:
    """Numbers computed by hand; tests/search has those of another implementation."""
    assert simhash({0b0011: 1.0, 0b0101: 3.0}) == 0b0101
    assert simhash([0b0011, 0b0101]) == 0b0001  # a tie is a zero
    assert simhash([TOP_BIT, TOP_BIT | 1, 1]) == TOP_BIT | 1
    assert simhash([2**64 - 1, 2**64 - 1, 0]) == 2**64 - 1
    words = ["low", "tide", "low"]
    ready = murmur3_64(words)
    assert simhash(ready) == simhash(ready.tolist()) == simhash(list(ready)) == simhash(words)
    assert simhash(number for number in (7, 7, 1)) == 7
    with pytest.raises(ValueError, match="differ"):
        vote(np.zeros(2, dtype=np.uint64), np.ones(3))


def words(start: int, stop: int) -> list[str]:
    return [f"word {number}" for number in range(start, stop)]


def signature(features: list[str]) -> int:
    ones = np.ones(len(features))
    return signature_hashes(murmur3_64(features), ones, ones)


def test_equal_sets_have_equal_signatures_whose_values_never_change() -> None:
    made = signature(words(0, 300))
    assert 0 <= made < 2**SIGNATURE_BITS
    assert signature(["a", "b", "c"]) == 0xDCE7A98B44E52F4C81DB89E39A85900D
    assert signature(words(0, 1000)) == 0x7967CD88E7BE30157A90641823228350
    assert signature(words(0, 300)[::-1]) == made


@pytest.mark.parametrize("size", [1, 20, 3000])
def test_each_bit_is_that_of_the_least_hash_in_its_bin(size: int) -> None:
    """The definition, for sets that fill few bins or every one. The last byte is the size."""
    mixed = murmur3_mix(murmur3_64(words(0, size)) ^ np.uint64(0xEFA6F4A65354892B))
    least = {int(value) >> 58: value for value in np.sort(mixed)[::-1]}
    numbers = np.arange(64, dtype=np.uint64)
    made = vote(mixed, np.ones(size)) << 64 | round(8 * math.log2(size))
    for number in range(8, 64):
        others = np.argsort(murmur3_mix(64 * number + numbers)).tolist()
        source = next(bin_ for bin_ in (number, *others) if bin_ in least)
        bits = murmur3_mix(least[source] ^ murmur3_mix(numbers[number : number + 1]))
        made |= int(bits[0] & 1) << number
    assert signature(words(0, size)) == made


@pytest.mark.parametrize(("size", "part", "added"), [
    (300, 0.6, 0), (300, 0.8, 100), (300, 1.0, 300), (1000, 0.7, 0), (20, 0.0, 0), (2, 0.0, 5),
])  # fmt: skip
def test_the_share_of_the_smaller_page_in_the_larger_one(
    size: int, part: float, added: int
) -> None:
    shares, copies = [], 0
    for start in range(0, 100_000, 1000):
        smaller = words(start, start + size)
        kept = smaller[: round(size * part)]
        larger = kept + words(start + size, start + 2 * size - len(kept) + added)
        signatures = signature(smaller), signature(larger)
        shares.append(containment(*signatures))
        copies += verified(0, *signatures)
    if part:
        assert statistics.mean(shares) == pytest.approx(part, abs=0.07)
    else:
        assert not copies


def test_nearer_pages_need_less_in_common() -> None:
    second = 0b1011 << 64  # of which the other page's second simhash has no bit
    for page, other, of_a_bit in (
        (100, 50, 0.018), (228, 60, 0.018), (100, 49, 0.015), (228, 178, 0.014),
        (228, 177, 0.01),
    ):  # fmt: skip
        limits = [containment_min(distance, page | second, other) for distance in range(20)]
        assert limits == pytest.approx([0.6298 + of_a_bit * (3 + each) for each in range(20)])


def test_no_page_is_a_copy_whose_both_simhashes_are_far() -> None:
    half = signature(words(0, 300))
    assert verified(12, half, half ^ 0xFF << 64)
    assert not verified(12, half, half ^ 0x1FF << 64)
    # The larger page has more than all of the smaller one, by the estimate.
    assert containment(half, half + 4) == 1
    assert not verified(12, half, half + 4 ^ 0x1FF << 64)


def test_two_bigints_hold_a_signature_and_an_invalid_one_is_refused() -> None:
    for value in (0, 1, 2**63, 2**64, 2**127, 2**128 - 1, signature(words(0, 50))):
        high, low = to_halves(value)
        assert all(half is not None and -(2**63) <= half < 2**63 for half in (high, low))
        assert from_halves(high, low) == value
    for wrong in (-1, 2**128):
        with pytest.raises(ArgumentError, match="a signature is"):
            to_halves(wrong)
    with pytest.raises(ArgumentError, match="bigint"):
        from_halves(2**63, 0)
    with pytest.raises(PageError, check=because("too_short")):
        signature([])


ALL = [hashes.murmur3_64, hashes.murmur3_32_32, hashes.jenkins_64]
FOX = "The quick brown fox jumps over the lazy dog"
LOW, LOW_32 = 2**64 - 1, 2**32 - 1


@pytest.mark.parametrize(("function", "text", "published"), [
    # MurmurHash3_x64_128 with seed 0 prints this, followed by 7a433ca9c49a9347.
    (hashes.murmur3_64, FOX, 0xE34BBC7BBC071B6C), (hashes.murmur3_64, "", 0),
    # MurmurHash3_x86_32 of the empty string with seed 0 is 0, which is then the other seed.
    (hashes.murmur3_32_32, "", 0),
    # driver5() in lookup3.c prints these as c and b: deadbeef deadbeef, 17770551 ce7226e6.
    (hashes.jenkins_64, "", 0xDEADBEEF_DEADBEEF),
    (hashes.jenkins_64, "Four score and seven years ago", 0xCE7226E6_17770551),
])  # fmt: skip
def test_published_vectors(function: hashes.HashFunction, text: str, published: int) -> None:
    assert [f"{value:016x}" for value in function([text]).tolist()] == [f"{published:016x}"]


@pytest.mark.parametrize("function", ALL)
def test_each_hash_depends_on_its_feature_alone(function: hashes.HashFunction) -> None:
    features = ["tide", "", "tide pool", "naïve", "朝市", FOX, "tide"]
    alone = [function([feature]).tolist()[0] for feature in features]
    assert function(features).tolist() == alone
    assert function([]).tolist() == []
    assert function(dict.fromkeys(features)).tolist() == alone[:-1]
    # A lone surrogate is a question mark.
    assert function(["tide\ud800"]).tolist() == function(["tide?"]).tolist()


@given(st.lists(st.text(max_size=60)))
def test_murmur3_is_mmh3s(features: list[str]) -> None:
    clean = [feature.encode("utf-8", "replace") for feature in features]
    halves = [mmh3.hash64(data, seed=0, x64arch=True, signed=False)[0] for data in clean]
    assert hashes.murmur3_64(features).tolist() == halves
    first = [mmh3.hash(data, 0, signed=False) for data in clean]
    second = [mmh3.hash(data, seed, signed=False) for data, seed in zip(clean, first, strict=True)]
    joined = [high << 32 | low for high, low in zip(first, second, strict=True)]
    assert hashes.murmur3_32_32(features).tolist() == joined


@given(st.text(max_size=60))
def test_jenkins_is_its_definition(text: str) -> None:
    assert hashes.jenkins_64([text]).tolist() == [lookup3(text.encode("utf-8", "replace"))]


def lookup3(data: bytes) -> int:
    """hashlittle2 with both seeds 0, one step per line."""

    def turned(value: int, by: int) -> int:
        return (value << by | value >> 32 - by) & LOW_32

    a = b = c = 0xDEADBEEF + len(data) & LOW_32
    while data:
        block, data = data[:12].ljust(12, b"\0"), data[12:]
        a = a + int.from_bytes(block[:4], "little") & LOW_32
        b = b + int.from_bytes(block[4:8], "little") & LOW_32
        c = c + int.from_bytes(block[8:], "little") & LOW_32
        if not data:
            c = (c ^ b) - turned(b, 14) & LOW_32
            a = (a ^ c) - turned(c, 11) & LOW_32
            b = (b ^ a) - turned(a, 25) & LOW_32
            c = (c ^ b) - turned(b, 16) & LOW_32
            a = (a ^ c) - turned(c, 4) & LOW_32
            b = (b ^ a) - turned(a, 14) & LOW_32
            c = (c ^ b) - turned(b, 24) & LOW_32
        else:
            a, c = (a - c & LOW_32) ^ turned(c, 4), c + b & LOW_32
            b, a = (b - a & LOW_32) ^ turned(a, 6), a + c & LOW_32
            c, b = (c - b & LOW_32) ^ turned(b, 8), b + a & LOW_32
            a, c = (a - c & LOW_32) ^ turned(c, 16), c + b & LOW_32
            b, a = (b - a & LOW_32) ^ turned(a, 19), a + c & LOW_32
            c, b = (c - b & LOW_32) ^ turned(b, 4), b + a & LOW_32
    return b << 32 | c
