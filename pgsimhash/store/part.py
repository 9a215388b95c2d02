"""What every part of the store builds on: a collection, over a connection."""

from __future__ import annotations

from typing import Any

from pgsimhash.bits import check_distance
from pgsimhash.layout import get_layout
from pgsimhash.store.collection import Collection
from pgsimhash.store.session import Session
from pgsimhash.terms import Options, Terms


class Part:
    """One face of the store; each part adds methods."""

    _session: Session
    _collection: Collection

    def _distance(self, distance: int | None) -> int:
        return _checked(self._collection, distance)

    def _terms(self, options: Options) -> Terms:
        return terms_of(self._collection, options)


def terms_of(collection: Collection, options: Options) -> Terms:
    """Return the terms that ``options`` ask for, with the collection's own where they do not.

    Raises:
        InvalidDistanceError: the layout does not answer the distance.
        UnknownRuleError: there is no such scope, or the window is none.
        InvalidTimeError: the age is none.
    """
    given: dict[str, Any] = dict(options)
    return Terms(**{**given, "distance": _checked(collection, options.get("distance"))})


def _checked(collection: Collection, distance: int | None) -> int:
    largest = get_layout(collection.layout).distances[-1]
    return check_distance(collection.default_distance if distance is None else distance, largest)
