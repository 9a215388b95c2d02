"""The clusters of a collection, confirmed by signatures, joined and split by marks; their table.

In a cluster by simhashes, signatures must confirm the matches, as in verdicts. The cluster falls
into the connected parts of the confirmed ones.

A ``same`` mark joins the clusters of its two pages, with ``complete`` linkage too. Then
``different`` marks split clusters. Each marked page, in the order of page ids, goes to the nearest
part without a page that it differs from, or begins a part. Every other page follows the nearest
marked page; those that signatures confirm come first, among equals the one stored first. Pages that
``same`` marks join stay together.
"""

from array import array
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.bits import from_bigint, hamming_distance
from pgsimhash.hashing.signature import confirmations, from_halves, verified
from pgsimhash.pages.records import Mark
from pgsimhash.runtime import no_progress
from pgsimhash.search.clusters import (
    Cluster,
    ClusterPage,
    Linkage,
    Score,
    cluster_simhashes,
    make_cluster,
)
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared, Pairs, stream_pairs
from pgsimhash.store.collection import follow
from pgsimhash.store.lookups import Calls
from pgsimhash.store.session import Session

_SAVED: Final = 50_000  # members of clusters per statement that saves them


def clusters(
    calls: Calls, distance: int, linkage: Linkage, score: Score, progress: Compared = no_progress
) -> Iterator[Cluster]:
    """Yield the clusters of more than one page; the connection must be in a transaction."""
    simhashes = calls.simhashes()
    pairs = stream_pairs(simhashes, distance, progress=progress)
    roots = cluster_simhashes(simhashes, pairs, linkage, distance)
    marks = calls.records("marks", Mark)
    roots = join_marked(simhashes, roots, _joined(calls, marks, simhashes))
    # Those that share their cluster with others.
    shared: NDArray[np.bool_] = simhashes != roots
    shared[np.searchsorted(simhashes, roots[shared])] = True
    # Literals of PostgreSQL.
    arrays = {
        name: f"{{{','.join(map(str, part[shared].view('int64').tolist()))}}}"
        for name, part in (("simhashes", simhashes), ("clusters", roots))
    }
    with closing(calls.stream("clusters", **arrays)) as rows:
        for _, members in groupby(rows, key=itemgetter(0)):
            pages = [
                ClusterPage(page_id, url, from_bigint(simhash), *[*others, from_halves(high, low)])
                for _, page_id, url, simhash, *others, high, low in members
            ]
            for confirmed in confirmed_parts(pages, marks, distance):
                for part in split_marked(confirmed, marks):
                    if len(part) > 1:
                        yield make_cluster(part, score)


def stream_clusters(
    session: Session, distance: int | None, linkage: Linkage, score: Score, progress: Compared
) -> Generator[Cluster]:
    """Yield the clusters in one transaction."""
    with session.calls_to_read(one_transaction=True) as calls:
        bits = calls.collection.checked_distance(distance, DISTANCE_MAX)
        yield from clusters(calls, bits, linkage, score, progress)


def save_clusters(
    session: Session, distance: int | None, linkage: Linkage, score: Score, progress: Compared
) -> int:
    """Replace the rows of the table, all computed before, and return the number of clusters."""
    page_ids, ids, canonical = array("q"), array("q"), array("b")
    with session.calls_to_read(one_transaction=True) as calls:
        bits = calls.collection.checked_distance(distance, DISTANCE_MAX)
        for cluster in clusters(calls, bits, linkage, score, progress):
            for page in cluster.pages:
                page_ids.append(page.page_id)
                ids.append(cluster.cluster_id)
                canonical.append(page is cluster.canonical)
        # Not before: computing takes longer than a transaction may idle.
        follow(*calls, limited=session.connections.owned)
        calls.lock()
        for start in range(0, max(len(page_ids), 1), _SAVED):
            part = slice(start, start + _SAVED)
            calls.fetch(
                "save_clusters",
                page_ids=page_ids[part].tolist(),
                clusters=ids[part].tolist(),
                canonical=list(map(bool, canonical[part])),
                first=start == 0,
            )
    return len(set(ids))


def _joined(
    calls: Calls, marks: Sequence[Mark], simhashes: NDArray[np.uint64]
) -> list[tuple[int, int]]:
    """Return the present simhashes of the pages that must-links join."""
    must_links = [(mark.a, mark.b) for mark in marks if mark.same]
    urls = list(chain.from_iterable(must_links))
    pages = calls.stored_pages(urls, ("url", "simhash"))
    present = {page["url"]: page["simhash"] for page in pages}
    ends = [(present[a], present[b]) for a, b in must_links if {a, b} <= present.keys()]
    # Skip simhashes that were added after the others were read.
    return [pair for pair in ends if np.isin(np.array(pair, np.uint64), simhashes).all()]


def join_marked(
    simhashes: NDArray[np.uint64], roots: NDArray[np.uint64], joined: Iterable[tuple[int, int]]
) -> NDArray[np.uint64]:
    """Return the smallest simhash of each one's cluster, after joining the clusters of pairs.

    ``simhashes`` are distinct and ascending, ``roots`` the smallest of their clusters before.
    """
    pairs = np.array(list(joined), dtype=np.uint64).reshape(-1, 2)
    if not len(pairs):
        return roots
    ends = roots[np.searchsorted(simhashes, pairs)]
    links = Pairs(ends[:, 0], ends[:, 1], np.zeros(len(ends), dtype=np.uint8))
    new_roots = cluster_simhashes(simhashes, [links])
    return new_roots[np.searchsorted(simhashes, roots)]


def confirmed_parts(
    pages: Sequence[ClusterPage], marks: Iterable[Mark], distance: int
) -> list[list[ClusterPage]]:
    """Return the parts of a cluster that signatures or ``same`` marks connect, in its order."""
    nodes: dict[tuple[int, int | None], int] = {}
    places = [nodes.setdefault((page.simhash, page.signature), len(nodes)) for page in pages]
    if len(nodes) == 1:
        return [list(pages)]
    urls = {page.url for page in pages}
    units = _units(mark for mark in marks if mark.a in urls and mark.b in urls)
    joined = defaultdict[str, set[int]](set)
    for page, place in zip(pages, places, strict=True):
        if page.url in units:
            joined[units[page.url]].add(place)
    simhashes = np.array([simhash for simhash, _ in nodes], dtype=np.uint64)
    confirmed = confirmations([signature for _, signature in nodes])
    part = np.full(len(nodes), -1)
    for first in range(len(nodes)):
        reached = [first] if part[first] < 0 else []
        part[reached] = first
        while reached:
            place = reached.pop()
            rest = np.flatnonzero(part < 0)
            bits = np.bitwise_count(simhashes[rest] ^ simhashes[place])
            found = set(rest[(bits <= distance) & confirmed(place, rest, bits)].tolist())
            for group in joined.values():
                if place in group:
                    found |= group.intersection(rest.tolist())
            part[list(found)] = first
            reached += found
    parts = defaultdict[int, list[ClusterPage]](list)
    for page, place in zip(pages, places, strict=True):
        parts[int(part[place])].append(page)
    return list(parts.values())


def split_marked(pages: Sequence[ClusterPage], marks: Iterable[Mark]) -> list[list[ClusterPage]]:
    """Return the parts into which marks split a cluster; all in the order of page ids."""
    urls = {page.url for page in pages}
    inside = [mark for mark in marks if mark.a in urls and mark.b in urls]
    units = _units(inside)
    apart: dict[str, set[str]] = {}
    for mark in inside:
        if not mark.same:
            a, b = units.get(mark.a, mark.a), units.get(mark.b, mark.b)
            apart.setdefault(a, set()).add(b)
            apart.setdefault(b, set()).add(a)
    if not apart:
        return [list(pages)]
    parts: list[list[ClusterPage]] = []
    marked: list[list[ClusterPage]] = []  # the marked pages of each part
    place: dict[str, int] = {}
    # Marked pages first.
    for page in sorted(pages, key=lambda page: units.get(page.url, page.url) not in apart):
        unit = units.get(page.url, page.url)
        if unit not in place:
            taken = {place.get(other) for other in apart.get(unit, ())}
            distances = [
                (not verified(bits, page.signature, other.signature), bits, other.page_id, number)
                for number, part in enumerate(marked)
                if number not in taken
                for other in part
                for bits in [hamming_distance(page.simhash, other.simhash)]
            ]
            place[unit] = min(distances)[3] if distances else len(parts)
            if place[unit] == len(parts):
                parts.append([])
                marked.append([])
        parts[place[unit]].append(page)
        if unit in apart:
            marked[place[unit]].append(page)
    return [sorted(part, key=lambda page: page.page_id) for part in parts]


def _units(marks: Iterable[Mark]) -> dict[str, str]:
    """Return the least URL of the group of each URL with a ``same`` mark."""
    groups: dict[str, set[str]] = {}
    for mark in marks:
        if mark.same:
            group = groups.get(mark.a, {mark.a}) | groups.get(mark.b, {mark.b})
            groups.update(dict.fromkeys(group, group))
    return {url: min(group) for url, group in groups.items()}
