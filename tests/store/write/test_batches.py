"""Batches: pages decided together get the verdicts of single pages, and are stored once."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgsimhash import Store, connect
from pgsimhash.pages.policies import MatchSettings
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.store.collection import Collection, find_collection
from pgsimhash.store.ingest import Run, add_batch, sent_options
from pgsimhash.store.lookups import Access
from tests.database import database_examples
from tests.store.decide.test_rule import MARKS, NOW, OPTIONS, RECORDS, URLS, Mark, some_of
from tests.store.maintain.test_rebuilding_verdicts import options

# A window moves with each batch.
SETTINGS = some_of({name: some for name, some in OPTIONS.items() if name != "window_size"}).map(
    lambda options: MatchSettings(**{"distance": 8, **options})
)
PAGES = st.lists(st.tuples(RECORDS, SETTINGS), max_size=8)


@pytest.fixture
def collections(store: Store, dsn: str) -> Iterator[tuple[psycopg.Connection, list[Collection]]]:
    """The store's collection and another one of its scheme."""
    connect(dsn, collection="other").close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = [find_collection(connection, name) for name in ("default", "other")]
        yield connection, [one for one in found if one is not None]


def write(
    connection: psycopg.Connection,
    collection: Collection,
    pages: Sequence[tuple[PageRecord, MatchSettings]],
) -> list[Verdict]:
    records = [record for record, _ in pages]
    own_values = [sent_options(collection, options(settings)) for _, settings in pages]
    access = Access(connection, collection)
    return add_batch(access, records, {}, Run("test"), own_values=own_values)


def near_a_page_elsewhere(url: str) -> list[tuple[PageRecord, MatchSettings]]:
    return [(PageRecord(url, 0, NOW), MatchSettings(8, scope="global"))]


@example(
    others=near_a_page_elsewhere(URLS[0]),
    known=[],
    pages=near_a_page_elsewhere(URLS[1]) + near_a_page_elsewhere(URLS[3]),
    marks=[Mark(URLS[0], URLS[3], same=False)],
)
@database_examples(40)
@given(others=PAGES, known=PAGES, pages=PAGES, marks=st.lists(MARKS, max_size=4))
def test_a_batch_is_decided_as_its_pages_one_by_one(
    collections: tuple[psycopg.Connection, list[Collection]],
    others: list[tuple[PageRecord, MatchSettings]],
    known: list[tuple[PageRecord, MatchSettings]],
    pages: list[tuple[PageRecord, MatchSettings]],
    marks: list[Mark],
) -> None:
    connection, (default, other) = collections

    def decided(size: int) -> list[Verdict]:
        with connection.transaction(force_rollback=True):
            for mark in marks:
                # A mark may contradict those before it.
                with suppress(psycopg.Error), connection.transaction():
                    connection.execute(
                        "SELECT pgsimhash._put_mark(pgsimhash._id_of('default'), %s, %s, %s)",
                        [mark.a, mark.b, mark.same],
                    )
            write(connection, other, others)
            write(connection, default, known)
            return [
                verdict
                for start in range(0, len(pages), size)
                for verdict in write(connection, default, pages[start : start + size])
            ]

    one_by_one = decided(1)
    assert decided(len(pages) or 1) == one_by_one
    assert decided(3) == one_by_one


def test_of_thousands_of_pages_with_one_simhash_the_first_is_indexed(
    connection: psycopg.Connection,
) -> None:
    connection.execute("INSERT INTO pgsimhash.collections (name, scheme) VALUES ('default', 'x')")
    verdicts = connection.execute(
        "SELECT verdict, count(*) FROM pgsimhash.add_pages("
        "ARRAY(SELECT 'https://a.example/' || g FROM generate_series(1, 2000) AS g), "
        "array_fill(1::bigint, ARRAY[2000])) GROUP BY verdict ORDER BY count(*)"
    ).fetchall()
    assert verdicts == [("new", 1), ("duplicate", 1999)]
    (indexed,) = connection.execute(
        "SELECT count(*) FROM pgsimhash.pages WHERE indexed"
    ).fetchone() or (0,)
    assert indexed == 1


def test_a_run_counts_only_in_its_collection(dsn: str, store: Store) -> None:
    """A rebuild keeps the ids of runs, so two collections have the same."""
    run = store.start_run("night")
    store.add("https://a.example/", 1)
    with connect(dsn, collection="other") as other, psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO pgsimhash.runs (run_id, collection_id, label, pages) "
            "SELECT %s, collection_id, 'night', 5 FROM pgsimhash.collections WHERE name = 'other'",
            [run],
        )
        for opened, pages in ((store, 1), (other, 5)):
            stored = connection.execute(
                "SELECT pgsimhash._batch_stored(%s, %s, %s, '{}', '{}')",
                [opened.opened.collection_id, run, pages],
            ).fetchone()
            assert stored == (True,)


def test_ids_continue_above_inserted_ones(store: Store, connection: psycopg.Connection) -> None:
    connection.execute(
        "INSERT INTO pgsimhash.pages (collection_id, page_id, url, simhash) "
        "SELECT collection_id, 10::bigint ^ 12, 'https://a.example/', 1 FROM pgsimhash.collections"
    )
    connection.commit()
    verdict = store.add("https://b.example/", 1)
    assert verdict.duplicate_of == "https://a.example/"
    assert verdict.page_id == 10**12 + 1
