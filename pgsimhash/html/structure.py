"""The simhash of a page's shape: what two pages of one template share, whatever they say.

The features are the paths of tags from the root to each container, and the pairs of each
container with the one around it, after Buttler, "A Short Survey of Document Structure Similarity
Algorithms" (2004), which finds paths and their shingles nearly as good as tree edits and far
cheaper. Running text, lists and tables are passed over and each feature counts once: so the
length of an article does not move the simhash, and neither do the names of classes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from lxml.html import HtmlElement

from pgsimhash.hashes import murmur3_64
from pgsimhash.html.blocks import Outline, outline
from pgsimhash.html.names import words
from pgsimhash.votes import vote

_CONTAINERS: Final = words(
    "body address article aside details dialog div fieldset footer form header main"
    " menu nav section summary"
)

SAME_TEMPLATE_MAX: Final = 12
"""Pages of one template are so many bits apart or less as a rule, pages of two templates more."""

DEPTH_MAX: Final = 32
"""How many containers deep a path goes; deeper ones have the path of the last above them."""


def structure_of(root: HtmlElement) -> int:
    """Return :func:`structure_simhash` of a page as it was parsed."""
    body = root.find("body")
    return structure_simhash(outline(root if body is None else body))


def structure_simhash(blocks: Outline) -> int:
    """Return the simhash of the shape of a page, 0 <= x < 2**64.

    Pages of one template are ``SAME_TEMPLATE_MAX`` bits apart or less as a rule, pages of two
    templates more. It says nothing about texts, and two bare pages have the same.
    """
    paths, tags, depths = [""], [""], [0]
    pairs: set[tuple[str, str]] = set()
    # Of an element that is no container, what is known is that of the container around it.
    for parent, tag in zip(blocks.parents[1:], blocks.tags[1:], strict=True):
        path, above, depth = paths[parent], tags[parent], depths[parent]
        if tag in _CONTAINERS:
            pairs.add((above, tag))
            depth += 1
            if depth <= DEPTH_MAX:
                path = f"{path}/{tag}"
            above = tag
        paths.append(path)
        tags.append(above)
        depths.append(depth)
    features = sorted({*paths, *map(">".join, pairs)})
    return vote(murmur3_64(features), np.ones(len(features)))
