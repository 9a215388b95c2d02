"""What the elements around a block say about it: their names and tags, how much text they hold.

Each question is answered for all elements at once, in arrays.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import count, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.html.blocks import Outline
from pgsimhash.html.names import (
    BESIDE_TAGS,
    HEADING_TAGS,
    LIST_TAGS,
    SAYS_BESIDE,
    SAYS_CONTENT,
    SAYS_FOOTER,
    SAYS_HEADER,
    SAYS_HIDDEN,
    SAYS_OVERLAY,
    flags_of,
    words,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# What a tag is, in one number for each.
_IS_BESIDE, _IS_FOOTER, _IS_HEADER, _IS_CONTENT, _IS_LIST, _IS_H1, _IS_HEADING, _IS_COMMON = (
    1 << bit for bit in range(8)
)
_IS_TABLE, _IS_ROW, _IS_CELL = (1 << bit for bit in range(8, 11))
_TAGS: Final = flags_of(
    (
        (_IS_BESIDE, BESIDE_TAGS),
        (_IS_FOOTER, words("footer")),
        (_IS_HEADER, words("header")),
        (_IS_CONTENT, words("article main")),
        (_IS_LIST, LIST_TAGS),
        (_IS_H1, words("h1")),
        (_IS_HEADING, HEADING_TAGS),
        # Siblings of these tags are alike in any text.
        (_IS_COMMON, words("body h2 h3 p pre td tr")),
        (_IS_TABLE, words("table")),
        (_IS_ROW, words("tr")),
        (_IS_CELL, words("td th")),
    )
)


def sums_of(places: Integers, amounts: NDArray[Any], size: int) -> Floats:
    """Return the sum of the ``amounts`` at each of so many places (shape (size,))."""
    return np.bincount(places, amounts, size).astype(np.float64, copy=False)


class Tree:
    """The elements of a page as arrays; element 0 is its own parent here.

    Args:
        outline: the elements.
        places: which of the outline's blocks have words (shape (m,)).
        counts: how many words each has (shape (m,)).
        linked: how many of those in links (shape (m,)).
        copyrights: whether it has a copyright sign, 0 or 1 (shape (m,)).
    """

    def __init__(
        self,
        outline: Outline,
        places: Integers,
        counts: Floats,
        linked: Floats,
        copyrights: Floats,
    ) -> None:
        self.parents = np.maximum(np.array(outline.parents), 0)
        self.owners = np.array(outline.owners, np.int64)[places]
        self._ends = np.array(outline.ends)
        self._kinds = np.array(list(map(_TAGS.get, outline.tags, repeat(0))))
        self._outline = outline
        size = len(self.parents)
        self.own = sums_of(self.owners, counts, size)
        self.words = self._below(self.own)
        self.linked = self.sum(linked)
        self._signs = self.sum(copyrights)
        self._groups, self._alike = self._like_siblings()

    def _below(self, amounts: Floats) -> Floats:
        """Return the sum of ``amounts`` in each element and all below it."""
        sums = np.concatenate(((0.0,), np.cumsum(amounts)))
        below: Floats = sums[self._ends] - sums[:-1]
        return below

    def sum(self, amounts: Floats) -> Floats:
        """Return the sum over the blocks in each element, of amounts of blocks (shape (m,))."""
        return self._below(sums_of(self.owners, amounts, len(self.parents)))

    def inherited(self) -> Floats:
        """Return what elements are called or are, for each the most of what is around it."""
        share = (self.words / self.words[0] / 0.3) ** 4
        # What holds much of the page is not beside it, whatever it is called.
        named, tagged = 1.0 / (1.0 + share), 1.0 / (1.0 + share / 16.0)
        kinds, says = self._kinds, np.array([says for says, _ in self._outline.said_to_be])
        header = np.maximum(named * (says & SAYS_HEADER > 0), tagged * (kinds & _IS_HEADER > 0))
        content = (says & SAYS_CONTENT) | (kinds & _IS_CONTENT) > 0
        over = 1.0 / (1.0 + share * (0.3 / 0.9) ** 4)
        small = (self._signs > 0) / (1.0 + (self.words / 80.0) ** 2)
        small[0] = 0.0
        said = np.array(
            (
                named * (says & SAYS_BESIDE > 0),
                tagged * (kinds & _IS_BESIDE > 0),
                over * (says & SAYS_OVERLAY > 0),
                over * (says & SAYS_HIDDEN > 0),
                header,
                content,
                named * (says & SAYS_FOOTER > 0),
                tagged * (kinds & _IS_FOOTER > 0),
                kinds & _IS_LIST > 0,
                np.log(self._alike),
                small,
            )
        )
        return self._with_all_around(said)

    def in_frame(self) -> NDArray[np.bool_]:
        """Return which blocks are in elements that say they are not the text (shape (m,)).

        What holds all of a page says nothing.
        """
        says = np.array([says for says, _ in self._outline.said_to_be])
        frame = (says & (SAYS_BESIDE | SAYS_FOOTER | SAYS_HEADER)) > 0
        frame |= (self._kinds & (_IS_BESIDE | _IS_FOOTER | _IS_HEADER)) > 0
        frame &= self.words < 0.95 * self.words[0]
        inside: NDArray[np.bool_] = self._with_all_around(frame)[self.owners]
        return inside

    def _with_all_around(self, said: NDArray[Any]) -> NDArray[Any]:
        """Return for each element the most of what is said of it and of what is around it."""
        above = self.parents
        # Each turn doubles how far up it looks.
        while above.any():
            np.maximum(said, said[..., above], out=said)
            above = above[above]
        return said

    def _like_siblings(self) -> tuple[Integers, Integers]:
        """Return the groups of siblings of one tag and first name, and how many are in each.

        Siblings that are alike in any text are each alone in the second.
        """
        outline = self._outline
        numbers: defaultdict[tuple[int, str, str], int] = defaultdict(count().__next__)
        first_names = [first for _, first in outline.said_to_be]
        looks = zip(outline.parents, outline.tags, first_names, strict=True)
        groups = np.fromiter(map(numbers.__getitem__, looks), np.int64, len(first_names))
        alike: Integers = np.where(self._kinds & _IS_COMMON, 1, np.bincount(groups)[groups])
        alike[0] = 1
        return groups, alike

    @cached_property
    def units(self) -> tuple[Floats, Floats, Floats]:
        """How many unlinked words each block's table or list has, and how sure these are.

        A cell of a table of data says little by itself: what counts is what the table holds. The
        same goes for an item of a list, and for each of a run of siblings that look alike.

        For each block (shape (m,) each): the unlinked words of its table or list, as far as it is
        one; how far the table around it is one of data, 0 to 1, and how far the elements around it
        are a list of short items.
        """
        kinds, owners, size = self._kinds, self.owners, len(self.parents)
        mass = np.maximum(self.words - 0.8 * self.linked, 0.0)
        # Runs of siblings that look alike.
        groups = self._groups
        filled = np.bincount(groups, self.words > 0)[groups]
        is_run = (filled > 2) & (kinds & (_IS_COMMON | _IS_CELL) == 0)
        each = np.bincount(groups, self.words)[groups] / np.maximum(filled, 1)
        likeness = np.where(is_run, (1 - 1 / np.maximum(filled, 1)) / (1 + (each / 40) ** 2), 0.0)
        run = self._innermost(is_run)[owners]
        in_run, run_mass = likeness[run], np.bincount(groups, mass)[groups][run]
        in_table, table_mass = np.zeros((2, len(owners)))
        is_table = kinds & _IS_TABLE > 0
        if is_table.any():
            tables = self._innermost(is_table)
            cells, rows = (
                np.bincount(tables[kinds & kind > 0], minlength=size)
                for kind in (_IS_CELL, _IS_ROW)
            )
            # A table with tables in it is for the layout.
            inner = np.bincount(tables[self.parents[is_table]], minlength=size)
            each = self.words / np.maximum(cells, 1)
            is_data = is_table & (rows > 1) & (cells > 3)
            data = is_data * (1 - 1 / np.maximum(rows, 1)) / (1 + (each / 15) ** 2) / (1 + inner)
            at = tables[owners]
            # Of a list in a cell and a table in an item, the inner one is meant.
            in_table = np.where(at > run, data[at], 0.0)
            in_run = np.where(at > run, 0.0, in_run)
            table_mass = mass[at]
        return np.maximum(in_table * table_mass, in_run * run_mass), in_table, in_run

    def _innermost(self, chosen: NDArray[np.bool_]) -> Integers:
        """Return the innermost chosen element that each element is or stands in, 0 for none."""
        return self._with_all_around(np.where(chosen, np.arange(len(chosen)), 0))

    def dominance(self) -> tuple[Floats, Floats]:
        """Return how much others dominate the elements with text, and how deep these stand.

        Of the children of an element, the one with the most text outside links dominates the
        others by its share of their text; this is the sum of ln(1 - share) from the page down to
        an element, where it is not that child, and of its own children's. Beside an article it
        is far below 0; within one no paragraph dominates.
        """
        mass = 1.1 * self.words - self.linked
        parents, places = self.parents, np.arange(len(mass))
        best = np.zeros(len(mass))
        np.maximum.at(best, parents[1:], mass[1:])
        rest = np.log(np.maximum(1.0 - best / np.maximum(mass, 1e-9), 1e-3))
        rest[mass <= 0] = 0.0
        at_most = np.flatnonzero(mass[1:] == best[parents[1:]])[::-1] + 1
        dominant = np.full(len(mass), -1)
        dominant[parents[at_most]] = at_most
        sums = np.array((np.where(dominant[parents] == places, 0.0, rest[parents]), places > 0))
        sums[:, 0] = 0.0
        above = parents
        while above.any():
            sums = sums + sums[:, above]
            above = above[above]
        return (sums[0] + rest)[self.owners], sums[1][self.owners]

    def places_of_headings(self) -> Integers:
        """Return which blocks are headings, ascending."""
        return np.flatnonzero(self._kinds[self.owners] & _IS_HEADING)

    def headings(self) -> tuple[Floats, Floats, Floats]:
        """Return which blocks come before the first h1, with it, and after the last heading.

        With it are those behind it under its parent (1) or its grandparent (0.5). After the last
        heading are those behind it outside its parent.
        """
        owners, kinds, size = self.owners, self._kinds[self.owners], len(self.parents)
        before, under, after = np.zeros((3, len(owners)))
        first = np.flatnonzero(kinds & _IS_H1)[:1]
        if len(first):
            at = int(first[0])
            before[:at] = 1.0
            parent = self.parents[owners[at]]
            above = self.parents[parent]
            near = np.zeros(size)
            if above:
                near[above : self._ends[above]] = 0.5
            near[parent : self._ends[parent]] = 1.0
            under[at:] = near[owners[at:]]
        last = self.places_of_headings()[-1:]
        if len(last):
            at = int(last[0]) + 1
            parent = self.parents[owners[at - 1]]
            after[at:] = (owners[at:] < parent) | (owners[at:] >= self._ends[parent])
        return before, under, after
