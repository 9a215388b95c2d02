"""What goes into a store and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pgsimhash.bits import format_simhash, similarity_percent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VerdictName = Literal["new", "updated", "unchanged", "identical", "near", "too_short", "failed"]


@dataclass(frozen=True, slots=True)
class PageRecord:
    """One page on its way into the store: its simhash and what is kept beside it."""

    url: str
    simhash: int
    fetched_at: datetime | None = None
    title: str | None = None
    canonical_url: str | None = None
    language: str | None = None
    features: int | None = None
    html_bytes: int | None = None
    structure: int | None = None
    sketch: int | None = None
    markdown: str | None = None
    tokens: int | None = None
    html_digest: bytes | None = None
    text_digest: int | None = None
    unseen: float | None = None


@dataclass(frozen=True, slots=True)
class PageFailure:
    """A page that could not be read, or that has no simhash.

    ``url`` is the page's URL, or the path or ``path#record`` where the URL is not known.
    ``reason`` is one of ``PageError.reasons``; ``detail`` is one line.
    """

    url: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the store decided about one page.

    ``new``: nothing within the distance was known. ``updated``: another version of a page that was
    known under this URL, and of no other page; ``distance`` is how many bits it moved.
    ``unchanged``: this URL is known with this very simhash and text, so nothing was added.
    ``identical`` (0-3 bits) and ``near`` (4 bits and more): ``duplicate_of`` is the URL of the
    nearest known page, ``distance`` bits away (None where its simhash came in without a page).
    ``too_short`` and ``failed``: nothing was stored, ``detail`` says why.

    ``reason`` is a short stable code. ``first_seen``: nothing near is known, in the scope asked
    for. ``changed``: its text is not the one that was known. ``same_text``: only what surrounds its
    text is. ``same_bytes``: the original is this page byte for byte. ``same_simhash``: it has the
    same simhash. ``within_distance``: it is some bits away. ``marked_same``: a person said so, or
    ``canonical_link``: the page names it as its original; it may be any number of bits away.
    ``policy``: it has fewer words than asked for. Any other page that was not stored has
    one of ``PageError.reasons``.

    ``keep`` says whether the page is worth keeping: it is ``new``, or ``updated`` with another
    text, or one of the first of its kind where more than one is to be kept (see
    :class:`pgsimhash.matching.MatchSettings`).

    ``page_id`` is the number of the version in the table ``pages``, within the collection; None
    where it has no row. Verdicts are equal whatever it is.
    """

    url: str
    verdict: VerdictName
    reason: str
    simhash: int | None = None
    distance: int | None = None
    duplicate_of: str | None = None
    detail: str | None = None
    html_bytes: int | None = None
    keep: bool = False
    page_id: int | None = field(default=None, compare=False)

    @property
    def similarity_percent(self) -> float | None:
        """The share of equal bits, in per cent; None without a distance."""
        return None if self.distance is None else similarity_percent(self.distance)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the simhash as 16 hex digits."""
        return {
            "url": self.url,
            "verdict": self.verdict,
            "simhash": None if self.simhash is None else format_simhash(self.simhash),
            "distance": self.distance,
            "similarity_percent": self.similarity_percent,
            "duplicate_of": self.duplicate_of,
            "reason": self.reason,
            "detail": self.detail,
            "keep": self.keep,
            "page_id": self.page_id,
        }


class Deletion(NamedTuple):
    """What was deleted: how many versions of pages, and what became of their URLs.

    ``gone`` are the URLs that no version is left of; ``reverted`` those of which an earlier version
    is the present one now.
    """

    versions: int
    gone: list[str]
    reverted: list[str]

    def as_json(self, *, urls: bool = False) -> dict[str, Any]:
        """Return the number as ``deleted``, and with ``urls`` the lists too, as JSON values."""
        lists = {"gone": self.gone, "reverted": self.reverted} if urls else {}
        return {"deleted": self.versions, **lists}


@dataclass(frozen=True, slots=True)
class Match:
    """A known simhash within the distance asked for, with the page that brought it first."""

    simhash: int
    distance: int
    url: str | None
    title: str | None

    @property
    def similarity_percent(self) -> float:
        """The share of equal bits, in per cent."""
        return similarity_percent(self.distance)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the simhash as 16 hex digits."""
        return {
            "simhash": format_simhash(self.simhash),
            "distance": self.distance,
            "similarity_percent": self.similarity_percent,
            "url": self.url,
            "title": self.title,
        }


@dataclass(frozen=True, slots=True)
class NearPage:
    """A page whose present version, fetched at ``fetched_at``, is within the distance asked for."""

    url: str
    title: str | None
    simhash: int
    distance: int
    fetched_at: datetime

    @property
    def similarity_percent(self) -> float:
        """The share of equal bits, in per cent."""
        return similarity_percent(self.distance)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the simhash as 16 hex digits, the time in ISO 8601."""
        return {
            "url": self.url,
            "title": self.title,
            "simhash": format_simhash(self.simhash),
            "distance": self.distance,
            "similarity_percent": self.similarity_percent,
            "fetched_at": self.fetched_at.isoformat(),
        }


class Matches(NamedTuple):
    """The matches of many queries, one entry each: shape (n,).

    ``queries`` holds the index of the query (int64), ``simhashes`` the known simhash (uint64),
    ``distances`` the differing bits (uint8).
    """

    queries: NDArray[np.int64]
    simhashes: NDArray[np.uint64]
    distances: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class StoredPage:
    """The present version of a page, as the store keeps it.

    ``duplicate_of`` is the URL of the page it was found to duplicate, ``distance`` bits away;
    ``seen_at`` is when this version was last met, ``run_id`` the run that brought it;
    ``structure`` the simhash of its shape; ``markdown`` its main content, where the collection
    keeps that.
    """

    url: str
    simhash: int
    fetched_at: datetime
    title: str | None
    canonical_url: str | None
    language: str | None
    features: int | None
    html_bytes: int | None
    duplicate_of: str | None
    distance: int | None
    structure: int | None
    markdown: str | None
    seen_at: datetime
    run_id: int | None


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """The figures of one collection.

    ``pages`` counts versions, ``urls`` what they are versions of; ``duplicates`` are the
    versions that duplicated a known page when they came in, ``duplicate_bytes`` their HTML.

    Bytes on disk are with all indexes. Collections share tables: ``simhash_table_bytes`` is the
    table of the layout's simhashes, ``page_table_bytes`` that of the pages and of when they were
    seen, all collections together; the ``_share_bytes`` are as much of each as the collection has
    of its rows, whose number is estimated where the table is large.
    """

    collection: str
    scheme: str
    layout: str
    default_distance: int
    normalize_urls: bool
    pages: int
    urls: int
    duplicates: int
    duplicate_bytes: int
    simhashes: int
    simhash_table_bytes: int
    simhash_share_bytes: int
    page_table_bytes: int
    page_share_bytes: int

    @property
    def share_bytes(self) -> int:
        """The collection's share of the bytes on disk."""
        return self.simhash_share_bytes + self.page_share_bytes


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run did: how many pages it brought, and what became of them.

    ``finished_at`` is its last batch so far; ``pages`` are new, duplicates, updated or
    unchanged.
    """

    run_id: int
    what: str
    started_at: datetime
    finished_at: datetime
    pages: int
    new: int
    duplicates: int
    updated: int
    unchanged: int

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, times in ISO 8601."""
        return {
            "run": self.run_id,
            "what": self.what,
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat(),
            "pages": self.pages,
            "new": self.new,
            "duplicates": self.duplicates,
            "updated": self.updated,
            "unchanged": self.unchanged,
        }
