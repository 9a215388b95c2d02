"""All near-duplicates within a collection: pairs, clusters, and tables of them."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from pgsimhash import Store, analysis, connect
from pgsimhash.errors import ArgumentError
from pgsimhash.search.clusters import Score
from tests.refusals import because

FAR = 0xFFFF_0000_FFFF_0000


def fill(store: Store, simhashes: dict[str, int]) -> None:
    list(store.add_many(((f"https://{url}", value) for url, value in simhashes.items())))


def as_tuples(store: Store, distance: int) -> list[tuple[int, int, int]]:
    return [
        row
        for block in store.pairs(distance)
        for row in zip(
            block.low.tolist(), block.high.tolist(), block.distances.tolist(), strict=True
        )
    ]


def test_pairs_and_clusters_report_their_progress(store: Store) -> None:
    fill(store, {f"a.example/{n}": n << 32 | n for n in range(100)})
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    assert sum(len(block.low) for block in store.pairs(3, progress=progress))
    passes, rest = divmod(told[-1][1], 100)
    assert (told[-1][0], rest) == (told[-1][1], 0)
    pairs = told.copy()
    assert len(pairs) == passes + 1
    for again in (
        lambda: list(store.clusters(3, progress=progress)),
        lambda: analysis.save_pairs(store, "near", 3, progress=progress),
        lambda: analysis.save_clusters(store, "groups", 3, progress=progress),
    ):
        told.clear()
        again()
        assert told == pairs


def test_all_pairs_of_a_collection_each_once(dsn: str) -> None:
    rng = random.Random(3)
    centres = [rng.getrandbits(64) for _ in range(100)]
    known = {0, 2**63} | {
        centre ^ sum(1 << bit for bit in rng.sample(range(64), rng.randint(0, 5)))
        for centre in centres
        for _ in range(6)
    }
    with connect(dsn, collection="other") as other, connect(dsn) as store:
        fill(other, {"a.example/x": 3})
        assert as_tuples(store, 3) == []
        fill(store, {f"a.example/{n}": value for n, value in enumerate(known)})
        found = as_tuples(store, 3)
    expected = {
        (low, high, (low ^ high).bit_count())
        for low, high in combinations(sorted(known), 2)
        if (low ^ high).bit_count() <= 3
    }
    assert len(expected) > 100
    assert len(found) == len(expected)
    assert set(found) == expected


CHAIN = {f"a.example/{n}": (1 << n) - 1 for n in range(5)}


def urls(store: Store, distance: int = 1, **options: str) -> list[list[str]]:
    return [
        [page.url.removeprefix("https://") for page in cluster.pages]
        for cluster in store.clusters(distance, **options)  # type: ignore[arg-type]
    ]


def test_clusters_are_what_pairs_join_and_complete_linkage_cuts_chains(store: Store) -> None:
    fill(store, {**CHAIN, "a.example/alone": FAR})
    assert urls(store) == [list(CHAIN)]
    assert urls(store, linkage="complete") == [
        ["a.example/0", "a.example/1"],
        ["a.example/2", "a.example/3"],
    ]


def test_pages_with_one_simhash_are_a_cluster(store: Store) -> None:
    fill(store, {"a.example/1": FAR, "a.example/2": FAR, "a.example/3": 5})
    assert urls(store) == [["a.example/1", "a.example/2"]]


def test_only_the_present_version_of_a_page_counts(store: Store) -> None:
    fill(store, {"a.example/1": 0, "a.example/2": 1})
    assert urls(store) == [["a.example/1", "a.example/2"]]
    fill(store, {"a.example/2": FAR})
    assert urls(store) == []


def test_the_canonical_page_of_a_cluster(store: Store) -> None:
    fill(store, {"a.example/long": 0, "a.example/s": 1, "a.example/longer": 3})
    rules: list[tuple[str | Score, str]] = [
        ("earliest", "long"),
        ("newest", "longer"),
        ("shortest-url", "s"),
        (lambda page: page.simhash == 1, "s"),
    ]
    for rule, expected in rules:
        (cluster,) = store.clusters(1, canonical=rule)
        assert cluster.canonical.url == f"https://a.example/{expected}"
        assert cluster.cluster_id == cluster.pages[0].page_id


def test_invalid_arguments_of_pairs_are_refused_at_once(store: Store) -> None:
    with pytest.raises(ArgumentError, check=because("invalid_distance")):
        store.pairs(13)
    with pytest.raises(ArgumentError, check=because("invalid_distance")):
        store.clusters(-1)
    with pytest.raises(ArgumentError, check=because("unknown_linkage")):
        store.clusters(3, linkage="average")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, check=because("unknown_rule")):
        store.clusters(3, canonical="best")


def test_a_reader_that_stops_early_leaves_the_store_usable(store: Store) -> None:
    fill(store, {f"a.example/{n}": n for n in range(200)})
    blocks = store.pairs(3)
    next(blocks)
    blocks.close()
    found = store.clusters(1)
    next(found)
    found.close()
    assert store.exists(7)
    assert np.array_equal(np.sort(analysis.simhashes(store)), np.arange(200, dtype=np.uint64))
