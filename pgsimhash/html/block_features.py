"""Compute the features of the text blocks of a page.

:mod:`pgsimhash.html.weights` turns them into weights.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pgsimhash.html.page_words import Page
from pgsimhash.html.tree import Floats

_SPAN: Final = 600.0
"""The largest exponent that is safe for a double."""


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
        small_print,
    ) = tree.inherited().take(owners, 1)  # fmt: skip
    # How little prose there is outside the boilerplate: 1 for an index, near 0 for an article.
    boilerplate = np.maximum(np.maximum(beside, beside_tags), np.maximum(footer, footer_tag))
    outside = counts * prose * (1 - boilerplate) * (1 - np.maximum(signs, small_print))
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
