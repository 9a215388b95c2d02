"""What runs saw: undo puts back when pages were last seen, as if the run had never been."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

import psycopg
import pytest

from pgsimhash import NoServerError, Store, connect
from pgsimhash.sources import SourcePage
from tests.database import end_others, run_sql

DAY = timedelta(days=1)
START = datetime(2024, 5, 1, tzinfo=UTC)
TEXTS = [" ".join(f"word{text}x{n}" for n in range(50)) for text in range(3)]


Connection = psycopg.Connection[tuple[Any, ...]]


def seen(connection: Connection) -> dict[int, tuple[datetime, datetime | None]]:
    """When each version was last seen again, and when its URL was found gone since."""
    rows = connection.execute("SELECT page_id, seen_at, gone_at FROM pgsimhash.last_seen")
    return {page_id: (seen_at, gone_at) for page_id, seen_at, gone_at in rows}


def of_runs(connection: Connection) -> dict[int, set[int]]:
    """The present versions that each run stored or saw."""
    statement = (
        "SELECT s.run_id, array_agg(DISTINCT p.page_id) FROM pgsimhash.sightings AS s "
        "JOIN pgsimhash.pages AS p ON p.page_id = ANY (s.page_ids) GROUP BY s.run_id"
    )
    return {run_id: set(page_ids) for run_id, page_ids in connection.execute(statement)}


@dataclass(frozen=True)
class Visit:
    """A version that was stored, seen again or found gone, by a run or by a single page."""

    page_id: int
    time: datetime
    run: int | None
    kind: str


class History:
    """Visits to a few pages by several runs at a time, and the same as a list."""

    def __init__(
        self, dsn: str, connection: psycopg.Connection[Any], seed: int, *, live: bool
    ) -> None:
        self.dsn, self.connection, self.random = dsn, connection, random.Random(seed)
        self.live = live
        self.single = connect(self.connection)
        self.stores: dict[int, Store] = {}
        self.visits: list[Visit] = []
        self.fetched: dict[int, datetime] = {}

    def start_run(self) -> None:
        store = connect(self.connection)
        self.stores[store.start_run("one of several")] = store

    def visit(self) -> None:
        """Visit pages now; unless live, also at other times, which may be equal."""
        run = self.random.choice([None, *self.stores])
        store = self.single if run is None else self.stores[run]
        with self.connection.transaction():
            ((now,),) = self.connection.execute("SELECT now()").fetchall()
            for _ in range(1 if self.live else self.random.randint(1, 3)):
                day = None if self.live else self.random.choice([*range(8), None])
                time = None if day is None else START + day * DAY
                url = f"https://a.example/{self.random.randrange(5)}"
                known = store.get(url)
                if self.live and known and self.random.random() < 0.3:
                    ((page_id,),) = run_sql_in(self.connection, url)
                    store.gone(url)
                    self.visits.append(Visit(page_id, now, run, "gone"))
                    continue
                page = SourcePage(url, self.random.choice(TEXTS), fetched_at=time)
                if run is None:
                    verdict = store.ingest(url, page.html, fetched_at=time)
                else:
                    (verdict,) = store.ingest_many([page])
                assert verdict.page_id is not None
                self.visits.append(Visit(verdict.page_id, time or now, run, verdict.kind))
                if verdict.kind != "unchanged":
                    self.fetched[verdict.page_id] = time or now

    def undo(self) -> None:
        listed = [run.run_id for run in self.single.runs()]
        if not listed:
            return
        run = self.random.choice(listed)
        if self.random.random() < 0.5:
            self.single.undo_run(run)
        else:
            run_sql(self.dsn, "SELECT pgsimhash.undo_run(%s)", [run])
        self.stores.pop(run, None)
        stored = {
            visit.page_id
            for visit in self.visits
            if visit.run == run and visit.kind not in ("unchanged", "gone")
        }
        self.visits = [
            visit for visit in self.visits if visit.run != run and visit.page_id not in stored
        ]

    def check(self) -> None:
        expected: dict[int, tuple[datetime, datetime | None]] = {}
        for visit in self.visits:
            time, _ = expected.get(visit.page_id, (self.fetched[visit.page_id], None))
            if visit.kind == "gone":
                expected[visit.page_id] = (time, visit.time)
            elif visit.kind == "unchanged":
                expected[visit.page_id] = (max(time, visit.time), None)
        assert seen(self.connection) == expected
        saw: dict[int, set[int]] = {}
        for visit in self.visits:
            if visit.run is not None and visit.kind != "gone":
                saw.setdefault(visit.run, set()).add(visit.page_id)
        assert of_runs(self.connection) == saw


def run_sql_in(connection: psycopg.Connection[Any], url: str) -> list[Any]:
    """The id of the present version of a URL."""
    statement = "SELECT max(page_id) FROM pgsimhash.pages WHERE url = %s"
    return connection.execute(statement, [url]).fetchall()


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_undo_in_any_order_leaves_what_the_other_visits_saw(
    dsn: str, seed: int, live: bool
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        history = History(dsn, connection, seed, live=live)
        for _ in range(40):
            step = history.random.choice([history.start_run, *[history.visit] * 6, history.undo])
            step()
            history.check()
        while history.single.runs():
            history.undo()
            history.check()
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.sightings") == [(0,)]


@pytest.mark.parametrize("order", ["the same", "another"])
def test_a_sighting_takes_at_most_twelve_bytes(store: Store, dsn: str, order: str) -> None:
    """Five crawls of the same pages, in batches as ingest_many has them."""
    pages = [(f"https://a.example/{n}", n * 0x9E37_79B9_7F4A_7C15 % 2**64) for n in range(4_000)]
    for _ in range(5):
        list(store.add_pages(pages, distance=0, batch_size=256))
        if order == "another":
            random.Random(1).shuffle(pages)
    ((sightings, size),) = run_sql(
        dsn,
        "SELECT sum(cardinality(page_ids)), pg_total_relation_size('pgsimhash.sightings') "
        "FROM pgsimhash.sightings",
    )
    assert sightings == 5 * len(pages)
    assert size / sightings <= 12, size / sightings


def state(dsn: str) -> str:
    (run,) = run_sql(dsn, "SELECT label, ended_at IS NULL FROM pgsimhash.runs")
    return f"{run[0]}: {'unfinished' if run[1] else 'ended'}"


class TestEnds:
    """A run ends with its iterator or its store, but not by an error, nor if it is left before."""

    PAGES: Final = [SourcePage(f"https://a.example/{n}", TEXTS[n]) for n in range(3)]

    def test_of_an_iterator(self, store: Store, dsn: str) -> None:
        list(store.ingest_many(self.PAGES))
        assert state(dsn) == "ingest_many: ended"
        (run,) = store.runs()
        assert run.as_json()["state"] == run.state == "ended"
        store.undo_run(run.run_id)
        verdicts = store.add_pages([(page.url, 1) for page in self.PAGES])
        next(verdicts)
        assert state(dsn) == "add_pages: unfinished"
        (run,) = store.runs()
        assert (
            run.state
            == f"unfinished, last batch at {run.finished_at.isoformat(timespec='seconds')}"
        )
        assert len(list(verdicts)) == 2
        assert state(dsn) == "add_pages: ended"

    def test_not_by_an_error(self, store: Store, dsn: str) -> None:
        def pages() -> Any:
            yield from self.PAGES
            raise ValueError("the list ended early")

        with pytest.raises(ValueError, match="early"):
            list(store.ingest_many(pages(), batch_size=1))
        assert state(dsn) == "ingest_many: unfinished"

    def test_not_if_it_is_left(self, store: Store, dsn: str) -> None:
        for _ in store.ingest_many(self.PAGES, batch_size=1):
            break
        assert state(dsn) == "ingest_many: unfinished"

    def test_over_another_connection_if_that_was_lost(self, dsn: str) -> None:
        with connect(dsn) as store:
            for _ in store.add_pages([(self.PAGES[0].url, 1)]):
                end_others(dsn)
            assert state(dsn) == "add_pages: ended"
            store.undo_run(store.runs()[0].run_id)
            store.start_run("mine")
            store.add_page(self.PAGES[0].url, 1)
            end_others(dsn)
        assert state(dsn) == "mine: ended"

    def test_in_a_transaction_that_is_lost_it_is_an_error(self, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            verdicts = connect(connection).add_pages([(self.PAGES[0].url, 1)])
            next(verdicts)
            end_others(dsn)
            with pytest.raises(NoServerError):
                next(verdicts)

    def test_of_a_store(self, dsn: str) -> None:
        for error in (None, ValueError()):
            with suppress(ValueError), connect(dsn) as store:
                store.start_run("mine")
                store.ingest(self.PAGES[0].url, TEXTS[0])
                assert state(dsn) == "mine: unfinished"
                if error is not None:
                    raise error
            assert state(dsn) == f"mine: {'ended' if error is None else 'unfinished'}"
            with connect(dsn) as store:
                store.undo_run(store.runs()[0].run_id)

    def test_with_the_next_one_and_a_later_batch_continues_it(self, store: Store, dsn: str) -> None:
        store.start_run("one")
        store.ingest(self.PAGES[0].url, TEXTS[0])
        store.start_run("two")
        assert state(dsn) == "one: ended"
        run_sql(dsn, "SELECT pgsimhash.add_pages('{https://a/5,https://a/6}', '{9,10}')")
        assert [(run.label, run.state) for run in store.runs()] == [
            ("SQL", "ended"), ("one", "ended"),
        ]  # fmt: skip

    def test_in_the_transaction_of_the_caller(self, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            list(connect(connection).ingest_many(self.PAGES))
            connection.commit()
            assert state(dsn) == "ingest_many: ended"
            store = connect(connection)
            connection.commit()
            store.start_run("never used")
            connection.commit()
            store.close()
            assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def text_of(name: str) -> str:
    return " ".join(f"{name}word{n}" for n in range(40))


def test_a_run_whose_new_pages_were_deleted_keeps_what_it_saw(store: Store) -> None:
    def crawl(days: int, *paths: str) -> int:
        texts = ((path, TEXTS[number]) for number, path in enumerate(paths))
        pages = [SourcePage(f"https://a.example/{path}", text, fetched_at=START + days * DAY)
                 for path, text in texts]  # fmt: skip
        assert all(verdict.page_id for verdict in store.ingest_many(pages))
        return store.runs()[0].run_id

    crawl(0, "a")
    latest, earlier = crawl(5, "a"), crawl(1, "a", "b")
    store.delete_page("https://a.example/b")
    store.undo_run(latest)
    page = store.get("https://a.example/a")
    assert page is not None
    assert page.seen_at == START + DAY
    assert store.undo_run(earlier).deleted == 0
    assert [run.new for run in store.runs()] == [1]


@pytest.mark.one_server("it changes times by an UPDATE of its own")
def test_a_killed_crawl_begun_again(dsn: str) -> None:
    """Undo of its run brings back what it had seen: lists are due again, and their links."""
    links = {
        f"https://a.example/list/{n}": [f"https://a.example/{n}/{m}" for m in range(5)]
        for n in range(4)
    }
    urls = [*links, *[url for pages in links.values() for url in pages]]

    def crawl(store: Store, day: int) -> Iterator[str]:
        """Yield the URL of each fetched page, and of each new or changed article once more."""
        for list_url, pages in links.items():
            if not store.should_fetch(list_url):
                continue
            store.ingest(list_url, text_of(list_url))
            yield list_url
            for url in filter(store.should_fetch, pages):
                # The first article of a list changes.
                changed = f" day{day}" * 40 if url.endswith("/0") else ""
                yield url
                if store.ingest(url, text_of(url) + changed).keep:
                    yield url

    def kept(store: Store, day: int) -> list[str]:
        store.start_run(f"day {day}")
        return [url for url, count in Counter(crawl(store, day)).items() if count > 1]

    with (
        connect(dsn) as killed,
        connect(dsn) as store,
        psycopg.connect(dsn, autocommit=True) as plain,
    ):
        store.set_policy("*", refetch_after=timedelta(hours=1))
        assert len(kept(store, 1)) == 20
        run_sql(dsn, "UPDATE pgsimhash.pages SET fetched_at = fetched_at - interval '1 day'")
        before = seen(plain)
        assert all(map(store.should_fetch, urls))
        killed.start_run("killed")
        list(islice(crawl(killed, 2), 15))
        assert not store.should_fetch("https://a.example/list/1")
        run = store.runs()[0]
        store.undo_run(run.run_id)
        assert (run.label, run.ended_at) == ("killed", None)
        assert seen(plain) == before
        assert all(map(store.should_fetch, urls))
        assert len(kept(store, 2)) == 4
        # Without an undo, a policy for lists makes their links known again.
        store.set_policy("*/list/*", refetch_after=timedelta(0))
        assert [url for url in urls if store.should_fetch(url)] == list(links)
