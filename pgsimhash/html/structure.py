"""Compute the simhash of a page's structure, which is similar for pages of one template.

The features are the paths of tags from the root to each container, and the pairs of a container
and its parent container. Buttler, "A Short Survey of Document Structure Similarity Algorithms"
(2004), finds paths and their shingles nearly as good as tree edits and far cheaper. Running text,
lists and tables are ignored and each feature counts once, so the length of an article does not
change the simhash. Class names do not either.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from lxml.html import HtmlElement

from pgsimhash.hashing.hashes import murmur3_64
from pgsimhash.hashing.votes import vote
from pgsimhash.html.blocks import Outline, outline
from pgsimhash.html.names import words

_CONTAINERS: Final = words(
    "body address article aside details dialog div fieldset footer form header main"
    " menu nav section summary"
)

SAME_TEMPLATE_MAX: Final = 12
"""The usual largest distance of pages of one template; pages of two templates differ more."""

DEPTH_MAX: Final = 32
"""The most containers of a path; deeper containers have the path of their ancestor."""


def structure_of(root: HtmlElement) -> int:
    """Return the :func:`structure_simhash` of a parsed page."""
    body = root.find("body")
    return structure_simhash(outline(root if body is None else body))


def structure_simhash(blocks: Outline) -> int:
    """Return the simhash of the structure of a page, 0 <= x < 2**64.

    Pages of one template usually differ by at most ``SAME_TEMPLATE_MAX`` bits, pages of two
    templates by more. Texts do not matter; all pages without containers have the same simhash.
    """
    # The path, the last container and the number of containers of each element.
    states = [("", "", 0)]
    pairs: set[tuple[str, str]] = set()
    # Other elements take the values of the container around them.
    for parent, tag in zip(blocks.parents[1:], blocks.tags[1:], strict=True):
        state = states[parent]
        if tag in _CONTAINERS:
            path, above, depth = state
            pairs.add((above, tag))
            state = (f"{path}/{tag}" if depth < DEPTH_MAX else path, tag, depth + 1)
        states.append(state)
    features = sorted({*(path for path, _, _ in states), *map(">".join, pairs)})
    return vote(murmur3_64(features), np.ones(len(features)))
