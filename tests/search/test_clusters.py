"""Clusters of pairs, and the canonical page of each."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pgsimhash import find_pairs
from pgsimhash.errors import ArgumentError
from pgsimhash.search.clusters import (
    ClusterPage,
    Linkage,
    Score,
    cluster_simhashes,
    make_cluster,
    scorer,
)
from pgsimhash.search.pairs import Pairs

CHAIN = np.array([(1 << n) - 1 for n in range(10)], dtype=np.uint64)


def clusters(values: NDArray[np.uint64], distance: int, linkage: Linkage) -> list[list[int]]:
    """The clusters with several members, each ascending."""
    pairs = find_pairs(values, distance)
    halves = [Pairs(pairs.low[at::2], pairs.high[at::2], pairs.distances[at::2]) for at in range(2)]
    roots = cluster_simhashes(values, halves, linkage, distance)
    found: dict[int, list[int]] = {}
    for root, value in zip(roots.tolist(), values.tolist(), strict=True):
        found.setdefault(root, []).append(value)
    assert all(root == min(members) for root, members in found.items())
    return [members for members in found.values() if len(members) > 1]


@given(st.sets(st.integers(0, 255), max_size=60), st.integers(0, 3))
def test_single_linkage_is_the_connected_components(some: set[int], distance: int) -> None:
    values = np.array(sorted(some), dtype=np.uint64)
    expected: list[set[int]] = []
    for value in some:
        near = [one for one in expected if any((value ^ o).bit_count() <= distance for o in one)]
        expected = [one for one in expected if one not in near]
        expected.append({value}.union(*near))
    found = clusters(values, distance, "single")
    assert sorted(found) == sorted(sorted(one) for one in expected if len(one) > 1)


@given(st.sets(st.integers(0, 255), max_size=60), st.integers(1, 3))
def test_complete_linkage_keeps_all_members_near_and_joins_what_it_can(
    some: set[int], distance: int
) -> None:
    values = np.array(sorted(some), dtype=np.uint64)
    found = clusters(values, distance, "complete")
    inside = {value for members in found for value in members}
    groups = [*found, *([value] for value in some - inside)]
    for members in groups:
        assert all((a ^ b).bit_count() <= distance for a in members for b in members)
    for number, one in enumerate(groups):
        for other in groups[:number]:
            assert any((a ^ b).bit_count() > distance for a in one for b in other)


def page(number: int, url: str, features: int | None = None) -> ClusterPage:
    return ClusterPage(number, url, 1, datetime(2026, 1, number, tzinfo=UTC), None, features)


PAGES = [
    page(1, "http://example.com/an/article?session=1", 10), page(2, "http://example.com/a", 30),
    page(3, "https://example.com/an/article", 20),
    page(4, "https://example.com/an/article?print", None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "number"), [
    ("earliest", 1), ("newest", 4), ("shortest-url", 2), ("https", 3), ("longest", 2),
    (["https", "newest"], 4), (["https", "shortest-url"], 3), (lambda page: "print" in page.url, 4),
])  # fmt: skip
def test_the_canonical_page_is_chosen_by_a_rule(rule: str | Score, number: int) -> None:
    cluster = make_cluster(PAGES, scorer(rule))
    assert (cluster.canonical.page_id, cluster.cluster_id) == (number, 1)
    assert cluster.pages == tuple(PAGES)


@pytest.mark.parametrize("rule", ["best", ["https", "best"], []])
def test_an_unknown_rule_or_linkage_is_refused_with_the_ones_there_are(rule: str) -> None:
    with pytest.raises(ArgumentError, match="there are: earliest"):
        scorer(rule)
    with pytest.raises(ArgumentError, match="single, complete"):
        cluster_simhashes(CHAIN, [], "average", 3)  # type: ignore[arg-type]
