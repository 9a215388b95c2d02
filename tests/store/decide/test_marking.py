"""Marks apply to verdicts, new versions, repeated runs and clusters."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations

import numpy as np
import psycopg
import pytest

from pgsimhash import Store, connect
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.pages.records import Mark, PageRecord
from pgsimhash.search.clusters import ClusterPage, Linkage
from pgsimhash.store.clusters import join_marked, split_marked
from tests.database import run_sql
from tests.store.pages import FAR

A, B, C, D = (f"https://{letter}.example/" for letter in "abcd")


def clusters(store: Store, distance: int = 1, linkage: Linkage = "single") -> list[list[str]]:
    found = store.clusters(distance, linkage=linkage)
    return sorted([page.url for page in cluster.pages] for cluster in found)


def originals(store: Store) -> dict[str, str | None]:
    pages = [page for page in map(store.get, (A, B, C, D)) if page is not None]
    return {page.url: page.duplicate_of for page in pages}


def test_a_mark_is_part_of_the_caller_s_transaction(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        list(store.add_pages([(A, 0), (B, 1)]))
        connection.commit()
        store.mark(A, B, same=False)
        assert originals(store) == {A: None, B: None}
        connection.rollback()
        assert originals(store) == {A: None, B: A}
        assert store.marks() == []


def test_marks_are_listed_and_removed(store: Store, dsn: str) -> None:
    list(store.add_pages([(A, 0), (B, 1), (C, FAR)]))
    store.mark(B, A, same=False)
    run_sql(dsn, "SELECT pgsimhash.mark(%s, %s, true)", [C, A])
    marks = [(mark.a, mark.b, mark.same) for mark in store.marks()]
    assert marks == [(A, B, False), (A, C, True)]
    store.mark(A, B, same=True)
    assert [mark.same for mark in store.marks()] == [True, True]
    assert store.unmark(A, B)
    assert not store.unmark(B, A)
    assert [mark.b for mark in store.marks()] == [C]
    assert run_sql(dsn, "SELECT pgsimhash.unmark(%s, %s)", [A, C]) == [(True,)]


def test_contradictions_and_unknown_urls_are_refused(store: Store) -> None:
    list(store.add_pages([(A, 0), (B, 1), (C, FAR), (D, 5)]))
    store.mark(A, B, same=True)
    store.mark(B, C, same=True)
    with pytest.raises(ArgumentError, match="are the same; remove one of these marks"):
        store.mark(A, C, same=False)
    store.mark(C, D, same=False)
    with pytest.raises(ArgumentError, match=f"{C} and {D} are different"):
        store.mark(D, A, same=True)
    with pytest.raises(ArgumentError, match="give another URL"):
        store.mark(A, A, same=True)
    with pytest.raises(NotFoundError, match=r"no page at https.*; ingest"):
        store.mark(A, f"{A}unknown", same=True)
    assert len(store.marks()) == 3


@pytest.mark.parametrize("linkage", ["single", "complete"])
def test_clusters_are_joined_and_divided(store: Store, linkage: Linkage) -> None:
    list(store.add_pages([(A, 0), (B, 1), (C, FAR), (D, FAR - 1)]))
    assert clusters(store, 1, linkage) == [[A, B], [C, D]]
    store.mark(A, C, same=True)
    assert clusters(store, 1, linkage) == [[A, B, C, D]]
    store.mark(B, D, same=False)
    assert clusters(store, 1, linkage) == [[A, B, C]]
    store.unmark(A, C)
    store.unmark(B, D)
    store.mark(A, B, same=False)
    assert clusters(store, 1, linkage) == [[C, D]]


# Without a database.

NOW = datetime(2024, 2, 29, tzinfo=UTC)


def pages_of(**simhashes: int) -> list[ClusterPage]:
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


CHAIN = pages_of(a=0b0, b=0b1, c=0b11, d=0b111, e=0b1111)


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


def test_a_page_follows_the_marked_page_that_its_signature_confirms() -> None:
    pages = pages_of(a=0b0, b=0b11111, c=0b111)
    signed = [
        replace(page, signature=signature)
        for page, signature in zip(pages, [1 << 127, 2**128 - 1, 0], strict=True)
    ]
    assert parts(split_marked(signed, different("ab"))) == ["ac", "b"]


def test_copies_can_differ() -> None:
    assert parts(split_marked(pages_of(a=7, b=7, c=7), different("ab"))) == ["ac", "b"]


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


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize(
    ("url", "canonical", "is_original"),
    [
        ("https://www.shop.co.uk/", "https://m.shop.co.uk/", True),
        ("https://shop.example/2", "https://SHOP.example:8443/1", True),
        ("https://a.co.uk/", "https://b.co.uk/", False),
        ("http://192.0.2.1/", "http://192.0.2.2/", False),
    ],
)
def test_a_removed_mark_gives_the_canonical_page_of_the_site_back(
    store: Store, rebuilt: bool, url: str, canonical: str, is_original: bool
) -> None:
    store.set_policy("*", canonical_link=True)
    list(
        store.ingest_many([PageRecord(canonical, 0), PageRecord(url, FAR, canonical_url=canonical)])
    )
    if rebuilt:
        store.rebuild()
    expected = canonical if is_original else None
    for same, original in ((None, expected), (False, None), (None, expected), (True, canonical)):
        if same is None:
            store.unmark(url, canonical)
        else:
            store.mark(url, canonical, same=same)
        page = store.get(url)
        assert page is not None
        assert page.duplicate_of == original
