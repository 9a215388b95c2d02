"""Plain texts: many at once, the choice of a scheme, and the scheme for short texts."""

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing import tokens
from pgsimhash.hashing.hashes import fnv1a_64, murmur3_64
from pgsimhash.hashing.signature import verified
from pgsimhash.html import Article
from pgsimhash.schemes import (
    BLOG_WORDS_SCHEME,
    INTEROP_SCHEME,
    SHORT_SCHEME,
    TEXT_SCHEME,
    Scheme,
    ShingleWeights,
    scheme_for_texts,
    simhash_texts,
)
from pgsimhash.schemes.features import WORDS_MAX, short_words

BRIEF = dataclasses.replace(TEXT_SCHEME, name="brief", min_tokens=1)
TEXTS = [
    "The ferryman rows across the bay with letters, bread and two goats; 12 of 34 letters rhyme.",
    "Der Fährmann rudert über die Bucht, „mit Briefen“ und zwei Ziegen … jeden Tag, STRASSE naß",
    "朝の市場で魚と野菜を売る人々\nFerry No. 7 leaves at 6:40\nทะเล ٣ ٤ خمسة \u0301 e\u0301 ½",
    "x" * 40 + " a-very-long-word-and " * 30,
    "٣ ٤ خمسة",
    "lone \ud800 and \ufffd, \U0001f6a2 and \u200d",
]


def one_by_one(text: str, scheme: Scheme) -> int | None:
    try:
        return scheme.simhash(text)
    except PageError:
        return None


@pytest.mark.parametrize("scheme", [
    BRIEF, dataclasses.replace(BRIEF, weigh=ShingleWeights((1, 2), "linear")),
    dataclasses.replace(BRIEF, weigh=ShingleWeights((2, 1))),
    dataclasses.replace(BRIEF, hash_features=fnv1a_64),
    dataclasses.replace(BRIEF, weigh=ShingleWeights((3, 1)), hash_features=murmur3_64),
    SHORT_SCHEME, dataclasses.replace(INTEROP_SCHEME, min_tokens=1), BLOG_WORDS_SCHEME,
])  # fmt: skip
def test_a_batch_gives_what_each_text_gives(scheme: Scheme) -> None:
    assert list(simhash_texts(TEXTS, scheme)) == [one_by_one(text, scheme) for text in TEXTS]


@pytest.mark.filterwarnings("ignore:.* texts have fewer")
@settings(deadline=None)  # the first example fills a table of characters
@given(st.lists(st.text() | st.text(alphabet="ab1 é.\nß朝", max_size=200)))
def test_any_texts(texts: list[str]) -> None:
    assert list(simhash_texts(texts, BRIEF)) == [one_by_one(text, BRIEF) for text in texts]


def test_numbers_count_and_tokens_after_the_limit_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "wind of {} km/h, {} schools closed, {} ferries cancelled "
    one, other = (text.format(*numbers) * 3 for numbers in ((80, 4, 7), (140, 61, 12)))
    assert len(set(simhash_texts([one, other]))) == 2
    assert TEXT_SCHEME.tokenize(one)[:5] == ["wind", "of", "80", "km", "h"]
    monkeypatch.setattr(tokens, "TOKENS_MAX", 50)
    text = " ".join(f"漢{number:x}w" for number in range(25))
    more = f"{text} and so on, and so on"
    assert list(simhash_texts([text, more])) == [one_by_one(more, BRIEF)] * 2


def test_texts_too_short_for_a_scheme_have_no_simhash_and_are_reported() -> None:
    long, title = " ".join(["word", *map(str, range(30))]), "iPhone 13, 128 GB"
    warning = r"3 of 4 texts have fewer than the 20 words .* short texts is 'pgsimhash-short-1'"
    with pytest.warns(UserWarning, match=warning):
        made = list(simhash_texts(["", title, title, long]))
    assert made == [None, None, None, TEXT_SCHEME.simhash(long)]
    assert None not in list(simhash_texts([title, long], SHORT_SCHEME))


@pytest.mark.parametrize(("lengths", "scheme"), [
    ([19, 19, 20], SHORT_SCHEME), ([19, 20], TEXT_SCHEME), ([0, 0, 0, 19, 20, 20], TEXT_SCHEME),
    ([0, 0, 1], SHORT_SCHEME), ([500_000], TEXT_SCHEME), ([], TEXT_SCHEME),
])  # fmt: skip
def test_the_majority_of_texts_chooses_the_scheme(lengths: list[int], scheme: Scheme) -> None:
    assert scheme_for_texts("a 7 " * (size // 2) + "a" * (size % 2) for size in lengths) is scheme


def test_few_texts_are_read_ahead_and_none_before_an_unknown_scheme_is_refused() -> None:
    endless = itertools.repeat(TEXTS[0])
    assert next(simhash_texts(endless, BRIEF)) == BRIEF.simhash(TEXTS[0])
    with pytest.raises(ArgumentError, match="pgsimhash-article-1"):
        simhash_texts(endless, "nonesuch")


# Short texts: numbers and single words separate them, spelling hardly does.

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
    a, b = (SHORT_SCHEME.vote(Article(text, text)) for text in (one, other))
    bits = (a.simhash ^ b.simhash).bit_count()
    match = bits <= SHORT_SCHEME.distance and verified(bits, a.signature, b.signature)
    assert match == ((one, other) in SPELLINGS)


WORDS = st.sampled_from(["harbour", "ferry", "boat", "pier", "bay", "goat"])
NUMBERS = st.lists(st.integers(0, 10**6), max_size=4)


@given(st.lists(WORDS, min_size=2), NUMBERS, NUMBERS)
def test_different_numbers_share_no_feature(
    words: list[str], some: list[int], others: list[int]
) -> None:
    texts = ([*words, *map(str, numbers)] for numbers in (some, others))
    a, b = (set(SHORT_SCHEME.weigh(text, Article("", ""))) for text in texts)
    assert a == b if some == others else not a & b


def test_short_words_are_joined_and_split_from_numbers() -> None:
    assert short_words("E-mail don\u2019t 128GB 1,299.50 007 m² 10.5k") == [
        "email", "dont", "128", "gb", "1299", "50", "7", "m", "2", "10", "5", "k",
    ]  # fmt: skip
    assert one_by_one("Harbour", SHORT_SCHEME) is None
    assert one_by_one("Harbour 3", SHORT_SCHEME)


@pytest.mark.parametrize("word", ["w{}", "w", "7"])
def test_the_first_words_count(word: str) -> None:
    text = " ".join(word.format(number) for number in range(WORDS_MAX))
    assert len(short_words(f"{text} and more")) == WORDS_MAX
    assert SHORT_SCHEME.simhash(text) == SHORT_SCHEME.simhash(f"{text} and more")


@pytest.mark.parametrize("call", [scheme_for_texts, lambda texts: list(simhash_texts(texts))])
def test_a_missing_text_is_named(call: Callable[[list[str | None]], object]) -> None:
    with pytest.raises(TypeError, match=r"texts\[1\] is of type NoneType, not str; fill missing"):
        call(["Ferry", None])
