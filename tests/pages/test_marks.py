"""Marks and clusters, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import numpy as np
import pytest

from pgsimhash.pages.marks import Mark, join_marked, split_marked
from pgsimhash.search.clusters import ClusterPage

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


def test_a_cluster_without_marks_stays() -> None:
    assert parts(split_marked(CHAIN, different("ax", "xy"))) == ["abcde"]
    assert parts(split_marked(CHAIN, same("ae"))) == ["abcde"]


def test_a_chain_is_cut_between_pages_that_differ() -> None:
    """Each other page follows the nearer end; c is equally far from both and follows the first."""
    assert parts(split_marked(CHAIN, different("ae"))) == ["abc", "de"]


def test_neighbours_in_a_chain_can_differ() -> None:
    assert parts(split_marked(CHAIN, different("bc"))) == ["ab", "cde"]


def test_copies_can_differ() -> None:
    assert parts(split_marked(pages(a=7, b=7, c=7), different("ab"))) == ["ac", "b"]


def test_three_that_all_differ_are_three_parts() -> None:
    assert parts(split_marked(CHAIN, different("ac", "ce", "ae"))) == ["ab", "cd", "e"]


def test_a_marked_page_goes_to_the_nearest_part_it_may_be_in() -> None:
    """e differs from a, so it is with b, at any distance."""
    assert parts(split_marked(CHAIN, different("ab", "ae"))) == ["a", "bcde"]


def test_pages_that_are_the_same_stay_together() -> None:
    assert parts(split_marked(CHAIN, [*different("ae"), *same("bd", "de")])) == ["a", "bcde"]
    assert parts(split_marked(CHAIN, [*different("ae"), *same("cd")])) == ["abcd", "e"]


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
