"""Many texts at once: the same simhashes, by compiled loops or without them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError, PageError
from pgsimhash.features import DAMPINGS
from pgsimhash.hashes import fnv1a_64
from pgsimhash.html import read_article
from pgsimhash.schemes import (
    BLOG_WORDS_SCHEME,
    INTEROP_SCHEME,
    TEXT_SCHEME,
    Scheme,
    ShingleWeights,
    simhash_texts,
)
from pgsimhash.schemes.batch import compiled_simhash
from pgsimhash.tokens import TOKENS_MAX

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
@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 2), (3, 1)])
def test_a_batch_gives_what_each_text_gives(sizes: tuple[int, ...], damping: str) -> None:
    weights = ShingleWeights(sizes, damping)  # type: ignore[arg-type]
    scheme = dataclasses.replace(BRIEF, weigh=weights)
    assert compiled_simhash(scheme) is not None
    assert list(simhash_texts(TEXTS, scheme)) == [one_by_one(text, scheme) for text in TEXTS]


def test_the_example_pages_vote_alike() -> None:
    texts = [read_article(path.read_bytes()).text for path in sorted(EXAMPLES.glob("*.html"))[:8]]
    assert list(simhash_texts(texts)) == [one_by_one(text, TEXT_SCHEME) for text in texts]


@settings(deadline=None)  # the first example may compile the loops
@given(st.lists(st.text() | st.text(alphabet="ab1 é.\nß朝", max_size=200)))
def test_any_texts(texts: list[str]) -> None:
    assert list(simhash_texts(texts, BRIEF)) == [one_by_one(text, BRIEF) for text in texts]


def test_a_text_too_short_has_none() -> None:
    long = " ".join(f"word{number}" for number in range(30))
    assert list(simhash_texts(["", "three short words", long])) == [
        None,
        None,
        TEXT_SCHEME.simhash(long),
    ]
    simhash = compiled_simhash(TEXT_SCHEME)
    assert simhash is not None
    for compute in (simhash, TEXT_SCHEME.simhash):
        with pytest.raises(PageError, match="has 3 words, and a fingerprint takes 20"):
            compute("three short words")
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
        BLOG_WORDS_SCHEME,
    ],
)
def test_other_recipes_are_computed_one_by_one(scheme: Scheme) -> None:
    assert compiled_simhash(scheme) is None
    assert list(simhash_texts(TEXTS, scheme)) == [scheme.simhash(text) for text in TEXTS]


def test_texts_are_read_one_at_a_time() -> None:
    def endless() -> object:
        while True:
            yield TEXTS[0]

    assert next(simhash_texts(endless(), BRIEF)) == BRIEF.simhash(TEXTS[0])  # type: ignore[arg-type]


def test_an_unknown_scheme_is_refused_before_the_first_text() -> None:
    with pytest.raises(ArgumentError, match="pgsimhash-article-1"):
        simhash_texts([], "nonesuch")


def run(code: str) -> list[str]:
    """Return what a process of its own prints."""
    start = (
        "import sys\n"
        "from pgsimhash.schemes import TEXT_SCHEME, simhash_texts\n"
        f"text = {TEXTS[0]!r} * 3\n"
    )
    command = [sys.executable, "-c", start + code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_numba_is_for_many_texts_only() -> None:
    code = (
        "found = [TEXT_SCHEME.simhash(text) for _ in range(1001)]\n"
        "print('numba' in sys.modules)\n"
        "print([*simhash_texts([text])] == found[:1], 'numba' in sys.modules)"
    )
    assert run(code) == ["False", "True", "True"]


def test_numba_is_not_needed() -> None:
    code = "sys.modules['numba'] = None\nprint(*simhash_texts([text]))"
    assert run(code) == [str(TEXT_SCHEME.simhash(TEXTS[0] * 3))]
