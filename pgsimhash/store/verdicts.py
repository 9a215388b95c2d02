"""From a match, or none, to a verdict and what becomes of the page in the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgsimhash.bits import band
from pgsimhash.records import PageRecord, Verdict


@dataclass(frozen=True, slots=True)
class KnownMatch:
    """The nearest simhash in the store and the page that brought it first, if any.

    ``page_id`` is None for a page of another collection too; ``reason`` is why it is the original
    where the distance is not; ``copies`` is how many known pages would do, counted as far as it
    matters.
    """

    distance: int
    page_id: int | None
    url: str | None
    html_digest: bytes | None = None
    reason: str | None = None
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and what becomes of it in the store.

    ``page_id`` and ``duplicate_of`` are the ids of the row to be stored and of its original;
    ``seen`` is the row of the version that was met again instead.
    """

    record: PageRecord
    verdict: Verdict
    page_id: int | None
    duplicate_of: int | None
    seen: int | None = None


def count_verdicts(decisions: Iterable[Decision]) -> tuple[int, int, int]:
    """Return how many pages are new, duplicates, and unchanged."""
    new = duplicates = unchanged = 0
    for made in decisions:
        if made.seen is not None:
            unchanged += 1
        elif made.verdict.verdict == "new":
            new += 1
        else:
            duplicates += 1
    return new, duplicates, unchanged


def unchanged(record: PageRecord, seen: int) -> Decision:
    """Return the decision about a page whose present version is the row ``seen``."""
    verdict = Verdict(
        record.url,
        "identical",
        "unchanged",
        simhash=record.simhash,
        distance=0,
        duplicate_of=record.url,
        html_bytes=record.html_bytes,
    )
    return Decision(record, verdict, page_id=None, duplicate_of=None, seen=seen)


def stored(
    record: PageRecord, page_id: int, match: KnownMatch | None, keep_first: int = 1
) -> Decision:
    """Return the decision about a page that becomes a row, the duplicate of ``match`` if any."""
    if match is None:
        verdict = Verdict(
            record.url,
            "new",
            "first_seen",
            simhash=record.simhash,
            html_bytes=record.html_bytes,
            keep=True,
        )
        return Decision(record, verdict, page_id, duplicate_of=None)
    verdict = Verdict(
        record.url,
        "identical" if band(match.distance) == "identical" else "near",
        _reason(record, match),
        simhash=record.simhash,
        distance=match.distance,
        duplicate_of=match.url,
        html_bytes=record.html_bytes,
        keep=match.copies < keep_first,
    )
    return Decision(record, verdict, page_id, match.page_id)


def _reason(record: PageRecord, match: KnownMatch) -> str:
    if match.reason is not None:
        return match.reason
    if match.distance:
        return "within_distance"
    same = record.html_digest is not None and record.html_digest == match.html_digest
    return "same_bytes" if same else "same_simhash"
