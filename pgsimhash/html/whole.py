"""Show tables, lists, figures and code whole or not at all.

A header row, a list of three words or a caption has little weight alone, but belongs to the text
around it. What is shown of an element, and next to it, decides.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.html.page_words import Page
from pgsimhash.html.tree import (
    IS_CELL_BLOCK,
    IS_CODE,
    IS_FIGURE,
    IS_HEADER_CELL,
    IS_LIST,
    IS_ROW,
    IS_TABLE,
    Floats,
    Integers,
)

_LINKS: Final = 0.5
"""A list with a larger share of its words in links is a list of links."""


def with_whole_elements(page: Page, shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks are shown, including those without words (shape (blocks,)).

    Data tables, lists and code are shown whole if a part of them is shown, or a block next to them.
    Figures and lists of links are shown if they are between shown blocks. Boilerplate by its names
    or tags is not shown. Next to an element is the rest of the two elements around it.
    """
    tree = page.tree
    blocks = len(tree.all_owners)
    kept = np.zeros(blocks, np.bool_)
    kept[page.places[shown]] = True
    kinds = tree.kinds
    whole = kinds & (IS_TABLE | IS_LIST | IS_FIGURE | IS_CODE) > 0
    if not kept.any() or not whole.any():
        return kept
    parents, ends = tree.parents, tree.ends
    starts, stops = _places(tree.all_owners, ends)
    whole &= stops > starts
    if (kinds & IS_TABLE).any():
        whole &= _is_data(kinds, ends) | (kinds & IS_TABLE == 0)
    elements = np.flatnonzero(whole)
    first, last = starts[elements], stops[elements]
    near = _around(parents, stops - starts)[elements]
    wide = parents[near]
    seen = _sums(kept)
    between = (seen[first] > seen[starts[near]]) & (seen[stops[near]] > seen[last])
    beside = (seen[first] > seen[starts[wide]]) | (seen[stops[wide]] > seen[last])
    is_text = _between(page, page.linked, first, last) <= _LINKS * _between(
        page, page.counts, first, last
    )
    is_text &= kinds[elements] & IS_FIGURE == 0
    chosen = between | (is_text & (beside | (seen[last] > seen[first])))
    chosen &= _between(page, tree.in_frame(), first, last) == 0
    changes = np.zeros(blocks + 1, np.int64)
    np.add.at(changes, first[chosen], 1)
    np.add.at(changes, last[chosen], -1)
    return kept | (np.cumsum(changes[:-1]) > 0)


def _sums(amounts: NDArray[np.bool_] | Floats | Integers) -> Floats:
    """Return the cumulative sums, beginning with 0 (shape (n + 1,))."""
    return np.concatenate(((0.0,), np.cumsum(amounts)))


def _between(
    page: Page, amounts: NDArray[np.bool_] | Floats, first: Integers, last: Integers
) -> Floats:
    """Return the sums of amounts of blocks with words, from each first block up to the last."""
    sums = _sums(amounts)
    until: Floats = sums[np.searchsorted(page.places, last)]
    return until - sums[np.searchsorted(page.places, first)]


def _places(owners: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Return the first block in each element and the one behind its last."""
    own = np.bincount(owners, minlength=len(ends))
    own_numbers = np.bincount(owners, np.arange(len(owners)), len(ends))
    counts, numbers = (
        (sums[ends] - sums[:-1]).astype(np.int64) for sums in map(_sums, (own, own_numbers))
    )
    # The blocks of an element are consecutive, so the sum of their numbers gives the first.
    starts = (numbers - counts * (counts - 1) // 2) // np.maximum(counts, 1)
    return starts, starts + counts


def _around(parents: Integers, counts: Integers) -> Integers:
    """Return for each element the nearest around it that holds more blocks, or element 0."""
    above = np.where(counts[parents] == counts, parents, np.arange(len(parents)))
    # Each step doubles the number of levels.
    while not np.array_equal(further := above[above], above):
        above = further
    around: Integers = parents[above]
    return around


def _is_data(kinds: Integers, ends: Integers) -> NDArray[np.bool_]:
    """Return which elements, if tables, are data tables by the rule of ``is_data_table``."""
    starts = np.arange(len(kinds)) + 1

    def below(kind: int) -> Floats:
        sums = _sums(kinds & kind > 0)
        counts: Floats = sums[ends] - sums[starts]
        return counts

    has_data = (below(IS_HEADER_CELL) > 0) | ((below(IS_ROW) > 1) & (below(IS_CELL_BLOCK) == 0))
    data: NDArray[np.bool_] = has_data & (below(IS_TABLE) == 0)
    return data
