"""Changes what holds for a whole collection, and its name."""

from __future__ import annotations

import dataclasses

import psycopg

from pgsimhash.db.connection import server_words
from pgsimhash.db.statements import query
from pgsimhash.errors import CollectionError
from pgsimhash.store import Store
from pgsimhash.store.collection import checked_distance, follow


def change_settings(
    store: Store, *, distance: int | None = None, keep_markdown: bool | None = None
) -> None:
    """Change what a collection was created with; what is None stays.

    It holds for this store from now on, and for others from their next batch or lookup. Verdicts
    that were given stay as they are: :func:`~pgsimhash.maintenance.rebuild` gives them anew.

    Args:
        store: whose collection it is.
        distance: the distance that counts where a call names none.
        keep_markdown: whether pages to come keep their main content.

    Raises:
        ArgumentError: the layout does not answer ``distance``.
        CollectionError: no collection of the scheme has the name any more.
        StoreError: the database does not answer.
    """
    with store.session.writing() as (connection, collection):
        if distance is not None:
            checked_distance(collection, distance)
        values = {
            "collection_id": collection.collection_id,
            "distance": distance,
            "keep_markdown": keep_markdown,
        }
        connection.execute(query("set_collection", connection), values)
        store.session.collection = follow(connection, collection)


def rename(store: Store, name: str, *, swap: bool = False) -> None:
    """Give the collection another name; with ``swap`` the one of that name gets the old one.

    Waits for writers to finish their batches. Other stores that have it open go by the old name:
    they say that there is no such collection any more, or with ``swap`` go on in the other one,
    where its scheme is the same.

    Raises:
        CollectionError: another collection has the name and ``swap`` is false, or none has and it
            is true; or the name is empty, or none of the scheme has the store's name.
        StoreError: the database does not answer.
    """
    try:
        with store.session.writing() as (connection, collection):
            names = {"old": collection.name, "new": name, "swap": swap}
            connection.execute(query("rename_collection", connection), names)
            store.session.collection = dataclasses.replace(collection, name=name)
    except (
        psycopg.errors.UniqueViolation,
        psycopg.errors.InvalidParameterValue,
    ) as error:
        raise CollectionError("cannot_rename", server_words(error)) from error
