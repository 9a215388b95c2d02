"""The C extension votes for plain texts as the Python code does, in any number of threads."""

import dataclasses
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgsimhash import PageError
from pgsimhash.hashing.signature import PLAIN_TEXT
from pgsimhash.html import Article, implementation, native
from pgsimhash.html.blocks import signed_lines
from pgsimhash.schemes.features import BlockWeights
from pgsimhash.schemes.registry import SHORT_SCHEME, TEXT_SCHEME, Scheme
from pgsimhash.schemes.texts import BATCH_TEXTS, Cell, read_texts
from tests.native.test_equal import pytestmark as pytestmark

TEXTS = [
    "The ferryman rows across the bay with letters, bread and two goats; 12 of 34 letters rhyme.",
    "Der F\xe4hrmann rudert \xfcber die Bucht\nmit Briefen\r\n\n  und zwei Ziegen, STRASSE na\xdf",
    "Ferry No. 7 leaves at 6:40 on 7/5/2016, call +49 (30) 123-45 67\nFax 12 34 56",
    "updated 12 March\n1,204 views\n3 days ago\n\xa9 2019 2020 copyright \xa9",
    "朝の市場で魚 e\u0301 ทะเล\n\u0663 \u0664 \xbd \ufb01 \ufeff",
    "a mark \u0301 alone",
    "a\0b \0\0 c\0\0\0d \0\0\0\0 \0\0\0\0\0",
    "lone \ud800 and \ufffd, \U0001f6a2 and \u200d",
    *("", " \n\t ", "\n" * 1000, "x" * 5000, "low tide " * 300_000, "\u0301" * 5000),
    " ".join(map(str, range(3000))),
    *("tide pools, 2016", "e-mail don't 1,299 007 128GB", "2048 / 007", "\u0663 \u0664"),
]
TITLE = Article("tide pools 7", "tide pools 7")
SCHEMES = [
    dataclasses.replace(TEXT_SCHEME, min_tokens=1),
    dataclasses.replace(TEXT_SCHEME, min_tokens=1, weigh=BlockWeights(0.3)),
    dataclasses.replace(SHORT_SCHEME, min_tokens=1),
]
PARTS = [
    *TEXTS[:7],
    *TEXTS[-4:],
    *(chr(code) for code in range(0x20, 0x3100, 97)),
    "Wi-Fi",
    "\u2019s",
]


def by_python(text: str, scheme: Scheme) -> Cell:
    try:
        vote = scheme.vote(Article(text, text))
    except PageError:
        return Cell(reason="too_short", text=" ".join(text.split()))
    return Cell(vote.simhash, vote.signature)


def check(texts: Sequence[str], scheme: Scheme, jobs: int = 1) -> None:
    expected = [by_python(text, scheme) for text in texts]
    assert list(read_texts(texts, scheme, jobs)) == expected


@pytest.mark.parametrize("scheme", SCHEMES)
def test_some_texts(scheme: Scheme) -> None:
    check(TEXTS, scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_in_threads(scheme: Scheme) -> None:
    rng = random.Random(1)
    texts = [" ".join(rng.choices(PARTS, k=20)) for _ in range(3 * BATCH_TEXTS + 1)]
    check(texts, scheme, jobs=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text() | st.lists(st.sampled_from(PARTS), max_size=40).map(" ".join)))
def test_any_texts(texts: list[str]) -> None:
    for scheme in SCHEMES:
        check(texts, scheme)


def test_nearly_all_texts_are_read_in_c_with_all_fields() -> None:
    assert implementation() == "C"
    votes = native.vote_texts([*map(signed_lines, TEXTS)], BlockWeights().factors)
    unread = [text[:5] for text, vote in zip(TEXTS, votes, strict=True) if vote is None]
    assert unread == ["a mar", "lone ", "", " \n\t ", "\n\n\n\n\n", "xxxxx", "\u0301" * 5]
    for text, vote in zip(TEXTS, votes, strict=True):
        if vote is not None:
            simhash, signature, *others = vote
            marked = (simhash, signature | PLAIN_TEXT, *others)
            assert marked == SCHEMES[0].vote(Article(text, text))
    short = ["tide pools", "\xfcber 12 na\xdf", "\u671d\u306e 3", "\uac00\u0663"]
    titles = native.vote_texts(short, None)
    assert [vote is None for vote in titles] == [False, False, False, True]
    (title,) = native.vote_texts(["tide pools 7"], None)
    expected = SHORT_SCHEME.vote(TITLE)
    signature = expected.signature - PLAIN_TEXT
    assert title == (expected.simhash, signature, expected.features, expected.tokens, 0, 0.0)
