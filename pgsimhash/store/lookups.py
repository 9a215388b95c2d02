"""Look up simhashes and pages, and read statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.rows import class_row, dict_row, scalar_row

from pgsimhash.db.statements import fetch
from pgsimhash.errors import NotFoundError
from pgsimhash.hashing.bits import from_bigint, to_bigint
from pgsimhash.hashing.signature import from_halves, to_halves
from pgsimhash.pages.records import BITS_64, CollectionStatus, Match, Matches, NearPage, PageRecord
from pgsimhash.store.collection import Collection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH: Final = 10_000  # simhashes per statement; bounds the server's memory
SLICES: Final = 64  # of a collection, one statement each; bounds the size of a result


def scope_of(collection: Collection) -> dict[str, Any]:
    """Return the parameters of statements that name a collection and its scheme."""
    return {"collection": collection.name, "scheme": collection.scheme}


def find(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: Sequence[int],
    distance: int | None,
    signature: int | None = None,
    **conditions: Any,
) -> list[list[Match]]:
    """Return the matches of each simhash, nearest first."""
    signed = list(map(to_bigint, simhashes))
    high, low = to_halves(signature)
    conditions |= {"with_pages": True, "signature_high": high, "signature_low": low}
    rows = _find(connection, collection, signed, distance, **conditions)
    matches: list[list[Match]] = [[] for _ in simhashes]
    for number, value, bits, url, title in rows:
        matches[number - 1].append(Match(from_bigint(value), bits, url, title))
    return matches


def near_pages(
    connection: psycopg.Connection[Any],
    collection: Collection,
    page: str | int,
    distance: int | None,
    signature: int | None,
    **conditions: Any,
) -> list[NearPage]:
    """Return the pages near a URL or a simhash, nearest first."""
    high, low = to_halves(signature)
    parameters = {
        **scope_of(collection),
        "url": collection.page_url(page) if isinstance(page, str) else None,
        "simhash": None if isinstance(page, str) else to_bigint(page),
        "signature_high": high,
        "signature_low": low,
        "distance": distance,
        **conditions,
    }
    rows = fetch(connection, "find_pages", parameters, dict_row)
    return [NearPage(**record_values(row)) for row in rows]


def find_many(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: NDArray[np.uint64],
    distance: int | None,
) -> Matches:
    """Return the matches of an array of simhashes, by query, nearest first."""
    import numpy as np

    parts = []
    for start in range(0, max(1, len(simhashes)), _BATCH):
        signed = simhashes[start : start + _BATCH].view(np.int64).tolist()
        rows = _find(connection, collection, signed, distance)
        numbers, values, distances, *_ = zip(*rows, strict=True) if rows else ((), (), ())
        queries = np.array(numbers, dtype=np.int64) - 1 + start
        found = np.array(values, dtype=np.int64).view(np.uint64)
        parts.append((queries, found, np.array(distances, dtype=np.uint8)))
    return Matches(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def exists(
    connection: psycopg.Connection[Any], collection: Collection, simhash: int, distance: int | None
) -> bool:
    """Return whether a collection has a simhash within a distance."""
    return bool(_find(connection, collection, [to_bigint(simhash)], distance, most=1))


def _find(
    connection: psycopg.Connection[Any],
    collection: Collection,
    simhashes: list[int],
    distance: int | None,
    **conditions: Any,
) -> list[tuple[Any, ...]]:
    """Return the number of the query, the simhash, its distance, and its first page."""
    parameters = {
        **dict.fromkeys(("most", "host", "since", "signature_high", "signature_low")),
        **scope_of(collection),
        "simhashes": simhashes,
        "distance": distance,
        "with_pages": False,
        **conditions,
    }
    return fetch(connection, "find", parameters)


def simhash_slices(
    connection: psycopg.Connection[Any], collection: Collection
) -> Iterator[NDArray[np.uint64]]:
    """Yield all distinct simhashes of a collection, ascending, in slices."""
    import numpy as np

    for number in range(SLICES):
        # The database orders signed numbers: the lower half of simhashes follows the upper.
        parameters = {
            "own_id": collection.collection_id,
            "number": (number + SLICES // 2) % SLICES,
            "slices": SLICES,
        }
        (values,) = fetch(connection, "simhash_slice", parameters, scalar_row)
        yield np.frombuffer(values or b"", dtype=">u8").astype(np.uint64)


def all_simhashes(
    connection: psycopg.Connection[Any], collection: Collection
) -> NDArray[np.uint64]:
    """Return all distinct simhashes of a collection, ascending."""
    import numpy as np

    return np.concatenate(list(simhash_slices(connection, collection)))


def stored_pages(
    connection: psycopg.Connection[Any],
    scope: Mapping[str, Any],
    urls: Sequence[str],
    names: Iterable[str],
    *,
    all_versions: bool = False,
) -> list[dict[str, Any]]:
    """Return values of StoredPage, by their names, of the URLs that a collection has.

    They are those of the present versions, or of all versions in the order of their arrival.
    """
    parameters = {**scope, "urls": list(urls), "all_versions": all_versions}
    rows = fetch(connection, "stored_pages", parameters, dict_row, columns=columns_of(names))
    return list(map(record_values, rows))


def names_of(record: type[PageRecord]) -> list[str]:
    """Return the names of the values of a record that are stored."""
    return [each.name for each in fields(record) if each.name != "unseen"]


def columns_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that have these values of records."""
    halves = {"signature": ("signature_high", "signature_low")}
    return tuple(column for name in names for column in halves.get(name, (name,)))


def record_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of :func:`columns_of` as values of a record."""
    values = dict(row)
    if "signature_high" in values:
        halves = values.pop("signature_high"), values.pop("signature_low")
        values["signature"] = from_halves(*halves)
    for name in ("simhash", *BITS_64):
        if values.get(name) is not None:
            values[name] = from_bigint(values[name])
    return values


def unknown_page(collection: Collection, url: str) -> NotFoundError:
    """Return the error for a page that a collection does not have."""
    return NotFoundError(
        "unknown_page",
        f"collection {collection.name!r} does not know {url}: URLs are compared as "
        "given; correct it, name another --collection, or ingest the page first",
    )


def count_pages(connection: psycopg.Connection[Any], collection: Collection) -> int:
    """Return the number of versions in a collection, estimated if there are many."""
    scope = {"own_id": collection.collection_id}
    return int(fetch(connection, "count_collection", scope, columns=("pages",))[0][0])


def read_status(
    connection: psycopg.Connection[Any], collection: str | None = None
) -> list[CollectionStatus]:
    """Return the statistics of every collection, by name, or of one."""
    scope = {"of_collection": collection}
    return fetch(connection, "status", scope, class_row(CollectionStatus))
