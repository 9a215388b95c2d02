"""The search in memory finds what a full comparison finds; clusters; what simhash-py finds."""

import itertools
import random
import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, cycle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pgsimhash import compat, hamming_distance
from pgsimhash.errors import ArgumentError
from pgsimhash.search import pairs as block_pairs
from pgsimhash.search.clusters import (
    CANONICAL,
    ClusterPage,
    Linkage,
    cluster_simhashes,
    make_cluster,
    scorer,
)
from pgsimhash.search.memory_index import BlockIndex
from pgsimhash.search.pairs import Pairs, find_pairs, stream_pairs
from tests.refusals import because

Simhashes = NDArray[np.uint64]


def brute_force(simhashes: Simhashes, distance: int) -> list[tuple[int, int, int]]:
    values = sorted(set(simhashes.tolist()))
    every = ((low, high, hamming_distance(low, high)) for low, high in combinations(values, 2))
    return [pair for pair in every if pair[2] <= distance]


def as_tuples(simhashes: Simhashes, distance: int) -> list[tuple[int, int, int]]:
    """What the C extension finds, and the Python code too."""
    before = simhashes.tolist()
    pairs = find_pairs(simhashes, distance)
    assert simhashes.tolist() == before
    assert pairs.low.dtype == pairs.high.dtype == np.uint64
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_pairs, "is_built", False)
        assert rows(find_pairs(simhashes, distance)) == rows(pairs)
    return rows(pairs)


def rows(pairs: Pairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.low.tolist(), pairs.high.tolist(), pairs.distances.tolist(), strict=True))


@given(
    centres=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3),
    flips=st.lists(st.sets(st.integers(0, 63), max_size=7), max_size=25),
    distance=st.integers(0, 12),
)
def test_clusters_of_near_copies(centres: list[int], flips: list[set[int]], distance: int) -> None:
    masks = (sum(1 << bit for bit in bits) for bits in flips)
    values = [centre ^ mask for centre, mask in zip(cycle(centres), masks, strict=False)]
    array, queries = (np.array(some, dtype=np.uint64) for some in (values, centres))
    assert found(BlockIndex(array), queries, distance) == matches(array, queries, distance)
    assert as_tuples(array, distance) == brute_force(array, distance)
    assert rows(find_pairs(values, distance)) == brute_force(array, distance)


@pytest.mark.parametrize("distance", [0, 1, 3, 8, 12])
def test_many_simhashes_in_several_chunks(distance: int) -> None:
    """Random simhashes with planted copies: every planted pair is found once."""
    rng = np.random.default_rng(distance)
    originals = rng.integers(0, 2**64, 70_000 if distance < 9 else 5_000, dtype=np.uint64)
    copies = near_to(originals[:200], distance, rng)
    array = np.concatenate([originals, copies])
    pairs = as_tuples(array, distance)
    assert len(pairs) == len(set(pairs))
    assert all(hamming_distance(low, high) == bits <= distance for low, high, bits in pairs)
    planted = zip(originals[:200].tolist(), copies.tolist(), strict=True)
    assert distance == 0 or {(*sorted(pair), distance) for pair in planted} <= set(pairs)
    stream = stream_pairs(np.unique(array)[::-1], distance)
    assert sorted(pair for block in stream for pair in rows(block)) == pairs
    assert distance != 8 or rows(find_pairs(array)) == pairs


@given(
    shared=st.lists(st.integers(0, 63), max_size=50), seed=st.integers(0, 99),
    strays=st.integers(0, 9), distance=st.integers(0, 9),
)  # fmt: skip
def test_hot_prefixes_lose_none(shared: list[int], seed: int, strays: int, distance: int) -> None:
    """Most simhashes share some bits, at any positions, and a few do not."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**64, 90, dtype=np.uint64)
    values[strays:] &= np.uint64(~sum(1 << bit for bit in set(shared)) % 2**64)
    flips = np.uint64(1) << rng.integers(0, 64, (60, 3), dtype=np.uint64)
    array = np.concatenate([values, values[:60] ^ np.bitwise_xor.reduce(flips, axis=1)])
    block_pairs._inner_layout.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_pairs, "_HOT", 4)
        patch.setattr(block_pairs, "_COMPARE_NS", 1e6)
        assert as_tuples(array, distance) == brute_force(array, distance)
    block_pairs._inner_layout.cache_clear()


def test_a_hot_prefix_takes_little_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).integers(0, 2**40, 100_000, dtype=np.uint64)
    compared: list[int] = []
    each = block_pairs._compared

    def counted(ordered: Any, same: Any, *others: Any) -> Any:
        compared.append(int((np.unique_counts(ordered & same).counts ** 2).sum()))
        return each(ordered, same, *others)

    monkeypatch.setattr(block_pairs, "_compared", counted)
    pairs = find_pairs(np.concatenate([values, values[:500] ^ np.uint64(1 << 39 | 1)]), 3)
    assert len(pairs.low) >= 500
    assert sum(compared) < len(values) ** 2 / 10
    rng = np.random.default_rng(3)
    crowd = rng.integers(0, 2**42, 300_000, dtype=np.uint64) | np.uint64(0x2AAAAA << 42)
    queries = near_to(crowd[:20], 3, rng)
    assert found(BlockIndex(crowd), queries, 3) == matches(crowd, queries, 3)


def test_a_stream_reports_its_progress() -> None:
    values = np.arange(40_000, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    reports: list[Any] = []
    list(stream_pairs(values, 3, progress=lambda *counts: reports.append(counts)))
    done, totals = zip(*reports, strict=True)
    assert list(done) == sorted(done)
    assert {*totals} == {done[-1]}
    assert len(done) == done[-1] / len(values)
    reports.clear()
    empty = stream_pairs(values[:0], 3, progress=lambda *counts: reports.append(counts))
    assert (list(empty), {*reports}) == ([], {(0, 0)})


def test_pairs_at_a_prompt_and_as_a_frame() -> None:
    pairs = find_pairs([1, 3, 7, 1 << 40], 2)
    assert repr(pairs) == "<pairs of simhashes: 4, up to 2 bits apart>"
    assert pd.DataFrame(pairs._asdict()).to_dict("list") == {
        name: column.tolist() for name, column in pairs._asdict().items()
    }


def matches(known: Simhashes, queries: Simhashes, distance: int) -> list[tuple[int, int]]:
    """What a comparison of each query with all simhashes finds."""
    each = np.unique(known)
    return [
        (number, value)
        for number, query in enumerate(queries)
        for value in each[np.bitwise_count(query ^ each) <= distance].tolist()
    ]


def found(index: BlockIndex, queries: Simhashes, distance: int) -> list[tuple[int, int]]:
    numbers, near = index.near(queries, distance)
    return list(zip(numbers.tolist(), near.tolist(), strict=True))


def near_to(values: Simhashes, distance: int, rng: np.random.Generator) -> Simhashes:
    """Each value with this many bits changed."""
    flips = [sum(1 << int(bit) for bit in rng.choice(64, distance, replace=False)) for _ in values]
    return values ^ np.array(flips, dtype=np.uint64)


@pytest.mark.parametrize("distance", [0, 1, 2, 3, 5, 8, 12])
def test_many_simhashes_by_blocks_of_either_width(distance: int) -> None:
    rng = np.random.default_rng(distance)
    known = rng.integers(0, 2**64, 600_000 if distance in (2, 8) else 100_000, dtype=np.uint64)
    queries = np.concatenate([near_to(known[:40], distance, rng), known[40:60] ^ np.uint64(1)])
    assert found(BlockIndex(known), queries, distance) == matches(known, queries, distance)
    for size in (30_000, 65, 64):
        few = known[:size]
        assert found(BlockIndex(few), queries, distance) == matches(few, queries, distance)


def test_empty_indexes_and_an_invalid_distance() -> None:
    none, some = np.empty(0, dtype=np.uint64), np.arange(10, dtype=np.uint64)
    index = BlockIndex(some)
    assert found(BlockIndex(none), some, 12) == found(index, none, 12) == []
    with pytest.raises(ArgumentError, check=because("invalid_argument")):
        find_pairs(some, distance=13)
    with pytest.raises(ArgumentError, match="jobs is a number from 1"):
        find_pairs(some, jobs=0)


CHAIN = np.array([(1 << n) - 1 for n in range(10)], dtype=np.uint64)


def clusters(values: Simhashes, distance: int, linkage: Linkage) -> list[list[int]]:
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
def test_complete_linkage_keeps_near_and_joins_what_it_can(some: set[int], distance: int) -> None:
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
def test_the_canonical_page_is_chosen_by_a_rule(rule: Any, number: int) -> None:
    cluster = make_cluster(PAGES, scorer(rule))
    assert (cluster.canonical.page_id, cluster.cluster_id) == (number, 1)
    assert cluster.pages == tuple(PAGES)


@pytest.mark.parametrize(("urls", "links", "best"), [
    (["http://a.example/x", "https://www.a.example/long/x"], {}, 1),
    (["https://a.example/x?utm_source=mail", "https://a.example/folder/x"], {}, 1),
    (["https://a.example/x;jsessionid=1", "https://a.example/folder/x"], {}, 1),
    (["https://a.example/print/x", "https://a.example/articles/x"], {}, 1),
    (["https://m.a.example/x", "https://www.a.example/x"], {}, 1),
    (["https://a.example/printing/x", "https://a.example/articles/xyz"], {}, 0),
    (["https://a.example/long", "https://a.example/x", "https://a.example/y"], {}, 1),
    (["https://www.a.example/x", "https://a.example/x"], {}, 0),
    # Links decide, but only to pages of the cluster.
    (["https://a.example/x", "http://a.example/x?y=1"], {0: 1, 1: 1}, 1),
    (["https://a.example/print/x", "https://a.example/x"], {0: "https://a.example/none"}, 1),
])  # fmt: skip
def test_by_default_links_choose_the_canonical_page_and_then_the_url(
    urls: list[str], links: dict[int, int | str], best: int
) -> None:
    def link(number: int) -> str | None:
        named = links.get(number)
        return urls[named] if isinstance(named, int) else named

    pages = [
        replace(page(number + 1, url), canonical_url=link(number))
        for number, url in enumerate(urls)
    ]
    cluster = make_cluster(pages, scorer(CANONICAL))
    assert (cluster.canonical.url, cluster.cluster_id) == (urls[best], 1)
    assert [member.links for member in cluster.pages] == [
        sum(link(number) == url for number in range(len(urls))) for url in urls
    ]


@pytest.mark.parametrize("rule", ["best", ["https", "best"], []])
def test_an_unknown_rule_or_linkage_is_refused_with_the_ones_there_are(rule: str) -> None:
    with pytest.raises(ArgumentError, match="there are: linked, indexed, earliest"):
        scorer(rule)
    with pytest.raises(ArgumentError, match="single, complete"):
        cluster_simhashes(CHAIN, [], "average", 3)  # type: ignore[arg-type]


POEM = """It was many and many a year ago, in a kingdom by the sea, that a maiden there lived whom
you may know by the name of Annabel Lee; and this maiden she lived with no other thought than to
love and be loved by me. I was a child and she was a child, in this kingdom by the sea, but we
loved with a love that was more than love, I and my Annabel Lee; with a love that the winged
seraphs of Heaven coveted her and me."""
OTHER = """There was an old man with a beard, who said: it is just as I feared! Two owls and a hen,
four larks and a wren, have all built their nests in my beard."""


def computed(text: str) -> int:
    tokens = "".join(re.split(r"\W+", text.lower()))
    return compat.compute(
        compat.unsigned_hash("".join(window).encode()) for window in compat.shingle(tokens, 4)
    )


def test_computing_simhashes() -> None:
    assert compat.num_differing_bits(0xDEADBEEF, 0xDEADBEAD) == 2
    assert compat.compute([]) == 0
    assert compat.compute([0xDEADBEEF] * 100) == 0xDEADBEEF
    assert compat.compute([0xDEADBEEFDEADBEEF, 0x2152411021524110]) == 0
    assert compat.compute([0xABCD, 0xBCDE, 0xCDEF]) == 0xADCF
    assert compat.unsigned_hash(b"") == 0xD41D8CD98F00B204
    assert compat.num_differing_bits(computed(POEM), computed(POEM + " by Edgar A. Poe")) <= 3
    assert compat.num_differing_bits(computed(POEM), computed(OTHER)) > 3
    # Windows of tokens.
    assert list(compat.shingle(range(6))) == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]
    assert list(compat.shingle(range(3), 4)) == []
    # As from simhash-py, also of iterators.
    for tokens in (iter(range(6)), (number for number in range(6))):
        assert list(compat.shingle(tokens, 5)) == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    for window in (0, -1, 1.5, "4", None):
        wrong: Any = window
        with pytest.raises(ArgumentError, match="a window"):
            compat.shingle(range(10), wrong)


DIVERSE = [
    0x00000000, 0x10101000, 0x10100010, 0x10001010, 0x00101010, 0x01010100, 0x01010001, 0x01000101,
    0x00010101,
]  # fmt: skip
"""Published with seomoz/simhash-py: the pairs within three bits."""


def shifted(*hashes: int) -> list[int]:
    return [number << shift for shift in (0, 8, 16, 24) for number in hashes]


@pytest.mark.parametrize(("hashes", "count"), [
    (shifted(0xFF, 0xEF, 0xEE, 0xCE, 0x33), 24),
    (DIVERSE, 20), ([random.Random(n).getrandbits(10) << 40 for n in range(200)] * 2, None),
])  # fmt: skip
def test_all_pairs_for_each_number_of_blocks(hashes: list[int], count: int | None) -> None:
    ordered = sorted({*hashes})
    pairs = itertools.combinations(ordered, 2)
    near = [pair for pair in pairs if compat.num_differing_bits(*pair) <= 3]
    for blocks in range(4, 10):
        assert sorted(compat.find_all(hashes, blocks, 3)) == near
        assert sorted(compat.find_all(iter(hashes), blocks, 3)) == near
    assert count in (len(near), None)
    with pytest.raises(ArgumentError, match="above different_bits"):
        compat.find_all(hashes, 3, 3)
    wrong: Any = "4"
    for numbers in ((wrong, 3), (4, wrong)):
        with pytest.raises(ArgumentError):
            compat.find_all(hashes, *numbers)
