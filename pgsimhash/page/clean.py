"""Takes out of a page what is not its text: code, controls, navigation, advertisements, comments.

Elements go by their tag, by whole words of their class and id, or because they are mostly
links. What holds a large part of the page's text stays, whatever it is called.
"""

from __future__ import annotations

from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.page.labelled import labelled_blocks
from pgsimhash.page.labels import NOTICE_MAX
from pgsimhash.page.names import BESIDE_TEXT, NEVER_TEXT, PROTECTED, is_beside, words
from pgsimhash.page.outline import Outline

_LINK_BLOCKS: Final = words("ul ol dl div section table header form")

_LARGE_SHARE: Final = 0.4
"""What holds more of the page's text than this stays, whatever it is called."""

_REST_SHARE: Final = 0.3
"""If names would leave less of the text than this, they are not believed."""

_LINK_SHARE: Final = 0.6
"""A block with more of its text in links than this is navigation."""


def strip_controls(elements: list[HtmlElement]) -> list[HtmlElement]:
    """Remove scripts, controls and pictures from what is in ``elements``, and return these."""
    for element in elements:
        etree.strip_elements(element, *NEVER_TEXT, with_tail=False)
    return elements


def clean(root: HtmlElement) -> Outline:
    """Remove from the tree what is not text of the page, and return the rest's outline.

    The outline still lists the removed elements, in ``removed``.
    """
    etree.strip_elements(root, *NEVER_TEXT, with_tail=False)
    outline = Outline(root)
    chars, linked = outline.chars, outline.linked
    total = outline.unlinked(0)
    large = _LARGE_SHARE * total
    by_tag: set[int] = set()
    for index, node in enumerate(outline.nodes):
        tag = node.tag
        if chars[index] - linked[index] > large or tag in PROTECTED:
            continue
        if tag in BESIDE_TEXT:
            outline.removed.add(index)
            by_tag.add(index)
        elif is_beside(node.items()):
            outline.removed.add(index)
        elif outline.own[index] and (text := node.text) and len(text) <= NOTICE_MAX:
            outline.removed.update(labelled_blocks(outline, index, text, large))
    outline.measure()
    if outline.unlinked(0) < _REST_SHARE * total:
        outline.removed = by_tag
        outline.measure()
    large = _LARGE_SHARE * outline.unlinked(0)
    for index, (held, links) in enumerate(zip(outline.chars, outline.linked, strict=True)):
        if (
            links > _LINK_SHARE * held > 0
            and held - links <= large
            and outline.nodes[index].tag in _LINK_BLOCKS
        ):
            outline.removed.add(index)
    outline.measure()
    for index in outline.removed:
        outline.nodes[index].tag = "removed"
    etree.strip_elements(root, "removed", with_tail=False)
    return outline
