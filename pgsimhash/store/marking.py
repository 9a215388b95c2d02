"""What people say about pairs of pages: said, listed and taken back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.rows import class_row, scalar_row, tuple_row

from pgsimhash.connection import server_words
from pgsimhash.errors import MarkError, UnknownPageError
from pgsimhash.marks import Mark, MarksOf
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection
from pgsimhash.store.part import Part


class Marking(Part):
    """Decisions of people, which stick; see :mod:`pgsimhash.marks` for what follows from them."""

    def mark(self, a: str, b: str, *, same: bool) -> None:
        """Say that the pages at two URLs are the same or different, instead of what was said.

        It holds for the verdicts and clusters from now on, not for verdicts already given.

        Raises:
            UnknownPageError: one of the URLs is not known.
            MarkError: the URLs are one, or other marks say the contrary.
            StoreError: the database does not answer.
        """
        parameters = {"collection": self._collection.name, "a": a, "b": b, "same": same}
        try:
            with self._session.transaction() as connection:
                connection.execute(query("mark"), parameters)
        except psycopg.errors.NoDataFound as error:
            raise UnknownPageError(server_words(error)) from error
        except (
            psycopg.errors.IntegrityConstraintViolation,
            psycopg.errors.InvalidParameterValue,
        ) as error:
            raise MarkError(server_words(error)) from error

    def unmark(self, a: str, b: str) -> bool:
        """Take back what was said about two URLs; return whether anything was.

        Raises:
            StoreError: the database does not answer.
        """
        parameters = {"collection": self._collection.name, "a": a, "b": b}
        with (
            self._session.transaction() as connection,
            connection.cursor(row_factory=scalar_row) as cursor,
        ):
            return bool(cursor.execute(query("unmark"), parameters).fetchone())

    def marks(self) -> list[Mark]:
        """Return all that was said, in its order.

        Raises:
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return all_marks(connection, self._collection)


def all_marks(connection: psycopg.Connection[Any], collection: Collection) -> list[Mark]:
    """Return the marks of a collection, in their order."""
    with connection.cursor(row_factory=class_row(Mark)) as cursor:
        scope = {"collection_id": collection.collection_id}
        return cursor.execute(query("marks"), scope).fetchall()


def marks_of(
    connection: psycopg.Connection[Any], collection: Collection, urls: Iterable[str]
) -> dict[str, MarksOf]:
    """Return what was said about each of some URLs; those without a mark are left out."""
    parameters = {"collection_id": collection.collection_id, "urls": list(set(urls))}
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows = cursor.execute(query("marks_of"), parameters).fetchall()
    found: dict[str, MarksOf] = {}
    for url, other, same in rows:
        before = found.get(url, MarksOf())
        found[url] = (
            MarksOf((*before.same, other), before.different)
            if same
            else MarksOf(before.same, (*before.different, other))
        )
    return found
