"""The vote, and the frozen numbers for implementations in other languages."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.hashes import fnv1a_64, murmur3_64
from pgsimhash.hashing.votes import WEIGHT_SUM_MAX, simhash, vote
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
    assert simhash(["tide"], hash_function=fnv1a_64) == int(fnv1a_64(["tide"])[0])


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
    """Numbers computed by hand; tests/test_compat.py has those of another implementation."""
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
