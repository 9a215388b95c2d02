"""The verdicts of one batch, decided in its order; pure, no database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import band, hamming_distances
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.sketch import verified
from pgsimhash.terms import Terms
from pgsimhash.urls import host_of


class Look(NamedTuple):
    """What the store is asked: a simhash, and what else the original must meet."""

    simhash: int
    sketch: int | None = None
    host: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class KnownMatch:
    """The nearest simhash in the store and the page that brought it first, if any.

    ``page_id`` is None for a page of another collection too.
    """

    distance: int
    page_id: int | None
    url: str | None
    html_digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """The present version of a URL."""

    page_id: int
    simhash: int


@dataclass(frozen=True, slots=True)
class ArrivedPage:
    """A page that another writer stored after the store was asked for ``KnownMatch``.

    ``own`` says whether it is in the collection that is written to.
    """

    page_id: int
    url: str
    simhash: int
    sketch: int | None = None
    html_digest: bytes | None = None
    fetched_at: datetime | None = None
    own: bool = True


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


def look_for(record: PageRecord, terms: Terms, now: datetime) -> Look:
    """Return what to ask the store about a record; ``now`` is when it came, if it says nothing."""
    age = terms.max_age
    return Look(
        record.simhash,
        record.sketch if terms.verify else None,
        host_of(record.url) if terms.scope == "host" else None,
        None if age is None else (record.fetched_at or now) - age,
    )


def decide(
    records: Sequence[PageRecord],
    page_ids: Sequence[int],
    present: Mapping[str, KnownVersion],
    nearest: Mapping[Look, KnownMatch],
    arrived: Sequence[ArrivedPage],
    terms: Terms,
    now: datetime,
) -> list[Decision]:
    """Decide every page of a batch against the store and against the pages before it.

    Among equally near ones the page that was stored first is the original.

    Args:
        records: the batch, in order; the earliest of several near-copies is the new one.
        page_ids: an id for each record, ascending, should it be stored.
        present: the present version of each known URL.
        nearest: what :func:`look_for` asks, to the nearest match in the store.
        arrived: pages in the store that ``nearest`` may not know, oldest first.
        terms: what makes a duplicate.
        now: when the pages were fetched that do not say when.
    """
    versions = dict(present)
    kept = _Kept(arrived, len(records))
    decisions = []
    for record, page_id in zip(records, page_ids, strict=True):
        version = versions.get(record.url)
        if version is not None and version.simhash == record.simhash:
            decisions.append(_unchanged(record, version.page_id))
            continue
        look = look_for(record, terms, now)
        match = kept.nearer(look, terms, nearest.get(look))
        versions[record.url] = KnownVersion(page_id, record.simhash)
        kept.add(
            ArrivedPage(
                page_id,
                record.url,
                record.simhash,
                record.sketch,
                record.html_digest,
                record.fetched_at or now,
            )
        )
        decisions.append(_stored(record, page_id, match))
    return decisions


class _Kept:
    """The pages that the store does not know yet, in the order in which they came."""

    def __init__(self, arrived: Sequence[ArrivedPage], room: int) -> None:
        self._pages = list(arrived)
        self._simhashes: NDArray[np.uint64] = np.empty(len(arrived) + room, dtype=np.uint64)
        self._simhashes[: len(arrived)] = [page.simhash for page in arrived]

    def add(self, page: ArrivedPage) -> None:
        self._simhashes[len(self._pages)] = page.simhash
        self._pages.append(page)

    def nearer(self, look: Look, terms: Terms, known: KnownMatch | None) -> KnownMatch | None:
        """Return the first of the nearest pages that is nearer than ``known``, else ``known``."""
        limit = terms.distance if known is None else known.distance - 1
        distances = hamming_distances(look.simhash, self._simhashes[: len(self._pages)])
        near = np.flatnonzero(distances.astype(np.int16) <= limit)
        for at in near[np.argsort(distances[near], kind="stable")].tolist():
            page, bits = self._pages[at], int(distances[at])
            if _counts(page, bits, look, terms):
                return KnownMatch(
                    bits, page.page_id if page.own else None, page.url, page.html_digest
                )
        return known


def _counts(page: ArrivedPage, bits: int, look: Look, terms: Terms) -> bool:
    return (
        (page.own or terms.scope == "global")
        and (look.host is None or host_of(page.url) == look.host)
        and (look.since is None or page.fetched_at is None or page.fetched_at >= look.since)
        and (not terms.verify or verified(bits, look.sketch, page.sketch))
    )


def count_verdicts(decisions: Iterable[Decision]) -> tuple[int, int, int]:
    """Return how many pages are new, duplicates, and unchanged."""
    made = list(decisions)
    unchanged = sum(decision.seen is not None for decision in made)
    new = sum(decision.verdict.verdict == "new" for decision in made)
    return new, len(made) - new - unchanged, unchanged


def _unchanged(record: PageRecord, seen: int) -> Decision:
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


def _stored(record: PageRecord, page_id: int, match: KnownMatch | None) -> Decision:
    if match is None:
        verdict = Verdict(
            record.url,
            "new",
            "first_seen",
            simhash=record.simhash,
            html_bytes=record.html_bytes,
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
    )
    return Decision(record, verdict, page_id, match.page_id)


def _reason(record: PageRecord, match: KnownMatch) -> str:
    if match.distance:
        return "within_distance"
    same = record.html_digest is not None and record.html_digest == match.html_digest
    return "same_bytes" if same else "same_simhash"
