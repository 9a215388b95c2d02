"""Find near pairs among unlabelled pages, and choose borderline pairs to label."""

from __future__ import annotations

import csv
import heapq
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.analysis.limits import LARGEST
from pgsimhash.analysis.measures import Unseen
from pgsimhash.hashing.bits import check_distance, check_simhashes, hamming_distances
from pgsimhash.search.clusters import cluster_simhashes
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import stream_pairs

SPREAD: Final = 2
"""How many bits a borderline pair may be from the requested distance."""

_Candidate = tuple[float, int, int]
"""A random key, and the numbers of two pages."""

_TITLE: Final = 300
"""How many characters of a title are shown."""

_ROWS: Final = 128
_COLUMNS: Final = 1 << 14
"""A tile of this many rows and columns, 16 MB, is compared at a time."""


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
        unseen: the share of words in low-weight blocks; None if no page was read.
    """

    pages: int
    histogram: NDArray[np.int64]
    borderline: list[Unlabelled]
    unseen: Unseen | None = None


def sample_near_pairs(
    urls: Sequence[str],
    simhashes: NDArray[np.uint64],
    distance: int,
    borderline: int = 100,
    seed: int = 0,
    *,
    titles: Sequence[str | None] | None = None,
) -> NearSample:
    """Compare all pages with each other, up to 16 bits, and choose borderline pairs.

    The comparison is exact and takes quadratic time (10,000 pages are 50 million comparisons). It
    needs less than 100 MB of memory besides the arrays.

    Borderline pairs are within :data:`SPREAD` bits of ``distance``. They are spread over the
    clusters of pairs up to ``distance`` (at most 12): no cluster gets a second pair before all
    others have one. Next, they are spread evenly over the distances, and prefer simhashes that are
    in no pair yet. Otherwise the choice is random, and the same for the same ``seed``.

    Args:
        urls: the names of the pages.
        simhashes: shape (n,), dtype uint64, in the order of ``urls``.
        distance: the distance to evaluate, 0 to 16.
        borderline: the maximum number of pairs to choose.
        seed: the seed of the choice.
        titles: the titles for the borderline pairs, in the order of ``urls``.

    Raises:
        ArgumentError: ``simhashes`` has another shape or dtype, or ``distance`` is not in 0..16.
        ValueError: ``urls``, ``simhashes`` and ``titles`` differ in length, or ``borderline`` is
            negative.
    """
    values = check_simhashes(simhashes)
    middle = check_distance(distance, LARGEST)
    names = [None] * len(urls) if titles is None else titles
    if not len(urls) == len(values) == len(names):
        raise ValueError(
            f"one URL and one title for each simhash: {len(urls)}, {len(names)} and {len(values)} "
            "differ"
        )
    if borderline < 0:
        raise ValueError(f"borderline must be at least 0, not {borderline}")
    around = range(max(middle - SPREAD, 0), min(middle + SPREAD, LARGEST) + 1)
    samples = {bits: _Kept(borderline, len(values)) for bits in around if borderline}
    histogram = np.zeros(LARGEST + 1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    for rows, columns, distances in _near(values):
        histogram += np.bincount(distances, minlength=LARGEST + 1)
        for bits, pairs in samples.items():
            at = np.flatnonzero(distances == bits)
            if len(at):
                pairs.add(rng.random(len(at)), rows[at], columns[at])
    candidates = {bits: pairs.all() for bits, pairs in samples.items()}
    chosen = [
        Unlabelled(urls[row], urls[column], bits, names[row], names[column])
        for bits, row, column in _spread(candidates, values, _clusters(values, middle), borderline)
    ]
    return NearSample(len(values), histogram, chosen)


def unlabelled_csv(pairs: Sequence[Unlabelled]) -> str:
    """Return pairs as the CSV that ``read_labels`` reads, with an empty column ``label``.

    Titles that a spreadsheet would read as formulas get an apostrophe in front.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("a", "b", "label", "kind", "distance", "a_title", "b_title"))
    writer.writerows(
        (pair.a, pair.b, "", "borderline", pair.distance, *map(_cell, (pair.a_title, pair.b_title)))
        for pair in pairs
    )
    return file.getvalue()


def _cell(title: str | None) -> str:
    text = " ".join((title or "").split())[:_TITLE]
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _near(
    values: NDArray[np.uint64],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]]:
    """Yield the pairs up to 16 bits by tiles: the rows, the larger columns, the distances."""
    for top in range(0, len(values), _ROWS):
        rows = values[top : top + _ROWS, np.newaxis]
        for left in range(top, len(values), _COLUMNS):
            distances = hamming_distances(rows, values[left : left + _COLUMNS])
            row, column = np.nonzero(distances <= LARGEST)
            later = column + left > row + top
            row, column = row[later], column[later]
            yield row + top, column + left, distances[row, column]


def _clusters(values: NDArray[np.uint64], distance: int) -> NDArray[np.uint64]:
    """Return for each simhash the smallest simhash of its cluster."""
    distinct = np.unique(values)
    nearest = min(distance, DISTANCE_MAX)
    roots = cluster_simhashes(distinct, stream_pairs(distinct, nearest))
    return roots[np.searchsorted(distinct, values)]


def _spread(
    candidates: Mapping[int, list[_Candidate]],
    values: NDArray[np.uint64],
    clusters: NDArray[np.uint64],
    count: int,
) -> list[tuple[int, int, int]]:
    """Choose ``count`` pairs: distance, row, column, the smallest distances first.

    Each choice is the pair whose clusters are in the fewest chosen pairs, then the one whose
    distance is, then the one whose simhashes are.
    """
    in_cluster: Counter[int] = Counter()
    at_distance: Counter[int] = Counter()
    of_simhash: Counter[int] = Counter()

    def used(bits: int, row: int, column: int) -> tuple[int, int, int]:
        return (
            max(in_cluster[int(clusters[row])], in_cluster[int(clusters[column])]),
            at_distance[bits],
            of_simhash[int(values[row])] + of_simhash[int(values[column])],
        )

    heap = sorted(
        ((0, 0, 0), key, bits, row, column)
        for bits, pairs in candidates.items()
        for key, row, column in pairs
    )
    chosen: list[tuple[int, int, int]] = []
    while heap and len(chosen) < count:
        before, key, bits, row, column = heap[0]
        now = used(bits, row, column)
        if now != before:
            # Counts only grow, so an unchanged top of the heap is the least used pair.
            heapq.heapreplace(heap, (now, key, bits, row, column))
            continue
        heapq.heappop(heap)
        in_cluster.update({int(clusters[row]), int(clusters[column])})
        at_distance[bits] += 1
        of_simhash.update({int(values[row]), int(values[column])})
        chosen.append((bits, row, column))
    return sorted(chosen, key=itemgetter(0))


class _Kept:
    """The pairs at one distance with the lowest random keys, and the lowest pair of each row.

    The former are a uniform sample; the latter make sure that no cluster is missed.
    """

    def __init__(self, size: int, rows: int) -> None:
        self._size = size
        self._keys = np.empty(0)
        self._pairs = np.empty((0, 2), dtype=np.int64)
        self._lowest = np.full(rows, np.inf)
        self._columns = np.zeros(rows, dtype=np.int64)

    def add(
        self, keys: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> None:
        np.minimum.at(self._lowest, rows, keys)
        lowest = self._lowest[rows] == keys
        self._columns[rows[lowest]] = columns[lowest]
        keys = np.concatenate((self._keys, keys))
        pairs = np.concatenate((self._pairs, np.column_stack((rows, columns))))
        order = np.argsort(keys, kind="stable")[: self._size]
        self._keys, self._pairs = keys[order], pairs[order]

    def all(self) -> list[_Candidate]:
        """Return each pair once: its key, the row, the column."""
        keys = {
            (row, column): key
            for key, (row, column) in zip(self._keys.tolist(), self._pairs.tolist(), strict=True)
        }
        for row in np.flatnonzero(np.isfinite(self._lowest)).tolist():
            keys[row, int(self._columns[row])] = float(self._lowest[row])
        return [(key, row, column) for (row, column), key in keys.items()]
