"""Read the words and numbers of a page by text block, and count words of each block."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Final

import numpy as np

from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.article import WeightedWords
from pgsimhash.html.blocks import Outline
from pgsimhash.html.names import words
from pgsimhash.html.numbers import LISTED, NUMBER, VOLATILE, kinds_of, mark_dates
from pgsimhash.html.tree import Floats, Integers, Tree, sums_of

_LEGAL: Final = words(
    "copyright trademark trademarks rights reserved licensed license warranty disclaimer terms"
    " privacy powered logo registered rechte vorbehalten droits réservés derechos reservados"
    " diritti riservati защищены"
)

_LISTED_FROM: Final = 0.4
"""From this likelihood on, a table or list contains data, and its dates are data too."""


@dataclass(frozen=True)
class Page:
    """The words of a page, and the counts of its blocks with words.

    Attributes:
        outline: the elements.
        vocabulary: the distinct words.
        words: the index in ``vocabulary`` of each word of the page (shape (n,)).
        said_kinds: each word's kind by the words beside it (shape (n,)); see
            :mod:`pgsimhash.html.numbers`.
        blocks: each word's block number (shape (n,)).
        places: the outline's blocks with words (shape (m,)).
        counts: their numbers of words (shape (m,)).
        linked: their numbers of words in links (shape (m,)).
        copyrights: whether they have a copyright sign, 0 or 1 (shape (m,)).
        legal: their numbers of legal words (shape (m,)).
        numeric: their numbers of numbers, without volatile ones (shape (m,)).
    """

    outline: Outline
    vocabulary: list[str]
    words: Integers
    said_kinds: Integers
    blocks: Integers
    places: Integers
    counts: Floats
    linked: Floats
    copyrights: Floats
    legal: Floats
    numeric: Floats

    @cached_property
    def tree(self) -> Tree:
        """The elements as arrays."""
        return Tree(self.outline, self.places, self.counts, self.linked, self.copyrights)

    @cached_property
    def kinds(self) -> Integers:
        """The kind of each word (shape (n,)); dates in data tables and lists are LISTED."""
        _, in_table, in_run = self.tree.units
        listed = (np.maximum(in_table, in_run) > _LISTED_FROM)[self.blocks]
        return np.where(listed & (self.said_kinds == VOLATILE), LISTED, self.said_kinds)


def read_words(outline: Outline) -> Page:
    """Return the words of a page, numbers included."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    begin, link, link_end, notice, _ = map(numbers.__getitem__, SIGNS)
    tokens = tokenize_signed(mark_dates(outline.text))
    ids = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    vocabulary = list(numbers)[len(SIGNS) :]
    block = (ids == begin).cumsum() - 1
    in_link = ((ids == link) * 1 - (ids == link_end)).cumsum() > 0
    blocks = len(outline.owners)
    is_word = ids >= len(SIGNS)
    own = block[is_word]
    counts = np.bincount(own, minlength=blocks)
    linked = sums_of(own, in_link[is_word], blocks)
    small = np.zeros(len(numbers), np.bool_)
    small[[numbers[word] for word in _LEGAL if word in numbers]] = True
    legal = np.bincount(block[small[ids]], minlength=blocks).astype(np.float64)
    copyrights = np.zeros(blocks)
    copyrights[block[(ids == notice) | (ids == numbers.get("copyright", notice))]] = 1.0
    kinds = kinds_of(ids, block, numbers)[is_word]
    numeric = sums_of(own, kinds == NUMBER, blocks)
    places = np.flatnonzero(counts)
    renumbered = (counts > 0).cumsum() - 1
    return Page(
        outline,
        vocabulary,
        ids[is_word] - len(SIGNS),
        kinds,
        renumbered[own],
        places,
        counts[places].astype(np.float64),
        linked[places],
        copyrights[places],
        legal[places],
        numeric[places],
    )


def words_by_line(text: str) -> WeightedWords:
    """Return the words of plain text; each line is a block of weight 1."""
    begin_sign, _, _, notice, _ = SIGNS
    text = text.replace("\0", " ").replace("\xa9", f" {notice} ")
    signed = f" {begin_sign} " + text.replace("\n", f" {begin_sign} ")
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    begin, *_ = [numbers[sign] for sign in SIGNS]
    tokens = tokenize_signed(mark_dates(signed))
    ids = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    lines = np.cumsum(ids == begin) - 1
    is_word = ids >= len(SIGNS)
    size = int(lines[-1]) + 1
    return WeightedWords(
        list(numbers)[len(SIGNS) :],
        ids[is_word] - len(SIGNS),
        kinds_of(ids, lines, numbers)[is_word],
        lines[is_word],
        np.ones(size),
        np.ones(size, np.bool_),
    )
