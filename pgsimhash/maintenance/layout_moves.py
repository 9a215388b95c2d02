"""Moves a collection to another layout while lookups and writers go on.

The collection's simhashes are copied to the table of the new layout while triggers mirror what
is written meanwhile; the indexes are built when the table is full; then one row says that the
collection is there. Lookups read that row in their own snapshot, so each sees one table whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row

from pgsimhash.errors import CollectionError, StoreError
from pgsimhash.layout import COLLECTION_SHIFT, Layout, get_layout
from pgsimhash.statements import SCHEMA, query
from pgsimhash.store.collection import Collection, find_collection, lock_collections
from pgsimhash.store.layouts import build_indexes, deploy_table
from pgsimhash.store.policies import read_policies

Progress = Callable[[str, int, int], None]

_SLICES: Final = 256
"""In how many transactions rows are copied: each holds its locks for a moment only."""


def relayout(
    connection: psycopg.Connection[Any],
    name: str,
    layout: Layout,
    *,
    distance: int | None = None,
    progress: Progress = lambda step, done, total: None,
) -> None:
    """Move the collection ``name`` to ``layout``; asking for its present one cancels a move.

    An interrupted move goes on where it stopped. Lookups stay exact at every moment. Needs an
    autocommit connection outside a transaction, and the rights of the tables' owner.

    Args:
        connection: where to work.
        name: the collection.
        layout: where it goes.
        distance: the collection's new default distance; by default the present one.
        progress: told the step, and how much of how much of it is done.

    Raises:
        StoreError: the connection is in a transaction, or another move is under way.
        CollectionError: there is no such collection, it is on its way to another layout, or the
            new one does not answer its default distance, or that of a policy.
    """
    if not connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE:
        raise StoreError(
            "needs_autocommit",
            "a layout changes in many transactions; use a connection with autocommit=True that "
            "is in none",
        )
    collection = find_collection(connection, name)
    if collection is None:
        raise CollectionError(
            "unknown", f"collection {name!r} does not exist; pgsimhash collection list names them"
        )
    wanted = collection.default_distance if distance is None else distance
    _check(collection, layout, wanted)
    _check_policies(connection, collection, layout)
    scope = {"collection_id": collection.collection_id, "layout": layout.name}
    with connection.cursor(row_factory=scalar_row) as cursor:
        if not cursor.execute(query("relayout_lock"), scope).fetchone():
            raise StoreError(
                "layout_in_use",
                f"the layout of collection {name!r} is being changed by someone else",
            )
    try:
        present = get_layout(collection.layout)
        if layout == present:
            if collection.next_layout is not None:
                connection.execute(query("relayout_cancel"), scope)
                _empty(connection, collection, get_layout(collection.next_layout), progress)
            return
        deploy_table(connection, layout)
        if collection.next_layout is None:
            # What a move from there left behind, if it was interrupted in its last step.
            _empty(connection, collection, layout, progress)
        with connection.transaction():
            # What would refuse the last step refuses the first.
            lock_collections(connection, [collection])
            connection.execute(query("relayout_begin"), scope)
        _wait_for_writers(connection, present)
        _copy(connection, collection, present, layout, progress)
        progress("index", 0, 1)
        build_indexes(connection, layout)
        _vacuum(connection, layout)
        progress("index", 1, 1)
        with connection.transaction():
            lock_collections(connection, [collection])
            connection.execute(query("relayout_switch"), {**scope, "distance": wanted})
        _empty(connection, collection, present, progress)
    finally:
        if not connection.broken:
            connection.execute(query("relayout_unlock"), scope)


def _check(collection: Collection, layout: Layout, distance: int) -> None:
    present = collection.layout
    if collection.next_layout not in (None, layout.name) and layout.name != present:
        raise CollectionError(
            "moving",
            f"collection {collection.name!r} is on its way to layout {collection.next_layout!r}; "
            "finish that, or cancel it: "
            f"pgsimhash collection relayout {collection.name} '{present}'",
        )
    if distance not in layout.distances:
        raise CollectionError(
            "layout_distance",
            f"layout {layout.name!r} answers distances up to {layout.distances[-1]}, and the "
            f"collection's default is {distance}; give a smaller one with --distance",
        )


def _check_policies(
    connection: psycopg.Connection[Any], collection: Collection, layout: Layout
) -> None:
    for policy in read_policies(connection, collection).all:
        if policy.distance is not None and policy.distance not in layout.distances:
            raise CollectionError(
                "layout_distance",
                f"layout {layout.name!r} answers distances up to {layout.distances[-1]}, and the "
                f"policy for {policy.pattern} asks for {policy.distance}; set another: "
                f"pgsimhash policy set '{policy.pattern}' --distance {layout.distances[-1]}",
            )


def _wait_for_writers(connection: psycopg.Connection[Any], present: Layout) -> None:
    """Let those finish that began to write before the triggers mirrored."""
    with connection.transaction():
        statement = sql.SQL("LOCK TABLE {} IN SHARE MODE")
        connection.execute(statement.format(sql.Identifier(SCHEMA, present.table)))


def _copy(
    connection: psycopg.Connection[Any],
    collection: Collection,
    present: Layout,
    layout: Layout,
    progress: Progress,
) -> None:
    statement = sql.SQL(query("copy_slice")).format(
        present=sql.Identifier(SCHEMA, present.table), next=sql.Identifier(SCHEMA, layout.table)
    )
    for done, borders in enumerate(_slices(collection, present)):
        progress("copy", done, _SLICES)
        connection.execute(statement, borders)
    progress("copy", _SLICES, _SLICES)


def _empty(
    connection: psycopg.Connection[Any], collection: Collection, layout: Layout, progress: Progress
) -> None:
    """Delete the collection's rows from the table of a layout that it does not have."""
    statement = sql.SQL(query("delete_slice")).format(present=sql.Identifier(SCHEMA, layout.table))
    for done, borders in enumerate(_slices(collection, layout)):
        progress("clean up", done, _SLICES)
        connection.execute(statement, borders)
    _vacuum(connection, layout)
    progress("clean up", _SLICES, _SLICES)


def _vacuum(connection: psycopg.Connection[Any], layout: Layout) -> None:
    statement = sql.SQL("VACUUM (ANALYZE) {}")
    connection.execute(statement.format(sql.Identifier(SCHEMA, layout.table)))


def _slices(collection: Collection, layout: Layout) -> Iterator[dict[str, int]]:
    start = collection.collection_id << COLLECTION_SHIFT
    width = layout.permutations[0].width
    borders = [start + (number << width) // _SLICES for number in range(_SLICES + 1)]
    for first, beyond in pairwise(borders):
        yield {"first": first, "beyond": beyond}
