"""Tokens, shingles and weights, as the scheme pgsimhash-article-1 defines them."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.features import shingles, tokenize, weigh


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Low tide, 6:40 am.", ["low", "tide", "am"]),
        ("The 3rd of 12 pools", ["the", "3rd", "of", "pools"]),
        ("don't", ["don", "t"]),
        ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
        ("", []),
        (" \n\t ", []),
        ("1 234 ٣٤", []),
    ],
)
def test_tokens_are_words_with_a_letter_in_them(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("FÄHRE", "fähre"),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("ﬁne", "fine"),
        ("\uff57\uff49\uff44\uff45", "wide"),
        ("ΟΔΟΣ", "οδος"),
    ],
)
def test_what_reads_the_same_is_the_same_token(a: str, b: str) -> None:
    assert tokenize(a) == tokenize(b)


@pytest.mark.parametrize(
    "word", ["हिन्दी", "தமிழ்", "العَرَبِيَّة", "שָׁלוֹם", "n\u0303andu\u0301", "ελληνικά", "한국어"]
)
def test_marks_stay_on_their_word(word: str) -> None:
    assert len(tokenize(f"{word}, {word}")) == 2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("川べりの", ["川べ", "べり", "りの"]),
        ("朝 市", ["朝", "市"]),
        ("RSSで読む", ["rss", "で読", "読む"]),
        ("ตลาด", ["ตล", "ลา", "าด"]),
    ],
)
def test_without_spaces_pairs_of_characters_are_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@given(st.text())
def test_tokens_are_folded_and_never_digits_alone(text: str) -> None:
    for token in tokenize(text):
        assert token
        assert not token.isdecimal()
        assert unicodedata.normalize("NFKC", token) == token


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_plain_ascii_takes_a_shortcut_to_the_same_tokens(text: str) -> None:
    assert [*tokenize(text), "é"] == tokenize(f"{text} é")


def test_shingles_are_windows() -> None:
    assert shingles(["the", "tide", "goes", "out"], 2) == ["the tide", "tide goes", "goes out"]
    assert shingles(["the", "tide"], 1) == ["the", "tide"]
    assert shingles(["the"], 2) == []


def test_words_and_pairs_weigh_one_plus_the_logarithm_of_their_count() -> None:
    assert weigh(["low", "tide", "low", "tide"]) == {
        "low": 1 + math.log(2),
        "tide": 1 + math.log(2),
        "low tide": 1 + math.log(2),
        "tide low": 1.0,
    }
