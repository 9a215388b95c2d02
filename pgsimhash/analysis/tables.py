"""Tables of all near-copies in a collection, for the user's own SQL: pairs, and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from pgsimhash.bits import to_bigint
from pgsimhash.clusters import Cluster, Linkage, Score, scorer
from pgsimhash.copying import copy_binary
from pgsimhash.errors import StoreError
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.pairs import Compared, Pairs, stream_pairs
from pgsimhash.progress import unheard
from pgsimhash.statements import query
from pgsimhash.store import Store, groups
from pgsimhash.store.collection import checked_distance


def save_pairs(
    store: Store, table: str, distance: int | None = None, *, progress: Compared = unheard
) -> int:
    """Create ``table`` with ``Store.pairs`` (low, high, distance) and return their number.

    All in one transaction. ``table`` may name a schema: ``mine.near_copies``. ``progress`` is told
    as by ``Store.pairs``.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
        StoreError: the table is there already, or the database does not answer.
    """
    with store.session.reading(together=True) as (connection, collection):
        wanted = checked_distance(collection, distance, DISTANCE_MAX)
        with groups.spool(connection, collection) as simhashes:
            found = stream_pairs(simhashes, wanted, progress=progress)
            return _write_pairs(connection, table, found)


def save_clusters(
    store: Store,
    table: str,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = "earliest",
    progress: Compared = unheard,
) -> int:
    """Create ``table`` with the pages of ``Store.clusters`` and return the clusters' number.

    Its columns are ``cluster_id``, ``page_id``, ``url``, ``simhash`` and ``canonical``. All
    in one transaction. ``progress`` is told as by ``Store.clusters``.

    Raises:
        ArgumentError: ``distance`` is not in 0..12; or there is no such rule or linkage.
        StoreError: the table is there already, or the database does not answer.
    """
    with store.session.reading(together=True) as (connection, collection):
        wanted = checked_distance(collection, distance, DISTANCE_MAX)
        score = scorer(canonical)
        found = groups.clusters(connection, collection, wanted, linkage, score, progress)
        return _write_clusters(connection, table, found)


def _write_pairs(connection: psycopg.Connection[Any], table: str, blocks: Iterable[Pairs]) -> int:
    """Create ``table`` and fill it with pairs; return how many there are."""
    name = _create(connection, "create_pair_table", table)
    written = 0
    with connection.cursor() as cursor:
        for block in blocks:
            copy_binary(
                cursor,
                name,
                {
                    "low": block.low.view(np.int64),
                    "high": block.high.view(np.int64),
                    "distance": block.distances.astype(np.int16),
                },
            )
            written += len(block.low)
    return written


def _write_clusters(
    connection: psycopg.Connection[Any], table: str, found: Iterable[Cluster]
) -> int:
    """Create ``table`` and fill it with a row for each page; return how many clusters there are."""
    name = _create(connection, "create_cluster_table", table)
    written = 0
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, %s, %s, %s)").format(sql.Identifier(*name))
    with connection.cursor() as cursor:
        for cluster in found:
            cursor.executemany(
                insert,
                [
                    (
                        cluster.cluster_id,
                        page.page_id,
                        page.url,
                        to_bigint(page.simhash),
                        page is cluster.canonical,
                    )
                    for page in cluster.pages
                ],
            )
            written += 1
    return written


def _create(connection: psycopg.Connection[Any], statement: str, table: str) -> tuple[str, ...]:
    name = tuple(table.split("."))
    if len(name) > 2 or not all(name):
        raise StoreError(
            "invalid_table", f"{table!r} is no table's name; write name or schema.name"
        )
    try:
        connection.execute(
            sql.SQL(query(statement, connection)).format(table=sql.Identifier(*name))
        )
    except psycopg.errors.DuplicateTable as error:
        raise StoreError(
            "table_exists", f"the table {table} is there already; drop it, or choose another name"
        ) from error
    except psycopg.errors.InvalidSchemaName as error:
        raise StoreError(
            "no_such_schema", f"the schema of {table} is not there; create it first"
        ) from error
    return name
