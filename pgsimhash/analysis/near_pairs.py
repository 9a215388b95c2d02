"""Near pairs among pages that nobody labelled, and the ones worth a person's time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.analysis.measures import LARGEST
from pgsimhash.bits import check_distance, check_simhashes, hamming_distances

SPREAD: Final = 2
"""How many bits from the distance asked for a pair may be to be worth a label."""

_ROWS: Final = 128
_COLUMNS: Final = 1 << 14
"""A tile of this many rows and columns, 16 MB, is compared at a time."""


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Two pages for a person to compare, and the bits between them."""

    a: str
    b: str
    distance: int


@dataclass(frozen=True, slots=True)
class NearSample:
    """The near pairs in a sample.

    Attributes:
        pages: how many pages were compared, each with each.
        histogram: how many pairs are at each distance; shape (17,), dtype int64.
        borderline: pairs around the distance asked for, nearest to each other first.
    """

    pages: int
    histogram: NDArray[np.int64]
    borderline: list[Unlabelled]


def sample_near_pairs(
    urls: Sequence[str],
    simhashes: NDArray[np.uint64],
    distance: int,
    borderline: int = 100,
    seed: int = 0,
) -> NearSample:
    """Compare all pages with each other, up to 16 bits, and choose borderline pairs.

    Exact, by brute force: the time is quadratic (10,000 pages are 50 million comparisons), the
    memory is that of the arrays and below 100 MB. The borderline pairs are those within
    :data:`SPREAD` bits of ``distance``, as evenly over those distances as there are pairs; of
    each distance they are a uniform sample, the same for the same ``seed``.

    Args:
        urls: the names of the pages.
        simhashes: shape (n,), dtype uint64, in the order of ``urls``.
        distance: the distance that is in question, 0 to 16.
        borderline: the most pairs to choose.
        seed: of the choice.

    Raises:
        ArgumentError: ``simhashes`` has another shape or dtype; or ``distance`` is not in 0..16.
        ValueError: ``urls`` and ``simhashes`` differ in length, or ``borderline`` is negative.
    """
    values = check_simhashes(simhashes)
    middle = check_distance(distance, LARGEST)
    if len(urls) != len(values):
        raise ValueError(f"one URL for each simhash: {len(urls)} and {len(values)} differ")
    if borderline < 0:
        raise ValueError(f"borderline is a number of pairs, 0 or more, not {borderline}")
    around = range(max(middle - SPREAD, 0), min(middle + SPREAD, LARGEST) + 1)
    kept = {bits: _Lowest(borderline) for bits in around}
    histogram = np.zeros(LARGEST + 1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    for rows, columns, distances in _near(values):
        histogram += np.bincount(distances, minlength=LARGEST + 1)
        for bits, lowest in kept.items():
            at = np.flatnonzero(distances == bits)
            if len(at):
                lowest.add(rng.random(len(at)), rows[at], columns[at])
    chosen = [
        Unlabelled(urls[row], urls[column], bits)
        for bits, count in _shares({bits: len(kept[bits]) for bits in around}, borderline).items()
        for row, column in kept[bits].pairs(count)
    ]
    return NearSample(len(values), histogram, chosen)


def unlabelled_csv(pairs: Sequence[Unlabelled]) -> str:
    """Return pairs as the CSV that ``read_labels`` reads, the column ``label`` empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("a", "b", "label", "kind", "distance"))
    writer.writerows((pair.a, pair.b, "", "borderline", pair.distance) for pair in pairs)
    return file.getvalue()


def _near(
    values: NDArray[np.uint64],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]]:
    """Yield the pairs up to 16 bits, tile by tile: the row, the later column, the distance."""
    for top in range(0, len(values), _ROWS):
        rows = values[top : top + _ROWS, np.newaxis]
        for left in range(top, len(values), _COLUMNS):
            distances = hamming_distances(rows, values[left : left + _COLUMNS])
            row, column = np.nonzero(distances <= LARGEST)
            later = column + left > row + top
            row, column = row[later], column[later]
            yield row + top, column + left, distances[row, column]


def _shares(available: dict[int, int], wanted: int) -> dict[int, int]:
    """Share ``wanted`` among distances as evenly as what is available allows."""
    shares = dict.fromkeys(available, 0)
    while wanted > 0 and (open_to := [bits for bits in shares if shares[bits] < available[bits]]):
        each = max(wanted // len(open_to), 1)
        for bits in open_to:
            given = min(each, available[bits] - shares[bits], wanted)
            shares[bits] += given
            wanted -= given
    return shares


class _Lowest:
    """The pairs with the lowest random keys, which are a uniform sample of all that were added."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys = np.empty(0)
        self._pairs = np.empty((0, 2), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def add(
        self, keys: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> None:
        keys = np.concatenate((self._keys, keys))
        pairs = np.concatenate((self._pairs, np.column_stack((rows, columns))))
        order = np.argsort(keys, kind="stable")[: self._size]
        self._keys, self._pairs = keys[order], pairs[order]

    def pairs(self, count: int) -> list[tuple[int, int]]:
        return [(int(row), int(column)) for row, column in self._pairs[:count]]
