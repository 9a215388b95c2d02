"""Runs, sightings, and forgetting by age, host, run and URL."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import pgsimhash
from pgsimhash import Store, connect
from pgsimhash.sources import SourcePage
from tests.store.test_store import FAR

DAY = timedelta(days=1)
NOW = datetime.now(UTC)


def urls(store: Store) -> list[str]:
    found = [match.url for value in (0, FAR) for match in store.find(value, 8)]
    return [url for url in found if url is not None]


def test_a_page_that_comes_again_unchanged_was_seen_again(store: Store) -> None:
    store.add("https://a.example/1", 0, fetched_at=NOW - 9 * DAY)
    store.add("https://a.example/1", 0, fetched_at=NOW - 2 * DAY)
    store.add("https://a.example/1", 0, fetched_at=NOW - 5 * DAY)
    known = store.get("https://a.example/1")
    assert known is not None
    assert known.fetched_at == NOW - 9 * DAY
    assert known.seen_at == NOW - 2 * DAY


def test_twice_in_a_batch_is_seen_at_the_later_time(store: Store) -> None:
    pages = [
        SourcePage("https://a.example/1", f"<p>{'word ' * 50}", fetched_at=time)
        for time in (NOW - 3 * DAY, NOW - DAY, NOW - 2 * DAY)
    ]
    assert [verdict.reason for verdict in store.ingest_many(pages)][1:] == ["unchanged"] * 2
    known = store.get("https://a.example/1")
    assert known is not None
    assert known.seen_at == NOW - DAY


def test_seeing_pages_again_writes_no_index(store: Store, dsn: str) -> None:
    """All pages of a crawl, seen for the third time: PostgreSQL calls such updates HOT."""
    pages = [(f"https://a.example/{n}", n << 20) for n in range(500)]
    for _ in range(3):
        list(store.add_many(pages))
    store.close()
    statement = (
        "SELECT n_tup_upd, n_tup_hot_upd, pg_sleep(0.05) FROM pg_stat_user_tables "
        "WHERE relid = 'pgsimhash.sightings'::regclass"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(200):
            updated, hot, _ = connection.execute(statement).fetchall()[0]
            if updated:
                break
    assert updated == 500
    assert hot >= 490


class TestRuns:
    """What one store adds is one run."""

    def test_a_run_counts_what_became_of_its_pages(self, dsn: str) -> None:
        with connect(dsn) as store:
            number = store.start_run("monday")
            list(store.add_many([("https://a.example/1", 0), ("https://a.example/2", 1)]))
            store.add("https://a.example/2", 1)
            (run,) = store.runs()
        assert (run.run_id, run.what) == (number, "monday")
        assert (run.pages, run.new, run.duplicates, run.unchanged) == (3, 1, 1, 1)
        assert run.started_at < run.finished_at

    def test_every_store_is_a_run_and_every_collection_has_its_own(self, dsn: str) -> None:
        for collection in ("default", "default", "other"):
            with connect(dsn, collection=collection) as store:
                store.add("https://a.example/1", 0)
        with connect(dsn) as store:
            assert [run.pages for run in store.runs()] == [1, 1]
            known = store.get("https://a.example/1")
            assert known is not None
            assert known.run_id == store.runs()[1].run_id

    def test_undo_goes_back_to_the_versions_before(self, store: Store) -> None:
        store.start_run("one")
        store.add("https://a.example/1", 0)
        store.start_run("two")
        store.add("https://a.example/1", FAR)
        store.add("https://a.example/2", FAR)
        run, forgotten = store.undo()
        assert (run.what, forgotten) == ("two", 2)
        known = store.get("https://a.example/1")
        assert known is not None
        assert known.simhash == 0
        assert store.find(FAR) == []
        assert [run.what for run in store.runs()] == ["one"]
        store.undo()
        with pytest.raises(pgsimhash.UnknownRunError, match="no run to undo"):
            store.undo()

    def test_a_run_can_be_deleted_from_among_others(self, dsn: str) -> None:
        with connect(dsn) as one, connect(dsn) as two:
            first, second = one.start_run("one"), two.start_run("two")
            for number in range(3):
                one.add(f"https://a.example/{number}", 1 << number)
                two.add(f"https://b.example/{number}", FAR - (1 << number))
            assert one.delete_run(second) == 3
            assert sorted(urls(one)) == [f"https://a.example/{number}" for number in range(3)]
            assert [run.run_id for run in one.runs()] == [first]

    def test_an_unknown_run_is_refused(self, store: Store, dsn: str) -> None:
        with connect(dsn, collection="other") as other:
            number = other.start_run("elsewhere")
            other.add("https://a.example/1", 0)
        with pytest.raises(pgsimhash.UnknownRunError, match="pgsimhash runs --collection default"):
            store.delete_run(number)

    def test_a_run_survives_what_its_caller_rolls_back(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            store = connect(connection=connection)
            with connection.transaction(force_rollback=True):
                store.add("https://a.example/1", 1)
            store.add("https://a.example/2", 1)
            assert [run.pages for run in store.runs()] == [1]


def test_a_host_can_be_forgotten(store: Store) -> None:
    pages = [("https://a.example/1", 0), ("https://b.example/1", 1), ("https://a.example/2", 2)]
    list(store.add_many(pages))
    assert store.delete_host("A.example") == 2
    assert urls(store) == ["https://b.example/1"]
    assert store.delete_host("A.example") == 0
    kept = store.get("https://b.example/1")
    assert kept is not None
    assert (kept.duplicate_of, kept.distance) == (None, None)


class TestExpiry:
    """Versions that were not seen for long go, in batches, while writers go on."""

    def fill(self, store: Store, count: int = 2500) -> None:
        old = "UPDATE pgsimhash.pages SET fetched_at = now() - interval '40 days'"
        list(store.add_many((f"https://old.example/{n}", n << 16) for n in range(count)))
        store._session.connection.execute(old)
        list(store.add_many((f"https://new.example/{n}", FAR - n) for n in range(5)))

    def test_what_was_not_seen_for_so_long_is_forgotten(self, store: Store) -> None:
        self.fill(store)
        told: list[int] = []
        assert store.expire(timedelta(days=30), progress=told.append) == 2500
        assert told[:3] == [1000, 2000, 2500]
        (row,) = store.status()
        assert (row.pages, row.simhashes) == (5, 5)
        assert store.expire(timedelta(days=30)) == 0

    def test_what_was_seen_again_stays(self, store: Store) -> None:
        store.add("https://a.example/1", 0, fetched_at=NOW - 40 * DAY)
        store.add("https://a.example/2", FAR, fetched_at=NOW - 40 * DAY)
        store.add("https://a.example/2", FAR)
        assert store.expire(timedelta(days=30)) == 1
        assert urls(store) == ["https://a.example/2"]

    def test_it_is_a_procedure_in_sql(self, store: Store, dsn: str) -> None:
        self.fill(store, 100)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CALL pgsimhash.expire('default', interval '30 days', 30)")
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="more than nothing"):
                connection.execute("CALL pgsimhash.expire('default', interval '-1 day')")
            with pytest.raises(psycopg.errors.UndefinedObject, match="does not exist"):
                connection.execute("CALL pgsimhash.expire('nothing', interval '1 day')")
        assert store.status()[0].pages == 5

    def test_on_request_the_disk_gets_the_space_back(self, store: Store, dsn: str) -> None:
        self.fill(store, 3000)

        def size() -> int:
            with psycopg.connect(dsn) as connection:
                row = connection.execute(
                    "SELECT pg_indexes_size('pgsimhash.simhashes')"
                    " + pg_indexes_size('pgsimhash.pages')"
                ).fetchone()
            assert row is not None
            return int(row[0])

        full = size()
        store.expire(timedelta(days=30))
        assert size() < 1.1 * full
        self.fill(store, 100)
        store.expire(timedelta(days=30), reclaim="rebuild")
        assert size() < full / 2

    def test_in_a_transaction_the_space_is_left_to_autovacuum(self, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            store = connect(connection=connection)
            store.add("https://a.example/1", 0, fetched_at=NOW - 40 * DAY)
            with pytest.raises(pgsimhash.StoreError, match="reclaim=None"):
                store.expire(30 * DAY)
            assert store.expire(20 * DAY, reclaim=None) == 0
            connection.rollback()

    def test_an_age_of_nothing_is_refused(self, store: Store) -> None:
        with pytest.raises(pgsimhash.InvalidTimeError):
            store.expire(timedelta(0))

    def test_two_writers_go_on_meanwhile(self, store: Store, dsn: str) -> None:
        self.fill(store)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            writing = pool.map_async(write, [(dsn, 1), (dsn, 2)], chunksize=1)
            assert store.expire(timedelta(days=30)) == 2500
            assert writing.get(timeout=120) == [400, 400]
        (row,) = store.status()
        assert row.pages == row.urls == 805
        with psycopg.connect(dsn) as connection:
            lost = connection.execute(
                "SELECT p.url FROM pgsimhash.pages AS p WHERE NOT EXISTS ("
                "SELECT FROM pgsimhash.simhashes AS s WHERE s.simhash = p.simhash) "
                "OR p.duplicate_of IS NOT NULL AND NOT EXISTS ("
                "SELECT FROM pgsimhash.pages AS o WHERE o.page_id = p.duplicate_of)"
            ).fetchall()
        assert lost == []


def write(job: tuple[str, int]) -> int:
    """Copies of what expires at that moment, in small batches."""
    dsn, writer = job
    with connect(dsn) as store:
        for start in range(0, 400, 20):
            pages = [
                (f"https://w{writer}.example/{n}", (n * 6) << 16) for n in range(start, start + 20)
            ]
            assert len(list(store.add_many(pages))) == 20
    return 400
