"""What the store knows about a batch before it is decided: matches, versions, arrivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import scalar_row, tuple_row
from psycopg.types.json import Jsonb

from pgsimhash.bits import check_distance, from_bigint, to_bigint
from pgsimhash.layout import get_layout
from pgsimhash.marks import MarksOf
from pgsimhash.records import PageRecord
from pgsimhash.sketch import SAME_BITS_MAX, TRUSTED_DISTANCE, from_halves, to_bigints
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection, sibling_collections
from pgsimhash.store.decisions import ArrivedPage, KnownVersion, Look, look_for
from pgsimhash.store.verdicts import KnownMatch
from pgsimhash.terms import Terms


@dataclass(frozen=True, slots=True)
class Reach:
    """The collections that a batch is compared with, and the one that it goes into."""

    collection: Collection
    compared: tuple[Collection, ...]

    @property
    def scope(self) -> dict[str, Any]:
        """The parameters of statements over these collections."""
        return {
            "collection_id": self.collection.collection_id,
            "collection_ids": [one.collection_id for one in self.compared],
            "collections": [one.name for one in self.compared],
        }


def reach_of(connection: psycopg.Connection[Any], collection: Collection, terms: Terms) -> Reach:
    """Return what the terms compare with.

    Raises:
        InvalidDistanceError: one of the collections has a layout that does not answer the
            distance.
    """
    if terms.scope != "global":
        return Reach(collection, (collection,))
    compared = sibling_collections(connection, collection.scheme)
    for one in compared:
        check_distance(terms.distance, get_layout(one.layout).distances[-1])
    return Reach(collection, tuple(compared))


def newest_pages(connection: psycopg.Connection[Any], reach: Reach) -> list[int]:
    """Return the newest page of each collection compared with."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query("newest_pages"), reach.scope).fetchall()


def arrived_since(
    connection: psycopg.Connection[Any], reach: Reach, newest: Sequence[int]
) -> list[ArrivedPage]:
    """Return the pages stored after the ones that were the newest."""
    arrived: list[ArrivedPage] = []
    # One statement each: only for a constant does the planner know that few pages are newer.
    for one, newest_page in zip(reach.compared, newest, strict=True):
        arrived += _arrived(connection, reach, one, newest_page)
    return sorted(arrived, key=lambda page: page.page_id)


def _arrived(
    connection: psycopg.Connection[Any], reach: Reach, compared: Collection, newest_page: int
) -> list[ArrivedPage]:
    parameters = {
        "collection_id": reach.collection.collection_id,
        "compared_id": compared.collection_id,
        "newest_page": newest_page,
    }
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("arrived_pages"), parameters).fetchall()
    return [
        ArrivedPage(page_id, url, from_bigint(simhash), from_halves(*halves), *others)
        for page_id, url, simhash, high, low, *others in rows
        for halves in [(high, low)]
    ]


def present_versions(
    connection: psycopg.Connection[Any], reach: Reach, urls: Iterable[str]
) -> dict[str, KnownVersion]:
    """Return the present version of each URL that is known."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(
            query("present_versions"), {**reach.scope, "urls": list(set(urls))}
        ).fetchall()
    return {
        url: KnownVersion(page_id, from_bigint(simhash), first)
        for url, page_id, simhash, first in rows
    }


def nearest_matches(
    connection: psycopg.Connection[Any],
    reach: Reach,
    records: Sequence[PageRecord],
    terms: Terms,
    now: datetime,
    marks: Mapping[str, MarksOf],
) -> dict[Look, KnownMatch]:
    """Return the nearest match in the store for each thing to ask about the records."""
    looks = list(dict.fromkeys(look_for(record, terms, now, marks) for record in records))
    high, low = split_sketches(look.sketch for look in looks)
    parameters = {
        **reach.scope,
        "simhashes": [to_bigint(look.simhash) for look in looks],
        "sketch_high": high,
        "sketch_low": low,
        "hosts": [look.host for look in looks],
        "since": [look.since for look in looks],
        "oldest": _oldest(connection, reach, looks, terms.newest),
        "urls": [look.url for look in looks],
        "apart": [Jsonb(list(look.apart)) if look.apart else None for look in looks],
        "distance": terms.distance,
        "trusted_distance": TRUSTED_DISTANCE,
        "sketch_distance": SAME_BITS_MAX,
    }
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("nearest"), parameters).fetchall()
    return {looks[number - 1]: KnownMatch(*match) for number, *match in rows}


def split_sketches(
    sketches: Iterable[int | None],
) -> tuple[list[int | None], list[int | None]]:
    """Return the two numbers of each sketch, for PostgreSQL, as two columns."""
    pairs = [(None, None) if sketch is None else to_bigints(sketch) for sketch in sketches]
    return [high for high, _ in pairs], [low for _, low in pairs]


def _oldest(
    connection: psycopg.Connection[Any], reach: Reach, looks: Sequence[Look], newest: int | None
) -> list[int]:
    """Return for each look the oldest page that counts."""
    if newest is None:
        return [0] * len(looks)
    hosts = list(dict.fromkeys(look.host for look in looks))
    with connection.cursor(row_factory=scalar_row) as cursor:
        parameters = {**reach.scope, "hosts": hosts, "newest": newest}
        found = cursor.execute(query("window"), parameters).fetchall()
    oldest = dict(zip(hosts, found, strict=True))
    return [oldest[look.host] for look in looks]
