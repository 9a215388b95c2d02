"""The package goes on with a compatible revision, while it comes and when it is there."""

import io
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations

import pgsimhash.alembic
from pgsimhash import SchemaError, Store, connect, embedded
from pgsimhash.db.schema_names import COMPATIBLE_FROM, REVISION
from pgsimhash.schema import deployed, migrate
from tests.database import let, run_sql
from tests.pooler import PROGRAM, REQUIRED, pooler
from tests.programs import PGSIMHASH, run_program, wait_until
from tests.refusals import because
from tests.store.calls import CHANGES, HTML, READS, A, B
from tests.store.content import page_at
from tests.store.schema.next_release import package_at
from tests.store.schema.test_revisions import filled
from tests.store.schema.test_schema import dump, psql

__all__ = ["filled"]

pytestmark = pytest.mark.one_server("Citus has the tables on another node")

LAYOUT = "16+16+16+16"
NEXT = (*PGSIMHASH[:-1], "tests.store.schema.next_release")
CALLS: dict[str, Callable[[Store], Any]] = {
    **READS,
    **CHANGES,
    "rebuild": lambda store: store.rebuild(replace=True),
    "rename": lambda store: store.save_clusters(),
}
TABLES = (
    "clusters", "last_seen", "marks", "collections", "pages", "policies", "redirects", "runs",
    "sightings", "sources",
)  # fmt: skip
REVISIONS = "SELECT version_num FROM pgsimhash.alembic_version"
RETRIES = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
WAITS = (
    "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def known_rows(dsn: str) -> list[object]:
    """What the present revision knows of the collections that do not change."""
    return [
        run_sql(
            dsn,
            f"SELECT to_jsonb(t) - 'note' FROM pgsimhash.{table} AS t "
            "JOIN pgsimhash.collections AS c USING (collection_id) "
            "WHERE c.name IN ('default', 'apart') ORDER BY to_jsonb(t)::text",
        )
        for table in TABLES
    ]


def migrated(dsn: str, *options: str) -> None:
    done = run_program(*NEXT, "migrate", *options, PGSIMHASH_DSN=dsn)
    assert done.returncode == 0, done.stderr


def work(dsn: str, collection: str, stop: Event, rounds: list[int]) -> None:
    """Make all calls of a store, round after round."""
    with connect(dsn, collection=collection, create=True, keep_markdown=True) as store:
        while not stop.is_set():
            store.add_page(f"https://kept.example/{len(rounds)}", len(rounds))
            list(store.ingest_many([(A, HTML), (B, HTML.replace("two", "2"))]))
            for call in CALLS.values():
                call(store)
            rounds.append(len(rounds))


@pytest.mark.long
@pytest.mark.parametrize("pooled", [
    False,
    pytest.param(True, marks=pytest.mark.skipif(
        PROGRAM is None and not REQUIRED, reason="pgbouncer is not installed"
    )),
], ids=["direct", "pooled"])  # fmt: skip
def test_readers_and_writers_go_on(filled: str, tmp_path: Path, pooled: bool) -> None:
    # Nobody waits for a lock for longer.
    let(filled, {"lock_timeout": "2s"})
    before, schema = known_rows(filled), dump(filled, options=["--schema-only"])
    stop = Event()
    rounds: dict[str, list[int]] = {"one": [], "other": []}
    workers: list[Future[None]] = []

    def another_round() -> None:
        goals = {name: len(made) + 2 for name, made in rounds.items()}
        wait_until(
            lambda: (
                any(each.done() for each in workers)
                or all(len(made) >= goals[name] for name, made in rounds.items())
            )
        )
        assert [each.result() for each in workers if each.done()] == []

    with ExitStack() as stack:
        # Over direct connections, the store prepares its statements.
        dsn = stack.enter_context(pooler(filled, tmp_path, 2)) if pooled else filled
        pool = stack.enter_context(ThreadPoolExecutor(3))
        stack.callback(stop.set)
        workers += [pool.submit(work, dsn, *named[:1], stop, named[1]) for named in rounds.items()]
        another_round()
        with psycopg.connect(filled) as reader:
            reader.execute("SELECT FROM pgsimhash.pages LIMIT 1")
            upgrade = pool.submit(migrated, filled)
            wait_until(lambda: upgrade.done() or run_sql(filled, RETRIES) != [])
            another_round()
            assert run_sql(filled, REVISIONS) == [("0001",)]
        upgrade.result()
        assert run_sql(filled, REVISIONS) == [("0002",)]
        another_round()
        assert known_rows(filled) == before
        migrated(filled, "--downgrade", "0001", "--yes")
        assert run_sql(filled, REVISIONS) == [("0001",)]
        another_round()
    for each in workers:
        each.result()
    for name, made in rounds.items():
        with connect(filled, collection=name) as store:
            assert all(store.get(f"https://kept.example/{number}") for number in made)
            assert [*store.check()] == []
    assert known_rows(filled) == before
    assert dump(filled, options=["--schema-only"]) == schema


@pytest.mark.parametrize("call", [Store.runs, Store.policies, Store.marks, Store.status])
@pytest.mark.parametrize("table", ["runs", "policies", "marks", "pages"])
def test_a_column_may_come_while_a_call_waits(
    dsn: str, table: str, call: Callable[[Store], Any]
) -> None:
    with connect(dsn) as store, psycopg.connect(dsn) as other, ThreadPoolExecutor(1) as pool:
        store.add_page(A, 1)
        before = call(store)
        other.execute(f"ALTER TABLE pgsimhash.{table} ADD note text")
        answer = pool.submit(call, store)
        wait_until(lambda: answer.done() or run_sql(dsn, WAITS) != [])
        other.commit()
        assert answer.result() == before


def by_script(dsn: str, up: bool) -> None:
    if up:
        psql(dsn, migrate.upgrade_sql(since="0001", layout=LAYOUT))
        return
    output = io.StringIO()
    options = {"as_sql": True, "output_buffer": output}
    context = MigrationContext.configure(dialect_name="postgresql", opts=options)
    pgsimhash.alembic.downgrade(Operations(context), "0001", since="0002", layout=LAYOUT)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(output.getvalue())


def in_own_history(dsn: str, up: bool) -> None:
    engine = migrate.engine_for(dsn)
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        step = pgsimhash.alembic.upgrade if up else pgsimhash.alembic.downgrade
        step(op, "0002" if up else "0001")
    engine.dispose()


@pytest.mark.parametrize("route", [by_script, in_own_history])
def test_other_routes_and_statements(filled: str, route: Callable[[str, bool], None]) -> None:
    for function in ("find", "_status_1"):
        run_sql(filled, f"REVOKE EXECUTE ON FUNCTION pgsimhash.{function} FROM PUBLIC")
    before, schema = known_rows(filled), dump(filled, options=["--schema-only"])
    url = "https://example.com/0"
    with (
        connect(filled, collection="apart") as store,
        psycopg.connect(filled, autocommit=True, prepare_threshold=0) as connection,
    ):

        def answers() -> list[Any]:
            store.seen(url)
            own = connection.execute("SELECT * FROM pgsimhash.find(%s, 3, 'apart')", [7])
            decided = connection.execute("SELECT kind FROM pgsimhash.add_page(%s, 7)", [url])
            return [
                store.find(7),
                page_at(store, url).fetched_at,
                *own.fetchall(),
                *decided.fetchall(),
            ]

        known = [answers() for _ in range(6)][-1]
        with package_at("0002"):
            route(filled, True)
        assert answers() == known
        migrate.upgrade(filled)
        assert run_sql(filled, REVISIONS) == [("0002",)]
        with connect(filled, collection="apart") as opened:
            assert opened.find(7) == store.find(7)
            assert [*opened.check()] == []
        with package_at("0002"), connect(filled, collection="apart") as newer:
            assert newer.find(7) == store.find(7)
            run_sql(filled, "SELECT pgsimhash.note(%s, 'read it', 'apart')", [url])
            limited = "SELECT * FROM pgsimhash.find(7, 3, 'apart', max_matches => 1)"
            assert len(run_sql(filled, limited)) == 1
            assert newer.add_page(url, 7).kind == "unchanged"
        upgraded = dump(filled, options=["--schema-only"])
        for function in ("find", "_status_1", "_status_2"):
            assert f"REVOKE ALL ON FUNCTION pgsimhash.{function}(" in upgraded
        assert upgraded.count("REVOKE ALL") == 3
        with package_at("0002"):
            route(filled, False)
        assert answers() == known
    assert dump(filled, options=["--schema-only"]) == schema
    assert known_rows(filled)[3] == before[3]


def test_a_rebuild_into_a_schema_that_was_upgraded(dsn: str) -> None:
    with package_at("0002"):
        in_own_history(dsn, True)
    migrate.upgrade(dsn, schema="crawl")
    with connect(dsn, schema="crawl") as store:
        store.add_page(A, 5)
        store.set_policy("*", distance=3)
        store.rebuild("copied", into_schema="pgsimhash")
    with connect(dsn, collection="copied") as store:
        assert [match.url for match in store.find(5)] == [A]
        assert [policy.distance for policy in store.policies()] == [3]


@pytest.mark.long
def test_the_embedded_server(monkeypatch: pytest.MonkeyPatch) -> None:
    # The path of a socket must be short, unlike pytest's folders.
    with tempfile.TemporaryDirectory(prefix="pgsimhash-") as home:
        monkeypatch.delenv("PGSIMHASH_DSN", raising=False)
        monkeypatch.setenv("PGSIMHASH_DATA_DIR", f"{home}/data")
        with connect() as store:
            store.add_page(A, 5)
            with package_at("0002"), connect() as newer:
                assert newer.add_page(B, 5).kind == "duplicate"
            assert [match.url for match in store.find(5)] == [A]
            assert store.add_page(f"{A}2", 5).kind == "duplicate"
            with connect() as opened:
                assert opened.status().pages == 3
        # Otherwise it writes to the folder while that is removed.
        embedded.leave(Path(home, "data"))
        assert not Path(home, "data/postgres/postmaster.pid").exists()


def test_an_undeclared_or_too_new_revision_is_refused(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (body,) = run_sql(dsn, "SELECT pgsimhash._build()")[0]
    assert body.endswith(f" revision {REVISION} compatible_from {COMPATIBLE_FROM}")
    run_sql(dsn, "UPDATE pgsimhash.alembic_version SET version_num = '0003'")
    for declared, is_refused in (
        ("revision 0001 compatible_from 0001", True),
        ("revision 0003 compatible_from 0002", True),
        ("revision 0003 compatible_from 0001", False),
    ):
        run_sql(
            dsn,
            "CREATE OR REPLACE FUNCTION pgsimhash._build() RETURNS text LANGUAGE sql "
            f"AS $$SELECT '{declared}'$$",
        )
        if is_refused:
            with pytest.raises(SchemaError, match="upgrade in an up", check=because("newer")):
                connect(dsn)
        else:
            connect(dsn).close()
    monkeypatch.setattr(deployed, "REVISION", "0004")
    with pytest.raises(SchemaError, match="run: pgsimhash migrate", check=because("older")):
        connect(dsn)
