"""Marks apply to verdicts, new versions, repeated runs and clusters."""

from __future__ import annotations

import psycopg
import pytest

from pgsimhash import Store, connect, maintenance
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.search.clusters import Linkage
from tests.database import run_sql
from tests.store.content import page_at
from tests.store.test_store import FAR

A, B, C, D = (f"https://{letter}.example/" for letter in "abcd")


def clusters(store: Store, distance: int = 1, linkage: Linkage = "single") -> list[list[str]]:
    found = store.clusters(distance, linkage=linkage)
    return sorted([page.url for page in cluster.pages] for cluster in found)


def test_pages_marked_different_are_no_duplicates_in_any_version(store: Store) -> None:
    store.add(A, 0)
    assert store.add(B, 1).duplicate_of == A
    maintenance.mark(store, A, B, same=False)
    assert store.add(B, 2).verdict == "updated"
    assert store.add(A, 2).verdict == "updated"
    store.delete(B)
    assert store.add(B, 4).verdict == "new"
    assert store.decide(B, "<p>" + "word " * 50).keep


def originals(store: Store) -> dict[str, str | None]:
    pages = [page for page in map(store.get, (A, B, C, D)) if page is not None]
    return {page.url: page.duplicate_of for page in pages}


def test_a_mark_decides_the_two_pages_again(store: Store, dsn: str) -> None:
    list(store.add_many([(A, 0), (B, 1), (C, 3), (D, FAR)]))
    assert originals(store) == {A: None, B: A, C: B, D: None}
    # B was wrongly a duplicate; its copy stays one.
    maintenance.mark(store, A, B, same=False)
    assert originals(store) == {A: None, B: None, C: B, D: None}
    maintenance.mark(store, D, B, same=True)
    assert originals(store) == {A: None, B: None, C: B, D: B}
    # C duplicated a page that is marked.
    maintenance.mark(store, B, D, same=False)
    maintenance.unmark(store, A, B)
    assert originals(store) == {A: None, B: A, C: B, D: None}
    maintenance.mark(store, C, A, same=False)
    assert originals(store) == {A: None, B: A, C: None, D: None}
    assert list(maintenance.check(store)) == []


def test_a_mark_is_part_of_the_caller_s_transaction(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        store = connect(connection)
        list(store.add_many([(A, 0), (B, 1)]))
        connection.commit()
        maintenance.mark(store, A, B, same=False)
        assert originals(store) == {A: None, B: None}
        connection.rollback()
        assert originals(store) == {A: None, B: A}
        assert maintenance.marks(store) == []


def test_pages_marked_same_are_duplicates_at_any_distance(store: Store) -> None:
    store.add(A, 0)
    store.add(B, FAR)
    maintenance.mark(store, A, B, same=True)
    found = store.add(B, FAR - 1)
    assert (found.verdict, found.reason) == ("near", "marked_same")
    assert (found.distance, found.duplicate_of) == (63, A)
    assert page_at(store, B).duplicate_of == A
    # Of two pages marked as same, the one stored first is the original.
    assert store.add(A, 1 << 20).verdict == "updated"


def test_a_mark_outlives_its_pages(store: Store) -> None:
    list(store.add_many([(A, 0), (B, FAR)]))
    maintenance.mark(store, A, B, same=True)
    store.delete(A)
    store.delete(B)
    verdicts = list(store.add_many([(B, FAR), (A, 0)]))
    assert [(verdict.reason, verdict.duplicate_of) for verdict in verdicts] == [
        ("first_seen", None),
        ("marked_same", B),
    ]


def test_marks_are_listed_and_removed(store: Store, dsn: str) -> None:
    list(store.add_many([(A, 0), (B, 1), (C, FAR)]))
    maintenance.mark(store, B, A, same=False)
    run_sql(dsn, "SELECT pgsimhash.mark('default', %s, %s, true)", [C, A])
    assert [(mark.a, mark.b, mark.same) for mark in maintenance.marks(store)] == [
        (A, B, False),
        (A, C, True),
    ]
    maintenance.mark(store, A, B, same=True)
    assert [mark.same for mark in maintenance.marks(store)] == [True, True]
    assert maintenance.unmark(store, A, B)
    assert not maintenance.unmark(store, B, A)
    assert [mark.b for mark in maintenance.marks(store)] == [C]
    assert run_sql(dsn, "SELECT pgsimhash.unmark('default', %s, %s)", [A, C]) == [(True,)]


def test_contradictions_and_unknown_urls_are_refused(store: Store) -> None:
    list(store.add_many([(A, 0), (B, 1), (C, FAR), (D, 5)]))
    maintenance.mark(store, A, B, same=True)
    maintenance.mark(store, B, C, same=True)
    with pytest.raises(ArgumentError, match="are the same; remove one of them"):
        maintenance.mark(store, A, C, same=False)
    maintenance.mark(store, C, D, same=False)
    with pytest.raises(ArgumentError, match=f"{C} and {D} are different"):
        maintenance.mark(store, D, A, same=True)
    with pytest.raises(ArgumentError, match="give another URL"):
        maintenance.mark(store, A, A, same=True)
    with pytest.raises(NotFoundError, match=r"no page at https.*; ingest"):
        maintenance.mark(store, A, f"{A}unknown", same=True)
    assert len(maintenance.marks(store)) == 3


@pytest.mark.parametrize("linkage", ["single", "complete"])
def test_clusters_are_joined_and_divided(store: Store, linkage: Linkage) -> None:
    list(store.add_many([(A, 0), (B, 1), (C, FAR), (D, FAR - 1)]))
    assert clusters(store, 1, linkage) == [[A, B], [C, D]]
    maintenance.mark(store, A, C, same=True)
    assert clusters(store, 1, linkage) == [[A, B, C, D]]
    maintenance.mark(store, B, D, same=False)
    assert clusters(store, 1, linkage) == [[A, B, C]]
    maintenance.unmark(store, A, C)
    maintenance.unmark(store, B, D)
    maintenance.mark(store, A, B, same=False)
    assert clusters(store, 1, linkage) == [[C, D]]


def test_copies_marked_different_are_in_two_clusters(store: Store) -> None:
    list(store.add_many([(A, 0), (B, 0), (C, 0), (D, FAR)]))
    maintenance.mark(store, A, B, same=False)
    maintenance.mark(store, B, D, same=True)
    assert clusters(store) == [[A, C], [B, D]]
