"""Runs, last_seen, and deletion by age, host, run and URL."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pgsimhash import Store, connect
from pgsimhash.errors import CollectionError, NotFoundError, StoreError
from pgsimhash.sources import SourcePage
from pgsimhash.store import maintenance
from tests.database import after_a_wait, insert_page, run_sql, simhashes_in, with_setting
from tests.programs import wait_until
from tests.refusals import because, sqlstate
from tests.store.content import content, original_of, page_at
from tests.store.pages import FAR

A, B = "https://a.example/", "https://b.example/"
DAY = timedelta(days=1)
NOW = datetime.now(UTC)


def urls(store: Store) -> list[str]:
    found = [match.url for value in (0, FAR) for match in store.find(value, 8)]
    return [url for url in found if url is not None]


def test_a_page_that_is_added_during_the_wait_is_deleted_too(store: Store, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        other = connect(connection)
        connection.commit()
        other.add_page(A, 0)
        assert after_a_wait(connection, lambda: store.delete_page(A)).deleted == 1


@pytest.mark.parametrize("together", [True, False])
def test_an_unchanged_page_is_seen_at_the_latest_time(store: Store, together: bool) -> None:
    pages = [
        SourcePage("https://a.example/1", f"<p>{'word ' * 50}", fetched_at=NOW - days * DAY)
        for days in (9, 2, 5)
    ]
    parts = [pages] if together else [[page] for page in pages]
    reasons = [verdict.reason for part in parts for verdict in store.ingest_many(part)]
    assert reasons == ["first_seen", "unchanged", "unchanged"]
    known = page_at(store, "https://a.example/1")
    assert (known.fetched_at, known.seen_at) == (NOW - 9 * DAY, NOW - 2 * DAY)


@pytest.mark.one_server("it reads the statistics of the server that has the table")
def test_seeing_pages_again_writes_no_index(store: Store, dsn: str) -> None:
    """All pages of a crawl, seen for the third time, with HOT updates."""
    # Far from one another: near pages would take most of the time.
    pages = [(f"https://a.example/{n}", n * 0x9E37_79B9_7F4A_7C15 % 2**64) for n in range(500)]
    for _ in range(3):
        list(store.add_pages(pages))
    store.close()
    statement = (
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables "
        "WHERE relid = 'pgsimhash.last_seen'::regclass"
    )
    # A server process reports its counts in parts, and the last ones when it ends.
    wait_until(lambda: run_sql(dsn, statement)[0][0] >= 500)
    ((updated, hot),) = run_sql(dsn, statement)
    assert updated == 500
    assert hot >= 490


class TestRuns:
    """A run is started by the caller, or is a call with many pages."""

    def test_a_call_for_many_pages_is_a_run_and_single_pages_are_none(
        self, store: Store, dsn: str
    ) -> None:
        page = f"<p>{'word ' * 50}"
        for _ in range(2):
            store.add_page("https://a.example/1", 0)
        assert store.ingest("https://a.example/2", page).kind == "new"
        assert store.ingest("https://a.example/3", page).kind == "duplicate"
        run_sql(dsn, "SELECT pgsimhash.add_page('https://a.example/4', 7)")
        run_sql(dsn, "SELECT pgsimhash.add_pages('{https://a.example/5}', '{9}')")
        assert store.runs() == []
        assert {row.run_id for row in map(store.get, urls(store)) if row} == {None}
        for number in range(2):
            # Several batches.
            pages = [(f"https://a.example/{number}/{n}", page) for n in range(3)]
            list(store.ingest_many(pages, batch_size=2))
        list(store.add_pages([("https://a.example/6", 5)]))
        list(store.decide_many([("https://a.example/7", page)]))
        run_sql(dsn, "SELECT pgsimhash.add_pages('{https://a/5,https://a/6}', '{9,10}')")
        assert [(run.label, run.pages) for run in reversed(store.runs())] == [
            *[("ingest_many", 3)] * 2, ("add_pages", 1), ("SQL", 2),
        ]  # fmt: skip

    def test_a_run_that_added_no_page_expires(self, store: Store, dsn: str) -> None:
        store.add_page("https://a.example/1", 0)
        for label in ("old", "young"):
            store.start_run(label)
            store.add_page("https://a.example/1", 0)
        finished = "UPDATE pgsimhash.runs SET finished_at = now() - interval '9 days'"
        run_sql(dsn, f"{finished} WHERE label = 'old'")
        store.expire(2 * DAY)
        assert [run.label for run in store.runs()] == ["young"]
        run_sql(dsn, finished)
        store.set_policy("*", expire_after=2 * DAY)
        store.expire()
        assert store.runs() == []

    def test_expiry_ends_with_a_batch_that_is_not_full(self, store: Store, dsn: str) -> None:
        """Another batch would read the whole collection, while more pages expire."""
        for number in range(3):
            store.add_page(f"https://a.example/{number}", number, fetched_at=NOW - 9 * DAY)
        batch = "SELECT last_page FROM pgsimhash._expire_batch_1('default', '2 days', %s, 2)"
        ((last_page,),) = run_sql(dsn, batch, [0])
        assert run_sql(dsn, batch, [last_page]) == [(None,)]
        assert urls(store) == []

    def test_every_collection_has_its_own_runs(self, dsn: str) -> None:
        for collection in ("default", "default", "other"):
            with connect(dsn, collection=collection, create=True) as store:
                list(store.add_pages([("https://a.example/1", 0)]))
        with connect(dsn) as store:
            assert [run.pages for run in store.runs()] == [1, 1]
            assert page_at(store, "https://a.example/1").run_id == store.runs()[1].run_id
            with connect(dsn, collection="other", create=True) as other:
                (run,) = other.runs()
            with pytest.raises(NotFoundError, match="has no run 3"):
                store.undo_run(run.run_id)

    def test_undo_reverts_to_the_versions_before(self, store: Store) -> None:
        store.start_run("one")
        store.add_page("https://a.example/1", 0)
        store.start_run("two")
        store.add_page("https://a.example/1", FAR)
        store.add_page("https://a.example/2", FAR)
        one, two = (run.run_id for run in reversed(store.runs()))
        deleted = store.undo_run(two)
        assert deleted[:3] == (2, ["https://a.example/2"], ["https://a.example/1"])
        assert page_at(store, "https://a.example/1").simhash == 0
        assert store.find(FAR) == []
        assert [run.label for run in store.runs()] == ["one"]
        store.undo_run(one)
        with pytest.raises(NotFoundError, match=f"no run {one}; runs"):
            store.undo_run(one)

    def test_pages_added_while_a_run_is_deleted_stay_in_it(
        self, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with connect(dsn) as one, connect(dsn) as two:
            number = one.start_run("goes on")
            one.add_page("https://a.example/1", 1)
            delete = Store._delete_in_batches

            def and_goes_on(*arguments: Any, **scope: Any) -> Any:
                went = delete(*arguments, **scope)
                one.add_page("https://a.example/2", 2)
                return went

            monkeypatch.setattr(Store, "_delete_in_batches", and_goes_on)
            assert two.undo_run(number).gone == ["https://a.example/1"]
            monkeypatch.undo()
            assert [run.run_id for run in one.runs()] == [number]
            assert two.undo_run(number).gone == ["https://a.example/2"]
            assert one.runs() == []

    def test_a_run_survives_a_rollback_of_its_caller(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            store = connect(connection)
            store.start_run("mine")
            with connection.transaction(force_rollback=True):
                store.add_page("https://a.example/1", 1)
            store.add_page("https://a.example/2", 1)
            assert [run.pages for run in store.runs()] == [1]


def test_pages_are_deleted_by_host_and_url(store: Store, dsn: str) -> None:
    pages = [("https://a.example/1", 0), ("https://b.example/1", 1), ("https://a.example/2", 2)]
    list(store.add_pages(pages))
    gone = store.delete_host("A.example")
    assert (gone.deleted, sorted(gone.gone)) == (2, [pages[0][0], pages[2][0]])
    assert urls(store) == ["https://b.example/1"]
    assert store.delete_host("A.example") == store.delete_page(pages[0][0]) == (0, [], [], [])
    assert original_of(store, "https://b.example/1") == (None, None)
    list(store.add_pages([*pages, ("https://a.example/1", FAR)]))
    by_url, by_host = (f"SELECT pgsimhash.delete_{what}(%s)" for what in ("page", "host"))
    assert run_sql(dsn, by_url, [pages[0][0]]) == [(2,)]
    assert run_sql(dsn, by_url, [pages[0][0]]) == [(0,)]
    assert run_sql(dsn, by_host, ["A.Example"]) == [(1,)]
    assert simhashes_in(store).tolist() == [1]


class TestExpiry:
    """Versions expire in batches, while writers continue."""

    def fill(self, store: Store, count: int) -> None:
        old = "UPDATE pgsimhash.pages SET fetched_at = now() - interval '40 days'"
        # With a larger distance nearly all of them would be near each other.
        pages = ((f"https://old.example/{n}", n << 16) for n in range(count))
        list(store.add_pages(pages, distance=1))
        with store._session.connection_to_read() as connection:
            connection.execute(old)
        list(store.add_pages((f"https://new.example/{n}", FAR - n) for n in range(5)))

    def test_it_is_a_procedure_in_sql(self, store: Store, dsn: str) -> None:
        self.fill(store, 100)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CALL pgsimhash.expire(interval '30 days', 30)")
            with pytest.raises(psycopg.Error, check=sqlstate("PS010"), match="must be positive"):
                connection.execute("CALL pgsimhash.expire(interval '-1 day')")
            with pytest.raises(psycopg.Error, check=sqlstate("PS001"), match="does not exist"):
                connection.execute("CALL pgsimhash.expire('1 day', collection => 'nothing')")
        assert store.status().pages == 5

    def test_two_writers_continue_meanwhile(
        self, store: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(maintenance, "BATCH", 100)
        self.fill(store, 500)
        told: list[int] = []
        with ThreadPoolExecutor(2) as pool:
            writing = pool.map(write, [(dsn, 1), (dsn, 2)], timeout=120)
            assert store.expire(timedelta(days=30), progress=told.append).deleted == 500
            assert list(writing) == [400, 400]
        assert told[:5] == [100, 200, 300, 400, 500]
        row = store.status()
        assert row.pages == row.urls == 805
        assert list(store.check()) == []
        assert store.expire(timedelta(days=30)).deleted == 0


@pytest.mark.parametrize("simhash", [5, 7])
def test_an_original_deleted_while_its_copy_is_added_leaves_an_original(
    store: Store, dsn: str, simhash: int
) -> None:
    """The writer finds the original, waits for the lock, and then the original is gone."""
    store.add_page(A, 5)
    with psycopg.connect(dsn) as holder:
        deleting = connect(holder)
        holder.commit()
        assert deleting.delete_page(A).deleted == 1
        after_a_wait(holder, lambda: store.add_page(B, simhash, distance=3))
    assert run_sql(dsn, "SELECT url FROM pgsimhash.pages WHERE indexed") == [(B,)]
    assert original_of(store, B) == (None, None)
    assert list(store.check()) == []


def write(job: tuple[str, int]) -> int:
    """Copies of pages that expire at the same time, in small batches."""
    dsn, writer = job
    with connect(dsn) as store:
        for start in range(0, 400, 20):
            pages = [(f"https://w{writer}.example/{n}", n << 16) for n in range(start, start + 20)]
            assert len(list(store.add_pages(pages))) == 20
    return 400


@pytest.mark.one_server("it inserts a page without the package")
def test_the_simhash_of_a_page_that_is_being_inserted_stays(dsn: str) -> None:
    with connect(with_setting(dsn, "lock_timeout=200ms")) as store, psycopg.connect(dsn) as loader:
        store.add_page("https://a.example/", 7)
        insert_page(loader, "https://b.example/", 7)
        # Nobody sees that page yet, and the simhash exists for both of them.
        with pytest.raises(StoreError, check=because("locked")):
            store.delete_page("https://a.example/")
        loader.commit()
        store.delete_page("https://a.example/")
        assert [match.url for match in store.find(7)] == ["https://b.example/"]


class TestCollections:
    """A collection is deleted with all its rows, and nothing else."""

    def rows(self, connection: psycopg.Connection) -> dict[str, int]:
        """The number of rows of each table, without rows that belong to no collection."""
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'pgsimhash' "
            "AND tablename <> 'alembic_version'"
        )
        counts = sql.SQL(" UNION ALL ").join(
            sql.SQL("SELECT {}, count(*) FROM {}").format(name, sql.Identifier("pgsimhash", name))
            for (name,) in tables.fetchall()
        )
        return dict(connection.execute(counts).fetchall())

    def fill(self, store: Store) -> None:
        list(store.add_pages([(A, 1), (A, 1), (B, 2**40)]))
        store.mark(A, B, same=True)
        store.set_policy("a.example", distance=2)

    def test_exactly_its_rows_are_deleted(self, dsn: str) -> None:
        with connect(dsn, collection="small", create=True) as store:
            self.fill(store)
        with psycopg.connect(dsn, autocommit=True) as connection:
            before = self.rows(connection)
            with connect(dsn, collection="news", create=True) as store:
                self.fill(store)
                assert connect(connection, collection="news", create=False).delete_collection() == 2
                with pytest.raises(CollectionError, match="does not exist"):
                    store.add_page(A, 1)
            assert self.rows(connection) == before
            assert connect(connection, collection="small", create=False).delete_collection() == 2
            assert set(self.rows(connection).values()) == {0}
            with pytest.raises(CollectionError, match="'news' does not exist"):
                connect(connection, collection="news", create=False).delete_collection()

    @pytest.mark.one_server("tables elsewhere cannot refer to those of a distributed schema")
    @pytest.mark.parametrize("deferred", ["", "DEFERRABLE INITIALLY DEFERRED"])
    def test_rows_that_refer_to_it_are_an_error_of_the_package(
        self, store: Store, dsn: str, deferred: str
    ) -> None:
        store.add_page(A, 1)
        run_sql(dsn, "CREATE TABLE mine AS SELECT collection_id, page_id FROM pgsimhash.pages")
        run_sql(
            dsn,
            "ALTER TABLE mine ADD FOREIGN KEY (collection_id, page_id) "
            f"REFERENCES pgsimhash.pages (collection_id, page_id) {deferred}",
        )
        with psycopg.connect(dsn, autocommit=True) as connection:
            with pytest.raises(StoreError, check=because("refused"), match="mine"):
                connect(connection, collection="default", create=False).delete_collection()
            connection.execute("SET default_transaction_read_only TO on")
            with pytest.raises(StoreError, check=because("read_only")):
                connect(connection, collection="default", create=False).delete_collection()
        with pytest.raises(StoreError, match="closed"):
            connect(connection, collection="default", create=False).delete_collection()
        with psycopg.connect(dsn) as connection:
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT FROM nowhere")
            with pytest.raises(StoreError, check=because("wrong_transaction")):
                connect(connection, collection="default", create=False).delete_collection()
        assert len(content(dsn, "default")) == 1

    def test_it_waits_for_loaders(self, store: Store, dsn: str) -> None:
        """Pages that were inserted meanwhile belong to it too."""
        with psycopg.connect(dsn) as adding, psycopg.connect(dsn, autocommit=True) as connection:
            insert_page(adding, A, 1)
            delete = connect(connection, collection="default", create=False).delete_collection
            assert after_a_wait(adding, delete) == 1
            assert self.rows(connection)["pages"] == 0
