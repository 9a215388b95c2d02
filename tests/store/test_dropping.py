"""A collection is deleted with all that belongs to it, and nothing else is."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from pgsimhash import CollectionError, Store, StoreError, connect, maintenance
from pgsimhash.maintenance.dropping import delete_collection
from pgsimhash.policies import Settings

URL = "https://a.example/"
OTHER = "https://b.example/"


def rows(connection: psycopg.Connection) -> dict[str, int]:
    """How many rows each table has, but for what is there without a collection."""
    tables = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'pgsimhash' "
        "AND tablename NOT IN ('layouts', 'alembic_version')"
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
    maintenance.set_policy(store, "a.example", Settings(distance=2))
    list(maintenance.rejudge(store, save=True))


def test_all_of_it_goes_and_nothing_else(dsn: str) -> None:
    with connect(dsn, collection="small", layout="32+32") as store:
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


def test_not_while_its_layout_is_being_changed(dsn: str) -> None:
    with connect(dsn) as store:
        fill(store)
    with (
        psycopg.connect(dsn, autocommit=True) as mover,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        mover.execute(
            "SELECT pg_advisory_lock(1885827948, collection_id) FROM pgsimhash.collections"
        )
        with pytest.raises(StoreError, match="being changed by someone else"):
            delete_collection(connection, "default")
        assert rows(connection)["pages"] == 2
