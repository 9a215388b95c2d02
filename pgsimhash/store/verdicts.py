"""From a match, or none, to a verdict and what becomes of the page in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from pgsimhash.bits import band, hamming_distance
from pgsimhash.records import PageRecord, Verdict


class KnownMatch(NamedTuple):
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


class Decision(NamedTuple):
    """A verdict, and what becomes of it in the store.

    ``page_id`` and ``duplicate_of`` are the ids of the row to be stored and of its original;
    ``seen`` is the row of the version that was met again instead.
    """

    record: PageRecord
    verdict: Verdict
    page_id: int | None
    duplicate_of: int | None
    seen: int | None = None


def count_verdicts(decisions: Iterable[Decision]) -> dict[str, int]:
    """Return how many pages are new, duplicates, updated and unchanged, by these names."""
    counts = Counter(made.verdict.verdict for made in decisions)
    return {
        "new": counts["new"],
        "duplicates": counts["identical"] + counts["near"],
        "updated": counts["updated"],
        "unchanged": counts["unchanged"],
    }


def says_the_same(record: PageRecord, simhash: int, text_digest: int | None) -> bool:
    """Return whether a version with this simhash and digest is the same as ``record``."""
    unknown = text_digest is None or record.text_digest is None
    return record.simhash == simhash and (unknown or record.text_digest == text_digest)


def unchanged(record: PageRecord, seen: int) -> Decision:
    """Return the decision about a page whose present version is the row ``seen``."""
    verdict = Verdict(
        record.url,
        "unchanged",
        "unchanged",
        simhash=record.simhash,
        distance=0,
        html_bytes=record.html_bytes,
        page_id=seen,
    )
    return Decision(record, verdict, page_id=None, duplicate_of=None, seen=seen)


def updated(record: PageRecord, page_id: int, simhash: int, text_digest: int | None) -> Decision:
    """Return the decision about another version of a page that was known with this simhash."""
    same = text_digest is not None and record.text_digest == text_digest
    verdict = Verdict(
        record.url,
        "updated",
        "same_text" if same else "changed",
        simhash=record.simhash,
        distance=hamming_distance(record.simhash, simhash),
        html_bytes=record.html_bytes,
        keep=not same,
        page_id=page_id,
    )
    return Decision(record, verdict, page_id, duplicate_of=None)


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
            page_id=page_id,
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
        page_id=page_id,
    )
    return Decision(record, verdict, page_id, match.page_id)


def without_row(made: Decision) -> Decision:
    """Return a decision that nothing was stored of."""
    return made._replace(verdict=replace(made.verdict, page_id=None))


def _reason(record: PageRecord, match: KnownMatch) -> str:
    if match.reason is not None:
        return match.reason
    if match.distance:
        return "within_distance"
    same = record.html_digest is not None and record.html_digest == match.html_digest
    return "same_bytes" if same else "same_simhash"
