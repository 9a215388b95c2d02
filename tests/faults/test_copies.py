"""Copies of a database are consistent: standbys, logical replicas, dumps."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo

from pgsimhash import StoreError, connect
from tests.database import run_sql
from tests.faults.cluster import Cluster
from tests.faults.conftest import a_cluster, fresh
from tests.faults.writing import Writers, violations
from tests.manual import blocks
from tests.programs import wait_until
from tests.refusals import because
from tests.store.calls import READS, A, B
from tests.store.content import rebuild_apart

# Simhashes of consecutive multiples are far apart: near ones would take most of the time.
SPREAD = 0x0003_C6EF_372F_E94F

PAGE = "<title>Wells</title>" + "".join(f"<p>{WORD * 9}" for WORD in ("water ", "stone ", "rope "))


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Cluster]]:
    """A primary server and its synchronous standby."""
    with ExitStack() as stack:
        primary, standby = (stack.enter_context(a_cluster()) for _ in range(2))
        primary.make()
        primary.start()
        standby.copy_of(primary)
        standby.start()
        primary.setting("synchronous_standby_names", "*")
        yield primary, standby


def test_a_standby_takes_over_and_no_acknowledged_page_is_lost(
    pair: tuple[Cluster, Cluster], writers_of: Callable[..., Writers], chance: random.Random
) -> None:
    primary, standby = pair
    primary.database("crawl")
    both = conninfo.make_conninfo(
        primary.dsn("crawl"), host="127.0.0.1,127.0.0.1", port=f"{primary.port},{standby.port}",
        target_session_attrs="read-write",
    )  # fmt: skip
    writers = writers_of(both)
    writers.start()
    writers.wait_until(*writers.moments(chance, 1))
    with psycopg.connect(standby.dsn("crawl"), autocommit=True) as beside:
        # Reading it during replication.
        assert violations(beside) == []
    with pytest.raises(StoreError, check=because("read_only")):
        connect(standby.dsn("crawl"), collection="another", create=True)
    primary.kill()
    standby.promote()
    standby.setting("synchronous_standby_names", "")
    seconds = writers.wait_for_more()
    writers.wait()
    assert not writers.refusals
    writers.assert_sound(standby.dsn("crawl"), complete=True, seconds_to_write_again=seconds)


def test_a_standby_answers_everything_that_reads(pair: tuple[Cluster, Cluster]) -> None:
    primary, standby = pair
    primary.setting("synchronous_commit", "remote_apply")
    with connect(primary.database("crawl"), keep_markdown=True) as store:
        list(store.ingest_many([(A, PAGE), (B, PAGE), (A, PAGE + "<p>Water and stone.")]))
        list(store.add_pages((f"https://c.example/{n}", n) for n in range(20)))
        store.mark(A, B, same=True)
        store.set_policy("c.example", distance=2)
        with connect(standby.dsn("crawl"), create=False) as reader:
            for name, read in READS.items():
                assert read(reader) == read(store), name
        with connect(standby.dsn("crawl")) as reader:
            writes: list[Callable[[], Any]] = [
                lambda: reader.add_page(A, 5),
                lambda: reader.delete_page(A),
                lambda: reader.save_clusters(),
            ]
            for write in writes:
                with pytest.raises(StoreError, check=because("read_only")):
                    write()


def test_a_dump_made_during_writes_is_consistent(
    cluster: Cluster, writers: Writers, where: str, tmp_path: Path, chance: random.Random,
    writers_of: Callable[..., Writers],
) -> None:  # fmt: skip
    with connect(where) as store:
        list(store.add_pages((f"https://a.example/{n}", n * SPREAD) for n in range(1000)))
        rebuild_apart(store, "other")
    writers.start()
    writers.wait_until(chance.randrange(1, 2 * writers.pages))
    before = writers.acknowledged()
    dump = cluster.folder / f"dump-{time.monotonic_ns()}"
    cluster.call("pg_dump", "-Fc", "-f", dump, "-d", where)
    writers.wait()
    copy = conninfo.make_conninfo(where, dbname=f"restored_{time.monotonic_ns()}")
    cluster.execute(f"CREATE DATABASE {conninfo.conninfo_to_dict(copy)['dbname']}")
    cluster.call("pg_restore", "--exit-on-error", "-d", copy, dump)
    outcome = writers.outcome(copy)
    assert (outcome.doubled, outcome.violations) == (0, [])
    with connect(copy) as restored:
        assert all(restored.get(url) is not None for url in list(before)[:50])
    there = {row[0] for row in run_sql(copy, "SELECT url FROM pgsimhash.pages")}
    assert before <= there
    writers_of(copy, folder=tmp_path / "again").finish()


def test_a_dump_of_data_only_is_complete(cluster: Cluster, where: str) -> None:
    with connect(where) as store:
        list(store.add_pages([("https://example.com/1", 5), ("https://example.com/2", 5)]))
    dumps = {}
    for name, options in {
        "schema": ["--schema-only"], "checked": ["--data-only"],
        "unchecked": ["--data-only", "--disable-triggers"],
    }.items():  # fmt: skip
        dumps[name] = cluster.folder / f"{name}-{time.monotonic_ns()}.sql"
        cluster.call("pg_dump", *options, "-f", dumps[name], "-d", where)
    for name in ("checked", "unchecked"):
        database = f"{name}_{time.monotonic_ns()}"
        cluster.execute(f"CREATE DATABASE {database} TEMPLATE template0")
        copy = cluster.dsn(database)
        for dump in (dumps["schema"], dumps[name]):
            cluster.call("psql", "--quiet", "--no-psqlrc", "-f", dump, "-d", copy)
        with connect(copy, create=False) as store:
            assert list(store.check()) == []
            assert store.has_near(5, 0)
            assert (
                store.add_page("https://example.com/3", 5).duplicate_of == "https://example.com/1"
            )


def test_a_logical_replica_becomes_the_writers_database(
    cluster: Cluster, writers: Writers, where: str, tmp_path: Path, told: Callable[..., None]
) -> None:
    replica = fresh(cluster)
    publish, subscribe, take_over = blocks("reliability.md", "sql")
    with (
        psycopg.connect(where, autocommit=True) as source,
        psycopg.connect(replica, autocommit=True) as target,
    ):
        for statement in publish.split(";\n"):
            source.execute(statement)
        name = f"pgsimhash_{time.monotonic_ns()}"
        source.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
        for statement in subscribe.split(";\n"):
            # Within one server, the slot must exist beforehand.
            here = statement.replace("host=primary.example dbname=crawl", where)
            slot = f"copy_data = true, create_slot = false, slot_name = '{name}'"
            target.execute(here.replace("copy_data = true", slot))
        writers.rerun()
        with connect(where) as store:
            store.delete_host("w1.example")
            added = store.add_pages((f"https://a.example/{n}", n * SPREAD) for n in range(1000))
            *_, newest = added
            store.delete_page(newest.url)
        wait_for_the_replica(source, target)
        for statement in take_over.split(";\n"):
            target.execute(statement)
        # A batch names it: the id of the deleted page is taken too.
        assert (connect(target).add_page(A, 5).page_id or 0) > (newest.page_id or 0) > 0
        assert violations(target) == []
    again = Writers(replica, tmp_path / "again", told)
    again.rerun()
    assert again.acknowledged() == again.all_urls()
    outcome = again.outcome(verdicts=False)
    assert (outcome.lost, outcome.doubled, outcome.violations) == (0, 0, [])
    told(outcome)


def wait_for_the_replica(source: psycopg.Connection, target: psycopg.Connection) -> None:
    """Wait until a replica has all rows."""
    counts = "SELECT (SELECT count(*) FROM pgsimhash.pages), sum(pages) FROM pgsimhash.runs"
    wait_until(lambda: source.execute(counts).fetchone() == target.execute(counts).fetchone())
