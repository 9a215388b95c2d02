"""How a page changed from version to version: its content, and the template around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.bits import NEAR_MAX, Band, band, format_simhash, from_bigint, hamming_distance
from pgsimhash.html.structure import SAME_TEMPLATE_MAX
from pgsimhash.recrawl import FetchAdvice, fetch_advice
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.collection import Collection
from pgsimhash.store.reader import unknown_page, visits

Change = Literal["same", "edited", "rewritten", "redesign"]

CHANGES: Final[dict[Change, str]] = {
    "same": "the content moved by 3 bits or less",
    "edited": "the content moved by 4 to 8 bits",
    "rewritten": "the content moved by 9 bits or more",
    "redesign": "the shape moved by more than 12 bits and the content by 8 or less",
}
"""What can have become of a page since its previous version."""

_OF_BAND: Final[dict[Band, Change]] = {
    "identical": "same",
    "near": "edited",
    "different": "rewritten",
}


class Snapshot(NamedTuple):
    """One version of a page, by itself; ``seen_at`` is None if it was never met again."""

    url: str
    simhash: int
    fetched_at: datetime
    seen_at: datetime | None = None
    title: str | None = None
    structure: int | None = None
    html_bytes: int | None = None
    markdown: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a page, beside those before it.

    ``number`` counts from 1, the oldest. ``seen_at`` is when the version was last met,
    ``fetched_at`` if it never came again. ``distance`` and ``structure_distance`` are bits to the
    previous version, ``distance_to_first`` to the oldest; ``change`` is their judgement. The
    oldest has none of these but 0 to itself.
    """

    number: int
    url: str
    simhash: int
    fetched_at: datetime
    seen_at: datetime
    title: str | None
    structure: int | None
    html_bytes: int | None
    markdown: str | None
    distance: int | None
    distance_to_first: int
    structure_distance: int | None
    change: Change | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values but for the Markdown, simhashes as 16 hex digits."""
        return {
            "url": self.url,
            "version": self.number,
            "fetched_at": self.fetched_at.isoformat(),
            "seen_at": self.seen_at.isoformat(),
            "title": self.title,
            "simhash": format_simhash(self.simhash),
            "distance": self.distance,
            "distance_to_first": self.distance_to_first,
            "structure_distance": self.structure_distance,
            "change": self.change,
            "html_bytes": self.html_bytes,
        }


def versions(store: Store, url: str, *, markdown: bool = True) -> list[Version]:
    """Return all versions of a page in the order in which they came, whenever they were fetched.

    Each has its distance to the previous and to the first, and what became of the page:
    ``same``, ``edited``, ``rewritten`` or ``redesign``. A page that was seen again with the
    same simhash added no version; ``seen_at`` of its version says when it last was.
    :func:`pgsimhash.recrawl.recrawl_hint` makes of them when to come again.

    Args:
        store: where the page is.
        url: the page.
        markdown: whether to fetch the Markdown too, where the collection keeps it.

    Raises:
        NotFoundError: the collection does not have the URL.
        StoreError: the database does not answer.
    """
    with (
        store.session.reading() as (connection, collection),
        connection.cursor(row_factory=tuple_row, binary=True) as cursor,
    ):
        parameters = {
            "collection_id": collection.collection_id,
            "url": collection.page_url(url),
            "markdown": markdown,
        }
        rows = cursor.execute(query("versions", connection), parameters).fetchall()
    if not rows:
        raise unknown_page(collection, url)
    return _from_rows(rows)


def newest_versions(
    connection: psycopg.Connection[Any], collection: Collection, url: str, limit: int
) -> list[Version]:
    """Return the newest versions of a page, without Markdown; none where it is not known."""
    parameters = {"collection_id": collection.collection_id, "url": url, "limit": limit}
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        return _from_rows(
            cursor.execute(query("newest_versions", connection), parameters).fetchall()
        )


def advise_fetch(store: Store, url: str, *, now: datetime | None = None) -> FetchAdvice:
    """Return whether to fetch a page, with the hint that says so where it is known.

    The hint is that of :func:`pgsimhash.recrawl.recrawl_hint`, by when the page changed and when it
    was last met unchanged. ``Store.should_fetch`` gives the answer alone.

    Args:
        store: where the page is, if it is known.
        url: the page.
        now: the time to decide for, with a time zone; by default the present.

    Raises:
        ArgumentError: ``now`` names no zone.
        StoreError: the database does not answer.
    """
    with store.session.read() as connection:
        seen = visits(connection, store.opened, url)
    return fetch_advice(url, seen, now=now)


def judge(distance: int, structure_distance: int | None = None) -> Change:
    """Return what became of a page.

    Args:
        distance: how many bits the content moved.
        structure_distance: how many bits the simhash of the page's shape moved, where known.
    """
    if structure_distance is not None and structure_distance > SAME_TEMPLATE_MAX:
        return "redesign" if distance <= NEAR_MAX else "rewritten"
    return _OF_BAND[band(distance)]


def as_versions(snapshots: Iterable[Snapshot]) -> list[Version]:
    """Return the versions of one page with what changed between them; the oldest comes first."""
    found: list[Version] = []
    for number, made in enumerate(snapshots, start=1):
        first = found[0].simhash if found else made.simhash
        distance = structure_distance = change = None
        if found:
            before = found[-1]
            distance = hamming_distance(before.simhash, made.simhash)
            if before.structure is not None and made.structure is not None:
                structure_distance = hamming_distance(before.structure, made.structure)
            change = judge(distance, structure_distance)
        found.append(
            Version(
                number,
                made.url,
                made.simhash,
                made.fetched_at,
                made.seen_at or made.fetched_at,
                made.title,
                made.structure,
                made.html_bytes,
                made.markdown,
                distance,
                hamming_distance(first, made.simhash),
                structure_distance,
                change,
            )
        )
    return found


def _from_rows(rows: Iterable[tuple[Any, ...]]) -> list[Version]:
    return as_versions(
        Snapshot(
            url,
            from_bigint(simhash),
            fetched_at,
            seen_at,
            title,
            None if structure is None else from_bigint(structure),
            html_bytes,
            markdown,
        )
        for url, simhash, fetched_at, seen_at, title, structure, html_bytes, markdown in rows
    )
