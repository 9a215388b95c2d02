"""Single pages as the store has them, for explanations, and their versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from pgsimhash.analysis.history import Snapshot, Version, as_versions
from pgsimhash.analysis.sides import Side
from pgsimhash.bits import from_bigint
from pgsimhash.errors import UnknownPageError
from pgsimhash.rereading import kept_article
from pgsimhash.sketch import from_halves
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection


def side(connection: psycopg.Connection[Any], collection: Collection, url: str) -> Side:
    """Return the present version of a page, to be compared.

    Raises:
        UnknownPageError: the collection does not have it.
    """
    parameters = {"collection_id": collection.collection_id, "url": url}
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        row = cursor.execute(query("explained_page"), parameters).fetchone()
    if row is None:
        raise _unknown_page(collection, url)
    found, simhash, fetched_at, title, structure, high, low, markdown = row
    article = kept_article(markdown, title, collection.scheme)
    return Side(
        from_bigint(simhash),
        found,
        title,
        fetched_at,
        from_halves(high, low),
        None if structure is None else from_bigint(structure),
        article,
        None if article is None else "markdown",
    )


def versions(
    connection: psycopg.Connection[Any], collection: Collection, url: str, *, markdown: bool
) -> list[Version]:
    """Return all versions of a page, the oldest first.

    Raises:
        UnknownPageError: the collection does not have it.
    """
    parameters = {"collection_id": collection.collection_id, "url": url, "markdown": markdown}
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        rows = cursor.execute(query("versions"), parameters).fetchall()
    if not rows:
        raise _unknown_page(collection, url)
    return _as_versions(rows)


def newest_versions(
    connection: psycopg.Connection[Any], collection: Collection, url: str, limit: int
) -> list[Version]:
    """Return the newest versions of a page, without Markdown; none where it is not known."""
    parameters = {"collection_id": collection.collection_id, "url": url, "limit": limit}
    with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        return _as_versions(cursor.execute(query("newest_versions"), parameters).fetchall())


def _as_versions(rows: Iterable[tuple[Any, ...]]) -> list[Version]:
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


def _unknown_page(collection: Collection, url: str) -> UnknownPageError:
    return UnknownPageError(
        f"collection {collection.name!r} does not know {url}: URLs are compared as they were "
        "given; correct it, name another --collection, or ingest the page first"
    )
