"""Writers and servers are killed and connections cut; acknowledged pages stay."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import psycopg
import pytest

from pgsimhash import connect
from pgsimhash.schema import migrate
from tests.faults.cluster import Cluster
from tests.faults.writing import Work, Writers, rebuild
from tests.pooler import PROGRAM, REQUIRED, pooler
from tests.proxy import Proxy, proxy


def test_killed_writers_lose_and_repeat_no_page(writers: Writers, chance: random.Random) -> None:
    writers.survive(writers.kill, writers.moments(chance))


@pytest.mark.parametrize("end", [Cluster.kill, Cluster.stop])
def test_writers_continue_after_a_crash_of_the_server(
    cluster: Cluster, writers: Writers, end: Callable[[Cluster], None], chance: random.Random
) -> None:
    def restart() -> None:
        end(cluster)
        cluster.start()

    writers.survive(restart, writers.moments(chance))


def test_writers_continue_soon_after_a_restart(cluster: Cluster, writers: Writers) -> None:
    writers.start()
    writers.wait_for_each()
    cluster.stop(signal.SIGQUIT)
    cluster.start()
    seconds = writers.wait_for_more()
    writers.wait()
    assert not writers.refusals
    writers.assert_sound(complete=True, seconds_to_the_first_page=seconds)


def test_a_killed_rebuild_leaves_nothing(
    cluster: Cluster, writers: Writers, where: str, tmp_path: Path, chance: random.Random
) -> None:
    writers.rerun()
    migrate.upgrade(where, schema="wide", layout="5 choose 2")
    for into_schema, server_too in product((None, "wide"), (False, True)):
        work = Work(tmp_path, rebuild, where, into_schema)
        wait_for_a_rebuild(where, work)
        time.sleep(0.3 * chance.random())
        work.process.kill()
        work.wait()
        if server_too:
            cluster.kill()
            cluster.start()
        writers.assert_sound(complete=True)
        with psycopg.connect(where, autocommit=True) as connection:
            (copied,) = connection.execute("SELECT count(*) FROM wide.pages").fetchone() or ()
            assert copied in (0, len(writers.all_urls()))
            if copied:
                connect(connection, create=False, schema="wide").delete_collection()
    with connect(where, create=False) as store:
        store.rebuild(into_schema="wide")
    with connect(where, create=False, schema="wide") as store:
        assert list(store.check()) == []


REBUILDS = (
    "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid::bigint >= 2 ^ 31"
)
"""A rebuild holds a lock of this kind."""


def wait_for_a_rebuild(where: str, work: Work) -> None:
    with psycopg.connect(where, autocommit=True) as connection:
        while work.process.is_alive():
            if connection.execute(REBUILDS).fetchone() is not None:
                return


@pytest.fixture
def between(cluster: Cluster) -> Iterator[Proxy]:
    with proxy(cluster.port) as made:
        yield made


def test_cut_connections_lose_no_page(
    between: Proxy, where: str, writers_of: Callable[..., Writers], chance: random.Random
) -> None:
    writers = writers_of(between.dsn(where))
    writers.survive(between.cut, writers.moments(chance))
    assert between.cuts


@pytest.mark.parametrize("moment", ["cut_before", "cut_after"])
def test_a_connection_cut_during_a_commit_repeats_no_page(
    between: Proxy, where: str, writers_of: Callable[..., Writers], moment: str,
    chance: random.Random,
) -> None:  # fmt: skip
    """The commit or its answer is lost: the writer cannot tell which."""
    writers = writers_of(between.dsn(where))
    for _ in range(2):
        setattr(between, moment, between.commits + chance.randrange(2, 30))
        writers.start()
        writers.wait()
        writers.assert_sound(where)
    assert between.cuts == 2
    writers.finish()


@pytest.mark.skipif(PROGRAM is None and not REQUIRED, reason="pgbouncer is not installed")
def test_a_pooler_that_goes_down_loses_no_page(
    where: str, tmp_path: Path, writers_of: Callable[..., Writers], chance: random.Random
) -> None:
    for moment in (chance.randrange(10, 300), 10**9):
        with pooler(where, tmp_path, size=1) as pooled:
            writers = writers_of(pooled, retry_seconds=2)
            writers.start()
            writers.wait_until(moment)
        writers.wait()
        writers.assert_sound(where)
    writers_of(where).finish()
