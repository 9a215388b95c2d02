"""A collection is deleted with all its rows, and nothing else."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from pgsimhash import CollectionError, Store, connect, maintenance
from pgsimhash.maintenance.collections import delete_collection
from pgsimhash.pages.policies import PolicySettings
from tests.database import after_a_wait, insert_page

URL = "https://a.example/"
OTHER = "https://b.example/"


def rows(connection: psycopg.Connection) -> dict[str, int]:
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


def fill(store: Store) -> None:
    store.add(URL, 1)
    store.add(URL, 1)
    store.add(OTHER, 2**40)
    maintenance.mark(store, URL, OTHER, same=True)
    maintenance.set_policy(store, "a.example", PolicySettings(distance=2))


def test_exactly_its_rows_are_deleted(dsn: str) -> None:
    with connect(dsn, collection="small") as store:
        fill(store)
    with psycopg.connect(dsn, autocommit=True) as connection:
        before = rows(connection)
        with connect(dsn, collection="news") as store:
            fill(store)
            assert delete_collection(connection, "news") == 2
            with pytest.raises(CollectionError, match="does not exist"):
                store.add(URL, 1)
        assert rows(connection) == before
        assert delete_collection(connection, "small") == 2
        assert set(rows(connection).values()) == {0}
        with pytest.raises(CollectionError, match="'news' does not exist"):
            delete_collection(connection, "news")


def test_it_waits_for_loaders(dsn: str) -> None:
    """Pages that were inserted meanwhile belong to it too."""
    connect(dsn).close()
    with psycopg.connect(dsn) as adding, psycopg.connect(dsn, autocommit=True) as connection:
        insert_page(adding, URL, 1)
        assert after_a_wait(adding, lambda: delete_collection(connection, "default")) == 1
        assert rows(connection)["pages"] == 0
