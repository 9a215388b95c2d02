"""Find all pairs of near-duplicates as pages with URLs, and sample pairs to label."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgsimhash.analysis.evaluation import LARGEST
from pgsimhash.db.statements import fetch, stream
from pgsimhash.hashing.bits import check_distance, format_simhash, from_bigint, hamming_distances
from pgsimhash.runtime import no_progress
from pgsimhash.search.clusters import cluster_simhashes
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Compared, Pairs, stream_pairs
from pgsimhash.store import Store
from pgsimhash.store.collection import Collection, checked_distance
from pgsimhash.store.lookups import all_simhashes

_PAIRS: Final = 2_000
"""Pairs per lookup of pages."""

SPREAD: Final = 2
"""How many bits a borderline pair may be from the requested distance."""

_OF_PAGE: Final = 3
"""The most candidates of a page at one distance."""

_TITLE: Final = 300
"""How many characters of a title are shown."""

_ROWS: Final = 128
"""How many pages are compared with all later ones at a time."""


class PairedPage(NamedTuple):
    """One page of a pair."""

    url: str
    title: str | None
    simhash: int


@dataclass(frozen=True, slots=True)
class PagePair:
    """Two pages, and their distance in bits."""

    a: PairedPage
    b: PairedPage
    distance: int

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, simhashes as 16 hex digits."""
        return {
            "a": self.a.url,
            "b": self.b.url,
            "distance": self.distance,
            "a_title": self.a.title,
            "b_title": self.b.title,
            "a_simhash": format_simhash(self.a.simhash),
            "b_simhash": format_simhash(self.b.simhash),
        }


def page_pairs(
    store: Store, distance: int | None = None, *, progress: Compared = no_progress
) -> Generator[PagePair]:
    """Yield the pairs of ``Store.pairs`` as pages with their URLs, in bounded memory.

    Only current versions count. The first page of a simhash represents it in pairs with other
    simhashes. It also forms a pair at distance 0 with each page of the same simhash. So ten
    thousand pages with one simhash give 9,999 pairs instead of 50 million; all other pairs follow
    from these. The transaction is open during the loop, as with ``Store.clusters``. Pages that are
    added or deleted meanwhile may be missing.

    Args:
        store: the store of the collection.
        distance: the largest number of differing bits; by default the collection's.
        progress: see ``Store.pairs``.

    Raises:
        ArgumentError: ``distance`` is not in 0..12.
    """
    checked_distance(store.opened, distance, DISTANCE_MAX)
    return _page_pairs(store, distance, progress)


class Sample(NamedTuple):
    """A sample of pages: URLs, simhashes (shape (n,), dtype uint64) and titles, in one order."""

    urls: list[str]
    simhashes: NDArray[np.uint64]
    titles: list[str | None]


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Two pages for a person to compare, and their distance."""

    a: str
    b: str
    distance: int
    a_title: str | None = None
    b_title: str | None = None


@dataclass(frozen=True, slots=True)
class NearSample:
    """The near pairs in a sample.

    Attributes:
        pages: the number of pages; all were compared with all.
        histogram: the number of pairs at each distance; shape (17,), dtype int64.
        borderline: pairs around the requested distance, the nearest first.
    """

    pages: int
    histogram: NDArray[np.int64]
    borderline: list[Unlabelled]


def simhashes(store: Store) -> NDArray[np.uint64]:
    """Return all distinct simhashes of the collection: shape (n,), dtype uint64."""
    with store.session.reading() as (connection, collection):
        return all_simhashes(connection, collection)


def sample(store: Store, size: int, seed: int = 0) -> Sample:
    """Return the current versions of ``size`` random pages, or of all if there are fewer.

    The same ``seed`` chooses the same pages.
    """
    with store.session.reading() as (connection, collection):
        parameters = {"collection_id": collection.collection_id, "size": size, "seed": seed}
        rows = fetch(connection, "sample", parameters)
    values = np.array([simhash for _, simhash, _ in rows], dtype=np.int64).view(np.uint64)
    return Sample([url for url, *_ in rows], values, [title for *_, title in rows])


def near_sample(sample: Sample, distance: int, borderline: int = 100, seed: int = 0) -> NearSample:
    """Compare all pages with each other, up to 16 bits, and choose borderline pairs.

    The comparison is exact and takes quadratic time (10,000 pages are 50 million comparisons).

    Borderline pairs are within :data:`SPREAD` bits of ``distance``, of pages with
    different simhashes. They are spread over the clusters of pairs up to ``distance`` (at most
    12): no cluster gets a second pair before all others have one. The choice is random, and the
    same for the same ``seed``.

    Args:
        sample: the pages.
        distance: the distance to evaluate, 0 to 16.
        borderline: the maximum number of pairs to choose.
        seed: the seed of the choice.

    Raises:
        ArgumentError: ``distance`` is not in 0..16.
    """
    values = sample.simhashes
    middle = check_distance(distance, LARGEST)
    around = range(max(middle - SPREAD, 0), min(middle + SPREAD, LARGEST) + 1)
    histogram = np.zeros(LARGEST + 1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    is_first = np.zeros(len(values), dtype=np.bool_)
    is_first[np.unique(values, return_index=True)[1]] = True
    candidates: list[tuple[int, int, int]] = []
    for top in range(0, len(values), _ROWS):
        distances = hamming_distances(values[top : top + _ROWS, np.newaxis], values[top:])
        # Each pair once.
        distances[np.tril_indices(len(distances), m=distances.shape[1])] = LARGEST + 1
        histogram += np.bincount(distances.ravel(), minlength=LARGEST + 2)[: LARGEST + 1]
        for row in np.flatnonzero(is_first[top : top + _ROWS]).tolist():
            for bits in around:
                columns = np.flatnonzero((distances[row] == bits) & is_first[top:])
                for column in rng.permutation(columns)[:_OF_PAGE].tolist():
                    candidates.append((bits, top + row, top + column))
    rng.shuffle(candidates)
    distinct = np.unique(values)
    pairs = stream_pairs(distinct, min(middle, DISTANCE_MAX))
    clusters = cluster_simhashes(distinct, pairs)[np.searchsorted(distinct, values)].tolist()
    used: Counter[int] = Counter()
    turns: list[int] = []
    for _, row, _ in candidates:
        turns.append(used[clusters[row]])
        used[clusters[row]] += 1
    chosen = []
    for place in np.argsort(turns, kind="stable")[:borderline].tolist():
        bits, row, column = candidates[place]
        urls, titles = ((each[row], each[column]) for each in (sample.urls, sample.titles))
        chosen.append(Unlabelled(*urls, bits, *titles))
    return NearSample(len(values), histogram, sorted(chosen, key=attrgetter("distance")))


def unlabelled_csv(pairs: Sequence[Unlabelled]) -> str:
    """Return pairs as the CSV that ``read_labels`` reads, with an empty column ``label``.

    Titles that a spreadsheet would read as formulas get an apostrophe in front.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("a", "b", "label", "kind", "distance", "a_title", "b_title"))
    for pair in pairs:
        titles = as_cell(pair.a_title), as_cell(pair.b_title)
        writer.writerow((pair.a, pair.b, "", "borderline", pair.distance, *titles))
    return file.getvalue()


def _page_pairs(store: Store, distance: int | None, progress: Compared) -> Generator[PagePair]:
    with store.session.reading(together=True) as (connection, collection):
        limit = checked_distance(collection, distance, DISTANCE_MAX)
        simhashes = all_simhashes(connection, collection)
        yield from _sharing(connection, collection)
        for chunk in stream_pairs(simhashes, limit, progress=progress):
            yield from _as_pages(connection, collection, chunk)


def _sharing(connection: psycopg.Connection[Any], collection: Collection) -> Iterator[PagePair]:
    """Yield the pairs of the first page of each simhash and its other pages."""
    scope = {"collection_id": collection.collection_id, "simhashes": [], "clusters": []}
    with closing(stream(connection, "clusters", scope)) as rows:
        for simhash, members in groupby(rows, key=itemgetter(0)):
            value = from_bigint(simhash)
            pages = (PairedPage(url, title, value) for _, _, url, _, _, title, *_ in members)
            first = next(pages)
            for other in pages:
                yield PagePair(first, other, 0)


def _as_pages(
    connection: psycopg.Connection[Any], collection: Collection, chunk: Pairs
) -> Iterator[PagePair]:
    """Yield the pairs of a chunk as the first pages of their simhashes."""
    for start in range(0, len(chunk.low), _PAIRS):
        low, high, distances = (column[start : start + _PAIRS] for column in chunk)
        signed = np.unique(np.concatenate((low, high))).view(np.int64).tolist()
        scope = {"collection_id": collection.collection_id, "simhashes": signed}
        first = {
            from_bigint(simhash): PairedPage(url, title, from_bigint(simhash))
            for simhash, url, title in fetch(connection, "first_pages", scope)
        }
        for a, b, bits in zip(low.tolist(), high.tolist(), distances.tolist(), strict=True):
            if a in first and b in first:
                yield PagePair(first[a], first[b], bits)


def as_cell(title: str | None) -> str:
    """Return a title on one line, with an apostrophe where a spreadsheet would see a formula."""
    text = " ".join((title or "").split())[:_TITLE]
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
