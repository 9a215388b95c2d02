"""A rebuild with other settings gives the verdicts that the pages would get again."""

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from pgsimhash import Store, Verdict, connect
from pgsimhash.pages.policies import MatchOptions
from pgsimhash.pages.records import PageRecord
from pgsimhash.store import rebuilding
from tests.database import run_sql
from tests.store.content import content, original_of, rebuild_apart
from tests.store.pages import FAR

A, B, C, D = (f"https://{letter}.example/" for letter in "abcd")

EVERY_TERMS: list[MatchOptions] = [
    {"distance": 8}, {"distance": 0}, {"distance": 3, "max_copies": 3}, {"distance": 12},
    {"distance": 12, "verify": False}, {"distance": 8, "scope": "host"},
    {"distance": 8, "scope": "global"}, {"distance": 8, "max_age": timedelta(days=3)},
    {"distance": 8, "canonical_link": True},
    {"distance": 3, "scope": "host", "max_age": timedelta(days=5), "canonical_link": True},
    {"distance": 8, "window_size": 5}, {"distance": 3, "window_size": 3, "scope": "host"},
]  # fmt: skip


def crawl(seed: int, pages: int = 100) -> list[PageRecord]:
    """Pages near a few simhashes, under few URLs of few hosts, so that all cases occur."""
    rng = random.Random(seed)
    kinds = [rng.getrandbits(64) for _ in range(4)]
    signatures = [None, rng.getrandbits(128), rng.getrandbits(128)]
    urls = [f"https://{host}.example/{n}" for host in "abc" for n in range(20)]

    def near(simhash: int) -> int:
        bits = rng.choice([0, 0, 0, 1, 3, 5, 9, 11])
        return simhash ^ sum(1 << bit for bit in rng.sample(range(64), bits))

    return [
        PageRecord(
            rng.choice(urls),
            simhash,
            datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=3 * n + rng.randrange(9)),
            canonical_url=rng.choice([None, *urls]),
            # Pages with one simhash usually have one signature, because both depend on the
            # features.
            signature=signatures[simhash % 3],
            html_digest=bytes([rng.randrange(9)] * 16),
        )
        for n in range(pages)
        for simhash in [near(rng.choice(kinds))]
    ]


def ingest(
    dsn: str, collection: str, records: Iterable[PageRecord], settings: MatchOptions, batch: int
) -> list[Verdict]:
    with connect(dsn, collection=collection, create=True) as store:
        return list(store.ingest_many(records, batch_size=batch, **settings))


def put_marks(dsn: str, collection: str) -> None:
    """Marks that exist before their pages."""
    said = [("a.example/1", "b.example/2", True), ("a.example/3", "c.example/1", True)]
    said += [(f"a.example/{n}", f"b.example/{n + 1}", False) for n in range(3, 12)]
    with psycopg.connect(dsn) as connection:
        for a, b, same in said:
            connection.execute(
                "INSERT INTO pgsimhash.marks (collection_id, url_a, url_b, same) "
                "VALUES (pgsimhash._id_of_1(%s), %s, %s, %s)",
                [collection, f"https://{a}", f"https://{b}", same],
            )


def reevaluated(store: Store, *, save: bool = False, **options: Any) -> list[Verdict]:
    """The verdicts of a rebuild, which replace the stored ones or are only returned."""
    told: list[Verdict] = []
    options = {"verdicts": told.append, **options}
    if save:
        store.rebuild("again", replace=True, **options)
    else:
        rebuild_apart(store, "again", **options)
        with store._session.connection_to_read() as connection:
            connect(connection, collection="again", create=False).delete_collection()
    return told


def stored_ones(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.reason != "unchanged"]


@pytest.mark.parametrize("settings", EVERY_TERMS, ids=str)
def test_with_the_same_settings_it_gives_the_same_verdicts(
    dsn: str, store: Store, monkeypatch: pytest.MonkeyPatch, settings: MatchOptions
) -> None:
    # A window moves with each batch. Otherwise the result does not depend on the batches.
    batch = 1 if settings.get("window_size") else 7
    monkeypatch.setattr(rebuilding, "BATCH_PAGES", 1 if settings.get("window_size") else 11)
    put_marks(dsn, "default")
    ingested = ingest(dsn, "default", crawl(1), settings, batch)
    assert {verdict.kind for verdict in ingested} >= {"new", "duplicate"}
    before = content(dsn, "default")
    again = reevaluated(store, **settings)
    assert again == stored_ones(ingested)
    assert content(dsn, "default") == before
    assert reevaluated(store, save=True, **settings) == again
    assert content(dsn, "default") == before


@pytest.mark.parametrize("settings", EVERY_TERMS[:6] + EVERY_TERMS[7:10], ids=str)
def test_with_other_settings_it_gives_the_verdicts_of_ingestion(
    dsn: str, store: Store, monkeypatch: pytest.MonkeyPatch, settings: MatchOptions
) -> None:
    monkeypatch.setattr(rebuilding, "BATCH_PAGES", 11)
    records = crawl(2)
    connect(dsn, collection="afresh", create=True).close()
    for collection in ("default", "afresh"):
        put_marks(dsn, collection)
    ingest(dsn, "default", records, {"distance": 1}, 20)
    afresh = ingest(dsn, "afresh", records, settings, 20)
    again = reevaluated(store, save=True, **settings)
    assert again == stored_ones(afresh)
    assert content(dsn, "default") == content(dsn, "afresh")
    assert reevaluated(store, **settings) == again


def test_all_collections_are_compared_with_in_the_order_of_their_pages(
    dsn: str, store: Store
) -> None:
    connect(dsn, collection="other", create=True).close()
    settings = MatchOptions(distance=8, scope="global")
    told: dict[str, list[Verdict]] = {"default": [], "other": []}
    records = crawl(3)
    for number, start in enumerate(range(0, len(records), 10)):
        collection = ("default", "other")[number % 3 == 1]
        told[collection] += ingest(dsn, collection, records[start : start + 10], settings, 4)
    # Pages of the other collection arrived between those of a batch.
    assert reevaluated(store, scope="global") == stored_ones(told["default"])
    with connect(dsn, collection="other", create=True) as other:
        assert reevaluated(other, scope="global", save=True) == stored_ones(told["other"])


def test_after_a_deleted_run_the_rest_is_evaluated_without_it(dsn: str, store: Store) -> None:
    first, second, third = crawl(4)[:50], crawl(5)[:50], crawl(4)[50:]
    # Distinct URLs, because a page that reverts to an earlier content is not stored without it.
    second = [PageRecord(f"{one.url}?2", one.simhash) for one in second]
    for records in (first, second, third):
        ingest(dsn, "default", records, {"distance": 8}, 16)
    store.undo_run(store.runs()[1].run_id)
    connect(dsn, collection="afresh", create=True).close()
    afresh = ingest(dsn, "afresh", first + third, {"distance": 8}, 16)
    assert reevaluated(store, save=True) == stored_ones(afresh)
    assert content(dsn, "default") == content(dsn, "afresh")


def test_policies_apply_unless_overridden(store: Store) -> None:
    store.set_policy("b.example", distance=1)
    ingested = list(store.add_pages([(A, 0), (B, 3), (C, 5), (D, 1), (f"{B}2", 0)]))
    assert [v.duplicate_of for v in ingested] == [None, None, A, A, A]
    assert reevaluated(store) == ingested
    assert [v.duplicate_of for v in reevaluated(store, distance=2)] == [None, A, A, A, A]
    store.set_policy("b.example", distance=2)
    assert [v.duplicate_of for v in reevaluated(store, save=True)][1] == A


def test_a_deleted_original_has_a_successor(dsn: str, store: Store) -> None:
    list(store.add_pages([(A, 0), (B, 0), (C, 1), (D, FAR)]))
    # As without a deletion by the package.
    run_sql(dsn, "DELETE FROM pgsimhash.pages WHERE url = %s", [A])
    run_sql(dsn, "UPDATE pgsimhash.pages SET duplicate_of = NULL, distance = NULL")
    verdicts = reevaluated(store, save=True)
    assert [verdict.duplicate_of for verdict in verdicts] == [None, B, None]
    assert original_of(store, C) == (B, 1)


def test_later_marks_and_versions_that_became_neighbours(store: Store) -> None:
    list(store.add_pages([(A, 0), (B, 1)]))
    store.mark(A, B, same=False)
    assert [verdict.kind for verdict in reevaluated(store)] == ["new", "new"]
    run = store.start_run("between")
    store.add_page(C, FAR)
    store.add_page(C, 5)
    store.start_run("after")
    store.add_page(C, FAR)
    store.undo_run(run)
    store.start_run("two")
    store.add_page(C, 7)
    run = store.start_run("between again")
    store.add_page(C, 1 << 40)
    store.start_run("after again")
    store.add_page(C, 7)
    store.undo_run(run)
    *_, last = reevaluated(store, save=True)
    assert (last.kind, last.reason, last.duplicate_of) == ("updated", "same_text", None)
    assert original_of(store, C) == (None, None)
