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
from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashes import murmur3_64
from pgsimhash.votes import vote

_NAMES: Final = (
    # the head and what programs read
    "html head body base link meta noscript script style template title"
    # parts of a page
    " address article aside details dialog div footer header hgroup main menu nav search section"
    " slot summary"
    # controls
    " button datalist fieldset form input label legend meter optgroup option output progress"
    " select textarea"
    # other documents
    " area canvas embed frame frameset map noframes object param"
)
_CONTAINERS: Final = tuple(_NAMES.split())

SAME_TEMPLATE_MAX: Final = 12
"""Pages of one template are so many bits apart or less as a rule, pages of two templates more."""

DEPTH_MAX: Final = 32
"""How many containers deep a path goes; deeper ones have the path of the last above them."""


def structure_simhash(root: HtmlElement) -> int:
    """Return the simhash of the shape of a page, 0 <= x < 2**64.

    Pages of one template are ``SAME_TEMPLATE_MAX`` bits apart or less as a rule, pages of two
    templates more. It says nothing about texts, and two bare pages have the same.

    Args:
        root: the page as it was parsed, with everything in it; it is not changed.
    """
    paths = {""}
    pairs: set[tuple[str, str]] = set()
    path = tag = ""
    # The containers around: with iterwalk this keeps a deep page off Python's stack.
    around: list[tuple[str, str]] = []
    for event, node in etree.iterwalk(root, events=("start", "end"), tag=_CONTAINERS):
        if event == "end":
            path, tag = around.pop()
            continue
        around.append((path, tag))
        name = node.tag
        pairs.add((tag, name))
        if len(around) <= DEPTH_MAX:
            path = f"{path}/{name}"
            paths.add(path)
        tag = name
    features = sorted(paths.union(map(">".join, pairs)))
    return vote(murmur3_64(features), np.ones(len(features)))
