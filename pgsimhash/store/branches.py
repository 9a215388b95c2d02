"""The collections beside one that its policies open, for pages read by another scheme."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import class_row

from pgsimhash.errors import CollectionError
from pgsimhash.statements import query
from pgsimhash.store.boilerplates import find_scheme
from pgsimhash.store.collection import Collection, check_names, create_collection


def branches(connection: psycopg.Connection[Any], collection: Collection) -> list[Collection]:
    """Return the collections that policies opened beside one, for other schemes."""
    with connection.cursor(row_factory=class_row(Collection)) as cursor:
        scope = {"collection_id": collection.collection_id}
        return cursor.execute(query("branches"), scope).fetchall()


def find_branch(
    connection: psycopg.Connection[Any], collection: Collection, scheme: str
) -> Collection | None:
    """Return where pages of a scheme belong: ``collection``, or the one beside it, if there is."""
    if scheme == collection.scheme:
        return collection
    found = (one for one in branches(connection, collection) if one.scheme == scheme)
    return next(found, None)


def open_branch(
    connection: psycopg.Connection[Any], collection: Collection, scheme: str
) -> Collection:
    """Return where pages of a scheme belong, created where it is missing.

    It has the layout of ``collection``, whose policies hold for it.

    Raises:
        CollectionError: the name it would have is taken, or ``collection`` was renamed since it
            was opened.
        SchemeError: there is no such scheme in this process or the database.
    """
    if scheme == collection.scheme:
        return collection
    check_names(connection, [collection])
    found = find_branch(connection, collection, scheme)
    if found is not None:
        return found
    name = f"{collection.name}:{scheme}"
    made = create_collection(
        connection,
        name,
        scheme=find_scheme(connection, scheme),
        layout=collection.layout,
        distance=collection.default_distance,
        keep_markdown=collection.keep_markdown,
        policies_of=collection.collection_id,
    )
    if made.policies_of != collection.collection_id:
        raise CollectionError(
            f"policies need a collection {name!r}, and there is another one of that name; give "
            f"that a new one: pgsimhash collection rename {name} NAME"
        )
    return made
