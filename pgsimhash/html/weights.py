"""How much each block of a page counts: a weight between 0 and 1 that changes little with the page.

No block is chosen or left out, so none flips in or out when the page around it changes. What is
known of a block are the features below: numbers, of which each has a reason and a coefficient. The
coefficients are fitted to the distances of simhashes of labelled pages by ``bench/fit.py``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.html.blocks import Outline
from pgsimhash.html.names import (
    BESIDE_TAGS,
    SAYS_BESIDE,
    SAYS_CONTENT,
    SAYS_FOOTER,
    SAYS_HEADER,
    words,
)
from pgsimhash.tokens import SIGNS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SPAN: Final = 600.0
"""How far an exponential reaches before it is too large for a double, with room to spare."""

COEFFICIENTS: Final = {
    # What the elements around say they are.
    "beside_names": -0.442,
    "beside_tags": -2.901,
    "header": -0.3316,
    "content_names": 0.8411,
    "footer_names": -1.081,
    "footer_tag": -3.013,
    # Text outside links: in the block, around it, in the elements around it.
    "unlinked": 0.2875,
    "unlinked_near": 1.264,
    "unlinked_around": 1.289,
    "unlinked_parent": -0.3505,
    "unlinked_grandparent": 0.1962,
    # How much text there is.
    "words_near": 0.9139,
    "element_words": 3.523,
    "parent_share": 0.2407,
    # Where the block stands.
    "lateness": -1.183,
    "before_h1": -1.4,
    "under_h1": 2.458,
    "after_headings": -0.5503,
    "depth": 1.336,
    "in_list": 0.2157,
    # What else is like it.
    "repeated_words": 0.9725,
    "like_siblings": 0.1844,
    "not_dominated": 0.3404,
    # The small print.
    "copyright_near": -1.871,
    "copyright_element": -1.044,
    "legal_words": -1.331,
    # The same for a page whose text is not prose: there, a frame is told by other signs.
    "listing_links": -0.9331,
    "listing_words": -1.211,
    "listing_lateness": -0.7569,
}
"""What each feature adds to the logarithm of a block's level."""

_LEVEL: Final = 50.0
"""On a page with this many words that count, blocks are compared with half their mean level."""

_FRAME_LEVEL: Final = math.exp(-7.25)
"""A page with a lower mean level may be a frame only: none of 4,900 labelled pages has one."""

_OWN_WORDS: Final = 6
"""Fewer words outside the elements that say they are the frame are none of its own."""

_SHOWN: Final = 0.05
"""What weighs less than this share of the heaviest block is not shown to people."""

_LEGAL: Final = words(
    "copyright trademark trademarks rights reserved licensed license warranty disclaimer terms"
    " privacy powered logo registered rechte vorbehalten droits réservés derechos reservados"
    " diritti riservati защищены"
)

# What a tag is, in one number for each.
_IS_BESIDE, _IS_FOOTER, _IS_HEADER, _IS_CONTENT, _IS_LIST, _IS_H1, _IS_HEADING, _IS_COMMON = (
    1 << bit for bit in range(8)
)
_KINDS: Final = (
    (_IS_BESIDE, BESIDE_TAGS),
    (_IS_FOOTER, words("footer")),
    (_IS_HEADER, words("header")),
    (_IS_CONTENT, words("article main")),
    (_IS_LIST, words("ul ol dl")),
    (_IS_H1, words("h1")),
    (_IS_HEADING, words("h1 h2 h3 h4 h5 h6")),
    # Siblings of these tags are alike in any text.
    (_IS_COMMON, words("body h2 h3 p pre td tr")),
)
_TAGS: Final = {
    tag: sum(kind for kind, tags in _KINDS if tag in tags)
    for tag in frozenset[str]().union(*(tags for _, tags in _KINDS))
}


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
    def tree(self) -> _Tree:
        """The elements as arrays."""
        return _Tree(self)


def read_words(outline: Outline) -> Page:
    """Return the words of a page; those of digits alone are left out."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    begin, link, link_end, notice = (numbers[sign] for sign in SIGNS)
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
    small[:] = False
    small[[notice, *(numbers[word] for word in ("copyright",) if word in numbers)]] = True
    copyrights = np.zeros(blocks)
    copyrights[block[small[ids]]] = 1.0
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


def sums_of(places: Integers, amounts: NDArray[Any], size: int) -> Floats:
    """Return the sum of the ``amounts`` at each of so many places (shape (size,))."""
    return np.bincount(places, amounts, size).astype(np.float64, copy=False)


def weigh(page: Page) -> Floats:
    """Return how much each block of a page counts, between 0 and 1 (shape (m,))."""
    return weights_of(scores_of(page), page.counts)


def scores_of(page: Page) -> Floats:
    """Return the logarithm of the level of each block of a page (shape (m,))."""
    if not len(page.places):
        return page.counts
    known = features(page)
    scores: Floats = np.array(list(COEFFICIENTS.values())) @ np.array(
        [known[name] for name in COEFFICIENTS]
    )
    return np.clip(scores, -25.0, 25.0)


def is_frame_only(page: Page, scores: Floats) -> bool:
    """Return whether a page has nothing of its own.

    So it is where blocks look like what stands around a text, and nearly all are in elements that
    are called so.
    """
    mass = page.counts * np.exp(scores)
    if not (mass * np.exp(scores)).sum() < _FRAME_LEVEL * mass.sum():
        return False
    own = page.counts[~(page.tree.in_frame() | (page.copyrights > 0))]
    return bool(own.sum() < _OWN_WORDS)


def weights_of(scores: Floats, counts: Floats) -> Floats:
    """Return the weights of blocks by their scores, against the page's own level.

    A block's level is the exponential of its score, and the page's is the mean of them, each
    counted by what it counts itself. A page with few words that count lowers its level, so that
    an index keeps its list.
    """
    if not len(scores):
        return scores
    levels = np.exp(scores)
    mass = counts * levels
    whole, squares = mass.sum(), (mass * levels).sum()
    own = squares / whole / (1.0 + _LEVEL * squares / (whole * whole))
    weights: Floats = levels / (levels + own)
    return weights


def shown_blocks(page: Page, weights: Floats) -> NDArray[np.bool_]:
    """Return which blocks people are shown (shape (m,)): those that weigh enough with their like.

    A short line weighs little by itself and much with the text around it: what counts is the
    geometric mean of its weight and that of all words in its element's parent. A heading goes with
    what it heads.
    """
    if not len(weights):
        return np.zeros(0, np.bool_)
    tree = page.tree
    mass = tree.sum(page.counts * weights) / np.maximum(tree.words, 1.0)
    around = mass[tree.parents[tree.owners]]
    shown: NDArray[np.bool_] = weights * around >= (_SHOWN * weights.max()) ** 2
    for place in tree.places_of_headings()[::-1].tolist():
        shown[place] |= place + 1 < len(shown) and shown[place + 1]
    return shown


def features(page: Page) -> dict[str, Floats]:
    """Return what is known of each block (shape (m,) each)."""
    tree = page.tree
    counts, linked, owners = page.counts, page.linked, tree.owners
    total = counts.sum()
    middle = np.cumsum(counts) - counts / 2.0
    prose = 1.0 - linked / counts
    (near, near_linked), (around, around_linked) = (
        nearby(middle, np.array((counts, linked)), window) for window in (40.0, 150.0)
    )
    parent = tree.parents[owners]
    above = tree.parents[parent]
    words = tree.words
    unlinked, unlinked_near, unlinked_around, unlinked_parent, unlinked_above = logs = np.log(
        1.1
        - np.array(
            (
                linked / counts,
                near_linked / near,
                around_linked / around,
                tree.linked[owners] / np.maximum(words[owners], 1.0),
                tree.linked[above] / np.maximum(words[above], 1.0),
            )
        )
    )
    lateness = np.exp((middle - total) / 60.0)
    element_words = np.log(tree.own[owners] / (tree.own[owners] + 15.0))
    signs = _copyrights_near(page, middle)
    beside, beside_tags, header, content, footer, footer_tag, in_list, alike, small_print = (
        tree.inherited()[:, owners]
    )
    # How far the page has no prose outside its frame: 1 for an index, near 0 for an article.
    frame = np.max((beside, beside_tags, footer, footer_tag), 0)
    outside = counts * prose * (1 - frame) * (1 - np.maximum(signs, small_print))
    listing = 1.0 / (1.0 + (float((outside * (1 - 0.8 * lateness)).sum()) / 60.0) ** 2)
    before_h1, under_h1, after_headings = tree.headings()
    dominated, depth = tree.dominance()
    return {
        "beside_names": beside,
        "beside_tags": beside_tags,
        "header": header,
        "content_names": content,
        "footer_names": footer,
        "footer_tag": footer_tag,
        "unlinked": unlinked,
        "unlinked_near": unlinked_near,
        "unlinked_around": unlinked_around,
        "unlinked_parent": unlinked_parent,
        "unlinked_grandparent": unlinked_above,
        "words_near": np.log(1.0 - np.exp((near_linked - 1.1 * near - counts) / 20.0)),
        "element_words": element_words,
        "parent_share": np.log(words[parent] / total + 0.01),
        "lateness": lateness,
        "before_h1": before_h1,
        "under_h1": under_h1,
        "after_headings": after_headings,
        "depth": np.log1p(depth) - 2.0,
        "in_list": in_list,
        "repeated_words": _repeated(page) - 0.5,
        "like_siblings": alike,
        "not_dominated": dominated,
        "copyright_near": signs,
        "copyright_element": small_print,
        "legal_words": np.minimum(page.legal, 2.0) / 2.0 * np.exp(-counts / 60.0),
        "listing_links": logs.mean(0) * listing,
        "listing_words": element_words * listing,
        "listing_lateness": lateness * listing,
    }


class _Tree:
    """The elements of a page as arrays; element 0 is its own parent here."""

    def __init__(self, page: Page) -> None:
        outline = page.outline
        self.parents = np.maximum(np.array(outline.parents), 0)
        self.owners = np.array(outline.owners)[page.places]
        self._ends = np.array(outline.ends)
        self._kinds = np.array(list(map(_TAGS.get, outline.tags, repeat(0))))
        self._outline = outline
        size = len(self.parents)
        self.own = sums_of(self.owners, page.counts, size)
        self.words = self._below(self.own)
        self.linked = self.sum(page.linked)
        self._signs = self.sum(page.copyrights)

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
        small = (self._signs > 0) / (1.0 + (self.words / 80.0) ** 2)
        small[0] = 0.0
        said = np.array(
            (
                named * (says & SAYS_BESIDE > 0),
                tagged * (kinds & _IS_BESIDE > 0),
                header,
                content,
                named * (says & SAYS_FOOTER > 0),
                tagged * (kinds & _IS_FOOTER > 0),
                kinds & _IS_LIST > 0,
                np.log(self._like_siblings()),
                small,
            )
        )
        above = self.parents
        # Each turn doubles how far up it looks.
        while above.any():
            np.maximum(said, said[:, above], out=said)
            above = above[above]
        return said

    def in_frame(self) -> NDArray[np.bool_]:
        """Return which blocks are in elements that say they are not the text (shape (m,)).

        What holds all of a page says nothing.
        """
        says = np.array([says for says, _ in self._outline.said_to_be])
        frame = (says & (SAYS_BESIDE | SAYS_FOOTER | SAYS_HEADER)) > 0
        frame |= (self._kinds & (_IS_BESIDE | _IS_FOOTER | _IS_HEADER)) > 0
        frame &= self.words < 0.95 * self.words[0]
        above = self.parents
        while above.any():
            frame |= frame[above]
            above = above[above]
        inside: NDArray[np.bool_] = frame[self.owners]
        return inside

    def _like_siblings(self) -> Integers:
        """Return how many siblings, itself included, have an element's tag and first name."""
        outline = self._outline
        first_names = [first for _, first in outline.said_to_be]
        looks = list(zip(outline.parents, outline.tags, first_names, strict=True))
        counts = np.array(list(map(Counter(looks).__getitem__, looks)))
        alike: Integers = np.where(self._kinds & _IS_COMMON, 1, counts)
        alike[0] = 1
        return alike

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


def _copyrights_near(page: Page, middle: Floats) -> Floats:
    if not page.copyrights.any():
        return page.copyrights
    # A long text may have a copyright sign too.
    signs = page.copyrights * np.exp(-page.counts / 60.0)
    near = nearby(middle, signs[np.newaxis], 15.0)[0]
    both: Floats = np.maximum(signs, near / (1.0 + near))
    return both


def _repeated(page: Page) -> Floats:
    """Return the share of each block's words that stand in another block too."""
    first = np.empty(len(page.vocabulary), np.int64)
    last = np.empty(len(page.vocabulary), np.int64)
    first[page.words[::-1]] = page.blocks[::-1]
    last[page.words] = page.blocks
    elsewhere = (first != last)[page.words]
    return np.bincount(page.blocks, elsewhere, len(page.counts)) / page.counts


def nearby(middle: Floats, amounts: Floats, window: float) -> Floats:
    """Return, for each place, the sum of ``amounts`` around it, less and less with the distance.

    Args:
        middle: the places, ascending (shape (m,)).
        amounts: what stands there (shape (r, m)).
        window: at this distance an amount counts 1/e.
    """
    scaled = middle / window
    if scaled[-1] < _SPAN:
        rising = np.exp(scaled)
        falling = 1.0 / rising
        before = falling * np.cumsum(amounts * rising, 1)
        behind = rising * np.cumsum((amounts * falling)[:, ::-1], 1)[:, ::-1]
        sums: Floats = before + behind - amounts
        return sums
    # On a long page, in spans that the exponential bears, each with what came before.
    return (
        _from_left(scaled, amounts) + _from_left(-scaled[::-1], amounts[:, ::-1])[:, ::-1] - amounts
    )


def _from_left(scaled: Floats, amounts: Floats) -> Floats:
    sums = np.empty_like(amounts)
    carried = np.zeros(len(amounts))
    at = scaled[0]
    start = 0
    while start < len(scaled):
        origin = scaled[start]
        end = int(np.searchsorted(scaled, origin + _SPAN, "left"))
        end = max(end, start + 1)
        span = scaled[start:end] - origin
        carried = carried * np.exp(at - origin)
        rising = np.exp(span)
        sums[:, start:end] = (
            carried[:, np.newaxis] + np.cumsum(amounts[:, start:end] * rising, 1)
        ) / rising
        carried, at = sums[:, end - 1], scaled[end - 1]
        start = end
    return sums
