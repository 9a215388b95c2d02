"""Show how a page changed from version to version, in its content and its template."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pgsimhash.hashing.bits import band, format_simhash, hamming_distance
from pgsimhash.html.blocks import SAME_TEMPLATE_MAX
from pgsimhash.store import Store
from pgsimhash.store.lookups import scope_of, stored_pages, unknown_page

Change = Literal["same", "edited", "rewritten", "redesign"]

_VALUES: Final = (
    *("url", "simhash", "fetched_at", "seen_at", "title"),
    *("structure", "html_bytes", "text_digest"),
)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a page, compared with the versions before it.

    ``number`` counts from 1, the oldest. ``seen_at`` is when the version was last seen;
    ``fetched_at`` if it was not seen again. ``distance`` and ``structure_distance`` are the bits to
    the previous version, and ``change`` is the kind of change; all three are None for the oldest.
    ``distance_to_first`` are the bits to the oldest.
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
    text_digest: int | None
    distance: int | None
    distance_to_first: int
    structure_distance: int | None
    change: Change | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields, except the Markdown, as JSON values, simhashes as 16 hex digits."""
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


def versions(store: Store, url: str, *, markdown: bool = True) -> list[Version]:
    """Return all versions of a page in the order in which they were added.

    Each has its distances to the previous and to the first version, and the kind of change:
    ``same``, ``edited``, ``rewritten`` or ``redesign``. A page that is seen again unchanged adds no
    version, but updates ``seen_at``.

    Args:
        store: the store of the page.
        url: the page's URL.
        markdown: whether to read the Markdown, if the collection keeps it.

    Raises:
        NotFoundError: the collection does not have the URL.
    """
    with store.session.reading() as (connection, collection):
        scope, urls = scope_of(collection), [collection.page_url(url)]
        names = (*_VALUES, "markdown") if markdown else _VALUES
        pages = stored_pages(connection, scope, urls, names, all_versions=True)
    if not pages:
        raise unknown_page(collection, url)
    found: list[Version] = []
    for number, page in enumerate(pages, 1):
        found.append(_version(number, {"markdown": None, **page}, found))
    return found


def judge(distance: int, structure_distance: int | None = None, *, same: bool) -> Change:
    """Return the kind of change, given the changed bits, and whether the texts are the same."""
    if not same and band(distance) == "different":
        return "rewritten"
    if structure_distance is not None and structure_distance > SAME_TEMPLATE_MAX:
        return "redesign"
    return "same" if same else "edited"


def _version(number: int, page: dict[str, Any], earlier: list[Version]) -> Version:
    """Return the version with the values of a page, compared with those before it."""
    distance = structure_distance = change = None
    if earlier:
        before, structure, text = earlier[-1], page["structure"], page["text_digest"]
        distance = hamming_distance(before.simhash, page["simhash"])
        if before.structure is not None and structure is not None:
            structure_distance = hamming_distance(before.structure, structure)
        same = before.text_digest == text
        if before.text_digest is None or text is None:
            same = band(distance) == "duplicate"
        change = judge(distance, structure_distance, same=same)
    to_first = hamming_distance(earlier[0].simhash, page["simhash"]) if earlier else 0
    return Version(
        number=number,
        **page,
        distance=distance,
        distance_to_first=to_first,
        structure_distance=structure_distance,
        change=change,
    )
