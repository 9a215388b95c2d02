"""Shingles and their weights."""

from __future__ import annotations

import math

import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.features import Damping, shingle, shingles, weigh


def test_words_and_pairs_weigh_the_root_of_their_count() -> None:
    assert weigh(["low", "tide", "low", "tide"]) == {
        "low": math.sqrt(2), "tide": math.sqrt(2), "low tide": math.sqrt(2), "tide low": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(("damping", "weight"), [("sqrt", math.sqrt(3)), ("linear", 3.0)])
def test_a_count_is_damped_by_the_option(damping: Damping, weight: float) -> None:
    assert weigh(["tide"] * 3 + ["pool"], (1,), damping) == {"tide": weight, "pool": 1.0}


def test_invalid_shingles_are_refused() -> None:
    for window in (0, -1):
        with pytest.raises(ArgumentError, match="1 token or more"):
            shingle(["low", "tide"], window)
        with pytest.raises(ArgumentError, match="1 token"):
            shingles(["tide"], window)
    with pytest.raises(ArgumentError, match="sqrt, linear"):
        weigh(["tide"], (1,), "cube")  # type: ignore[arg-type]


def test_windows_of_tokens_are_lists() -> None:
    tokens = ["twas", "brillig", "and", "the", "slithy", "toves"]
    assert list(shingle(tokens)) == [tokens[0:4], tokens[1:5], tokens[2:6]]
    assert list(shingle(iter(tokens), 5)) == [tokens[0:5], tokens[1:6]]
    assert list(shingle(range(3), window=1)) == [[0], [1], [2]]
    assert list(shingle(tokens[:3])) == list(shingle([])) == []
    for size in (1, 2, 3, 7):
        assert [" ".join(window) for window in shingle(tokens, size)] == shingles(tokens, size)
