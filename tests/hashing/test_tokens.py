"""Tokens, with and without numbers, and shingles."""

import itertools
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing import tokens
from pgsimhash.hashing.tokens import shingles, tokenize, tokenize_signed, tokenize_with_numbers
from pgsimhash.schemes import simhash_texts
from pgsimhash.schemes.registry import SHORT_SCHEME


@pytest.mark.parametrize(("text", "tokens"), [
    ("Low tide, 6:40 am.", "low tide am"), ("The 3rd of 12 pools", "the 3rd of pools"),
    ("don't", "don t"), ("snake_case and kebab-case", "snake case and kebab case"), ("", ""),
    (" \n\t ", ""), ("1 234 ٣٤", ""), ("7 " * tokens.TOKENS_MAX + "ferry", "ferry"),
    # Without spaces, pairs of characters are tokens.
    ("川べりの", "川べ べり りの"), ("朝 市", "朝 市"), ("RSSで読む", "rss で読 読む"),
    ("ตลาด", "ตล ลา าด"),
])  # fmt: skip
def test_tokens_are_words_with_a_letter_in_them(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split()


@pytest.mark.parametrize(("a", "b"), [
    ("FÄHRE", "fähre"), ("Straße", "STRASSE"), ("café", "cafe\u0301"), ("ﬁne", "fine"),
    ("\uff57\uff49\uff44\uff45", "wide"), ("ΟΔΟΣ", "οδος"),
])  # fmt: skip
def test_equal_looking_words_are_equal_tokens(a: str, b: str) -> None:
    assert tokenize(a) == tokenize(b)


@pytest.mark.parametrize("unseen", ["\u00ad", "\u200b", "\u2060", "\ufeff", "\u200e", "\u2068"])
def test_invisible_characters_split_no_token(unseen: str) -> None:
    text = "Über das Watten\u00admeer, tide pools 東京都 und ไทย"
    parted = text.replace("e", f"e{unseen}").replace("京", f"京{unseen}")
    assert tokenize(parted) == tokenize(text.replace("\u00ad", ""))
    assert tokenize_signed(parted) == tokenize_signed(text.replace("\u00ad", ""))
    texts = [f"sea{unseen}weed and a bay", "seaweed and a bay"]
    parted_simhash, simhash = simhash_texts(texts, SHORT_SCHEME)
    assert parted_simhash == simhash is not None


def test_marks_stay_on_their_word() -> None:
    for word in ["हिन्दी", "தமிழ்", "العَرَبِيَّة", "שָׁלוֹם", "n\u0303andu\u0301", "ελληνικά", "한국어"]:
        assert len(tokenize(f"{word}, {word}")) == 2, word


@given(st.text())
def test_tokens_are_folded_and_never_digits_alone(text: str) -> None:
    for token in tokenize(text):
        assert token
        assert not token.isdecimal()
        assert unicodedata.normalize("NFKC", token) == token


@settings(max_examples=200)
@given(st.text(st.characters(codec="ascii")) | st.text(st.characters(max_codepoint=0x30FF)))
def test_shortcuts_for_ascii_and_by_a_table_give_the_tokens_of_the_definition(text: str) -> None:
    assert [*tokenize(text), "é"] == tokenize(f"{text} é")
    # A trailing ideograph is not in the table, so it takes the slow path.
    assert [*tokenize(text), "一"] == tokenize(f"{text} 一")


@given(st.text(st.characters(exclude_characters="\0"), max_size=20))
@example("\u0301")  # begins a word, so the whole text is read by the definition
def test_a_few_characters_that_need_their_neighbours_are_read_by_the_definition(text: str) -> None:
    mixed = f"{'Tide Ébbe ' * 100}{text}{' 12 low' * 100}"
    assert tokenize_with_numbers(mixed) == [
        *itertools.chain.from_iterable(tokens.complex_words(mixed))
    ]


def test_numbers_are_kept_on_request_and_nul_never() -> None:
    text = "The 3rd of 12 ﬁne\0pools"
    assert tokenize(text) == ["the", "3rd", "of", "fine", "pools"]
    assert tokenize_with_numbers(text) == ["the", "3rd", "of", "12", "fine", "pools"]
    assert tokenize_signed(text) == ["the", "3rd", "of", "12", "fine", "\0", "pools"]
    # Shingles are windows of tokens.
    tokens = ["twas", "brillig", "and", "the", "slithy"]
    assert shingles(tokens, 4) == ["twas brillig and the", "brillig and the slithy"]
    assert shingles(tokens, 1) == tokens
    assert shingles(tokens, 6) == []
    with pytest.raises(ArgumentError, match="1 token"):
        shingles(tokens, 0)


@given(
    st.text(max_size=tokens.MARKS_MAX)
    | st.lists(st.sampled_from("éa\u0301\u0316ﷺ각ﬁ한 ")).map("".join)
)
def test_an_ordinary_text_is_normalised_as_a_whole(text: str) -> None:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if not tokens.too_many_marks().search(text):
        assert tokenize(text) == tokenize(folded)
        assert tokenize_with_numbers(text) == tokenize_with_numbers(folded)


def test_the_first_thirty_marks_of_a_run_and_the_first_tokens_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = "\u0301\u0316" * 15
    (token,) = tokenize(f"a{run}")
    assert tokenize(f"a{run}\u0301\u0316\uff9e\u0344") == [token]
    assert tokenize(f"a{run * 1000} a{run * 1000}") == [token, token]
    assert tokenize(f"a{run[1:]}") != [token]
    dashes = "\u2014\u0301" * 40
    assert tokenize(f"a{dashes}b") == ["a", *["\u0301"] * 39, "\u0301b"]
    assert tokens.TOKENS_MAX == 500_000
    monkeypatch.setattr(tokens, "TOKENS_MAX", 50_000)
    for text in ("a ", "é ", "ﷺ", "漢 ", "漢"):
        assert len(tokenize(text * (tokens.TOKENS_MAX + 10))) == tokens.TOKENS_MAX


def test_no_character_that_normalisation_moves_is_overlooked() -> None:
    marks = {chr(code) for code in range(sys.maxunicode + 1) if tokens.is_mark(chr(code))}
    assert len(marks) > 800
    assert all(tokens.too_many_marks().fullmatch(mark * (tokens.MARKS_MAX + 1)) for mark in marks)
    assert all(tokens.too_many_marks().fullmatch(mark * tokens.MARKS_MAX) is None for mark in marks)


@pytest.mark.parametrize("word", ["tide", "Flut", "é1", "ﬁn", "朝の市", "각", "7", "ﷺ"])
@pytest.mark.parametrize("between", [" ", "\n", "-", "/", "\t"])
def test_a_long_text_has_the_tokens_of_its_words(
    monkeypatch: pytest.MonkeyPatch, word: str, between: str
) -> None:
    monkeypatch.setattr(tokens, "PIECE", 1 << 12)
    times = 3 * tokens.PIECE // (len(word) + 1)
    assert tokenize(between.join([word] * times)) == tokenize(word) * times
