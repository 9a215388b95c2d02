"""The size of a collection on disk: what status reports, and what the planner predicts."""

from __future__ import annotations

import hashlib

import psycopg
import pytest

from pgsimhash import Store, connect
from pgsimhash.search import layout_costs as planner
from pgsimhash.search.layout import DEFAULT_LAYOUT
from tests.conftest import ON_CITUS


def size(dsn: str, *tables: str) -> int:
    function = "citus_total_relation_size" if ON_CITUS else "pg_total_relation_size"
    statement = f"SELECT sum({function}(t::regclass)) FROM unnest(%s::text[]) AS t"
    with psycopg.connect(dsn) as connection:
        row = connection.execute(statement.encode(), [list(tables)]).fetchone()
    assert row is not None
    return int(row[0])


def test_status_has_the_bytes_of_the_whole_schema(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store:
        text = " ".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(2_000))
        store.ingest("https://a.example/", f"<p>{text}</p>")
        connect(dsn, collection="other", layout="32+32").close()
        first, second = store.status()
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'pgsimhash'"
        ).fetchall()
    assert len(tables) > 10
    assert first.schema_bytes == second.schema_bytes == size(dsn, *(name for (name,) in tables))
    assert first.schema_bytes > len(text) / 2


def test_simhashes_take_what_is_predicted(store: Store, dsn: str) -> None:
    """Built at once, as bytes_a_row assumes; grown row by row it is a fourth larger."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pgsimhash.add_simhashes('default', array_agg(hashint8extended(n, 1))) "
            "FROM generate_series(1, 100000) AS n"
        )
        connection.execute("VACUUM FULL pgsimhash.simhashes")
    predicted = planner.plan(DEFAULT_LAYOUT, 100_000, 8).simhash_bytes
    assert size(dsn, "pgsimhash.simhashes") == pytest.approx(predicted, rel=0.03)
