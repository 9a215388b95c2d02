"""Load standalone simhashes in bulk; an empty table is filled before its indexes are built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors

from pgsimhash.db.copy import copy_binary
from pgsimhash.db.schema_names import schema_of
from pgsimhash.db.statements import fetch, query
from pgsimhash.search.layout import get_layout
from pgsimhash.store.collection import Collection, check_writable
from pgsimhash.store.layouts import empty_table, fill_indexes

if TYPE_CHECKING:
    from pgsimhash.store.session import Session

LARGE: Final = 100_000
"""Build indexes afterwards from this number on; below, either way takes a second."""

TOGETHER: Final = 1 << 20
"""The minimum number of simhashes per transaction."""

_BATCH: Final = 10_000


def add_simhashes(session: Session, arrays: Iterable[NDArray[np.uint64]]) -> int:
    """Add arrays of standalone simhashes, and return how many were new."""
    waiting = _together(arrays)
    first = next(waiting, np.empty(0, np.uint64))
    large = len(first) >= LARGE and not session.is_in_callers_transaction()
    with session.writing() as (connection, collection):
        if large and _may_fill(connection, collection):
            return _fill(connection, collection, chain([first], waiting))
        added = _add(connection, collection, first)
    for array in waiting:
        with session.writing() as (connection, collection):
            added += _add(connection, collection, array)
    return added


def _together(arrays: Iterable[NDArray[np.uint64]]) -> Iterator[NDArray[np.uint64]]:
    """Yield non-empty arrays; small ones are concatenated."""
    parts: list[NDArray[np.uint64]] = []
    count = 0
    for array in arrays:
        parts.append(array)
        count += len(array)
        if count >= TOGETHER:
            yield np.concatenate(parts)
            parts, count = [], 0
    if count:
        yield np.concatenate(parts)


def _add(
    connection: psycopg.Connection[Any], collection: Collection, simhashes: NDArray[np.uint64]
) -> int:
    """Add an array, in statements of bounded size."""
    added = 0
    # In the order of the first index, so that each batch touches few of its pages.
    ordered = np.sort(simhashes).view(np.int64)
    for start in range(0, len(ordered), _BATCH):
        batch = ordered[start : start + _BATCH].tolist()
        parameters = {"collection": collection.name, "simhashes": batch}
        added += fetch(connection, "add_simhashes", parameters)[0][0]
    return added


def _may_fill(connection: psycopg.Connection[Any], collection: Collection) -> bool:
    """Lock the layout's table if it is empty and unused; return whether it is locked."""
    layout = get_layout(collection.layout)
    check_writable(connection, collection)
    try:
        with connection.transaction():
            return empty_table(connection, layout)
    except (errors.LockNotAvailable, errors.InsufficientPrivilege):
        return False


def _fill(
    connection: psycopg.Connection[Any],
    collection: Collection,
    arrays: Iterable[NDArray[np.uint64]],
) -> int:
    """Add arrays to a table with only its first index, then build the other indexes."""
    layout = get_layout(collection.layout)
    table = (schema_of(connection), layout.table)
    added = 0
    last = -1
    for array in arrays:
        # In the order of the first index, which then grows only at its end.
        distinct = np.unique(array)
        if int(distinct[0]) > last:
            columns: dict[str, NDArray[np.signedinteger]] = {
                "collection_id": np.full(len(distinct), collection.collection_id, np.int32),
                "simhash": distinct.view(np.int64),
            }
            copy_binary(connection.cursor(), table, columns, frozen=True)
            added += len(distinct)
        else:
            added += _add(connection, collection, distinct)
        last = max(last, int(distinct[-1]))
    # For Citus, where tables have no triggers.
    connection.execute(
        query("advance_epoch", connection), {"collection_id": collection.collection_id}
    )
    fill_indexes(connection, layout)
    return added
