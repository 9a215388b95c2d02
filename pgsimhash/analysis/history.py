"""How a page changed from version to version: its content, and the template around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from pgsimhash.bits import NEAR_MAX, Band, band, format_simhash, hamming_distance
from pgsimhash.page.structure import SAME_TEMPLATE_MAX

Change = Literal["same", "edited", "rewritten", "redesign"]

CHANGES: Final[dict[Change, str]] = {
    "same": "the content moved by 3 bits or less",
    "edited": "the content moved by 4 to 8 bits",
    "rewritten": "the content moved by 9 bits or more",
    "redesign": "the shape moved by more than 12 bits and the content by 8 or less",
}
"""What can have become of a page since its previous version."""

_OF_BAND: Final[dict[Band, Change]] = {
    "identical": "same",
    "near": "edited",
    "different": "rewritten",
}


class Snapshot(NamedTuple):
    """One version of a page, by itself; ``seen_at`` is None if it was never met again."""

    url: str
    simhash: int
    fetched_at: datetime
    seen_at: datetime | None = None
    title: str | None = None
    structure: int | None = None
    html_bytes: int | None = None
    markdown: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a page, beside those before it.

    ``number`` counts from 1, the oldest. ``seen_at`` is when the version was last met,
    ``fetched_at`` if it never came again. ``distance`` and ``structure_distance`` are bits to the
    previous version, ``distance_to_first`` to the oldest; ``change`` is their judgement. The
    oldest has none of these but 0 to itself.
    """

    number: int
    url: str
    simhash: int
    fetched_at: datetime
    seen_at: datetime
    title: str | None
    structure: int | None
    html_bytes: int | None
    markdown: str | None
    distance: int | None
    distance_to_first: int
    structure_distance: int | None
    change: Change | None

    @property
    def moved(self) -> bool:
        """Whether the content is another than the previous version's, beyond small noise."""
        return self.distance is not None and band(self.distance) != "identical"

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values but for the Markdown, simhashes as 16 hex digits."""
        return {
            "url": self.url,
            "version": self.number,
            "fetched_at": self.fetched_at.isoformat(),
            "seen_at": self.seen_at.isoformat(),
            "title": self.title,
            "simhash": format_simhash(self.simhash),
            "distance": self.distance,
            "distance_to_first": self.distance_to_first,
            "structure_distance": self.structure_distance,
            "change": self.change,
            "html_bytes": self.html_bytes,
        }


def judge(distance: int, structure_distance: int | None = None) -> Change:
    """Return what became of a page.

    Args:
        distance: how many bits the content moved.
        structure_distance: how many bits the simhash of the page's shape moved, where known.
    """
    if structure_distance is not None and structure_distance > SAME_TEMPLATE_MAX:
        return "redesign" if distance <= NEAR_MAX else "rewritten"
    return _OF_BAND[band(distance)]


def as_versions(snapshots: Iterable[Snapshot]) -> list[Version]:
    """Return the versions of one page with what changed between them; the oldest comes first."""
    versions: list[Version] = []
    for number, made in enumerate(snapshots, start=1):
        first = versions[0].simhash if versions else made.simhash
        distance = structure_distance = change = None
        if versions:
            before = versions[-1]
            distance = hamming_distance(before.simhash, made.simhash)
            if before.structure is not None and made.structure is not None:
                structure_distance = hamming_distance(before.structure, made.structure)
            change = judge(distance, structure_distance)
        versions.append(
            Version(
                number,
                made.url,
                made.simhash,
                made.fetched_at,
                made.seen_at or made.fetched_at,
                made.title,
                made.structure,
                made.html_bytes,
                made.markdown,
                distance,
                hamming_distance(first, made.simhash),
                structure_distance,
                change,
            )
        )
    return versions
