"""The hash functions, checked by published vectors and by their definitions."""

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.hashing import hashes

ALL = [hashes.murmur3_64, hashes.murmur3_32_32, hashes.fnv1a_64, hashes.jenkins_64]
FOX = "The quick brown fox jumps over the lazy dog"
LOW, LOW_32 = 2**64 - 1, 2**32 - 1


@pytest.mark.parametrize(("function", "text", "published"), [
    # MurmurHash3_x64_128 with seed 0 prints this, followed by 7a433ca9c49a9347.
    (hashes.murmur3_64, FOX, 0xE34BBC7BBC071B6C), (hashes.murmur3_64, "", 0),
    # MurmurHash3_x86_32 of the empty string with seed 0 is 0, which is then the other seed.
    (hashes.murmur3_32_32, "", 0),
    # The tables of RFC 9923.
    (hashes.fnv1a_64, "", 0xCBF29CE484222325), (hashes.fnv1a_64, "a", 0xAF63DC4C8601EC8C),
    (hashes.fnv1a_64, "foobar", 0x85944171F73967E8),
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
def test_fnv_and_jenkins_are_their_definitions(text: str) -> None:
    value = 0xCBF29CE484222325
    for octet in text.encode("utf-8", "replace"):
        value = (value ^ octet) * 0x100000001B3 & LOW
    assert hashes.fnv1a_64([text]).tolist() == [value]
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
