"""The size of a collection on disk: what status reports."""

from __future__ import annotations

import hashlib

import psycopg
import pytest

from pgsimhash import connect


def size(dsn: str, *tables: str) -> int:
    statement = b"SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(%s::text[]) AS t"
    with psycopg.connect(dsn) as connection:
        row = connection.execute(statement, [list(tables)]).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.one_server("its nodes count the bytes")
def test_status_has_the_bytes_of_the_whole_schema(dsn: str) -> None:
    with connect(dsn, keep_markdown=True) as store:
        text = " ".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(2_000))
        store.ingest("https://a.example/", f"<p>{text}</p>")
        connect(dsn, collection="other").close()
        first, second = store.status()
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'pgsimhash'"
        ).fetchall()
    assert len(tables) > 7
    assert first.schema_bytes == second.schema_bytes == size(dsn, *(name for (name,) in tables))
    assert first.schema_bytes > len(text) / 2
