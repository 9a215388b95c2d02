"""What every part of the store builds on: a collection, over a connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pgsimhash.policies import Policies, Rules
from pgsimhash.store.collection import Collection, check_names, checked_distance
from pgsimhash.store.session import Session
from pgsimhash.terms import Options


class Part:
    """One face of the store; each part adds methods."""

    _session: Session
    _collection: Collection
    _policies: Policies

    @contextmanager
    def _change(self) -> Iterator[psycopg.Connection[Any]]:
        """Run a block that writes to the collection by its name, in a transaction.

        Raises:
            CollectionError: it was renamed since it was opened.
        """
        with self._session.transaction() as connection:
            check_names(connection, [self._collection])
            yield connection

    def _distance(self, distance: int | None) -> int:
        return checked_distance(self._collection, distance)

    def _rules(self, options: Options) -> Rules:
        return rules_of(self._collection, self._policies, options)


def rules_of(collection: Collection, policies: Policies, options: Options) -> Rules:
    """Return what holds for each URL: what ``options`` ask for, policies, the collection's own.

    Raises:
        InvalidDistanceError: the layout does not answer the distance.
        UnknownRuleError: there is no such scope, or a number is below 1.
        InvalidTimeError: the age is none.
    """
    rules = Rules(policies, options, collection.default_distance)
    checked_distance(collection, options.get("distance"))
    return rules
