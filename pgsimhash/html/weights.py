"""Compute the weight of each text block of a page, between 0 and 1, and which blocks are shown.

Weights change little when the page changes, and no block is left out, so none flips in or out.
Each feature of a block has a coefficient; ``bench/fit.py`` fitted them to the distances of
simhashes of labelled pages.
"""

from __future__ import annotations

import math
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

COEFFICIENTS: Final = {
    # Names and tags of the elements around.
    "beside_names": -0.3794,
    "beside_tags": -3.633,
    "overlay_names": -0.8872,
    "hidden_names": -5.808,
    "header": -0.376,
    "content_names": 0.4902,
    "footer_names": -0.6237,
    "footer_tag": -3.919,
    "apart": -6.0,
    # The share of text outside links: in the block, around it, in the elements around it.
    "unlinked": 0.6579,
    "unlinked_near": 1.34,
    "unlinked_around": 0.4847,
    "unlinked_parent": -1.039,
    "unlinked_grandparent": 0.3632,
    # The amount of text.
    "words_near": 1.393,
    "element_words": 1.541,
    "unit_words": 0.6682,
    "unit_numbers": -0.5565,
    "unit_links": 0.1389,
    "in_table": 1.614,
    "in_run": 0.6793,
    "number_share": 1.912,
    "parent_share": 0.492,
    # The position of the block.
    "lateness": -0.6902,
    "before_h1": -3.428,
    "under_h1": 1.76,
    "after_headings": -0.4174,
    "depth": 2.738,
    "in_list": 0.2921,
    # Similar text and elements.
    "repeated_words": 1.069,
    "like_siblings": 0.1666,
    "not_dominated": 0.1687,
    # The small print.
    "copyright_near": -1.92,
    "copyright_element": -1.288,
    "legal_words": -4.02,
    # Corrections for pages without prose, whose boilerplate looks different.
    "listing_links": 0.8986,
    "listing_words": -0.6544,
    "listing_lateness": 0.6229,
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

_SHOWN: Final = 0.1
_SHOWN_LINKS: Final = 0.25
"""Blocks below this share of the largest weight are not shown; the second if they are links."""

_SPAN: Final = 600.0
"""The largest exponent that is safe for a double."""

_OTHER_PROSE: Final = 25.0
"""With this many words of other prose, a part named as no content counts half as such."""

_LINKS: Final = 0.5
"""A block or list with a larger share of its words in links consists of links."""


def scores_of(page: Page) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the logarithm of the level of each block of a page, and whether it is set apart.

    Shape (m,) each. Such a block is in an element whose name says that it is no content.
    """
    if not len(page.places):
        return page.counts, page.counts > 0
    values = features(page)
    scores: Floats = _COEFFICIENTS @ np.array([values[name] for name in COEFFICIENTS])
    return np.minimum(np.maximum(scores, -SCORE_MAX), SCORE_MAX), values["apart"] > 0.5


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


def shown_blocks(page: Page, weights: Floats, apart: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks are shown (shape (m,)); those that are ``apart`` are not.

    A short line has little weight alone and much with the text around it. So the geometric mean of
    its weight and the mean weight in its element's parent decides. A heading is shown if the block
    behind it is.
    """
    if not len(weights):
        return np.zeros(0, np.bool_)
    tree = page.tree
    mass = tree.sum(page.counts * weights) / np.maximum(tree.words, 1.0)
    around = mass[tree.parents[tree.owners]]
    least = np.where(page.linked > _LINKS * page.counts, _SHOWN_LINKS, _SHOWN) * weights.max()
    shown: NDArray[np.bool_] = weights * around >= least**2
    shown &= ~apart
    for place in tree.places_of_headings()[::-1].tolist():
        shown[place] |= not apart[place] and place + 1 < len(shown) and shown[place + 1]
    return shown


def features(page: Page) -> dict[str, Floats]:
    """Return the features of each block (shape (m,) each)."""
    tree = page.tree
    counts, linked, owners = page.counts, page.linked, tree.owners
    total = counts.sum()
    middle = counts.cumsum() - counts / 2.0
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
    (
        beside, beside_tags, overlay, hidden, header, content, footer, footer_tag, in_list, alike,
        small_print, apart,
    ) = tree.inherited().take(owners, 1)  # fmt: skip
    # How little prose there is outside the boilerplate: 1 for an index, near 0 for an article.
    boilerplate = np.maximum(np.maximum(beside, beside_tags), np.maximum(footer, footer_tag))
    outside = counts * prose * (1 - boilerplate) * (1 - np.maximum(signs, small_print))
    # A page that has hardly any other prose has its content in such parts.
    own = float((outside * (1 - apart)).sum())
    apart = apart / (1.0 + (_OTHER_PROSE / max(own, 1.0)) ** 4)
    outside = outside * (1 - apart)
    listing = 1.0 / (1.0 + (float((outside * (1 - 0.8 * lateness)).sum()) / 60.0) ** 2)
    before_h1, under_h1, after_headings = tree.headings()
    dominated, depth = tree.dominance()
    unit, in_table, in_run = tree.units
    numbers = page.numeric / counts
    unit_words = np.maximum(np.log(unit / (unit + 15.0) + 1e-9) - element_words, 0.0)
    return {
        "beside_names": beside,
        "beside_tags": beside_tags,
        "overlay_names": overlay,
        "hidden_names": hidden,
        "header": header,
        "content_names": content,
        "footer_names": footer,
        "footer_tag": footer_tag,
        "apart": apart,
        "unlinked": unlinked,
        "unlinked_near": unlinked_near,
        "unlinked_around": unlinked_around,
        "unlinked_parent": unlinked_parent,
        "unlinked_grandparent": unlinked_above,
        "words_near": np.log(1.0 - np.exp((near_linked - 1.1 * near - counts) / 20.0)),
        "element_words": element_words,
        "unit_words": unit_words,
        "unit_numbers": unit_words * numbers,
        "unit_links": (in_table + in_run) * unlinked,
        "in_table": in_table,
        "in_run": in_run,
        "number_share": numbers,
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
        "listing_links": logs.sum(0) / len(logs) * listing,
        "listing_words": element_words * listing,
        "listing_lateness": lateness * listing,
    }


def _copyrights_near(page: Page, middle: Floats) -> Floats:
    if not page.copyrights.any():
        return page.copyrights
    # A sign in a long text means little.
    signs = page.copyrights * np.exp(-page.counts / 60.0)
    near = nearby(middle, signs[np.newaxis], 15.0)[0]
    both: Floats = np.maximum(signs, near / (1.0 + near))
    return both


def _repeated(page: Page) -> Floats:
    """Return the share of each block's words that also occur in another block."""
    first = np.empty(len(page.vocabulary), np.int64)
    last = np.empty(len(page.vocabulary), np.int64)
    first[page.words[::-1]] = page.blocks[::-1]
    last[page.words] = page.blocks
    elsewhere = (first != last)[page.words]
    return np.bincount(page.blocks, elsewhere, len(page.counts)) / page.counts


def nearby(middle: Floats, amounts: Floats, window: float) -> Floats:
    """Return, for each place, the sum of ``amounts`` around it.

    At the distance ``window`` an amount counts 1/e; the places ascend.
    """
    scaled = middle / window
    if scaled[-1] < _SPAN:
        rising = np.exp(scaled)
        falling = 1.0 / rising
        before = falling * (amounts * rising).cumsum(1)
        behind = rising * (amounts * falling)[:, ::-1].cumsum(1)[:, ::-1]
        sums: Floats = before + behind - amounts
        return sums
    # On a long page, by spans within the exponent's range; each carries the sum before it.
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
