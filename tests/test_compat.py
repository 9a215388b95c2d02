"""What the tests of simhash-py assert."""

import itertools
import random
import re

import pytest

from pgsimhash import ArgumentError, compat

POEM = """It was many and many a year ago, in a kingdom by the sea, that a maiden there lived whom
you may know by the name of Annabel Lee; and this maiden she lived with no other thought than to
love and be loved by me. I was a child and she was a child, in this kingdom by the sea, but we
loved with a love that was more than love, I and my Annabel Lee; with a love that the winged
seraphs of Heaven coveted her and me."""
OTHER = """There was an old man with a beard, who said: it is just as I feared! Two owls and a hen,
four larks and a wren, have all built their nests in my beard."""


def computed(text: str) -> int:
    tokens = "".join(re.split(r"\W+", text.lower()))
    return compat.compute(
        compat.unsigned_hash("".join(window).encode()) for window in compat.shingle(tokens, 4)
    )


def test_computing_simhashes() -> None:
    assert compat.num_differing_bits(0xDEADBEEF, 0xDEADBEAD) == 2
    assert compat.compute([]) == 0
    assert compat.compute([0xDEADBEEF] * 100) == 0xDEADBEEF
    assert compat.compute([0xDEADBEEFDEADBEEF, 0x2152411021524110]) == 0
    assert compat.compute([0xABCD, 0xBCDE, 0xCDEF]) == 0xADCF
    assert compat.unsigned_hash(b"") == 0xD41D8CD98F00B204
    assert compat.num_differing_bits(computed(POEM), computed(POEM + " by Edgar A. Poe")) <= 3
    assert compat.num_differing_bits(computed(POEM), computed(OTHER)) > 3
    # Windows of tokens.
    assert list(compat.shingle(range(6))) == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]
    assert list(compat.shingle(range(3), 4)) == []
    for window in (0, -1):
        with pytest.raises(ValueError, match="1 token or more"):
            list(compat.shingle(range(10), window))


DIVERSE = [
    0x00000000, 0x10101000, 0x10100010, 0x10001010, 0x00101010, 0x01010100, 0x01010001, 0x01000101,
    0x00010101,
]  # fmt: skip
"""Published with seomoz/simhash-py: the pairs within three bits."""


def shifted(*hashes: int) -> list[int]:
    return [number << shift for shift in (0, 8, 16, 24) for number in hashes]


@pytest.mark.parametrize(("hashes", "count"), [
    (shifted(0xFF, 0xEF, 0xEE, 0xCE, 0x33), 24),
    (DIVERSE, 20), ([random.Random(n).getrandbits(10) << 40 for n in range(200)] * 2, None),
])  # fmt: skip
def test_all_pairs_for_each_number_of_blocks(hashes: list[int], count: int | None) -> None:
    ordered = sorted({*hashes})
    pairs = itertools.combinations(ordered, 2)
    near = [pair for pair in pairs if compat.num_differing_bits(*pair) <= 3]
    for blocks in range(4, 10):
        assert sorted(compat.find_all(hashes, blocks, 3)) == near
    assert count in (len(near), None)
    with pytest.raises(ArgumentError, match="above different_bits"):
        compat.find_all(hashes, 3, 3)
