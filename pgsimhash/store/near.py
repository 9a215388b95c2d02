"""Find the simhashes near those of a batch: stored, recently added, and within the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgsimhash.db.statements import fetch
from pgsimhash.hashing.bits import near_pairs, to_bigint
from pgsimhash.pages.match_settings import MatchSettings
from pgsimhash.pages.records import PageRecord
from pgsimhash.store.collection import Collection
from pgsimhash.store.memory import Memory

_ROOM: Final = 1 << 16
"""Distances that are computed at once."""


class Near(NamedTuple):
    """The simhashes near those of a batch, as array literals of PostgreSQL.

    ``near_to`` has the query of each of ``near_simhashes``, which are stored in the collections
    ``compared``, up to ``newest_pages``. ``batch_to`` and ``batch_simhashes`` are pairs within the
    batch. With None, the statement searches itself.
    """

    compared: list[int] | None = None
    near_to: str | None = None
    near_simhashes: str | None = None
    newest_pages: list[int] | None = None
    batch_to: str | None = None
    batch_simhashes: str | None = None


def nearby(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    memory: Memory,
) -> Near:
    """Return the simhashes near the records, according to the cache, and the near pairs among them.

    The result is empty if the statement has to look them up: the cache has no answer, several
    collections are compared, or it is a single page, for which the cache is no faster.
    """
    if len(records) == 1 or any(setting.scope == "global" for setting in settings):
        return Near()
    simhashes = np.unique(_simhashes(records))
    most = max(setting.distance for setting in settings)
    near = memory.near(connection, collection, simhashes, most)
    if near is None:
        return Near()
    queries, matches = _literal(simhashes[near.queries]), _literal(near.simhashes)
    own, newest = [collection.collection_id], [memory.newest]
    return Near(own, queries, matches, newest, *among(records, settings))


def locked(
    connection: psycopg.Connection[Any],
    collection: Collection,
    records: Sequence[PageRecord],
    settings: Sequence[MatchSettings],
    memory: Memory,
    near: Near,
) -> Near:
    """Lock the compared collections, and return all simhashes near the records."""
    scope: dict[str, Any] = {
        "collection": collection.name,
        "collection_id": collection.collection_id,
    }
    if near.near_to is None:
        parameters = scope | {
            "simhashes": [to_bigint(record.simhash) for record in records],
            "distances": [setting.distance for setting in settings],
            "scopes": [setting.scope for setting in settings],
        }
        with memory.looking_up(collection):
            ((compared, near_to, near_simhashes, newest),) = fetch(
                connection, "near_pairs", parameters
            )
        near = Near(compared, near_to, near_simhashes, newest, *among(records, settings))
    ((newest_pages, arrived),) = fetch(connection, "lock_compared", scope | near._asdict())
    # Simhashes added between the lookup and the lock.
    arrived_simhashes = np.array(arrived, dtype=np.int64).view(np.uint64)
    batch = _simhashes(records)
    rows, places = _pairs(batch, arrived_simhashes, settings)
    return near._replace(
        near_to=_literal(batch[rows], near.near_to),
        near_simhashes=_literal(arrived_simhashes[places], near.near_simhashes),
        newest_pages=newest_pages,
    )


def among(records: Sequence[PageRecord], settings: Sequence[MatchSettings]) -> tuple[str, str]:
    """Return the pairs within a batch: ``batch_to`` and ``batch_simhashes`` of :class:`Near`."""
    batch = _simhashes(records)
    values, first = np.unique(batch, return_index=True)
    last = len(batch) - 1 - np.unique(batch[::-1], return_index=True)[1]
    rows, places = _pairs(values, values, settings)
    # A page is compared only with those before it.
    before = first[places] < last[rows]
    return _literal(values[rows[before]]), _literal(values[places[before]])


def _pairs(
    simhashes: NDArray[np.uint64], others: NDArray[np.uint64], settings: Sequence[MatchSettings]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index pairs of simhashes near each other."""
    most = max(setting.distance for setting in settings)
    step = max(1, _ROOM // max(1, len(others)))
    pairs = [
        (rows + start, places)
        for start in range(0, len(simhashes), step)
        for rows, places, _ in (near_pairs(simhashes[start : start + step], others, most),)
    ]
    rows, places = zip(*pairs, strict=True)
    return np.concatenate(rows), np.concatenate(places)


def _simhashes(records: Sequence[PageRecord]) -> NDArray[np.uint64]:
    return np.array([record.simhash for record in records], dtype=np.uint64)


def _literal(simhashes: NDArray[np.uint64], before: str | None = None) -> str:
    """Append simhashes to an array literal."""
    values = ",".join(map(str, simhashes.view(np.int64).tolist()))
    return "{" + ",".join(filter(None, ((before or "")[1:-1], values))) + "}"
