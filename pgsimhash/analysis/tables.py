"""Save all near-duplicates in a collection, as pairs or clusters, to tables for your own SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.db.copy import copy_binary
from pgsimhash.db.pinned import callers_names
from pgsimhash.db.refusals import first_line
from pgsimhash.db.statements import query
from pgsimhash.errors import StoreError
from pgsimhash.hashing.bits import to_bigint
from pgsimhash.runtime.progress import no_progress
from pgsimhash.search.clusters import Cluster, Linkage, Score, scorer
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared, Pairs, stream_pairs
from pgsimhash.store import Store, groups
from pgsimhash.store.collection import checked_distance
from pgsimhash.store.lookups import all_simhashes

_Name = tuple[str, ...]

_LONGEST: Final = 63
"""The longest name in PostgreSQL, in bytes."""

_FILLED: Final[_Name] = ("pg_temp", "pgsimhash_saved")
"""The temporary table of the rows that replace those of a table."""


def save_pairs(
    store: Store,
    table: str,
    distance: int | None = None,
    *,
    replace: bool = False,
    progress: Compared = no_progress,
) -> int:
    """Create ``table`` with ``Store.pairs`` (low, high, distance) and return their number.

    Everything is one transaction. ``table`` may include a schema: ``mine.near_copies``.
    ``progress`` is as for ``Store.pairs``.

    With ``replace`` the rows of an existing table are replaced at once. Readers never wait: they
    see all old rows until the commit and all new rows after it. Grants, indexes and views of the
    table are kept. A table with different columns is not changed.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
        StoreError: the table exists, or with ``replace`` has different columns; or the database
            does not answer.
    """
    with store.session.reading(together=True) as (connection, collection):
        limit = checked_distance(collection, distance, DISTANCE_MAX)

        def fill(name: _Name) -> int:
            simhashes = all_simhashes(connection, collection)
            return _write_pairs(connection, name, stream_pairs(simhashes, limit, progress=progress))

        return _save(connection, "create_pair_table", table, fill, replace=replace)


def save_clusters(
    store: Store,
    table: str,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = "earliest",
    replace: bool = False,
    progress: Compared = no_progress,
) -> int:
    """Create ``table`` with the pages of ``Store.clusters`` and return the clusters' number.

    Its columns are ``cluster_id``, ``page_id``, ``url``, ``simhash`` and ``canonical``, which is
    true for the page that represents its cluster. Everything is one transaction. ``replace``
    and ``progress`` are as for :func:`save_pairs`; ``linkage`` and ``canonical`` are as for
    :meth:`~pgsimhash.Store.clusters`.

    Raises:
        ArgumentError: ``distance`` is not in 0..12, or the rule or linkage is unknown.
        StoreError: the table exists, or with ``replace`` has different columns; or the database
            does not answer.
    """
    with store.session.reading(together=True) as (connection, collection):
        limit = checked_distance(collection, distance, DISTANCE_MAX)
        score = scorer(canonical)

        def fill(name: _Name) -> int:
            clusters = groups.clusters(connection, collection, limit, linkage, score, progress)
            return _write_clusters(connection, name, clusters)

        return _save(connection, "create_cluster_table", table, fill, replace=replace)


def _save(
    connection: psycopg.Connection[Any],
    statement: str,
    table: str,
    fill: Callable[[_Name], int],
    *,
    replace: bool,
) -> int:
    """Create ``table`` by ``statement`` and fill it, or replace its rows; return fill's count."""
    name = _qualified(connection, table, replace=replace)
    if replace:
        _create(connection, statement, _FILLED, table)
        columns = _columns(connection, name, table)
        if columns is not None:
            _execute(connection, "keep_table", name, columns)
            _columns(connection, name, table)
            count = fill(_FILLED)
            for step in ("hold_rows", "clear_rows", "replace_rows", "drop_filled"):
                _execute(connection, step, name, columns)
            return count
        _execute(connection, "drop_filled", name, ())
    _create(connection, statement, name, table)
    return fill(name)


def _qualified(connection: psycopg.Connection[Any], table: str, *, replace: bool) -> _Name:
    """Return the schema and the name of a table, by the caller's search_path.

    Raises:
        StoreError: ``table`` is not a table's name, or there is no schema to create it in.
    """
    name = tuple(table.split("."))
    fits = all(0 < len(part.encode()) <= _LONGEST for part in name)
    # PostgreSQL would cut a long name or one with NUL, and use a different table.
    if len(name) > 2 or not fits or "\0" in table:
        raise StoreError(
            "invalid_table",
            f"{table!r} is not a table's name; write name or schema.name, each of up to {_LONGEST} "
            "bytes without NUL",
        )
    if len(name) == 2:
        return name
    quoted = sql.Identifier(table).as_string(connection)
    with callers_names(connection) as cursor:
        cursor.execute(query("table_found", connection), {"table": quoted})
        ((schema, existing),) = cursor.fetchall()
    if existing is not None and replace:
        with connection.cursor(row_factory=scalar_row) as cursor:
            cursor.execute(query("schema_of_table", connection), {"table": existing})
            schema = cursor.fetchone()
    if schema is None:
        raise StoreError(
            "no_such_schema", f"no schema of the search_path exists for {table}; name one"
        )
    return schema, table


def _write_pairs(connection: psycopg.Connection[Any], name: _Name, chunks: Iterable[Pairs]) -> int:
    """Fill a table with pairs and return their number."""
    written = 0
    with connection.cursor() as cursor:
        for chunk in chunks:
            copy_binary(
                cursor,
                name,
                {
                    "low": chunk.low.view(np.int64),
                    "high": chunk.high.view(np.int64),
                    "distance": chunk.distances.astype(np.int16),
                },
            )
            written += len(chunk.low)
    return written


def _write_clusters(
    connection: psycopg.Connection[Any], name: _Name, clusters: Iterable[Cluster]
) -> int:
    """Fill a table with a row for each page and return the number of clusters."""
    written = 0
    insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, %s, %s, %s)").format(sql.Identifier(*name))
    with connection.cursor() as cursor:
        for cluster in clusters:
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


def _create(connection: psycopg.Connection[Any], statement: str, name: _Name, table: str) -> None:
    try:
        connection.execute(
            sql.SQL(query(statement, connection)).format(table=sql.Identifier(*name))
        )
    except psycopg.errors.DuplicateTable as error:
        raise StoreError(
            "table_exists",
            f"the table {table} already exists; replace it, drop it, or choose another name",
        ) from error
    except psycopg.errors.InvalidSchemaName as error:
        raise StoreError(
            "no_such_schema", f"the schema of {table} does not exist; create it first"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            "not_permitted",
            f"the database refuses to create the table {table}: {first_line(error)}; grant the "
            "user CREATE on the schema, or name another schema",
        ) from error


def _columns(connection: psycopg.Connection[Any], name: _Name, table: str) -> list[str] | None:
    """Return the columns of the rows that replace those of a table; None if it does not exist.

    Raises:
        StoreError: the table has different columns.
    """
    names = {
        "filled": sql.Identifier(*_FILLED).as_string(connection),
        "table": sql.Identifier(*name).as_string(connection),
    }
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(query("saved_columns", connection), names).fetchone()
    if row is None:
        return None
    columns, same = row
    if not same:
        raise StoreError(
            "other_table",
            f"{table} is not a table with exactly the columns {', '.join(columns)}, so it was not "
            "changed; choose another name",
        )
    return list(columns)


def _execute(
    connection: psycopg.Connection[Any], statement: str, name: _Name, columns: Sequence[str]
) -> None:
    connection.execute(
        sql.SQL(query(statement, connection)).format(
            table=sql.Identifier(*name),
            filled=sql.Identifier(*_FILLED),
            columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        )
    )
