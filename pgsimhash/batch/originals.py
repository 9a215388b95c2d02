"""Find the original of each row of a column of texts or pages, in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, tee
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.hashing.signature import verified
from pgsimhash.schemes.registry import SHORT_SCHEME, TEXT_SCHEME, Scheme
from pgsimhash.schemes.texts import vote_texts
from pgsimhash.search.pairs import find_pairs

TEXT_DISTANCE: Final = 11
"""The default distance of schemes for texts: a search in memory costs less than in a collection."""

SAMPLE: Final = 2000  # texts that choose the scheme


class Cell(NamedTuple):
    """A cell that was read: its simhash and signature, or the reason why it has none.

    A text without a simhash has its words, joined by single spaces.
    """

    simhash: int | None = None
    reason: str | None = None
    signature: int | None = None
    text: str | None = None


class Original(NamedTuple):
    """The distance of the original, and its row."""

    distance: int
    row: int


def default_distance(scheme: Scheme) -> int:
    """Return the default distance of a search in memory."""
    return TEXT_DISTANCE if scheme in (TEXT_SCHEME, SHORT_SCHEME) else scheme.distance


def read_texts(texts: Iterable[str], scheme: Scheme, jobs: int = 1) -> Iterator[Cell]:
    """Yield the cell of each text."""
    voting, kept = tee(texts)
    for text, vote in zip(kept, vote_texts(voting, scheme, jobs), strict=True):
        if vote is None:
            yield Cell(reason="too_short", text=" ".join(text.split()))
        else:
            yield Cell(vote.simhash, signature=vote.signature)


def find_originals(
    cells: Sequence[Cell], limit: int, jobs: int = 1, *, verify: bool = True
) -> list[Original | None]:
    """Return the original of each row, or None: the nearest earlier one, of several the first."""
    known = {cell.simhash for cell in cells if cell.simhash is not None}
    near = _near_simhashes(np.fromiter(known, dtype=np.uint64, count=len(known)), limit, jobs)
    rows_of: dict[int, list[int]] = {}

    def nearest(row: int, simhash: int, signature: int | None) -> Original | None:
        best = None
        for distance, other in chain([(0, simhash)], near(simhash)):
            if best is not None and best.distance < distance:
                break
            for earlier in rows_of.get(other, ()):
                if best is not None and best.row < earlier:
                    break
                if not verify or verified(distance, signature, cells[earlier].signature):
                    best = Original(distance, earlier)
                    break
        return best

    originals: list[Original | None] = []
    first_of: dict[str, int] = {}
    for row, (simhash, _, signature, text) in enumerate(cells):
        original = None
        if simhash is not None:
            original = nearest(row, simhash, signature)
            rows_of.setdefault(simhash, []).append(row)
        elif text:
            first = first_of.setdefault(text, row)
            original = None if first == row else Original(0, first)
        originals.append(original)
    return originals


def _near_simhashes(
    simhashes: NDArray[np.uint64], limit: int, jobs: int
) -> Callable[[int], Iterator[tuple[int, int]]]:
    """Return a function that yields the distance of each near simhash, and it, nearest first."""
    pairs = find_pairs(simhashes, limit, jobs=jobs)
    ones, others = np.concatenate([pairs[:2], pairs[1::-1]], axis=1)
    distances = np.tile(pairs.distances, 2)
    order = np.lexsort((distances, ones))
    others, distances = others[order], distances[order]
    known, begins = np.unique(ones[order], return_index=True)
    ranges = dict(zip(known.tolist(), map(slice, begins, [*begins[1:], len(ones)]), strict=True))

    def near(simhash: int) -> Iterator[tuple[int, int]]:
        place = ranges.get(simhash, slice(0))
        return zip(distances[place].tolist(), others[place].tolist(), strict=True)

    return near


def first_originals(originals: Sequence[Original | None]) -> list[int]:
    """Return the row of the first original of each row, its own if it has none."""
    firsts: list[int] = []
    for row, original in enumerate(originals):
        firsts.append(row if original is None else firsts[original.row])
    return firsts
