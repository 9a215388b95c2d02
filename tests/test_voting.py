"""Compiled loops vote as the parts of a scheme do: the same simhash, sketch and counts."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgsimhash.errors import TooShortError
from pgsimhash.features import DAMPINGS
from pgsimhash.hashes import fnv1a_64
from pgsimhash.page import Article, read_article
from pgsimhash.schemes import BLOG_WORDS_SCHEME, TEXT_SCHEME, Scheme, ShingleWeights
from pgsimhash.schemes.voting import PATIENCE, Vote, compiled_loops
from pgsimhash.sketch import sketch
from pgsimhash.tokens import tokenize
from pgsimhash.votes import simhash

EXAMPLES = Path(__file__).parents[1] / "examples" / "pages"
BRIEF = dataclasses.replace(TEXT_SCHEME, name="brief", min_tokens=1)
TEXTS = [
    "The ferryman rows across the bay with letters, bread and two goats; 12 of 34 letters rhyme.",
    "Der Fährmann rudert über die Bucht, „mit Briefen“ und zwei Ziegen … jeden Tag, STRASSE naß",
    "朝の市場で魚と野菜を売る人々\nFerry No. 7 leaves at 6:40\nทะเล ٣ ٤ خمسة \u0301 e\u0301 ½",
    "x" * 40 + " a-very-long-word-and " * 30,
    "lone \ud800 and \ufffd, \U0001f6a2 and \u200d",
]


def by_parts(text: str, scheme: Scheme) -> Vote:
    tokens = tokenize(text)
    weights = scheme.weigh(tokens, Article(text, text, None, None, None))
    return Vote(simhash(weights), sketch(weights), len(weights), len(tokens))


def by_loops(text: str, scheme: Scheme) -> Vote:
    loops = compiled_loops(scheme.tokenize, scheme.weigh, scheme.hash_features)
    assert loops is not None
    return loops(text, scheme.min_tokens)


@pytest.mark.parametrize("damping", DAMPINGS)
@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 2), (3, 1)])
def test_all_weights_of_shingles_have_loops(sizes: tuple[int, ...], damping: str) -> None:
    weights = ShingleWeights(sizes, damping)  # type: ignore[arg-type]
    scheme = dataclasses.replace(BRIEF, weigh=weights)
    for text in TEXTS:
        assert by_loops(text, scheme) == by_parts(text, scheme)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.html")), ids=lambda path: path.stem)
def test_the_example_pages_vote_alike(path: Path) -> None:
    article = read_article(path.read_bytes())
    if len(tokenize(article.text)) >= TEXT_SCHEME.min_tokens:
        assert by_loops(article.text, TEXT_SCHEME) == by_parts(article.text, TEXT_SCHEME)
        assert TEXT_SCHEME.vote(article) == by_parts(article.text, TEXT_SCHEME)


@settings(deadline=None)  # the first example may compile the loops
@given(st.text() | st.text(alphabet="ab1 é.\nß朝", max_size=200))
def test_any_text_votes_alike(text: str) -> None:
    try:
        expected = by_parts(text, BRIEF)
    except TooShortError:
        with pytest.raises(TooShortError):
            by_loops(text, BRIEF)
    else:
        assert by_loops(text, BRIEF) == expected


def test_too_few_words_are_told_alike() -> None:
    article = Article("three short words", "three short words", None, None, None)
    with pytest.raises(TooShortError, match="has 3 words, and a fingerprint takes 20"):
        TEXT_SCHEME.vote(article)
    with pytest.raises(TooShortError, match="has 3 words, and a fingerprint takes 20"):
        by_loops(article.text, TEXT_SCHEME)


@pytest.mark.parametrize(
    "scheme", [dataclasses.replace(BRIEF, hash_features=fnv1a_64), BLOG_WORDS_SCHEME]
)
def test_other_parts_have_no_loops(scheme: Scheme) -> None:
    assert compiled_loops(scheme.tokenize, scheme.weigh, scheme.hash_features) is None


def run(code: str) -> list[str]:
    """Return what a process of its own prints, line by line."""
    start = (
        "import sys\n"
        "from pgsimhash.schemes import TEXT_SCHEME, simhash_texts\n"
        f"text = {TEXTS[0]!r} * 3\n"
    )
    command = [sys.executable, "-c", start + code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_numba_is_imported_when_it_pays() -> None:
    code = (
        "for rounds in (0, 1, 1):\n"
        f"    found = [TEXT_SCHEME.simhash(text) for _ in range({PATIENCE} * rounds)]\n"
        "    print('numba' in sys.modules, len(set(found)))"
    )
    assert run(code) == ["False", "0", "False", "1", "True", "1"]


def test_numba_is_not_needed() -> None:
    code = (
        "sys.modules['numba'] = None\n"
        "print(TEXT_SCHEME.simhash(text), *simhash_texts([text], TEXT_SCHEME))"
    )
    expected = str(by_parts(TEXTS[0] * 3, TEXT_SCHEME).simhash)
    assert run(code) == [expected, expected]
