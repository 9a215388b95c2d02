"""Marks and clusters, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import numpy as np
import pytest

from pgsimhash.pages.records import Mark
from pgsimhash.search.clusters import ClusterPage
from pgsimhash.store.clusters import join_marked, split_marked

NOW = datetime(2024, 2, 29, tzinfo=UTC)


def pages(**simhashes: int) -> list[ClusterPage]:
    return [
        ClusterPage(number, url, simhash, NOW, None, None)
        for number, (url, simhash) in enumerate(simhashes.items())
    ]


def different(*pairs: str) -> list[Mark]:
    return [Mark(pair[0], pair[1], False, NOW) for pair in pairs]


def same(*pairs: str) -> list[Mark]:
    return [Mark(pair[0], pair[1], True, NOW) for pair in pairs]


def parts(found: list[list[ClusterPage]]) -> list[str]:
    return ["".join(page.url for page in part) for part in found]


CHAIN = pages(a=0b0, b=0b1, c=0b11, d=0b111, e=0b1111)


@pytest.mark.parametrize(("marks", "expected"), [
    # Without marks of pages within it, or with must-links alone, a cluster stays.
    (different("ax", "xy"), "abcde"),
    (same("ae"), "abcde"),
    # Each other page follows the nearer end; c is equally far from both and follows the first.
    (different("ae"), "abc de"),
    (different("bc"), "ab cde"),
    (different("ac", "ce", "ae"), "ab cd e"),
    # e differs from a, so it is with b, at any distance.
    (different("ab", "ae"), "a bcde"),
    # Pages that are the same stay together.
    ([*different("ae"), *same("bd", "de")], "a bcde"),
    ([*different("ae"), *same("cd")], "abcd e"),
])  # fmt: skip
def test_marks_split_a_chain(marks: list[Mark], expected: str) -> None:
    assert parts(split_marked(CHAIN, marks)) == expected.split()


def test_copies_can_differ() -> None:
    assert parts(split_marked(pages(a=7, b=7, c=7), different("ab"))) == ["ac", "b"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_the_marks_does_not_matter(order: tuple[int, ...]) -> None:
    marks = different("ac", "bd", "ce")
    assert split_marked(CHAIN, [marks[at] for at in order]) == split_marked(CHAIN, marks)


def test_clusters_are_joined_as_a_whole() -> None:
    simhashes = np.array([1, 2, 5, 6, 9], dtype=np.uint64)
    roots = np.array([1, 1, 5, 5, 9], dtype=np.uint64)
    assert join_marked(simhashes, roots, []).tolist() == [1, 1, 5, 5, 9]
    assert join_marked(simhashes, roots, [(2, 6)]).tolist() == [1, 1, 1, 1, 9]
    assert join_marked(simhashes, roots, [(9, 6), (2, 9)]).tolist() == [1] * 5
