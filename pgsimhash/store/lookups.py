"""Look up simhashes and pages, and read statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash.db.statements import fetch
from pgsimhash.errors import NotFoundError
from pgsimhash.hashing.bits import from_bigint, hamming_distances, to_bigint
from pgsimhash.pages.records import CollectionStatus, Match, Matches
from pgsimhash.store.collection import Collection, check_there, checked_distance, follow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pgsimhash.search.memory_index import Near
    from pgsimhash.store.memory import Memory

_BATCH: Final = 10_000
"""Simhashes per statement: this bounds the server's memory."""

SLICES: Final = 64
"""Slices of a collection, one statement each: this bounds the size of a result."""


def scope_of(collection: Collection) -> dict[str, Any]:
    """Return the parameters of statements that name a collection and its scheme."""
    return {"collection": collection.name, "scheme": collection.scheme}


def find_each(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: Sequence[int],
    distance: int | None,
) -> list[list[Match]]:
    """Return the matches of each simhash, nearest first."""
    parameters = scope_of(collection) | {
        "simhashes": list(map(to_bigint, simhashes)),
        "distance": distance,
    }
    matches: list[list[Match]] = [[] for _ in simhashes]
    for number, value, bits, url, title in fetch(connection, "find_each", parameters):
        matches[number].append(Match(from_bigint(value), bits, url, title))
    return matches


def find_many(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: NDArray[np.uint64],
    distance: int | None,
    memory: Memory,
) -> Matches:
    """Return the matches of an array of simhashes, by query, nearest first."""
    import numpy as np

    # The cache belongs to a collection's id, not to its name.
    present = follow(connection, collection)
    most = checked_distance(present, distance)
    matches = []
    remembered = False
    for start in range(0, max(1, len(simhashes)), _BATCH):
        batch = simhashes[start : start + _BATCH]
        near = memory.near(connection, present, batch, most)
        if near is None:
            with memory.looking_up(present):
                matches.append(_find_batch(connection, present, batch, most, start))
        else:
            remembered = True
            matches.append(_still_there(connection, present, batch, near, start))
    if remembered:
        check_there(connection, present)
    return Matches(*(np.concatenate(column) for column in zip(*matches, strict=True)))


def _find_batch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: NDArray[np.uint64],
    distance: int,
    start: int,
) -> Matches:
    import numpy as np

    parameters = scope_of(collection) | {
        "simhashes": simhashes.view(np.int64).tolist(),
        "distance": distance,
    }
    rows = fetch(connection, "find_many", parameters, binary=True)
    numbers, values, distances = zip(*rows, strict=True) if rows else ((), (), ())
    return Matches(
        np.array(numbers, dtype=np.int64) + start,
        np.array(values, dtype=np.int64).view(np.uint64),
        np.array(distances, dtype=np.uint8),
    )


def _still_there(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: NDArray[np.uint64],
    near: Near,
    start: int,
) -> Matches:
    """Return the cached matches that still exist in the database."""
    import numpy as np

    known = {
        "collection_id": collection.collection_id,
        "simhashes": np.unique(near.simhashes).view(np.int64).tolist(),
    }
    rows = fetch(connection, "simhashes_there", known, scalar_row, binary=True)
    there = np.isin(near.simhashes, np.array(rows, dtype=np.int64).view(np.uint64))
    numbers, values = near.queries[there], near.simhashes[there]
    distances = hamming_distances(simhashes[numbers], values)
    order = np.lexsort((values.view(np.int64), distances, numbers))
    return Matches(numbers[order].astype(np.int64) + start, values[order], distances[order])


def simhash_slices(
    connection: psycopg.Connection[Any], collection: Collection
) -> Iterator[NDArray[np.uint64]]:
    """Yield all distinct simhashes of a collection, in slices of its first index."""
    for number in range(SLICES):
        yield simhash_slice(connection, collection, number)


def all_simhashes(
    connection: psycopg.Connection[Any], collection: Collection
) -> NDArray[np.uint64]:
    """Return all distinct simhashes of a collection."""
    import numpy as np

    return np.concatenate(list(simhash_slices(connection, collection)))


def simhash_slice(
    connection: psycopg.Connection[Any], collection: Collection, number: int
) -> NDArray[np.uint64]:
    """Return slice ``number`` of the distinct simhashes of a collection, of 64."""
    import numpy as np

    parameters = {"collection_id": collection.collection_id, "number": number, "slices": SLICES}
    rows = fetch(connection, "simhash_slice", parameters, scalar_row, binary=True)
    return np.frombuffer((rows and rows[0]) or b"", dtype=">u8").astype(np.uint64)


def unknown_page(collection: Collection, url: str) -> NotFoundError:
    """Return the error for a page that a collection does not have."""
    return NotFoundError(
        "unknown_page",
        f"collection {collection.name!r} does not know {url}: URLs are compared as "
        "given; correct it, name another --collection, or ingest the page first",
    )


def read_status(
    connection: psycopg.Connection[Any], collection: str | None = None
) -> list[CollectionStatus]:
    """Return the statistics of every collection, by name, or of one."""
    scope = {"collection": collection}
    return fetch(connection, "status", scope, class_row(CollectionStatus), binary=True)
