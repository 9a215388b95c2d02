"""Set, list and remove the marks of pairs of pages.

:mod:`pgsimhash.pages.marks` describes their effect.
"""

from __future__ import annotations

import psycopg
from psycopg.rows import scalar_row

from pgsimhash.db.statements import query
from pgsimhash.db.translation import server_words
from pgsimhash.errors import ArgumentError, NotFoundError
from pgsimhash.pages.marks import Mark
from pgsimhash.store import Store
from pgsimhash.store.collection import Collection
from pgsimhash.store.marks import all_marks


def mark(store: Store, a: str, b: str, *, same: bool) -> None:
    """Mark the pages at two URLs as same (must-link) or different (cannot-link).

    It replaces an earlier mark of the pair, and applies to future verdicts and clusters.

    Raises:
        NotFoundError: one of the URLs is unknown.
        ArgumentError: the URLs are equal, or the mark contradicts other marks.
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
    """Remove the mark of two URLs; return whether there was one."""
    with (
        store.session.writing() as (connection, collection),
        connection.cursor(row_factory=scalar_row) as cursor,
    ):
        parameters = _two(collection, a, b)
        return bool(cursor.execute(query("unmark", connection), parameters).fetchone())


def marks(store: Store) -> list[Mark]:
    """Return all marks, in the order in which they were set."""
    with store.session.reading() as (connection, collection):
        return all_marks(connection, collection)


def _two(collection: Collection, a: str, b: str) -> dict[str, str]:
    return {
        "collection": collection.name,
        "a": collection.page_url(a),
        "b": collection.page_url(b),
    }
