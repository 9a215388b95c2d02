"""Define the default limits of explanations, measures and reports."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from pgsimhash.errors import ArgumentError

TOP: Final = 20
"""How many features of each side an explanation lists."""

LARGEST: Final = 16
"""The largest distance that is scored; beyond it matches are random."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that keep a report small for any collection.

    Attributes:
        clusters: the number of biggest clusters.
        members: the number of pages of a cluster, those farthest from its canonical page.
        texts: the number of these whose text is compared.
        hosts: the number of hosts, those with the most duplicates.
        urls: the number of pages, those that changed most.
        versions: the number of newest versions of such a page.

    Raises:
        ArgumentError: a limit is below 0.
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
                raise ArgumentError(
                    "invalid_number", f"the limit {limit.name!r} must be at least 0"
                )

    def figures_only(self) -> Limits:
        """Return the limits for ``Report.as_json``.

        Members of clusters, texts and single versions are then not read.
        """
        return replace(self, members=0, texts=0, versions=1)
