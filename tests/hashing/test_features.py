"""Shingles, images and their weights."""

from __future__ import annotations

import math

import pytest

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.features import (
    Damping,
    image_features,
    shingle,
    shingles,
    stop_word_shingles,
    weigh,
)
from pgsimhash.hashing.tokens import tokenize


def test_shingles_are_windows() -> None:
    assert shingles(["the", "tide", "goes", "out"], 2) == ["the tide", "tide goes", "goes out"]
    assert shingles(["the", "tide"], 1) == ["the", "tide"]
    assert shingles(["the"], 2) == []


def test_words_and_pairs_weigh_the_root_of_their_count() -> None:
    assert weigh(["low", "tide", "low", "tide"]) == {
        "low": math.sqrt(2),
        "tide": math.sqrt(2),
        "low tide": math.sqrt(2),
        "tide low": 1.0,
    }


@pytest.mark.parametrize(
    ("damping", "weight"),
    [("sqrt", math.sqrt(3)), ("log", 1 + math.log(3)), ("linear", 3.0), ("binary", 1.0)],
)
def test_a_count_is_damped_by_the_option(damping: Damping, weight: float) -> None:
    assert weigh(["tide"] * 3 + ["pool"], (1,), damping) == {"tide": weight, "pool": 1.0}


def test_shingles_can_be_those_with_a_stop_word() -> None:
    tokens = tokenize("ferrymen row the tide west where seals sleep")
    stop_words = {"the", "where"}
    assert stop_word_shingles(tokens, 3, stop_words) == [
        "ferrymen row the",
        "row the tide",
        "the tide west",
        "tide west where",
        "west where seals",
        "where seals sleep",
    ]
    assert stop_word_shingles(tokens, 2, stop_words) == [
        "row the",
        "the tide",
        "west where",
        "where seals",
    ]
    assert stop_word_shingles(tokens, 1, stop_words) == ["the", "where"]
    assert stop_word_shingles(["the", "tide"], 3, stop_words) == []


def test_advertisements_have_few_shingles_with_a_stop_word() -> None:
    sentence = tokenize("The ferryman rows across the bay with letters and two goats on board")
    advert = tokenize("Summer sale: sun hats, beach towels, free delivery! Order today")
    assert len(stop_word_shingles(sentence)) == len(sentence) - 3
    assert stop_word_shingles(advert) == []


def test_images_are_features_by_url_or_by_the_callers_key() -> None:
    markdown = "![A goat](https://bay.example/g.jpg) and\n![](https://bay.example/b.png)"
    assert image_features(markdown) == [
        "image:https://bay.example/g.jpg",
        "image:https://bay.example/b.png",
    ]
    pixels = {"https://bay.example/g.jpg": "c0ffee"}
    assert image_features(markdown, pixels.get) == ["image:c0ffee"]


def test_invalid_shingles_are_refused() -> None:
    with pytest.raises(ArgumentError, match="1 token"):
        shingles(["tide"], 0)
    with pytest.raises(ArgumentError, match="1 token"):
        stop_word_shingles(["tide"], 0)
    with pytest.raises(ArgumentError, match="sqrt, log, linear, binary"):
        weigh(["tide"], (1,), "cube")  # type: ignore[arg-type]


def test_windows_of_tokens_are_lists() -> None:
    tokens = ["twas", "brillig", "and", "the", "slithy", "toves"]
    assert list(shingle(tokens)) == [tokens[0:4], tokens[1:5], tokens[2:6]]
    assert list(shingle(iter(tokens), 5)) == [tokens[0:5], tokens[1:6]]
    assert list(shingle(range(3), window=1)) == [[0], [1], [2]]
    assert list(shingle(tokens[:3])) == list(shingle([])) == []
    assert [" ".join(window) for window in shingle(tokens, 3)] == shingles(tokens, 3)


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_of_zero_is_refused(window: int) -> None:
    with pytest.raises(ArgumentError, match="1 token or more"):
        shingle(["low", "tide"], window)
