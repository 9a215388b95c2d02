"""Find the original of each row of a column of texts or pages, in memory."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.bits import BITS, check_distance
from pgsimhash.hashing.signature import confirmations
from pgsimhash.runtime.threads import in_threads
from pgsimhash.schemes.registry import SHORT_SCHEME, TEXT_SCHEME, Scheme
from pgsimhash.schemes.texts import Cell
from pgsimhash.search.layout import DISTANCE_MAX
from pgsimhash.search.pairs import Pairs, in_blocks, layout_for, pairs_by

SAMPLE: Final = 2000  # texts that choose the scheme

_PLACE_BITS: Final = 40
_PLACES: Final = (1 << _PLACE_BITS) - 1
_NONE: Final = (1 << 62) - 1  # more than any distance and place


class Original(NamedTuple):
    """The distance of the original, its row, and that of the first original, which has none."""

    distance: int
    row: int
    first: int


def find_originals(
    cells: Sequence[Cell],
    scheme: Scheme,
    distance: int | None = None,
    jobs: int = 1,
    *,
    verify: bool = True,
) -> list[Original | None]:
    """Return the original of each row, or None: the nearest earlier one, of several the first.

    The default distance of texts is above that of collections, where a search costs more, and it
    suffices that the second simhashes of two signatures are within it.
    """
    is_of_texts = scheme.name in (TEXT_SCHEME.name, SHORT_SCHEME.name)
    by_seconds = verify and distance is None and is_of_texts
    if distance is None:
        distance = 11 if is_of_texts else scheme.distance
    numbers: dict[str | tuple[int, int | None], int] = {}
    firsts: list[int] = []  # the first row of each distinct text or pair of simhash and signature
    of_rows: list[int | None] = []
    for row, (simhash, signature, _, text) in enumerate(cells):
        key = text if simhash is None else (simhash, signature if verify else None)
        of_rows.append(numbers.setdefault(key, len(firsts)) if key else None)
        if of_rows[-1] == len(firsts):
            firsts.append(row)
    distinct = [cells[row] for row in firsts]
    nearest = _nearest(distinct, distance, jobs, verify, by_seconds).tolist()
    originals: list[Original | None] = []
    for row, number in enumerate(of_rows):
        best = _NONE if number is None else nearest[number]
        if number is not None and firsts[number] < row:  # an equal row is earlier
            best = min(best, number)
        if best == _NONE:
            originals.append(None)
            continue
        earlier = firsts[best & _PLACES]
        above = originals[earlier]
        first = earlier if above is None else above.first
        originals.append(Original(best >> _PLACE_BITS, earlier, first))
    return originals


def _nearest(
    cells: Sequence[Cell], limit: int, jobs: int, verify: bool, by_seconds: bool
) -> NDArray[np.int64]:
    """Return for each cell the nearest earlier one: its distance, and its place in the low bits."""
    # Simhashes; and second ones, of signatures.
    columns = [[cell.simhash for cell in cells]]
    if by_seconds:
        columns.append([cell.signature and cell.signature >> BITS for cell in cells])
    simhashes = np.array([simhash or 0 for simhash in columns[0]], np.uint64)
    confirmed = confirmations([cell.signature for cell in cells])
    nearest = np.full(len(cells), _NONE)
    lock = Lock()

    def keep(ones: NDArray[np.intp], others: NDArray[np.intp]) -> None:
        earlier, later = np.minimum(ones, others), np.maximum(ones, others)
        bits = np.bitwise_count(simhashes[earlier] ^ simhashes[later]).astype(np.int64)
        matches = earlier < later
        if verify:
            matches &= confirmed(earlier, later, bits)
        keys = bits[matches] << _PLACE_BITS | earlier[matches]
        with lock:
            np.minimum.at(nearest, later[matches], keys)

    for column in columns:
        _search(column, check_distance(limit, DISTANCE_MAX), jobs, keep)
    return nearest


def _search(
    column: Sequence[int | None],
    limit: int,
    jobs: int,
    keep: Callable[[NDArray[np.intp], NDArray[np.intp]], None],
) -> None:
    """Pass the places of near and equal simhashes to ``keep``, in threads."""
    places = np.array([at for at, simhash in enumerate(column) if simhash is not None], np.intp)
    simhashes = np.array([column[at] for at in places.tolist()], np.uint64)
    places = places[np.argsort(simhashes, kind="stable")]
    known, begins, counts = np.unique(np.sort(simhashes), return_index=True, return_counts=True)
    layout = layout_for(limit, len(known))

    def search(blocks: Iterable[Pairs]) -> None:
        for low, high, _ in blocks:
            lows, highs = np.searchsorted(known, low), np.searchsorted(known, high)
            # One cell of each lower simhash at a time: many cells may have the same simhash.
            for nth in range(counts[lows].max(initial=0)):
                left = counts[lows] > nth
                lows, highs = lows[left], highs[left]
                sizes = counts[highs]
                inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
                others = places[np.repeat(begins[highs], sizes) + inside]
                keep(np.repeat(places[begins[lows] + nth], sizes), others)

    several = known[counts > 1]
    same = [Pairs(several, several, np.zeros(len(several), np.uint8))]
    # In blocks, for of one template nearly all texts may be pairs.
    near = (in_blocks(pairs_by(each, layout, known, limit)) for each in layout.permutations)
    deque(in_threads(search, chain([same], near), jobs), maxlen=0)
