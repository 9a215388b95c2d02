"""The words of a page by block, with what is counted of each block on the way."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Final

import numpy as np

from pgsimhash.html.blocks import Outline
from pgsimhash.html.names import words
from pgsimhash.html.tree import Floats, Integers, Tree, sums_of
from pgsimhash.tokens import SIGNS

_LEGAL: Final = words(
    "copyright trademark trademarks rights reserved licensed license warranty disclaimer terms"
    " privacy powered logo registered rechte vorbehalten droits réservés derechos reservados"
    " diritti riservati защищены"
)


@dataclass(frozen=True)
class Page:
    """The words of a page, and what is known of its blocks that have words.

    Attributes:
        outline: the elements.
        vocabulary: the distinct words.
        words: the index in ``vocabulary`` of each word of the page (shape (n,)).
        blocks: the number of its block (shape (n,)).
        places: which of the outline's blocks these are (shape (m,)).
        counts: how many words each has (shape (m,)).
        linked: how many of those in links (shape (m,)).
        copyrights: whether it has a copyright sign, 0 or 1 (shape (m,)).
        legal: how many of its words are of the small print (shape (m,)).
    """

    outline: Outline
    vocabulary: list[str]
    words: Integers
    blocks: Integers
    places: Integers
    counts: Floats
    linked: Floats
    copyrights: Floats
    legal: Floats

    @cached_property
    def tree(self) -> Tree:
        """The elements as arrays."""
        return Tree(self.outline, self.places, self.counts, self.linked, self.copyrights)


def read_words(outline: Outline) -> Page:
    """Return the words of a page; those of digits alone are left out."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    begin, link, link_end, notice = map(numbers.__getitem__, SIGNS)
    tokens = outline.tokens()
    ids = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
    vocabulary = list(numbers)[len(SIGNS) :]
    is_word = ~np.fromiter(map(str.isdecimal, numbers), np.bool_, len(numbers))
    is_word[: len(SIGNS)] = False
    block = np.cumsum(ids == begin) - 1
    in_link = np.cumsum(ids == link) > np.cumsum(ids == link_end)
    blocks = len(outline.owners)
    said = is_word[ids]
    own = block[said]
    counts = np.bincount(own, minlength=blocks)
    linked = sums_of(own, in_link[said], blocks)
    small = np.zeros(len(numbers), np.bool_)
    small[[numbers[word] for word in _LEGAL if word in numbers]] = True
    legal = np.bincount(block[small[ids]], minlength=blocks).astype(np.float64)
    copyrights = np.zeros(blocks)
    copyrights[block[(ids == notice) | (ids == numbers.get("copyright", notice))]] = 1.0
    places = np.flatnonzero(counts)
    renumbered = np.cumsum(counts > 0) - 1
    return Page(
        outline,
        vocabulary,
        ids[said] - len(SIGNS),
        renumbered[own],
        places,
        counts[places].astype(np.float64),
        linked[places],
        copyrights[places],
        legal[places],
    )
