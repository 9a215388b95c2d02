"""The collection a store works in: found or created, and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash.errors import CollectionError
from pgsimhash.layout import DEFAULT_LAYOUT, Layout
from pgsimhash.statements import query


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of ``pgsimhash.collections``."""

    collection_id: int
    name: str
    scheme: str
    layout: str
    default_distance: int


def open_collection(
    connection: psycopg.Connection[Any], name: str, scheme: str, *, create: bool
) -> Collection:
    """Return the collection ``name``, created with ``scheme`` where it is missing.

    Raises:
        CollectionError: it is missing and ``create`` is false, or it holds another scheme or
            layout.
    """
    found = _find(connection, name)
    if found is None and create:
        connection.execute(
            query("create_collection"),
            {"name": name, "scheme": scheme, "layout": DEFAULT_LAYOUT.name},
        )
        found = _find(connection, name)
    if found is None:
        raise CollectionError(
            f"collection {name!r} does not exist{_known(connection)}; "
            f"run: pgsimhash ingest --collection {name} PATH"
        )
    _check(found, scheme, DEFAULT_LAYOUT)
    return found


def _find(connection: psycopg.Connection[Any], name: str) -> Collection | None:
    with connection.cursor(row_factory=class_row(Collection)) as cursor:
        return cursor.execute(query("collection"), {"name": name}).fetchone()


def _known(connection: psycopg.Connection[Any]) -> str:
    with connection.cursor(row_factory=scalar_row) as cursor:
        names = cursor.execute(query("collection_names")).fetchall()
    return f" (there are: {', '.join(names)})" if names else ""


def _check(collection: Collection, scheme: str, layout: Layout) -> None:
    other = f"run again with --collection {collection.name}-2 to start another collection"
    if collection.scheme != scheme:
        raise CollectionError(
            f"collection {collection.name!r} holds simhashes of scheme {collection.scheme!r}, "
            f"which cannot be compared with {scheme!r}; {other}"
        )
    if collection.layout != layout.name:
        raise CollectionError(
            f"collection {collection.name!r} has layout {collection.layout!r} and this version "
            f"of pgsimhash searches {layout.name!r}; {other}"
        )
