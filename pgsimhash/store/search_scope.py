"""Which collections a batch is compared with, and what arrives in them meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import psycopg
from psycopg.rows import scalar_row, tuple_row

from pgsimhash.bits import check_distance, from_bigint
from pgsimhash.layout import get_layout
from pgsimhash.matching import MatchSettings
from pgsimhash.sketch import from_halves
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, sibling_collections
from pgsimhash.store.decisions import ArrivedPage


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The collections that a batch is compared with, and the one that it goes into."""

    collection: Collection
    compared: tuple[Collection, ...]

    def scope(self, *, everywhere: bool = True) -> dict[str, Any]:
        """Return the parameters of statements over these collections, or over the own one."""
        compared = self.compared if everywhere else (self.collection,)
        return {
            "collection_id": self.collection.collection_id,
            "collection_ids": [one.collection_id for one in compared],
        }


def search_scope(
    connection: psycopg.Connection[Any], collection: Collection, settings: Sequence[MatchSettings]
) -> SearchScope:
    """Return what the settings of a batch compare with.

    Raises:
        ArgumentError: one of the collections has a layout that does not answer the distance.
    """
    distances = [one.distance for one in settings if one.scope == "global"]
    if not distances:
        return SearchScope(collection, (collection,))
    compared = sibling_collections(connection, collection)
    for one in compared:
        check_distance(max(distances), get_layout(one.layout).distances[-1])
    return SearchScope(collection, tuple(compared))


def newest_pages(connection: psycopg.Connection[Any], reach: SearchScope) -> list[int]:
    """Return the newest page of each collection compared with."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query("newest_pages", connection), reach.scope()).fetchall()


def arrived_since(
    connection: psycopg.Connection[Any], reach: SearchScope, newest: Sequence[int]
) -> list[ArrivedPage]:
    """Return the pages stored after the ones that were the newest."""
    arrived: list[ArrivedPage] = []
    # One statement each: only for a constant does the planner know that few pages are newer.
    for one, newest_page in zip(reach.compared, newest, strict=True):
        parameters = {
            "collection_id": reach.collection.collection_id,
            "compared_id": one.collection_id,
            "newest_page": newest_page,
        }
        with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
            for page_id, url, simhash, high, low, *others in cursor.execute(
                query("arrived_pages", connection), parameters
            ):
                sketch = from_halves(high, low)
                arrived.append(ArrivedPage(page_id, url, from_bigint(simhash), sketch, *others))
    return sorted(arrived, key=attrgetter("page_id"))
