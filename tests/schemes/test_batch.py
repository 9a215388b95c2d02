"""Many texts at once: the simhashes equal those of single texts; and the choice of a scheme."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.hashing.features import DAMPINGS
from pgsimhash.hashing.hashes import fnv1a_64, murmur3_64
from pgsimhash.hashing.tokens import TOKENS_MAX
from pgsimhash.html import read_article
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

EXAMPLES = Path(__file__).parents[2] / "examples" / "pages"
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


@pytest.mark.parametrize("damping", DAMPINGS)
@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 2), (2, 1)])
def test_a_batch_gives_what_each_text_gives(sizes: tuple[int, ...], damping: str) -> None:
    weights = ShingleWeights(sizes, damping)  # type: ignore[arg-type]
    scheme = dataclasses.replace(BRIEF, weigh=weights)
    assert list(simhash_texts(TEXTS, scheme)) == [one_by_one(text, scheme) for text in TEXTS]


def test_the_example_pages_vote_alike() -> None:
    texts = [read_article(path.read_bytes()).text for path in sorted(EXAMPLES.glob("*.html"))[:8]]
    assert list(simhash_texts(texts)) == [one_by_one(text, TEXT_SCHEME) for text in texts]


@pytest.mark.filterwarnings("ignore:.* texts have fewer")
@settings(deadline=None)  # the first example fills a table of characters
@given(st.lists(st.text() | st.text(alphabet="ab1 é.\nß朝", max_size=200)))
def test_any_texts(texts: list[str]) -> None:
    assert list(simhash_texts(texts, BRIEF)) == [one_by_one(text, BRIEF) for text in texts]


def test_numbers_count() -> None:
    text = "wind of {} km/h, {} schools closed, {} ferries cancelled "
    one, other = (text.format(*numbers) * 3 for numbers in ((80, 4, 7), (140, 61, 12)))
    assert len(set(simhash_texts([one, other]))) == 2
    assert TEXT_SCHEME.tokenize(one)[:5] == ["wind", "of", "80", "km", "h"]


def test_texts_too_short_for_a_scheme_have_no_simhash_and_are_reported() -> None:
    long, title = " ".join(["word", *map(str, range(30))]), "iPhone 13, 128 GB"
    said = r"3 of 4 texts have fewer than the 20 words .* short texts is 'pgsimhash-short-1'"
    with pytest.warns(UserWarning, match=said):
        made = list(simhash_texts(["", title, title, long]))
    assert made == [None, None, None, TEXT_SCHEME.simhash(long)]
    assert None not in list(simhash_texts([title, long], SHORT_SCHEME))
    pairs = dataclasses.replace(BRIEF, weigh=ShingleWeights((2,)))
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        assert list(simhash_texts(["alone"], pairs)) == [None]


@pytest.mark.parametrize(("lengths", "scheme"), [
    ([19, 19, 20], SHORT_SCHEME), ([19, 20], TEXT_SCHEME), ([0, 0, 0, 19, 20, 20], TEXT_SCHEME),
    ([0, 0, 1], SHORT_SCHEME), ([500_000], TEXT_SCHEME), ([], TEXT_SCHEME),
])  # fmt: skip
def test_the_majority_of_texts_chooses_the_scheme(lengths: list[int], scheme: Scheme) -> None:
    assert scheme_for_texts("a 7 " * (size // 2) + "a" * (size % 2) for size in lengths) is scheme


@pytest.mark.parametrize("word", ["{:x}w", "é{:x}w", "漢{:x}w"])
def test_tokens_after_the_limit_do_not_count(word: str) -> None:
    text = " ".join(word.format(number) for number in range(TOKENS_MAX // (1 + ("漢" in word))))
    more = f"{text} and so on, and so on"
    assert list(simhash_texts([text, more])) == [one_by_one(more, BRIEF)] * 2


@pytest.mark.parametrize("scheme", [
    dataclasses.replace(BRIEF, hash_features=fnv1a_64),
    dataclasses.replace(BRIEF, weigh=ShingleWeights((3, 1)), hash_features=murmur3_64),
    SHORT_SCHEME, dataclasses.replace(INTEROP_SCHEME, min_tokens=1), BLOG_WORDS_SCHEME,
])  # fmt: skip
def test_other_recipes_are_computed_one_by_one(scheme: Scheme) -> None:
    assert list(simhash_texts(TEXTS, scheme)) == [one_by_one(text, scheme) for text in TEXTS]


def test_few_texts_are_read_ahead_and_none_before_an_unknown_scheme_is_refused() -> None:
    endless = itertools.repeat(TEXTS[0])
    assert next(simhash_texts(endless, BRIEF)) == BRIEF.simhash(TEXTS[0])
    with pytest.raises(ArgumentError, match="pgsimhash-article-1"):
        simhash_texts(endless, "nonesuch")
