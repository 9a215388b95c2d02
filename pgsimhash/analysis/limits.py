"""How much is shown and measured where nobody says."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from pgsimhash.errors import ArgumentError

TOP: Final = 20
"""How many features of each side an explanation lists."""

LARGEST: Final = 16
"""The largest distance that is scored; beyond it chance alone makes matches."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a collection a report shows, so that it stays small whatever the collection.

    The biggest ``clusters``, of each the ``members`` farthest from its canonical page, of these
    the first ``texts`` with their difference; the ``hosts`` with the most duplicates; the ``urls``
    that changed most, with their newest ``versions``.

    Raises:
        ArgumentError: one is below 0.
    """

    clusters: int = 20
    members: int = 10
    texts: int = 3
    hosts: int = 30
    urls: int = 10
    versions: int = 200

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 0:
                raise ArgumentError("invalid_number", f"the limit {limit.name!r} is 0 or more")

    def figures_only(self) -> Limits:
        """Return the same limits without what ``Report.as_json`` does not show.

        Members of clusters, texts and single versions are then not read.
        """
        return replace(self, members=0, texts=0, versions=1)
