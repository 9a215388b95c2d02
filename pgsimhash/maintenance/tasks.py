"""Long work on a collection, page by page, that goes on where it was interrupted.

How far it has come is a row of ``pgsimhash.tasks``, written in the transaction of each batch.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from pgsimhash.errors import StoreError
from pgsimhash.statements import query
from pgsimhash.store.collection import Collection
from pgsimhash.terms import Options

Progress = Callable[[int, int], None]
"""Told how many pages are done of how many."""


def unheard(done: int, total: int) -> None:
    """Be told of progress, and do nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A task of a collection: ``what`` it is, on which ``terms`` (JSON values)."""

    collection: Collection
    what: str
    terms: Mapping[str, Any]

    @property
    def _scope(self) -> dict[str, Any]:
        return {
            "collection_id": self.collection.collection_id,
            "what": self.what,
            "terms": Jsonb(self.terms),
        }

    def begin(self, connection: psycopg.Connection[Any]) -> tuple[Mapping[str, Any], int, bool]:
        """Return the terms in the database, the last page done, and whether it begins only now."""
        with connection.cursor(row_factory=tuple_row) as cursor:
            row = cursor.execute(query("begin_task"), self._scope).fetchone()
        # None: someone else began it at this very moment.
        return row or (self.terms, 0, False)

    def lock(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return the last page that is done, None where the task was ended.

        Others wait with the next one until the commit.

        Raises:
            StoreError: the task is on other terms by now.
        """
        with connection.cursor(row_factory=tuple_row) as cursor:
            row = cursor.execute(query("lock_task"), self._scope).fetchone()
        if row is None:
            return None
        last_page, same_terms = row
        if not same_terms:
            raise StoreError(
                "other_terms",
                f"someone else began to {self.what} collection {self.collection.name!r} on other "
                "terms; let that finish, then run this again",
            )
        return int(last_page)

    def move(self, connection: psycopg.Connection[Any], last_page: int) -> None:
        """Say that all is done up to ``last_page``, on these terms."""
        connection.execute(query("move_task"), {**self._scope, "last_page": last_page})

    def end(self, connection: psycopg.Connection[Any]) -> None:
        """Say that all is done: the next time it begins anew."""
        connection.execute(query("end_task"), self._scope)


def as_json(options: Options, **more: object) -> dict[str, Any]:
    """Return what is asked for as JSON values, the same for the same; None is not asked for."""
    asked = {name: value for name, value in {**options, **more}.items() if value is not None}
    values: dict[str, Any] = json.loads(json.dumps(asked, default=str))
    return values
