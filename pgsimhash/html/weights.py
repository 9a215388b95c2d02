"""Compute the weight of each text block of a page, between 0 and 1.

Weights change little when the page changes, and no block is left out, so none flips in or out.
Each feature of a block (:mod:`pgsimhash.html.block_features`) has a coefficient here.
``bench/fit.py`` fitted them to the distances of simhashes of labelled pages.
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
    # Names and tags of the elements around.
    "beside_names": -0.4073,
    "beside_tags": -4.086,
    "overlay_names": -0.401,
    "hidden_names": -5.504,
    "header": -0.09097,
    "content_names": 0.367,
    "footer_names": -0.6637,
    "footer_tag": -3.857,
    # The share of text outside links: in the block, around it, in the elements around it.
    "unlinked": 0.1973,
    "unlinked_near": 0.6479,
    "unlinked_around": 0.8555,
    "unlinked_parent": -0.3659,
    "unlinked_grandparent": 1.046,
    # The amount of text.
    "words_near": 0.8832,
    "element_words": 2.663,
    "unit_words": 0.3655,
    "unit_numbers": 1.359,
    "unit_links": 0.001578,
    "in_table": 1.232,
    "in_run": 0.3836,
    "number_share": 4.084,
    "parent_share": 0.3931,
    # The position of the block.
    "lateness": -0.5513,
    "before_h1": -4.033,
    "under_h1": 2.704,
    "after_headings": -0.5012,
    "depth": 2.62,
    "in_list": 0.4333,
    # Similar text and elements.
    "repeated_words": 0.7021,
    "like_siblings": 0.1513,
    "not_dominated": 0.1612,
    # The small print.
    "copyright_near": -2.523,
    "copyright_element": -1.752,
    "legal_words": -3.838,
    # Corrections for pages without prose, whose boilerplate looks different.
    "listing_links": 0.2391,
    "listing_words": -1.19,
    "listing_lateness": 1.37,
}
"""The coefficient of each feature in the logarithm of a block's level."""

_COEFFICIENTS: Final = np.array([*COEFFICIENTS.values()])

LEVEL: Final = 50.0
"""On a page with this many effective words, blocks are compared with half their mean level."""

SCORE_MAX: Final = 25.0
"""Scores are clipped to this range around 0, so that no exponential overflows."""

_FRAME_LEVEL: Final = math.exp(-7.35)
"""A page with a lower mean level may be all boilerplate: none of 7,400 labelled pages has one."""

_OWN_WORDS: Final = 6
"""A page with fewer words outside the boilerplate has no content."""

_SHOWN: Final = 0.05
"""Blocks below this share of the largest weight are not shown."""


def scores_of(page: Page) -> Floats:
    """Return the logarithm of the level of each block of a page (shape (m,))."""
    if not len(page.places):
        return page.counts
    values = features(page)
    scores: Floats = _COEFFICIENTS @ np.array([values[name] for name in COEFFICIENTS])
    return np.minimum(np.maximum(scores, -SCORE_MAX), SCORE_MAX)


def is_frame_only(page: Page, scores: Floats) -> bool:
    """Return whether a page has no content, only boilerplate.

    Its blocks look like boilerplate, and nearly all words are in elements with such names or tags.
    """
    whole, squares = _masses(np.exp(scores), page.counts)
    if not squares < _FRAME_LEVEL * whole:
        return False
    own = page.counts[~(page.tree.in_frame() | (page.copyrights > 0))]
    return bool(own.sum() < _OWN_WORDS)


def weights_of(scores: Floats, counts: Floats) -> Floats:
    """Return the weights of blocks by their scores, relative to the level of the page.

    A block's level is the exponential of its score. The page's level is the mean of these, each
    weighted by its own words and level. It is lower on a page with few effective words, so that an
    index keeps its list.
    """
    if not len(scores):
        return scores
    levels = np.exp(scores)
    whole, squares = _masses(levels, counts)
    own = squares / whole / (1.0 + LEVEL * squares / (whole * whole))
    weights: Floats = levels / (levels + own)
    return weights


def _masses(levels: Floats, counts: Floats) -> tuple[float, float]:
    """Return the sums of words times level, and of words times level squared."""
    mass = counts * levels
    return float(mass.sum()), float((mass * levels).sum())


def shown_blocks(page: Page, weights: Floats) -> NDArray[np.bool_]:
    """Return which blocks are shown (shape (m,)).

    A short line has little weight alone and much with the text around it. So the geometric mean of
    its weight and the mean weight in its element's parent decides. A heading is shown if the block
    behind it is.
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
