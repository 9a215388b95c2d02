"""Many texts at once: the same simhashes, by compiled loops or without them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash.errors import SchemeError, TooShortError
from pgsimhash.features import DAMPINGS
from pgsimhash.hashes import fnv1a_64
from pgsimhash.schemes import INTEROP_SCHEME, TEXT_SCHEME, Scheme, ShingleWeights, simhash_texts
from pgsimhash.tokens import TOKENS_MAX

BRIEF = dataclasses.replace(TEXT_SCHEME, name="brief", min_tokens=1)
TEXTS = [
    "The ferryman rows across the bay with letters, bread and two goats; 12 of 34 letters rhyme.",
    "Der Fährmann rudert über die Bucht, „mit Briefen“ und zwei Ziegen … jeden Tag",
    "朝の市場で魚と野菜を売る人々",
    "x" * 40 + " a-very-long-word-and " * 30,
    "٣ ٤ خمسة",
]


def one_by_one(text: str, scheme: Scheme) -> int | None:
    try:
        return scheme.simhash(text)
    except TooShortError:
        return None


@pytest.mark.parametrize("damping", DAMPINGS)
@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 2), (3, 1)])
def test_a_batch_gives_what_each_text_gives(sizes: tuple[int, ...], damping: str) -> None:
    weights = ShingleWeights(sizes, damping)  # type: ignore[arg-type]
    scheme = dataclasses.replace(BRIEF, weigh=weights)
    assert list(simhash_texts(TEXTS, scheme)) == [one_by_one(text, scheme) for text in TEXTS]


@settings(deadline=None)  # the first example may compile the loops
@given(st.lists(st.text() | st.text(alphabet="ab1 é.", max_size=200)))
def test_any_texts(texts: list[str]) -> None:
    assert list(simhash_texts(texts, BRIEF)) == [one_by_one(text, BRIEF) for text in texts]


def test_a_text_too_short_has_none() -> None:
    long = " ".join(f"word{number}" for number in range(30))
    assert list(simhash_texts(["", "three short words", long])) == [
        None,
        None,
        TEXT_SCHEME.simhash(long),
    ]
    pairs = dataclasses.replace(BRIEF, weigh=ShingleWeights((2,)))
    assert list(simhash_texts(["alone"], pairs)) == [None]


@pytest.mark.parametrize("word", ["{:x}w", "é{:x}w", "漢{:x}w"])
def test_what_follows_the_first_tokens_does_not_count(word: str) -> None:
    text = " ".join(word.format(number) for number in range(TOKENS_MAX // (1 + ("漢" in word))))
    more = f"{text} and so on, and so on"
    assert list(simhash_texts([text])) == list(simhash_texts([more])) == [one_by_one(more, BRIEF)]


@pytest.mark.parametrize(
    "scheme",
    [
        dataclasses.replace(BRIEF, hash_features=fnv1a_64),
        dataclasses.replace(INTEROP_SCHEME, min_tokens=1),
    ],
)
def test_other_recipes_are_computed_one_by_one(scheme: Scheme) -> None:
    assert list(simhash_texts(TEXTS, scheme)) == [scheme.simhash(text) for text in TEXTS]


def test_texts_are_read_one_at_a_time() -> None:
    def endless() -> object:
        while True:
            yield TEXTS[0]

    assert next(simhash_texts(endless(), BRIEF)) == BRIEF.simhash(TEXTS[0])  # type: ignore[arg-type]


def test_an_unknown_scheme_is_refused_before_the_first_text() -> None:
    with pytest.raises(SchemeError, match="pgsimhash-article-1"):
        simhash_texts([], "nonesuch")
