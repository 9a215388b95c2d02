"""What every part of the store builds on: a collection, over a connection."""

from __future__ import annotations

from pgsimhash.bits import check_distance
from pgsimhash.layout import get_layout
from pgsimhash.store.collection import Collection
from pgsimhash.store.session import Session


class Part:
    """One face of the store; each part adds methods."""

    _session: Session
    _collection: Collection

    def _distance(self, distance: int | None) -> int:
        largest = get_layout(self._collection.layout).distances[-1]
        wanted = self._collection.default_distance if distance is None else distance
        return check_distance(wanted, largest)
