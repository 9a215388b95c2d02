"""Tables of all near-copies in a collection, for the user's own SQL: pairs, and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.bits import to_bigint
from pgsimhash.clusters import Cluster, Linkage, Score, scorer
from pgsimhash.copying import copy_binary
from pgsimhash.errors import StoreError
from pgsimhash.layout import DISTANCE_MAX
from pgsimhash.pairs import Compared, Pairs, stream_pairs
from pgsimhash.pinned import callers_names
from pgsimhash.progress import unheard
from pgsimhash.statements import query
from pgsimhash.store import Store, groups
from pgsimhash.store.collection import checked_distance

_Name = tuple[str, ...]

_LONGEST: Final = 63
"""How many bytes PostgreSQL keeps of a name."""

_FILLED: Final[_Name] = ("pg_temp", "pgsimhash_saved")
"""What is to replace a table, until all of it is there."""


def save_pairs(
    store: Store,
    table: str,
    distance: int | None = None,
    *,
    replace: bool = False,
    progress: Compared = unheard,
) -> int:
    """Create ``table`` with ``Store.pairs`` (low, high, distance) and return their number.

    All in one transaction. ``table`` may name a schema: ``mine.near_copies``. ``progress`` is told
    as by ``Store.pairs``.

    With ``replace`` the rows of a table that is there are replaced at once: who reads it sees all
    of the old ones until the commit and all of the new ones after it, and never waits. Its grants,
    its indexes and the views of it stay. A table with other columns than these is not touched.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
        StoreError: the table is there already, or with ``replace`` has other columns; or the
            database does not answer.
    """
    with store.session.reading(together=True) as (connection, collection):
        wanted = checked_distance(collection, distance, DISTANCE_MAX)

        def fill(name: _Name) -> int:
            with groups.spool(connection, collection) as simhashes:
                found = stream_pairs(simhashes, wanted, progress=progress)
                return _write_pairs(connection, name, found)

        return _save(connection, "create_pair_table", table, fill, replace=replace)


def save_clusters(
    store: Store,
    table: str,
    distance: int | None = None,
    *,
    linkage: Linkage = "single",
    canonical: str | Score | Sequence[str] = "earliest",
    replace: bool = False,
    progress: Compared = unheard,
) -> int:
    """Create ``table`` with the pages of ``Store.clusters`` and return the clusters' number.

    Its columns are ``cluster_id``, ``page_id``, ``url``, ``simhash`` and ``canonical``. All
    in one transaction. ``replace`` and ``progress`` are as for :func:`save_pairs`.

    Raises:
        ArgumentError: ``distance`` is not in 0..12; or there is no such rule or linkage.
        StoreError: the table is there already, or with ``replace`` has other columns; or the
            database does not answer.
    """
    with store.session.reading(together=True) as (connection, collection):
        wanted = checked_distance(collection, distance, DISTANCE_MAX)
        score = scorer(canonical)

        def fill(name: _Name) -> int:
            found = groups.clusters(connection, collection, wanted, linkage, score, progress)
            return _write_clusters(connection, name, found)

        return _save(connection, "create_cluster_table", table, fill, replace=replace)


def _save(
    connection: psycopg.Connection[Any],
    statement: str,
    table: str,
    fill: Callable[[_Name], int],
    *,
    replace: bool,
) -> int:
    """Create ``table`` by ``statement`` and fill it, or replace its rows; return what it counts."""
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
    """Return the schema and the name of a table, as the caller's search_path has it.

    Raises:
        StoreError: it cannot be a table's name, or there is no schema to create it in.
    """
    name = tuple(table.split("."))
    fits = all(0 < len(part.encode()) <= _LONGEST for part in name)
    # What is too long, or has a NUL, would be cut: another table would be created or replaced.
    if len(name) > 2 or not fits or "\0" in table:
        raise StoreError(
            "invalid_table",
            f"{table!r} is no table's name; write name or schema.name, each of up to {_LONGEST} "
            "bytes without NUL",
        )
    if len(name) == 2:
        return name
    quoted = sql.Identifier(table).as_string(connection)
    with callers_names(connection) as cursor:
        cursor.execute(query("table_found", connection), {"table": quoted})
        ((schema, found),) = cursor.fetchall()
    if found is not None and replace:
        with connection.cursor(row_factory=scalar_row) as cursor:
            cursor.execute(query("schema_of_table", connection), {"table": found})
            schema = cursor.fetchone()
    if schema is None:
        raise StoreError(
            "no_such_schema", f"no schema of the search_path is there for {table}; name one"
        )
    return schema, table


def _write_pairs(connection: psycopg.Connection[Any], name: _Name, blocks: Iterable[Pairs]) -> int:
    """Fill a table with pairs; return how many there are."""
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
    connection: psycopg.Connection[Any], name: _Name, found: Iterable[Cluster]
) -> int:
    """Fill a table with a row for each page; return how many clusters there are."""
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


def _create(connection: psycopg.Connection[Any], statement: str, name: _Name, table: str) -> None:
    try:
        connection.execute(
            sql.SQL(query(statement, connection)).format(table=sql.Identifier(*name))
        )
    except psycopg.errors.DuplicateTable as error:
        raise StoreError(
            "table_exists",
            f"the table {table} is there already; replace it, drop it, or choose another name",
        ) from error
    except psycopg.errors.InvalidSchemaName as error:
        raise StoreError(
            "no_such_schema", f"the schema of {table} is not there; create it first"
        ) from error


def _columns(connection: psycopg.Connection[Any], name: _Name, table: str) -> list[str] | None:
    """Return the columns of what is to replace a table, None where that is not there.

    Raises:
        StoreError: the table has others.
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
            f"{table} is no table with the columns {', '.join(columns)} and no others, so it was "
            "left alone; choose another name",
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
