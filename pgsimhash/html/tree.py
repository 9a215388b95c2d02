"""Compute the context of text blocks: names, tags and text of the elements around them.

Each value is computed for all elements at once, in arrays.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import count, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.html.blocks import (
    BESIDE_TAGS,
    HEADING_TAGS,
    LIST_TAGS,
    NAMED_APART,
    NAMED_BELOW,
    NAMED_BESIDE,
    NAMED_CONTENT,
    NAMED_FOOTER,
    NAMED_HEADER,
    NAMED_HIDDEN,
    NAMED_OVERLAY,
    Outline,
    flags_of,
    words,
)
from pgsimhash.html.markdown_syntax import CELL_BLOCKS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# One bit for each class of tags.
_IS_BESIDE, _IS_FOOTER, _IS_HEADER, _IS_CONTENT, _IS_H1, _IS_HEADING, _IS_COMMON = (
    1 << bit for bit in range(7)
)
_IS_PARAGRAPH, _IS_CELL = 1 << 7, 1 << 8
IS_TABLE, IS_ROW, IS_LIST, IS_FIGURE, IS_CODE, IS_HEADER_CELL, IS_CELL_BLOCK = (
    1 << bit for bit in range(9, 16)
)
_TAGS: Final = flags_of(
    (
        (_IS_BESIDE, BESIDE_TAGS),
        (_IS_FOOTER, words("footer")),
        (_IS_HEADER, words("header")),
        (_IS_CONTENT, words("article main")),
        (IS_LIST, LIST_TAGS),
        (_IS_H1, words("h1")),
        (_IS_PARAGRAPH, words("p")),
        (_IS_HEADING, HEADING_TAGS),
        # Siblings with these tags are similar in any text.
        (_IS_COMMON, words("body h2 h3 p pre td tr")),
        (IS_TABLE, words("table")),
        (IS_ROW, words("tr")),
        (_IS_CELL, words("td th")),
        (IS_FIGURE, words("figure")),
        (IS_CODE, words("pre")),
        (IS_HEADER_CELL, words("th")),
        (IS_CELL_BLOCK, CELL_BLOCKS),
    )
)


def sums_of(places: Integers, amounts: NDArray[Any], size: int) -> Floats:
    """Return the sum of the ``amounts`` at each place in 0..``size`` - 1 (shape (size,))."""
    return np.bincount(places, amounts, size).astype(np.float64, copy=False)


class Tree:
    """The elements of a page as arrays; element 0 is its own parent here."""

    def __init__(
        self, outline: Outline, places: Integers, counts: Floats, linked: Floats, copyrights: Floats
    ) -> None:
        self.parents = np.maximum(np.array(outline.parents), 0)
        self.all_owners = np.array(outline.owners, np.int64)
        self.owners = self.all_owners[places]
        self.ends = np.array(outline.ends)
        size = len(self.parents)
        self.kinds = np.fromiter(map(_TAGS.get, outline.tags, repeat(0)), np.int64, size)
        self._name_flags = np.array([flags for flags, _ in outline.names])
        self._outline = outline
        self.own = sums_of(self.owners, counts, size)
        self.words = self._below(self.own)
        self.linked = self.sum(linked)
        self._signs = self.sum(copyrights)
        self._groups, self._alike = self._like_siblings()

    def _below(self, amounts: Floats) -> Floats:
        sums = np.zeros(len(amounts) + 1)
        amounts.cumsum(out=sums[1:])
        below: Floats = sums[self.ends] - sums[:-1]
        return below

    def sum(self, amounts: Floats) -> Floats:
        """Return the sum of the blocks' ``amounts`` (shape (m,)) in each element."""
        return self._below(sums_of(self.owners, amounts, len(self.parents)))

    def inherited(self) -> Floats:
        """Return the features by names and tags: for each element the largest of its ancestors."""
        share = (self.words / self.words[0] / 0.3) ** 4
        # An element with much of the page is not beside the text, whatever its name.
        named, tagged = 1.0 / (1.0 + share), 1.0 / (1.0 + share / 16.0)
        kinds, flags = self.kinds, self._name_flags
        header = np.maximum(named * (flags & NAMED_HEADER > 0), tagged * (kinds & _IS_HEADER > 0))
        content = (flags & NAMED_CONTENT) | (kinds & _IS_CONTENT) > 0
        over = 1.0 / (1.0 + share * (0.3 / 0.9) ** 4)
        small = (self._signs > 0) / (1.0 + (self.words / 80.0) ** 2)
        small[0] = 0.0
        levels = np.array(
            (
                named * (flags & NAMED_BESIDE > 0),
                tagged * (kinds & _IS_BESIDE > 0),
                over * (flags & NAMED_OVERLAY > 0),
                over * (flags & NAMED_HIDDEN > 0),
                header,
                content,
                named * (flags & NAMED_FOOTER > 0),
                tagged * (kinds & _IS_FOOTER > 0),
                kinds & IS_LIST > 0,
                np.log(self._alike),
                small,
                np.maximum(
                    (flags & NAMED_APART > 0) * self._beside_paragraphs(),
                    0.55 * (flags & NAMED_BELOW > 0),
                )
                / (1.0 + (self.words / self.words[0] / 0.9) ** 16),
            )
        )
        return self._with_all_around(levels)

    def _beside_paragraphs(self) -> Floats:
        """Return for each element how much text the paragraphs beside it have, 0 to 1."""
        prose = (self.words - self.linked) * (self.kinds & _IS_PARAGRAPH > 0)
        beside = sums_of(self.parents, prose, len(prose))[self.parents]
        level: Floats = 1.0 / (1.0 + (20.0 / np.maximum(beside, 1.0)) ** 4)
        return level

    def in_frame(self) -> NDArray[np.bool_]:
        """Return which blocks are in boilerplate by names or tags (shape (m,)).

        An element with nearly all of the page is not boilerplate.
        """
        frame = (self._name_flags & (NAMED_BESIDE | NAMED_FOOTER | NAMED_HEADER | NAMED_APART)) > 0
        frame |= (self.kinds & (_IS_BESIDE | _IS_FOOTER | _IS_HEADER)) > 0
        frame &= self.words < 0.95 * self.words[0]
        inside: NDArray[np.bool_] = self._with_all_around(frame)[self.owners]
        return inside

    def _with_all_around(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return for each element the largest value of it and its ancestors."""
        for above in self._ancestors:
            np.maximum(values, values.take(above, -1), out=values)
        return values

    @cached_property
    def _ancestors(self) -> list[Integers]:
        """The ancestors one level above each element, then 2, 4, and so on up to the root."""
        ancestors = []
        above = self.parents
        while above.any():
            ancestors.append(above)
            above = above[above]
        return ancestors

    def _like_siblings(self) -> tuple[Integers, Integers]:
        """Return each element's group of siblings with its tag and first name, and its size.

        The size is 1 for tags whose siblings are similar in any text.
        """
        outline = self._outline
        numbers: defaultdict[tuple[int, str, str], int] = defaultdict(count().__next__)
        first_names = [first for _, first in outline.names]
        looks = zip(outline.parents, outline.tags, first_names, strict=True)
        groups = np.fromiter(map(numbers.__getitem__, looks), np.int64, len(first_names))
        alike: Integers = np.where(self.kinds & _IS_COMMON, 1, np.bincount(groups)[groups])
        alike[0] = 1
        return groups, alike

    @cached_property
    def units(self) -> tuple[Floats, Floats, Floats]:
        """The unlinked words of each block's table or list, and the likelihoods of these.

        A cell of a data table means little alone, so the whole table counts. The same applies to an
        item of a list, and to a run of similar siblings.

        Returns, for each block (shape (m,) each): the unlinked words, times the likelihood; the
        likelihood, 0 to 1, of a data table; the likelihood of a list of short items.
        """
        kinds, owners, size = self.kinds, self.owners, len(self.parents)
        mass = np.maximum(self.words - 0.8 * self.linked, 0.0)
        groups = self._groups
        filled = np.bincount(groups, self.words > 0)[groups]
        is_run = (filled > 2) & (kinds & (_IS_COMMON | _IS_CELL) == 0)
        each = np.bincount(groups, self.words)[groups] / np.maximum(filled, 1)
        likeness = np.where(is_run, (1 - 1 / np.maximum(filled, 1)) / (1 + (each / 40) ** 2), 0.0)
        run = self._innermost(is_run)[owners]
        in_run, around = likeness[run], likeness * np.bincount(groups, mass)[groups]
        # The cells of a row may be a run within the run of the rows.
        run_mass = self._with_all_around(around)[owners]
        in_table, table_mass = np.zeros((2, len(owners)))
        is_table = kinds & IS_TABLE > 0
        if is_table.any():
            tables = self._innermost(is_table)
            cells, rows = (
                np.bincount(tables[kinds & kind > 0], minlength=size) for kind in (_IS_CELL, IS_ROW)
            )
            # A table that contains tables is for layout.
            inner = np.bincount(tables[self.parents[is_table]], minlength=size)
            each = self.words / np.maximum(cells, 1)
            is_data = is_table & (rows > 1) & (cells > 3)
            data = is_data * (1 - 1 / np.maximum(rows, 1)) / (1 + (each / 15) ** 2) / (1 + inner)
            at = tables[owners]
            # If a list is in a cell, or a table in an item, the inner one counts.
            in_table = np.where(at > run, data[at], 0.0)
            in_run, run_mass = np.where(at > run, 0.0, (in_run, run_mass))
            table_mass = mass[at]
        return np.maximum(in_table * table_mass, run_mass), in_table, in_run

    def _innermost(self, chosen: NDArray[np.bool_]) -> Integers:
        """Return the innermost chosen element at or above each element, or 0."""
        return self._with_all_around(np.where(chosen, np.arange(len(chosen)), 0))

    def dominance(self) -> tuple[Floats, Floats]:
        """Return how much other elements dominate each block's element, and its depth.

        The child with the most text outside links dominates its siblings by its share of their
        text. The result is the sum of ln(1 - share) from the root down to the element, without the
        levels where it is that child, plus that of its own children. Beside an article it is far
        below 0; within an article no paragraph dominates.
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
        for above in self._ancestors:
            sums = sums + sums.take(above, 1)
        return (sums[0] + rest)[self.owners], sums[1][self.owners]

    def places_of_headings(self) -> Integers:
        """Return the numbers of the heading blocks, ascending."""
        return np.flatnonzero(self.kinds[self.owners] & _IS_HEADING)

    def headings(self) -> tuple[Floats, Floats, Floats]:
        """Return which blocks are before the first h1, under it, and after the last heading.

        Under the h1 are later blocks in its parent (1) or grandparent (0.5). After the last heading
        are later blocks outside its parent.
        """
        owners, kinds, size = self.owners, self.kinds[self.owners], len(self.parents)
        before, under, after = np.zeros((3, len(owners)))
        first = np.flatnonzero(kinds & _IS_H1)[:1]
        if len(first):
            at = int(first[0])
            before[:at] = 1.0
            parent = self.parents[owners[at]]
            above = self.parents[parent]
            near = np.zeros(size)
            if above:
                near[above : self.ends[above]] = 0.5
            near[parent : self.ends[parent]] = 1.0
            under[at:] = near[owners[at:]]
        last = self.places_of_headings()[-1:]
        if len(last):
            at = int(last[0]) + 1
            parent = self.parents[owners[at - 1]]
            after[at:] = (owners[at:] < parent) | (owners[at:] >= self.ends[parent])
        return before, under, after
