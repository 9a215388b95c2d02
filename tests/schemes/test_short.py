"""Short texts: numbers and single words separate them, spelling hardly does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.errors import PageError
from pgsimhash.hashing.signature import verified
from pgsimhash.html import Article
from pgsimhash.schemes import SHORT_SCHEME
from pgsimhash.schemes.short import WORDS_MAX, short_words
from tests.refusals import because


def match(one: str, other: str) -> bool:
    a, b = (SHORT_SCHEME.vote(Article(text, text)) for text in (one, other))
    bits = (a.simhash ^ b.simhash).bit_count()
    return bits <= SHORT_SCHEME.distance and verified(bits, a.signature, b.signature)


SPELLINGS = [
    ("iPhone 13, 128 GB", "IPHONE 13 128GB"), ("10 / 2048", "10 \u2013 2,048"),
    ("iPhone 13 (128 GB), 1,299 €", "iPhone 13, 128 GB: 1299€"),
    ("Send us an e-mail", "send us an email!"), ("Ausgabe ٣", "Ausgabe 3"),
    ("Wi-Fi antenna for boats", "WiFi Antenna for Boats"),
    ("The ferryman\u2019s daughter", "The Ferrymans Daughter"),
    ("Curry of lentils and carrots", "„Curry of carrots and lentils“"),
    ("Ferry leaves at 08:30 from the north pier", "ferry leaves at 8:30 from the north pier"),
    ("Mooring fees for small boats in the old harbour, 2024",
     "Mooring fees for small boats in the old harbor, 2024"),
    ("朝の市場で魚と野菜を売る人々", "「朝の市場で魚と野菜を売る人々」"),
]  # fmt: skip
CHANGES = [
    ("iPhone 13, 128 GB", "iPhone 16, 512 GB"), ("iPhone 13, 128 GB", "iPhone 13, 256 GB"),
    ("Minutes of the meeting of the harbour board, 3 May 2024, with all of its enclosures",
     "Minutes of the meeting of the harbour board, 4 May 2024, with all of its enclosures"),
    ("Germany 3, France 2", "Germany 2, France 3"), ("10 2048", "2048 10"),
    ("Your code is 482913", "Your code is 482931"), ("Apples from Austria", "Apples from Armenia"),
    ("Blue leather shoes", "Blue leather belts"), ("朝の市場で魚を売る", "夜の市場で肉を売る"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), [*SPELLINGS, *CHANGES])
def test_spellings_match_and_changed_numbers_or_words_do_not(one: str, other: str) -> None:
    assert match(one, other) == ((one, other) in SPELLINGS)


WORDS = st.sampled_from(["harbour", "ferry", "boat", "pier", "bay", "goat"])
NUMBERS = st.lists(st.integers(0, 10**6), max_size=4)


@given(st.lists(WORDS, min_size=2), NUMBERS, NUMBERS)
def test_other_numbers_share_no_feature(
    words: list[str], some: list[int], others: list[int]
) -> None:
    def features(numbers: list[int]) -> set[str]:
        tokens = [*words, *map(str, numbers)]
        return set(SHORT_SCHEME.weigh(tokens, Article("", "")))

    assert (features(some) == features(others)) is (some == others)
    assert some == others or not features(some) & features(others)


def test_words_are_joined_and_numbers_parted() -> None:
    assert short_words("E-mail don\u2019t 128GB 1,299.50 007 m² 10.5k") == [
        "email", "dont", "128", "gb", "1299", "50", "7", "m", "2", "10", "5", "k",
    ]  # fmt: skip


def test_one_word_is_too_short() -> None:
    with pytest.raises(PageError, check=because("too_short")):
        SHORT_SCHEME.simhash("Harbour")
    assert SHORT_SCHEME.simhash("Harbour 3")


@pytest.mark.parametrize("word", ["w{}", "w", "7"])
def test_the_first_words_count(word: str) -> None:
    text = " ".join(word.format(number) for number in range(WORDS_MAX))
    assert len(short_words(f"{text} and more")) == WORDS_MAX
    assert SHORT_SCHEME.simhash(text) == SHORT_SCHEME.simhash(f"{text} and more")
