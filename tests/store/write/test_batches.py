"""Batches: pages decided together get the verdicts of single pages, and are stored once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgsimhash import Store, connect
from pgsimhash.pages.policies import MatchSettings
from pgsimhash.pages.records import PageRecord, Verdict
from pgsimhash.store.collection import Collection, find_collection
from pgsimhash.store.ingest import add_batch, draw_run
from tests.database import database_examples

DAY = timedelta(days=1)
NOON = datetime.now(UTC) - DAY / 2

URLS = [f"https://{host}.example/{number}" for host in ("a", "b", "www.a") for number in range(3)]

SIMHASHES = st.builds(
    lambda kind, bits: kind ^ sum(1 << bit for bit in bits),
    st.sampled_from([0, 0x00FF_00FF_00FF_00FF]),
    st.sets(st.integers(0, 63), max_size=4) | st.just(set(range(7))) | st.just(set(range(11))),
)

RECORDS = st.builds(
    PageRecord,
    st.sampled_from(URLS),
    SIMHASHES,
    st.integers(0, 9).map(lambda days: NOON - days * DAY),
    canonical_url=st.none() | st.sampled_from(URLS),
    signature=st.sampled_from([None, 0, 2**128 - 1]),
    text_digest=st.sampled_from([None, 1, 2]),
)

# A window moves with each batch, so window_size is not used here.
TERMS = st.builds(
    MatchSettings,
    st.sampled_from([0, 3, 8, 12]),
    verify=st.booleans(),
    scope=st.sampled_from(["host", "collection", "global"]),
    max_age=st.none() | st.integers(1, 9).map(lambda days: days * DAY),
    canonical_link=st.booleans(),
    max_copies=st.integers(1, 3),
)

PAGES = st.lists(st.tuples(RECORDS, TERMS), max_size=8)

MARKS = st.lists(
    st.tuples(st.sampled_from(URLS[:5]), st.sampled_from(URLS[5:]), st.booleans()),
    max_size=4,
    unique_by=lambda mark: mark[:2],
)


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
    records, settings = [record for record, _ in pages], [wanted for _, wanted in pages]
    run = draw_run(connection, "test")
    made = add_batch(connection, collection, records, settings, run, by_policies=False)
    return made


def near_a_page_elsewhere(url: str) -> list[tuple[PageRecord, MatchSettings]]:
    return [(PageRecord(url, 0, NOON), MatchSettings(8, scope="global"))]


@example(
    others=near_a_page_elsewhere(URLS[0]),
    known=[],
    pages=near_a_page_elsewhere(URLS[1]) + near_a_page_elsewhere(URLS[5]),
    marks=[(URLS[0], URLS[5], False)],
)
@database_examples(40)
@given(others=PAGES, known=PAGES, pages=PAGES, marks=MARKS)
def test_a_batch_is_decided_as_its_pages_one_by_one(
    collections: tuple[psycopg.Connection, list[Collection]],
    others: list[tuple[PageRecord, MatchSettings]],
    known: list[tuple[PageRecord, MatchSettings]],
    pages: list[tuple[PageRecord, MatchSettings]],
    marks: list[tuple[str, str, bool]],
) -> None:
    connection, (default, other) = collections

    def decided(size: int) -> list[Verdict]:
        with connection.transaction(force_rollback=True):
            for mark in marks:
                # A mark may contradict those before it.
                with suppress(psycopg.ProgrammingError), connection.transaction():
                    connection.execute(
                        "SELECT pgsimhash._put_mark(pgsimhash._id_of('default'), %s, %s, %s)", mark
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
