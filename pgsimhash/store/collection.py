"""Find, create, check and lock collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash import schemes
from pgsimhash.db.refusals import MovedCollectionError
from pgsimhash.db.statements import query
from pgsimhash.errors import (
    ArgumentError,
    CollectionError,
    PageError,
    install_command,
)
from pgsimhash.hashing.bits import check_distance
from pgsimhash.pages.page_bytes import text_size
from pgsimhash.pages.urls import normalized_url
from pgsimhash.search.layout import get_layout
from pgsimhash.store.layouts import default_layout, deploy_layout

if TYPE_CHECKING:
    from pgsimhash.schemes import Scheme


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of ``pgsimhash.collections``."""

    collection_id: int
    name: str
    scheme: str
    layout: str
    default_distance: int
    keep_markdown: bool
    normalize_urls: bool

    def page_url(self, url: str) -> str:
        """Return ``url`` in the collection's spelling; an invalid URL is returned unchanged."""
        text_size("the URL", url)
        if not self.normalize_urls:
            return url
        try:
            return normalized_url(url)
        except PageError:
            return url


def open_collection(
    connection: psycopg.Connection[Any],
    name: str,
    *,
    create: bool,
    scheme: Scheme | None = None,
    layout: str | None = None,
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
) -> Collection:
    """Return the collection ``name``; create it if it is missing.

    Raises:
        CollectionError: it is missing and ``create`` is false, or its settings differ.
        ArgumentError: the layout does not exist.
    """
    collection = find_collection(connection, name)
    if collection is None and create:
        return create_collection(
            connection,
            name,
            scheme=scheme,
            layout=layout,
            keep_markdown=keep_markdown,
            normalize_urls=normalize_urls,
        )
    if collection is None:
        known = _known(connection)
        advice = "check the name" if known else "no collection exists yet"
        raise CollectionError("unknown", f"collection {name!r} does not exist{known}; {advice}")
    _check(collection, scheme, layout)
    _check_settings(collection, None, keep_markdown, normalize_urls)
    return collection


def create_collection(
    connection: psycopg.Connection[Any],
    name: str,
    *,
    scheme: Scheme | None = None,
    layout: str | None = None,
    distance: int | None = None,
    keep_markdown: bool | None = None,
    normalize_urls: bool | None = None,
) -> Collection:
    """Return the collection ``name``; create it if it is missing.

    Args:
        connection: the connection.
        name: the name of the collection.
        scheme: its scheme, by default the package's.
        layout: the name of its layout, deployed if necessary; by default the database's.
        distance: its default distance; by default the scheme's, or the layout's maximum if that is
            smaller.
        keep_markdown: whether to store the main content of each page; by default not.
        normalize_urls: whether to normalize URLs; by default not.

    Raises:
        ArgumentError: the layout does not exist or does not support ``distance``.
        CollectionError: the name is empty; or the collection exists with other settings.
    """
    if not name:
        raise CollectionError("taken", "the name of a collection is empty; give one")
    collection = find_collection(connection, name)
    if collection is None:
        collection = _insert_collection(
            connection,
            name,
            scheme,
            layout,
            distance,
            bool(keep_markdown),
            bool(normalize_urls),
        )
    _check(collection, scheme, layout)
    _check_settings(collection, distance, keep_markdown, normalize_urls)
    return collection


def _insert_collection(
    connection: psycopg.Connection[Any],
    name: str,
    scheme: Scheme | None,
    layout: str | None,
    distance: int | None,
    keep_markdown: bool,
    normalize_urls: bool,
) -> Collection:
    recipe = scheme or schemes.DEFAULT_SCHEME
    chosen = default_layout(connection) if layout is None else get_layout(layout)
    largest = chosen.distances[-1]
    expected = (
        min(recipe.distance, largest) if distance is None else check_distance(distance, largest)
    )
    deploy_layout(connection, chosen)
    values = {
        "name": name,
        "scheme": recipe.name,
        "layout": chosen.name,
        "distance": expected,
        "keep_markdown": keep_markdown,
        "normalize_urls": normalize_urls,
    }
    connection.execute(query("create_collection", connection), values)
    collection = find_collection(connection, name)
    if collection is None:
        raise CollectionError(
            "unknown", f"collection {name!r} was deleted while it was created; try again"
        )
    return collection


def find_collection(
    connection: psycopg.Connection[Any], name: str, bounds: Mapping[str, str | None] | None = None
) -> Collection | None:
    """Return the collection ``name``, or None if it does not exist.

    ``bounds`` sets the timeouts of the transaction, see :class:`pgsimhash.store.session.Session`.
    """
    text_size("the name", name)
    statement = "collection" if bounds is None else "collection_to_write"
    with connection.cursor(row_factory=class_row(Collection)) as cursor:
        values = {"name": name, **(bounds or {})}
        return cursor.execute(query(statement, connection), values).fetchone()


def collection_names(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the names of all collections, sorted."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query("collection_names", connection)).fetchall()


def sibling_collections(
    connection: psycopg.Connection[Any], collection: Collection
) -> list[Collection]:
    """Return the collections that a collection is compared with, including itself, by id."""
    scope = {"collection_id": collection.collection_id}
    with connection.cursor(row_factory=class_row(Collection)) as cursor:
        return cursor.execute(query("siblings", connection), scope).fetchall()


def follow(
    connection: psycopg.Connection[Any],
    opened: Collection,
    bounds: Mapping[str, str | None] | None = None,
) -> Collection:
    """Return the collection that has the name of ``opened`` now; see :func:`find_collection`.

    Raises:
        CollectionError: the name does not exist any more, or its collection has another scheme.
    """
    collection = find_collection(connection, opened.name, bounds)
    if collection is None:
        raise CollectionError(
            "unknown",
            f"collection {opened.name!r} does not exist any more{_known(connection)}; it was "
            "renamed or deleted, so open another one",
        )
    if collection.scheme != opened.scheme:
        raise CollectionError(
            "other_scheme",
            f"collection {opened.name!r} has simhashes of scheme {collection.scheme!r} now, not "
            f"{opened.scheme!r}; open it again",
        )
    return collection


def checked_distance(
    collection: Collection, distance: int | None, largest: int | None = None
) -> int:
    """Return ``distance``, or the collection's default for None.

    Args:
        collection: the collection.
        distance: the requested distance.
        largest: the largest allowed distance; by default the layout's.

    Raises:
        ArgumentError: the distance is larger or negative.
    """
    if largest is None:
        largest = get_layout(collection.layout).distances[-1]
    return check_distance(collection.default_distance if distance is None else distance, largest)


def lock_collections(
    connection: psycopg.Connection[Any],
    collections: Sequence[Collection],
    *,
    loaders: bool = False,
) -> None:
    """Lock the collections against other writers until the transaction ends.

    ``loaders`` also locks out callers that add standalone simhashes.

    Raises:
        psycopg.Error: the isolation level is not READ COMMITTED, or a lock was not available
            within ``lock_timeout``; see :func:`pgsimhash.db.refusals.translated_errors`.
    """
    ids = [collection.collection_id for collection in collections]
    connection.execute(
        query("lock_collections", connection), {"collection_ids": ids, "loaders": loaders}
    )


def check_there(connection: psycopg.Connection[Any], collection: Collection) -> None:
    """Check that a collection still exists, under any name.

    Raises:
        MovedCollectionError: it does not.
    """
    scope = {"collection_id": collection.collection_id}
    if connection.execute(query("collection_there", connection), scope).fetchone() is None:
        raise _moved(collection)


def check_writable(connection: psycopg.Connection[Any], collection: Collection) -> None:
    """Check, under the lock, that a collection has the same name.

    Raises:
        MovedCollectionError: the name belongs to another collection now.
        CollectionError: it was deleted.
    """
    if follow(connection, collection).collection_id != collection.collection_id:
        raise _moved(collection)


def _moved(collection: Collection) -> MovedCollectionError:
    return MovedCollectionError(
        "moved",
        f"collection {collection.name!r} was replaced or deleted during the call; try again",
    )


def _known(connection: psycopg.Connection[Any]) -> str:
    names = collection_names(connection)
    return f" (there are: {', '.join(names)})" if names else ""


def _check_settings(
    collection: Collection,
    distance: int | None,
    keep_markdown: bool | None,
    normalize_urls: bool | None,
) -> None:
    """Raise CollectionError if an existing collection differs from the requested settings."""
    name = collection.name
    if distance not in (None, collection.default_distance):
        raise CollectionError(
            "other_settings",
            f"collection {name!r} exists already, with distance {collection.default_distance}; "
            f"to change it: pgsimhash collection set {name} --distance {distance}",
        )
    if keep_markdown not in (None, collection.keep_markdown):
        option = "--keep-markdown" if keep_markdown else "--no-keep-markdown"
        keeps = "stores Markdown" if collection.keep_markdown else "does not store Markdown"
        raise CollectionError(
            "other_settings",
            f"collection {name!r} exists already and {keeps}; to change it: "
            f"pgsimhash collection set {name} {option}",
        )
    if normalize_urls not in (None, collection.normalize_urls):
        option = "--normalize-urls" if normalize_urls else "--no-normalize-urls"
        does = "normalizes" if collection.normalize_urls else "does not normalize"
        raise CollectionError(
            "other_settings",
            f"collection {name!r} exists already and {does} URLs, so its pages have different "
            f"URLs; use another collection: pgsimhash collection create {name}-2 {option}",
        )


def _check(collection: Collection, scheme: Scheme | None, layout: str | None) -> None:
    name = collection.name
    if scheme is not None and collection.scheme != scheme.name:
        raise CollectionError(
            "other_scheme",
            f"collection {name!r} has simhashes of scheme {collection.scheme!r}, "
            f"which cannot be compared with {scheme.name!r}; open another collection, "
            f"such as {name}-2",
        )
    try:
        get_layout(collection.layout)
    except ArgumentError:
        raise CollectionError(
            "other_settings",
            f"collection {name!r} has layout {collection.layout!r}, which this version of "
            f"pgsimhash does not know; upgrade {install_command()}",
        ) from None
    if layout is not None and collection.layout != get_layout(layout).name:
        raise CollectionError(
            "other_settings",
            f"collection {name!r} has layout {collection.layout!r}, not {layout!r}; "
            f"run: pgsimhash collection rebuild {name} --layout '{layout}'",
        )
