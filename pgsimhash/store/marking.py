"""What people say about pairs of pages: said, listed and taken back."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import class_row, scalar_row

from pgsimhash.connection import server_words
from pgsimhash.errors import MarkError, UnknownPageError
from pgsimhash.marks import Mark
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
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        parameters = {"collection": self._collection.name, "a": a, "b": b, "same": same}
        try:
            with self._change() as connection:
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
            CollectionError: the collection was renamed since it was opened.
            StoreError: the database does not answer.
        """
        parameters = {"collection": self._collection.name, "a": a, "b": b}
        with (
            self._change() as connection,
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
    with connection.cursor(row_factory=class_row(Mark), binary=True) as cursor:
        scope = {"collection_id": collection.collection_id}
        return cursor.execute(query("marks"), scope).fetchall()
