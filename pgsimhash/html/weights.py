"""How much each block of a page counts: a weight between 0 and 1 that changes little with the page.

No block is chosen or left out, so none flips in or out when the page around it changes. What is
known of a block are its features (:mod:`pgsimhash.html.block_features`); each has a coefficient
here, fitted to the distances of simhashes of labelled pages by ``bench/fit.py``.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.html.block_features import features
from pgsimhash.html.page_words import Page
from pgsimhash.html.tree import Floats

COEFFICIENTS: Final = {
    # What the elements around say they are.
    "beside_names": -0.442,
    "beside_tags": -2.901,
    "overlay_names": -1.0,
    "hidden_names": -1.0,
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
    "unit_words": 0.0,
    "unit_numbers": 1.9,
    "unit_links": 0.0,
    "in_table": 0.0,
    "in_run": 0.0,
    "number_share": 3.4,
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

LEVEL: Final = 50.0
"""On a page with this many words that count, blocks are compared with half their mean level."""

SCORE_MAX: Final = 25.0
"""Scores are cut off here and at as much below 0, so that no exponential overflows."""

_FRAME_LEVEL: Final = math.exp(-7.25)
"""A page with a lower mean level may be a frame only: none of 4,900 labelled pages has one."""

_OWN_WORDS: Final = 6
"""Fewer words outside the elements that say they are the frame are none of its own."""

_SHOWN: Final = 0.05
"""What weighs less than this share of the heaviest block is not shown to people."""


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
    return np.clip(scores, -SCORE_MAX, SCORE_MAX)


def is_frame_only(page: Page, scores: Floats) -> bool:
    """Return whether a page has nothing of its own.

    So it is where blocks look like what stands around a text, and nearly all are in elements that
    are called so.
    """
    whole, squares = _masses(np.exp(scores), page.counts)
    if not squares < _FRAME_LEVEL * whole:
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
    whole, squares = _masses(levels, counts)
    own = squares / whole / (1.0 + LEVEL * squares / (whole * whole))
    weights: Floats = levels / (levels + own)
    return weights


def _masses(levels: Floats, counts: Floats) -> tuple[float, float]:
    """Return the sums of words times their level, and times its square."""
    mass = counts * levels
    return float(mass.sum()), float((mass * levels).sum())


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
