"""The verdicts of one batch, decided in its order; pure, no database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.bits import hamming_distance, near_pairs
from pgsimhash.marks import UNMARKED, MarksOf
from pgsimhash.matching import MatchSettings
from pgsimhash.records import PageRecord
from pgsimhash.sketch import verified
from pgsimhash.store.verdicts import Decision, KnownMatch, says_the_same, stored, unchanged, updated
from pgsimhash.times import back
from pgsimhash.urls import host_of, same_site

_ROOM: Final = 1 << 16
"""How many distances are held at once."""


class Look(NamedTuple):
    """What is asked about a page: a simhash, and what else the original must meet.

    ``before`` is the simhash of the version of ``url`` before, where its collection has one, and
    ``first_id`` the id of the first one; ``apart`` are the URLs that ``url`` was marked different
    from.
    """

    simhash: int
    sketch: int | None = None
    host: str | None = None
    since: datetime | None = None
    url: str | None = None
    before: int | None = None
    first_id: int = 0
    apart: tuple[str, ...] = ()


class KnownVersion(NamedTuple):
    """The present version of a URL, and the id of the first one."""

    page_id: int
    simhash: int
    first_id: int
    text_digest: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about the URLs that matter to a batch.

    ``versions`` has those of its pages, of the ones that marks join to them, and of the ones that
    their ``rel=canonical`` names; ``marks`` what people said about the pages; ``policies`` and
    ``marked`` whether the collection has policies and marks, where that was asked.
    """

    versions: Mapping[str, KnownVersion] = field(default_factory=dict)
    marks: Mapping[str, MarksOf] = field(default_factory=dict)
    policies: bool = False
    marked: bool = False


class ArrivedPage(NamedTuple):
    """A page that another writer stored after the store was asked for ``KnownMatch``.

    ``own`` says whether it is in the collection that is written to; ``original`` is the URL of
    the page of its collection that it duplicates.
    """

    page_id: int
    url: str
    simhash: int
    sketch: int | None = None
    html_digest: bytes | None = None
    fetched_at: datetime | None = None
    own: bool = True
    original: str | None = None


def versions_before(records: Iterable[PageRecord]) -> list[int | None]:
    """Return for each record the simhash of the last one before it that has its URL, if any."""
    present: dict[str, int] = {}
    before = []
    for record in records:
        before.append(present.get(record.url))
        present[record.url] = record.simhash
    return before


def look_for(
    record: PageRecord, settings: MatchSettings, now: datetime, before: int | None = None
) -> Look:
    """Return what to ask the store about a record; ``now`` is when it came, if it says nothing.

    ``before`` is the simhash of the version of its URL before, if the store does not know that.
    """
    age = settings.max_age
    return Look(
        record.simhash,
        record.sketch if settings.verify else None,
        host_of(record.url) if settings.scope == "host" else None,
        None if age is None else back(record.fetched_at or now, age),
        record.url,
        before,
    )


def decide(
    records: Sequence[PageRecord],
    page_ids: Sequence[int],
    settings: Sequence[MatchSettings],
    nearest: Sequence[KnownMatch | None],
    known: Known,
    arrived: Sequence[ArrivedPage],
    now: datetime,
) -> list[Decision]:
    """Decide every page of a batch against the store and against the pages before it.

    Which original counts (``_nearest`` in ``sql/decide.sql`` says it for what is stored, in the
    same order): a page

    1. in the collections compared with,
    2. on the page's host, where the scope is the host,
    3. fetched not longer before it than is asked for,
    4. among the newest, where only these count; those of the batch are beside them,
    5. neither marked as different from it, nor found to duplicate one of its collection that is;
       what is at the page's own URL counts all the same, where that is known elsewhere only,
    6. not the page itself: where its URL is known in its own collection, neither what is at the
       URL, nor a copy of it, that is what came after its first version and is as near to the
       version before,
    7. with a sketch like the page's beyond the trusted distance, where both have one.

    Of these the nearest is the original, and of equally near ones the one that came first. A
    simhash without a page counts after them, if nothing is asked of its page by 2 to 5.

    Args:
        records: the batch, in order; the earliest of several near-copies is the new one.
        page_ids: an id for each record, ascending, should it be stored.
        settings: what makes each a duplicate.
        nearest: for each what :func:`look_for` asks: the nearest match in the store, if any.
        known: what is known about their URLs.
        arrived: pages in the store that ``nearest`` may not know, oldest first.
        now: when the pages were fetched that do not say when.
    """
    versions = dict(known.versions)
    kept = _Kept(arrived, records, settings)
    decisions = []
    for number, (record, page_id, wanted, found) in enumerate(
        zip(records, page_ids, settings, nearest, strict=True)
    ):
        version = versions.get(record.url)
        if version is not None and says_the_same(record, version.simhash, version.text_digest):
            decisions.append(unchanged(record, version.page_id))
            continue
        match = found
        if kept.has_near(number):
            look = look_for(record, wanted, now)._replace(
                apart=known.marks.get(record.url, UNMARKED).different
            )
            if version is not None:
                look = look._replace(before=version.simhash, first_id=version.first_id)
            match = kept.nearer(number, look, wanted, found)
        said = _marked_same(record, versions, known.marks) if known.marks else None
        said = said or _canonical(record, versions, known.marks, wanted)
        if said is not None:
            match = said._replace(copies=1 if match is None else match.copies)
        first = page_id if version is None else version.first_id
        versions[record.url] = KnownVersion(page_id, record.simhash, first, record.text_digest)
        if kept.is_near(number):
            page = ArrivedPage(
                page_id,
                record.url,
                record.simhash,
                record.sketch,
                record.html_digest,
                record.fetched_at or now,
                # What is in another collection is not in the row either.
                original=None if match is None or match.page_id is None else match.url,
            )
            kept.add(number, page)
        if match is None and version is not None:
            decisions.append(updated(record, page_id, version.simhash, version.text_digest))
        else:
            decisions.append(stored(record, page_id, match, wanted.keep_first))
    return decisions


class _Kept:
    """The pages that the store does not know yet, in the order in which they came."""

    def __init__(
        self,
        arrived: Sequence[ArrivedPage],
        records: Sequence[PageRecord],
        settings: Sequence[MatchSettings],
    ) -> None:
        self._pages: list[ArrivedPage | None] = [*arrived, *(None for _ in records)]
        self._arrived = len(arrived)
        simhashes = [*(page.simhash for page in arrived), *(one.simhash for one in records)]
        most = max((one.distance for one in settings), default=0)
        self._near = _near_before(np.array(simhashes, dtype=np.uint64), len(arrived), most)
        self._wanted: set[int] = set()
        for places, _ in self._near.values():
            self._wanted.update(places.tolist())

    def is_near(self, number: int) -> bool:
        """Return whether record ``number`` may be near to one that comes after it."""
        return self._arrived + number in self._wanted

    def add(self, number: int, page: ArrivedPage) -> None:
        """Add what became of record ``number``."""
        self._pages[self._arrived + number] = page

    def has_near(self, number: int) -> bool:
        """Return whether there may be any page that is near record ``number``."""
        return number in self._near

    def nearer(
        self, number: int, look: Look, settings: MatchSettings, known: KnownMatch | None
    ) -> KnownMatch | None:
        """Return the first of the nearest pages that is nearer than ``known``, else ``known``.

        As near as ``known`` is near enough where that is a simhash without a page.
        Its ``copies`` are those of ``known`` and the pages here, as far as they matter.
        """
        more = settings.keep_first - (0 if known is None else known.copies)
        limit = settings.distance
        if known is not None and more <= 0:
            limit = known.distance - (known.url is not None)
        places, distances = self._near[number]
        near = np.flatnonzero(distances <= limit)
        nearest, copies = known, 0 if known is None else known.copies
        for at in near[np.argsort(distances[near], kind="stable")].tolist():
            page, bits = self._pages[places[at]], int(distances[at])
            if page is None or not _counts(page, bits, look, settings):
                continue
            copies += 1
            if nearest is None or (bits, False) < (nearest.distance, nearest.url is None):
                own = page.page_id if page.own else None
                nearest = KnownMatch(bits, own, page.url, page.html_digest)
            if copies >= settings.keep_first:
                break
        return nearest and nearest._replace(copies=copies)


def _near_before(
    simhashes: NDArray[np.uint64], first: int, distance: int
) -> dict[int, tuple[NDArray[np.intp], NDArray[np.uint8]]]:
    """Return which simhashes before each one from ``first`` on are near it, and how near.

    Those that have none are left out.
    """
    found = {}
    step = max(1, _ROOM // max(1, len(simhashes)))
    for start in range(first, len(simhashes), step):
        some = simhashes[start : start + step]
        rows, places, distances = near_pairs(some, simhashes[: start + len(some)], distance)
        before = places < rows + start
        rows, places, distances = rows[before], places[before], distances[before]
        numbers, begins = np.unique(rows, return_index=True)
        ends = [*begins[1:].tolist(), len(places)]
        for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends, strict=False):
            found[start - first + number] = (places[begin:end], distances[begin:end])
    return found


def _marked_same(
    record: PageRecord, versions: Mapping[str, KnownVersion], marks: Mapping[str, MarksOf]
) -> KnownMatch | None:
    """Return the page known first of those marked the same, if it was known before this one."""
    same = marks.get(record.url, UNMARKED).same
    known = [(versions[url].first_id, url) for url in same if _is_earlier(url, record, versions)]
    return _original(min(known)[1], record, versions, "marked_same") if known else None


def _canonical(
    record: PageRecord,
    versions: Mapping[str, KnownVersion],
    marks: Mapping[str, MarksOf],
    settings: MatchSettings,
) -> KnownMatch | None:
    """Return the page that a record names as the canonical one, if it is to be believed."""
    url = record.canonical_url
    if not settings.canonical_link or url is None or not same_site(url, record.url):
        return None
    if url in marks.get(record.url, UNMARKED).different or not _is_earlier(url, record, versions):
        return None
    return _original(url, record, versions, "canonical_link")


def _is_earlier(url: str, record: PageRecord, versions: Mapping[str, KnownVersion]) -> bool:
    """Return whether ``url`` was known before the record's own URL was."""
    own = versions.get(record.url)
    return url in versions and (own is None or versions[url].first_id < own.first_id)


def _original(
    url: str, record: PageRecord, versions: Mapping[str, KnownVersion], reason: str
) -> KnownMatch:
    bits = hamming_distance(record.simhash, versions[url].simhash)
    return KnownMatch(bits, versions[url].page_id, url, reason=reason)


def _counts(page: ArrivedPage, bits: int, look: Look, settings: MatchSettings) -> bool:
    """Return whether a page counts as an original; see :func:`decide` for the rule."""
    return (
        (page.own or settings.scope == "global")
        and (look.host is None or host_of(page.url) == look.host)
        and (look.since is None or page.fetched_at is None or page.fetched_at >= look.since)
        and (page.url == look.url or not {page.url, page.original} & set(look.apart))
        and not _is_itself(page, look, settings)
        and (not settings.verify or verified(bits, look.sketch, page.sketch))
    )


def _is_itself(page: ArrivedPage, look: Look, settings: MatchSettings) -> bool:
    """Return whether a page is another version of the one in question, or a copy of one."""
    if look.before is None:
        return False
    is_later = page.page_id > look.first_id
    return page.url == look.url or (
        is_later and hamming_distance(page.simhash, look.before) <= settings.distance
    )
