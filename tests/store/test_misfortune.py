"""A cancelled query or a lost connection raises one of our errors, and no partial write stays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

import pgsimhash
from pgsimhash import analysis, connect, maintenance
from pgsimhash.db.server_errors import translated_errors
from pgsimhash.errors import NoServerError


@pytest.fixture
def hand(dsn: str) -> Iterator[psycopg.Connection]:
    """A second connection that observes and interferes."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def end_others(hand: psycopg.Connection) -> None:
    hand.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_standby_answers_reads_and_refuses_writes(dsn: str) -> None:
    connect(dsn).close()
    with connect(f"{dsn} options='-c default_transaction_read_only=on'", create=False) as store:
        assert store.find(0) == []
        assert store.decide("https://a.example/", "<p>" + "one two three " * 20).verdict == "new"
        assert store.should_fetch("https://a.example/")
        for read in (analysis.page_pairs, maintenance.check, maintenance.runs):
            assert list(read(store)) == []
        with pytest.raises(pgsimhash.StoreError, match=r"read-only: .*to the primary server"):
            store.add("https://a.example/", 0)
        assert list(store.clusters()) == []
        assert analysis.report(store).clusters == []


def test_a_query_that_the_server_cancels_is_named(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        store = connect(connection)
        simhashes = np.arange(10_000, dtype=np.uint64) << np.uint64(40)
        pages = [(f"https://a.example/{simhash}", int(simhash)) for simhash in simhashes]
        connection.execute("SET statement_timeout = '5ms'")
        with pytest.raises(pgsimhash.StoreError, match=r"the database gave up.*timeout"):
            store.find_many(simhashes, 8)
        with pytest.raises(pgsimhash.StoreError, match="the database gave up"):
            list(store.add_many(pages))
        connection.execute("SET statement_timeout = 0")
        assert len(analysis.simhashes(store)) == 0


def test_an_internal_error_is_named(dsn: str) -> None:
    """As Citus reports a node that fails."""
    with (
        psycopg.connect(dsn) as connection,
        pytest.raises(
            pgsimhash.StoreError, match=r"the database gave up: a node failed; committed work stays"
        ),
        translated_errors(connection),
    ):
        connection.execute("DO $$ BEGIN RAISE 'a node failed' USING ERRCODE = 'XX000'; END $$")


def test_saved_clusters_stay_if_the_connection_or_the_callers_score_fails(
    dsn: str, hand: psycopg.Connection
) -> None:
    def lose(done: int, total: int) -> None:
        end_others(hand)

    saved = "SELECT array_agg(page_id ORDER BY page_id) FROM pgsimhash.clusters"
    with connect(dsn) as store:
        list(store.add_many((f"https://a.example/{n}", n) for n in range(5)))
        assert store.save_clusters(3) == 1
        before = hand.execute(saved).fetchone()
        store.add("https://a.example/5", 5)
        with pytest.raises(NoServerError, match="run again to continue"):
            store.save_clusters(3, progress=lose)
        with pytest.raises(ZeroDivisionError):
            store.save_clusters(3, canonical=lambda page: 1 // 0)
        assert hand.execute(saved).fetchone() == before
        assert store.save_clusters(3) == 1
        assert hand.execute(saved).fetchone() == ([1, 2, 3, 4, 5, 6],)
