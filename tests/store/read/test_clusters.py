"""All near-duplicates within a collection: pairs, clusters, and saved clusters."""

from collections.abc import Sequence
from random import Random

import numpy as np
import psycopg
import pytest

from pgsimhash import Store, connect
from pgsimhash.hashing.signature import confirmations, verified
from pgsimhash.pages.records import PageRecord
from pgsimhash.search.clusters import CANONICAL, ClusterPage
from pgsimhash.store import clusters
from tests.database import after_a_wait, run_sql
from tests.search.test_pairs import brute_force

FAR = 0xFFFF_0000_FFFF_0000


def fill(store: Store, simhashes: dict[str, int]) -> None:
    list(store.add_pages(((f"https://{url}", value) for url, value in simhashes.items())))


def as_tuples(store: Store, distance: int) -> list[tuple[int, int, int]]:
    blocks = ([column.tolist() for column in block] for block in store.pairs(distance))
    return [row for columns in blocks for row in zip(*columns, strict=True)]


def test_pairs_and_clusters_report_their_progress(store: Store) -> None:
    fill(store, {f"a.example/{n}": n << 32 | n for n in range(100)})
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    assert sum(len(block.low) for block in store.pairs(3, progress=progress))
    passes, rest = divmod(told[-1][1], 100)
    assert (told[-1][0], rest) == (told[-1][1], 0)
    pairs = told.copy()
    assert len(pairs) == passes
    for again in (
        lambda: list(store.clusters(3, progress=progress)),
        lambda: store.save_clusters(3, progress=progress),
    ):
        told.clear()
        again()
        assert told == pairs


def test_a_marked_page_that_changes_meanwhile_is_not_joined(store: Store, dsn: str) -> None:
    # Both simhashes of the second page are one number in floating point.
    fill(store, {"a.example/": 3, "b.example/": 0xFFFF_FFFF_FFFF_F000})
    store.mark("https://a.example/", "https://b.example/", same=True)

    def change(_: int, __: int) -> None:
        with connect(dsn) as other:
            fill(other, {"b.example/": 0xFFFF_FFFF_FFFF_F001})

    assert list(store.clusters(3, progress=change)) == []


def test_all_pairs_of_a_collection_each_once(dsn: str) -> None:
    known = {0, 2**63, *(n << 32 | m for n in range(9) for m in (0, 1, 3, 0x1F))}
    with connect(dsn, collection="other", create=True) as other, connect(dsn) as store:
        fill(other, {"a.example/x": 2})
        assert as_tuples(store, 3) == []
        fill(store, {f"a.example/{n}": value for n, value in enumerate(known)})
        found = as_tuples(store, 3)
    assert len(found) > 100
    assert sorted(found) == brute_force(np.array(list(known), dtype=np.uint64), 3)


CHAIN = {f"a.example/{n}": (1 << n) - 1 for n in range(5)}


def urls(store: Store, distance: int = 1, **options: str) -> list[list[str]]:
    return [
        [page.url.removeprefix("https://") for page in cluster.pages]
        for cluster in store.clusters(distance, **options)  # type: ignore[arg-type]
    ]


def test_clusters_are_what_pairs_join_and_complete_linkage_cuts_chains(store: Store) -> None:
    fill(store, {**CHAIN, "a.example/alone": FAR})
    assert urls(store) == [list(CHAIN)]
    halves = [["a.example/0", "a.example/1"], ["a.example/2", "a.example/3"]]
    assert urls(store, linkage="complete") == halves


def test_pages_with_one_simhash_are_a_cluster_and_only_present_versions_count(store: Store) -> None:
    fill(store, {"a.example/1": FAR, "a.example/2": FAR, "a.example/3": 5})
    assert urls(store) == [["a.example/1", "a.example/2"]]
    fill(store, {"a.example/2": 1 << 50})
    assert urls(store) == []


WHOLE, OTHER = (1 << 120) - 1 << 8 | 200, 0xFF << 8 | 200
"""Signatures of pages of one size that share nothing."""


def test_signatures_confirm_clusters_as_they_confirm_verdicts(dsn: str) -> None:
    signatures = {"one": WHOLE, "other": OTHER, "copy": WHOLE, "plain": None}
    records = [
        PageRecord(f"https://a.example/{name}", FAR ^ n, signature=signature)
        for n, (name, signature) in enumerate(signatures.items())
    ]
    with connect(dsn) as store:
        verdicts = {each.url: each for each in store.ingest_many(records[:3])}
        kinds = [verdicts[record.url].kind for record in records[:3]]
        assert kinds == ["new", "new", "duplicate"]
        for linkage in ("single", "complete"):
            assert urls(store, 2, linkage=linkage) == [["a.example/one", "a.example/copy"]]
        # A mark joins what signatures do not; a page without one confirms every match.
        store.mark("https://a.example/one", "https://a.example/other", same=True)
        together = ["a.example/one", "a.example/other", "a.example/copy"]
        assert urls(store, 2) == [together]
        store.unmark("https://a.example/one", "https://a.example/other")
        list(store.ingest_many(records[3:]))
        assert urls(store, 2) == [[*together, "a.example/plain"]]
        assert urls(store, 0) == []


def test_confirmations_are_those_of_verified() -> None:
    random = Random(3)
    base = random.getrandbits(120)
    signatures: list[int | None] = [None]
    for _ in range(60):
        changed = sum(1 << bit for bit in random.sample(range(120), random.randrange(40)))
        signatures.append(
            (base ^ changed) << 8 | random.choice((20, 49, 50, 60, 64, 120, 188, 200))
        )
    confirmed = confirmations(signatures)
    others = np.arange(len(signatures))
    found = []
    for one in range(len(signatures)):
        distances = others % 13
        expected = [verified(int(bits), signatures[one], signatures[other])
                    for other, bits in zip(others, distances, strict=True)]  # fmt: skip
        assert confirmed(one, others, distances.astype(np.uint8)).tolist() == expected
        found += expected
    assert 500 < sum(found) < len(found) - 500


Rows = list[tuple[int, int, bool]]


def saved(dsn: str, collection: str = "default") -> Rows:
    return run_sql(
        dsn,
        "SELECT c.cluster, c.page_id, c.is_canonical FROM pgsimhash.clusters AS c "
        "JOIN pgsimhash.collections AS o USING (collection_id) WHERE o.name = %s ORDER BY 1, 2",
        [collection],
    )


def as_rows(store: Store, distance: int, canonical: str | Sequence[str] = CANONICAL) -> Rows:
    return sorted(
        (cluster.cluster_id, page.page_id, page is cluster.canonical)
        for cluster in store.clusters(distance, canonical=canonical)
        for page in cluster.pages
    )


def test_saved_clusters_replace_those_of_the_collection(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_SAVED", 2)
    with connect(dsn) as store, connect(dsn, collection="other", create=True) as other:
        fill(store, {**CHAIN, "a.example/apart": FAR, "b.example/apart": FAR + 1})
        fill(other, CHAIN)
        assert other.save_clusters(1, canonical="newest") == 1
        others = saved(dsn, "other")
        assert others == as_rows(other, 1, "newest")
        for distance, count in ((1, 2), (0, 0), (1, 2)):
            assert store.save_clusters(distance) == count
            assert saved(dsn) == as_rows(store, distance)
        assert saved(dsn, "other") == others


def test_readers_see_the_old_clusters_until_the_commit_and_other_jobs_wait_for_it(dsn: str) -> None:
    with connect(dsn) as other, psycopg.connect(dsn) as connection:
        fill(other, CHAIN)
        other.save_clusters(1)
        before = saved(dsn)
        store = connect(connection)
        for end in (connection.rollback, connection.commit):
            store.save_clusters(1, canonical="newest")
            assert saved(dsn) == before
            end()
        assert saved(dsn) == as_rows(other, 1, "newest") != before
        store.save_clusters(0)
        after_a_wait(connection, lambda: other.save_clusters(1))
        assert saved(dsn) == before


def test_saved_clusters_lose_deleted_pages_and_collections(store: Store, dsn: str) -> None:
    fill(store, CHAIN)
    first, *others = sorted(CHAIN)

    def delete_meanwhile(page: ClusterPage) -> int:
        with connect(dsn) as deleting:
            deleting.delete_page(f"https://{first}")
        return page.page_id

    assert store.save_clusters(1, canonical=delete_meanwhile) == 1
    assert len(saved(dsn)) == len(others) == 4
    store.delete_page(f"https://{others[0]}")
    assert len(saved(dsn)) == 3
    with psycopg.connect(dsn, autocommit=True) as connection:
        connect(connection, collection="default", create=False).delete_collection()
        assert connection.execute("SELECT count(*) FROM pgsimhash.clusters").fetchone() == (0,)
