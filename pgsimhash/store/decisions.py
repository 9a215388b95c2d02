"""The verdicts of one batch, decided in its order; pure, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import band, hamming_distances
from pgsimhash.records import PageRecord, Verdict
from pgsimhash.sketch import verified

Look = tuple[int, int | None]
"""A simhash and, where there is one, the sketch beside it."""


@dataclass(frozen=True, slots=True)
class KnownMatch:
    """The nearest simhash in the store and the page that brought it first, if any."""

    distance: int
    page_id: int | None
    url: str | None


@dataclass(frozen=True, slots=True)
class ArrivedPage:
    """A page that another writer stored after the store was asked for ``KnownMatch``."""

    page_id: int
    url: str
    simhash: int
    sketch: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and for a page to be stored the ids of its row and of its original."""

    record: PageRecord
    verdict: Verdict
    page_id: int | None
    duplicate_of: int | None


def decide(
    records: Sequence[PageRecord],
    page_ids: Sequence[int],
    present: Mapping[str, int],
    nearest: Mapping[Look, KnownMatch],
    arrived: Sequence[ArrivedPage],
    distance: int,
    *,
    verify: bool = True,
) -> list[Decision]:
    """Decide every page of a batch against the store and against the pages before it.

    Among equally near ones the page that was stored first is the original.

    Args:
        records: the batch, in order; the earliest of several near-copies is the new one.
        page_ids: an id for each record, ascending, should it be stored.
        present: URL to simhash of the present version of each known URL.
        nearest: simhash and sketch to their nearest match in the store, within ``distance``.
        arrived: pages in the store that ``nearest`` may not know, oldest first.
        distance: the largest number of differing bits that makes a duplicate.
        verify: whether distant matches need sketches that agree.
    """
    versions = dict(present)
    kept = list(arrived)
    simhashes = np.empty(len(arrived) + len(records), dtype=np.uint64)
    simhashes[: len(arrived)] = [page.simhash for page in arrived]
    decisions = []
    for record, page_id in zip(records, page_ids, strict=True):
        if versions.get(record.url) == record.simhash:
            decisions.append(_unchanged(record))
            continue
        match = nearest.get((record.simhash, record.sketch))
        if kept:
            limit = distance if match is None else match.distance - 1
            distances = hamming_distances(record.simhash, simhashes[: len(kept)])
            if int(distances.min()) <= limit:
                nearer = _nearer(record, kept, distances, limit, verify=verify)
                match = match if nearer is None else nearer
        versions[record.url] = record.simhash
        simhashes[len(kept)] = record.simhash
        kept.append(ArrivedPage(page_id, record.url, record.simhash, record.sketch))
        decisions.append(_stored(record, page_id, match))
    return decisions


def _nearer(
    record: PageRecord,
    kept: Sequence[ArrivedPage],
    distances: NDArray[np.uint8],
    limit: int,
    *,
    verify: bool,
) -> KnownMatch | None:
    """Return the nearest page within ``limit`` bits that stands, of equals the first."""
    near = np.flatnonzero(distances <= limit)
    for at in near[np.argsort(distances[near], kind="stable")].tolist():
        page, bits = kept[at], int(distances[at])
        if not verify or verified(bits, record.sketch, page.sketch):
            return KnownMatch(bits, page.page_id, page.url)
    return None


def _unchanged(record: PageRecord) -> Decision:
    verdict = Verdict(
        record.url,
        "identical",
        "unchanged",
        simhash=record.simhash,
        distance=0,
        duplicate_of=record.url,
        html_bytes=record.html_bytes,
    )
    return Decision(record, verdict, page_id=None, duplicate_of=None)


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
        "same_simhash" if match.distance == 0 else "within_distance",
        simhash=record.simhash,
        distance=match.distance,
        duplicate_of=match.url,
        html_bytes=record.html_bytes,
    )
    return Decision(record, verdict, page_id, match.page_id)
