"""The size of a collection on disk: what status reports."""

from __future__ import annotations

import hashlib

import pytest

from pgsimhash import connect
from tests.database import run_sql


def size(dsn: str, *tables: str) -> int:
    statement = "SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(%s::text[]) AS t"
    (row,) = run_sql(dsn, statement, [list(tables)])
    assert row is not None
    return int(row[0])


@pytest.mark.one_server("its nodes count the bytes")
def test_status_has_the_bytes_of_the_whole_schema(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store:
        text = " ".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(2_000))
        store.ingest("https://a.example/", f"<p>{text}</p>")
        connect(dsn, collection="other").close()
        first, second = store.status()
    tables = run_sql(
        dsn, "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'pgsimhash'"
    )
    assert len(tables) > 7
    assert first.schema_bytes == second.schema_bytes == size(dsn, *(name for (name,) in tables))
    assert first.schema_bytes > len(text) / 2
