"""What people say about pairs of pages: said, listed and taken back.

See :mod:`pgsimhash.pages.marks` for what follows from it.
"""

from __future__ import annotations

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.db.connection import server_words
from pgsimhash.db.statements import query
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.pages.marks import Mark
from pgsimhash.store import Store
from pgsimhash.store.collection import Collection
from pgsimhash.store.marks import all_marks


def mark(store: Store, a: str, b: str, *, same: bool) -> None:
    """Say that the pages at two URLs are the same or different, instead of what was said.

    It holds for the verdicts and clusters from now on, not for verdicts already given.

    Raises:
        NotFoundError: one of the URLs is not known.
        ArgumentError: the URLs are one, or other marks say the contrary.
        CollectionError: no collection of the scheme has the name any more.
        StoreError: the database does not answer.
    """
    try:
        with store.session.writing() as (connection, collection):
            parameters = {**_two(collection, a, b), "same": same}
            connection.execute(query("mark", connection), parameters)
    except psycopg.errors.NoDataFound as error:
        raise NotFoundError("unknown_page", server_words(error)) from error
    except psycopg.errors.InvalidParameterValue as error:
        raise ArgumentError("same_url", server_words(error)) from error
    except psycopg.errors.IntegrityConstraintViolation as error:
        raise ArgumentError("contrary_mark", server_words(error)) from error


def unmark(store: Store, a: str, b: str) -> bool:
    """Take back what was said about two URLs; return whether anything was.

    Raises:
        CollectionError: no collection of the scheme has the name any more.
        StoreError: the database does not answer.
    """
    with (
        store.session.writing() as (connection, collection),
        connection.cursor(row_factory=scalar_row) as cursor,
    ):
        parameters = _two(collection, a, b)
        return bool(cursor.execute(query("unmark", connection), parameters).fetchone())


def marks(store: Store) -> list[Mark]:
    """Return all that was said, in its order.

    Raises:
        StoreError: the database does not answer.
    """
    with store.session.reading() as (connection, collection):
        return all_marks(connection, collection)


def _two(collection: Collection, a: str, b: str) -> dict[str, str]:
    return {
        "collection": collection.name,
        "a": collection.page_url(a),
        "b": collection.page_url(b),
    }
