"""Find, create and check collections."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash import schemes
from pgsimhash.db.server_errors import MovedCollectionError
from pgsimhash.db.statements import fetch
from pgsimhash.errors import CollectionError, PageError, check_type
from pgsimhash.hashing.bits import check_distance
from pgsimhash.pages.records import JsonRecord
from pgsimhash.pages.urls import normalized_url
from pgsimhash.pages.values import text_size
from pgsimhash.search.layout import get_layout

if TYPE_CHECKING:
    from pgsimhash.schemes import Scheme

_HOW_TO_CREATE: Final = (
    ", or create it: connect(create=True), PGSIMHASH_CREATE in Scrapy, `pgsimhash ingest --create`"
)


class CollectionSettings(TypedDict, total=False):
    """The requested settings of a collection; None or missing means any, or the default."""

    scheme: str | Scheme | None
    distance: int | None
    keep_markdown: bool | None
    normalize_urls: bool | None


@dataclass(frozen=True, slots=True)
class Collection(JsonRecord):
    """A row of ``pgsimhash.collections``.

    ``selectors`` are the policies with ``content`` or ``ignore``, as JSON for
    :func:`~pgsimhash.pages.selectors.policy_selectors`, or None. Each batch reads the row anyway.
    """

    _omitted = ("selectors",)

    collection_id: int
    name: str
    scheme: str
    layout: str
    default_distance: int
    keep_markdown: bool
    normalize_urls: bool
    selectors: str | None = field(default=None, compare=False, repr=False)

    def page_url(self, url: str) -> str:
        """Return ``url`` in the collection's spelling; an invalid URL is returned unchanged."""
        text_size("the URL", url)
        if not self.normalize_urls:
            return url
        try:
            return normalized_url(url)
        except PageError:
            return url

    def checked_distance(self, distance: int | None, largest: int | None = None) -> int:
        """Return ``distance``, by default the collection's; ``largest`` is the layout's if None."""
        if largest is None:
            largest = get_layout(self.layout).distances[-1]
        return check_distance(self.default_distance if distance is None else distance, largest)


def open_collection(
    connection: psycopg.Connection[Any],
    name: str,
    *,
    create: bool | None,
    limited: bool = False,
    **settings: Unpack[CollectionSettings],
) -> Collection:
    """Return the collection ``name``; ``create`` is that of :func:`pgsimhash.connect`."""
    for setting in ("keep_markdown", "normalize_urls"):
        check_type(settings.get(setting), bool | None, f"{setting} is True or False")
    collection = find_collection(connection, name, limited=limited)
    if collection is None and (name == "default" if create is None else create):
        _create(connection, name, settings)
        collection = find_collection(connection, name)
    if collection is None:
        raise CollectionError(
            "unknown",
            f"collection {name!r} does not exist{_nearest(connection, name)}; check the name"
            + _HOW_TO_CREATE * (create is None),
        )
    _check_settings(collection, settings)
    return collection


def _create(connection: psycopg.Connection[Any], name: str, settings: CollectionSettings) -> None:
    scheme, distance = settings.get("scheme"), settings.get("distance")
    recipe = schemes.get_scheme(schemes.DEFAULT_NAME if scheme is None else scheme)
    largest = get_layout(fetch(connection, "layout")[0][0]).distances[-1]
    distance = check_distance(
        min(recipe.distance, largest) if distance is None else distance, largest
    )
    values = {"keep_markdown": None, "normalize_urls": None, **settings, "scheme": recipe.name}
    fetch(connection, "create_collection", {**values, "name": name, "distance": distance})


def find_collection(
    connection: psycopg.Connection[Any], name: str, *, limited: bool = False
) -> Collection | None:
    """Return the collection ``name``, or None; ``limited`` sets the transaction's timeouts."""
    text_size("the name", name)
    parameters = {"collection": name, "limited": limited}
    rows = fetch(connection, "collection", parameters, class_row(Collection))
    return rows[0] if rows else None


def collection_names(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the names of all collections, sorted."""
    return fetch(connection, "collection_names", {"own_id": None}, scalar_row)


def follow(
    connection: psycopg.Connection[Any], opened: Collection, *, limited: bool = False
) -> Collection:
    """Return the collection of the same scheme that has the name of ``opened`` now."""
    collection = find_collection(connection, opened.name, limited=limited)
    if collection is None:
        raise CollectionError(
            "unknown",
            f"collection {opened.name!r} does not exist any more"
            f"{_nearest(connection, opened.name)}; it was renamed or deleted, so open another one",
        )
    if collection.scheme != opened.scheme:
        raise _other_settings(
            f"{opened.name!r} has simhashes of scheme {collection.scheme!r} now, not "
            f"{opened.scheme!r}; open it again"
        )
    return collection


def moved(collection: Collection) -> MovedCollectionError:
    """Return the error for a collection that lost its name, or all of its rows."""
    return MovedCollectionError(
        "moved",
        f"collection {collection.name!r} was replaced or deleted during the call; try again",
    )


def _nearest(connection: psycopg.Connection[Any], name: str) -> str:
    names = difflib.get_close_matches(name, collection_names(connection), 5, cutoff=0.0)
    return f" (the nearest names: {', '.join(names)})" if names else ", as no collection does yet"


def _check_settings(collection: Collection, settings: CollectionSettings) -> None:
    name, scheme = collection.name, settings.get("scheme")
    requested = {**settings, "scheme": None if scheme is None else schemes.get_scheme(scheme).name}
    for setting, value in requested.items():
        present = getattr(collection, "default_distance" if setting == "distance" else setting)
        if value in (None, present):
            continue
        advice = (
            "Store.change_settings() or `pgsimhash collection set` changes it"
            if setting in ("distance", "keep_markdown")
            else f"create another collection with it, such as {name}-2"
        )
        raise _other_settings(f"{name!r} has {setting} {present}, not {value}; {advice}")


def _other_settings(difference: str) -> CollectionError:
    return CollectionError("other_settings", f"collection {difference}")
