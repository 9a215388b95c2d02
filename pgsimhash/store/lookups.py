"""Look up simhashes and pages, and read statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import class_row, dict_row, scalar_row, tuple_row

from pgsimhash.db.statements import query
from pgsimhash.errors import NotFoundError
from pgsimhash.hashing.bits import from_bigint, hamming_distances, to_bigint
from pgsimhash.hashing.signature import to_halves
from pgsimhash.pages.records import CollectionStatus, Match, Matches, NearPage, StoredPage
from pgsimhash.pages.times import check_age, check_zone
from pgsimhash.pages.urls import lowered
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


def find(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhash: int,
    distance: int | None,
    *,
    limit: int | None,
    host: str | None,
    since: datetime | None,
    signature: int | None,
) -> list[Match]:
    """Return the matches of one simhash, nearest first."""
    parameters = {
        **_lookup(collection, distance),
        **_asked(simhash, signature),
        "limit": None if limit is None else index(limit),
        "host": None if host is None else lowered(host),
        "since": None if since is None else check_zone(since),
    }
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("find", connection), parameters).fetchall()
    return [Match(from_bigint(value), bits, url, title) for value, bits, url, title in rows]


def find_each(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: Sequence[int],
    distance: int | None,
) -> list[list[Match]]:
    """Return the matches of each simhash, nearest first."""
    parameters = {
        **_lookup(collection, distance),
        "simhashes": [to_bigint(simhash) for simhash in simhashes],
    }
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("find_each", connection), parameters).fetchall()
    matches: list[list[Match]] = [[] for _ in simhashes]
    for number, value, bits, url, title in rows:
        matches[number].append(Match(from_bigint(value), bits, url, title))
    return matches


def near_pages(
    connection: psycopg.Connection[Any],
    collection: Collection,
    page: str | int,
    distance: int | None,
    *,
    limit: int | None,
    verify: bool,
    signature: int | None,
) -> list[NearPage]:
    """Return the pages near a URL or a simhash, nearest first.

    Raises:
        NotFoundError: the URL is unknown.
    """
    parameters = {
        **_lookup(collection, distance),
        "limit": None if limit is None else index(limit),
    }
    if isinstance(page, str):
        statement = "near_pages_of_url"
        parameters |= {"url": collection.page_url(page), "verify": verify}
    else:
        statement = "near_pages"
        parameters |= _asked(page, signature if verify else None)
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        rows = cursor.execute(query(statement, connection), parameters).fetchall()
    if isinstance(page, str) and not rows:
        raise unknown_page(follow(connection, collection), page)
    return [
        NearPage(url, title, from_bigint(simhash), bits, fetched_at, page_id)
        for url, title, simhash, bits, fetched_at, page_id in rows
        if url is not None
    ]


def find_many(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: NDArray[np.uint64],
    distance: int | None,
    memory: Memory,
) -> Matches:
    """Return the matches of an array of simhashes, by query, nearest first.

    Raises:
        ArgumentError: the layout does not support ``distance``.
        MovedCollectionError: the collection was replaced during a lookup in memory.
    """
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

    parameters = {
        **_lookup(collection, distance),
        "simhashes": simhashes.view(np.int64).tolist(),
    }
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        rows = cursor.execute(query("find_many", connection), parameters).fetchall()
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
    with connection.cursor(row_factory=scalar_row, binary=True) as cursor:
        rows = cursor.execute(query("simhashes_there", connection), known).fetchall()
    there = np.isin(near.simhashes, np.array(rows, dtype=np.int64).view(np.uint64))
    numbers, values = near.queries[there], near.simhashes[there]
    distances = hamming_distances(simhashes[numbers], values)
    order = np.lexsort((values.view(np.int64), distances, numbers))
    return Matches(numbers[order].astype(np.int64) + start, values[order], distances[order])


def exists(
    connection: psycopg.Connection[Any], collection: Collection, simhash: int, distance: int | None
) -> bool:
    """Return whether a simhash has any match."""
    parameters = {**_lookup(collection, distance), "simhash": to_bigint(simhash)}
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute(query("exists", connection), parameters).fetchone())


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

    parameters = {
        "collection_id": collection.collection_id,
        "number": number,
        "slices": SLICES,
    }
    with connection.cursor(row_factory=scalar_row, binary=True) as cursor:
        row = cursor.execute(query("simhash_slice", connection), parameters).fetchone()
    return np.frombuffer(row or b"", dtype=">u8").astype(np.uint64)


def should_fetch(
    connection: psycopg.Connection[Any],
    collection: Collection,
    url: str,
    older_than: timedelta | None,
) -> bool:
    """Return whether a page is unknown, or was last seen too long ago."""
    parameters = {
        "collection": collection.name,
        "url": collection.page_url(url),
        "older_than": None if older_than is None else check_age(older_than),
    }
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute(query("should_fetch", connection), parameters).fetchone())


def get(connection: psycopg.Connection[Any], collection: Collection, url: str) -> StoredPage | None:
    """Return the present version of a page."""
    parameters = {"collection": collection.name, "url": collection.page_url(url)}
    with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        row = cursor.execute(query("page", connection), parameters).fetchone()
    if row is None:
        follow(connection, collection)
    if row is None or row["url"] is None:
        return None
    row["simhash"] = from_bigint(row["simhash"])
    row["structure"] = None if row["structure"] is None else from_bigint(row["structure"])
    return StoredPage(**row)


def unknown_page(collection: Collection, url: str) -> NotFoundError:
    """Return the error for a page that a collection does not have."""
    return NotFoundError(
        "unknown_page",
        f"collection {collection.name!r} does not know {url}: URLs are compared as "
        "given; correct it, name another --collection, or ingest the page first",
    )


def _asked(simhash: int, signature: int | None) -> dict[str, Any]:
    high, low = to_halves(signature)
    return {"simhash": to_bigint(simhash), "signature_high": high, "signature_low": low}


def _lookup(collection: Collection, distance: int | None) -> dict[str, Any]:
    return {"collection": collection.name, "scheme": collection.scheme, "distance": distance}


def read_status(
    connection: psycopg.Connection[Any], collection: str | None = None
) -> list[CollectionStatus]:
    """Return the statistics of every collection, by name, or of one."""
    with connection.cursor(row_factory=class_row(CollectionStatus), binary=True) as cursor:
        return cursor.execute(query("status", connection), {"collection": collection}).fetchall()
