"""Change the settings and the name of a collection."""

from __future__ import annotations

import dataclasses

import psycopg

from pgsimhash.db.statements import query
from pgsimhash.db.translation import server_words
from pgsimhash.errors import CollectionError
from pgsimhash.store import Store
from pgsimhash.store.collection import checked_distance, follow


def change_settings(
    store: Store, *, distance: int | None = None, keep_markdown: bool | None = None
) -> None:
    """Change settings of the collection; None keeps a value.

    They apply to this store immediately, and to others from their next batch or lookup. Existing
    verdicts stay: :func:`~pgsimhash.maintenance.rebuild` repeats them.

    Args:
        store: the store of the collection.
        distance: the default distance.
        keep_markdown: whether to store the main content of new pages.

    Raises:
        ArgumentError: the layout does not support ``distance``.
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
    """Rename the collection; ``swap`` exchanges its name with another collection.

    It waits for writers to finish their batches. Other stores keep the old name: they raise
    ``CollectionError``, or after a swap use the other collection if its scheme is the same.

    Raises:
        CollectionError: the new name is empty or taken or, with ``swap``, does not exist.
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
