"""What runs saw: undo puts back when pages were last seen, as if the run had never been."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from pgsimhash import Store, connect, maintenance
from pgsimhash.sources import SourcePage
from tests.database import run_sql

DAY = timedelta(days=1)
START = datetime(2024, 5, 1, tzinfo=UTC)
TEXTS = [" ".join(f"word{text}x{n}" for n in range(50)) for text in range(3)]


def seen(dsn: str) -> dict[int, tuple[datetime, datetime | None]]:
    """When each version was last seen again, and when its URL was found gone since."""
    rows = run_sql(dsn, "SELECT page_id, seen_at, gone_at FROM pgsimhash.last_seen")
    return {page_id: (seen_at, gone_at) for page_id, seen_at, gone_at in rows}


def of_runs(dsn: str) -> dict[int, set[int]]:
    """The present versions that each run stored or saw."""
    statement = (
        "SELECT s.run_id, array_agg(DISTINCT p.page_id) FROM pgsimhash.sightings AS s "
        "JOIN pgsimhash.pages AS p ON p.page_id = ANY (s.page_ids) GROUP BY s.run_id"
    )
    return {run_id: set(page_ids) for run_id, page_ids in run_sql(dsn, statement)}


@dataclass(frozen=True)
class Visit:
    """A version that was stored, seen again or found gone, by a run or by a single page."""

    page_id: int
    time: datetime
    run: int | None
    verdict: str


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
                self.visits.append(Visit(verdict.page_id, time or now, run, verdict.verdict))
                if verdict.verdict != "unchanged":
                    self.fetched[verdict.page_id] = time or now

    def undo(self) -> None:
        listed = [run.run_id for run in maintenance.runs(self.single)]
        if not listed:
            return
        run = self.random.choice(listed)
        maintenance.undo(self.single, run)
        self.stores.pop(run, None)
        stored = {
            visit.page_id
            for visit in self.visits
            if visit.run == run and visit.verdict not in ("unchanged", "gone")
        }
        self.visits = [
            visit for visit in self.visits if visit.run != run and visit.page_id not in stored
        ]

    def check(self) -> None:
        expected: dict[int, tuple[datetime, datetime | None]] = {}
        for visit in self.visits:
            time, _ = expected.get(visit.page_id, (self.fetched[visit.page_id], None))
            if visit.verdict == "gone":
                expected[visit.page_id] = (time, visit.time)
            elif visit.verdict == "unchanged":
                expected[visit.page_id] = (max(time, visit.time), None)
        assert seen(self.dsn) == expected
        saw: dict[int, set[int]] = {}
        for visit in self.visits:
            if visit.run is not None and visit.verdict != "gone":
                saw.setdefault(visit.run, set()).add(visit.page_id)
        assert of_runs(self.dsn) == saw


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
        while maintenance.runs(history.single):
            history.undo()
            history.check()
    assert run_sql(dsn, "SELECT count(*) FROM pgsimhash.sightings") == [(0,)]
