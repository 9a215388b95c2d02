"""Compute the context of text blocks: names, tags and text of the elements around them.

Parents precede their children. So one pass in document order gives each element the values of those
around it, and one in reverse order sums up what is below.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log
from typing import Final

from pgsimhash.html.blocks import (
    BESIDE_TAGS,
    HEADING_TAGS,
    LIST_TAGS,
    Element,
    Named,
    Siblings,
    words,
)
from pgsimhash.html.page_words import LISTED, VOLATILE, TextBlock

CONTENT_TAGS: Final = words("article main")
CELL_TAGS: Final = words("td th")
COMMON_TAGS: Final = words("body h2 h3 p pre td tr")  # such siblings are similar in any text

_NAMED_FRAME: Final = Named.BESIDE | Named.FOOTER | Named.HEADER | Named.APART
_FRAME_TAGS: Final = BESIDE_TAGS | words("footer header")
_TELLING_TAGS: Final = _FRAME_TAGS | CONTENT_TAGS
_LEVELS: Final = words(
    "beside_names beside_tags overlay_names hidden_names header content_names footer_names"
    " footer_tag apart in_list like_siblings copyright_element"
)
_TITLE_SHARE: Final = 0.75  # with this share of the prose before it, an h1 counts half as the title
# From this likelihood on, a table or list contains data, and its dates are data too.
_LISTED_FROM: Final = 0.4


def look_around(elements: Sequence[Element], blocks: Sequence[TextBlock]) -> None:
    """Set the context of the elements of a page, and of its text blocks, which have words.

    Dates in data tables and lists become LISTED.
    """
    _sum_up(elements, blocks)
    _find_siblings(elements)
    _inherit(elements)
    for block in blocks:
        _find_unit(block, elements)
        if max(block.in_table, block.in_run) > _LISTED_FROM:
            block.kinds = block.kinds.replace(bytes([VOLATILE]), bytes([LISTED]))


def _sum_up(elements: Sequence[Element], blocks: Sequence[TextBlock]) -> None:
    for block in blocks:
        element = block.element
        element.own += len(block.words)
        element.linked += block.linked
        element.notices += block.has_notice
    for element in reversed(elements):
        element.words += element.own
        mass = 1.1 * element.words - element.linked
        if mass > 0:
            element.rest = log(max(1.0 - element.best / max(mass, 1e-9), 1e-3))
        parent = element.parent
        if parent is element:
            continue
        parent.words += element.words
        parent.linked += element.linked
        parent.notices += element.notices
        if element.tag == "p":
            parent.prose += element.words - element.linked
        # The first one of equal children.
        if mass >= parent.best:
            parent.best, parent.dominant = mass, element.place


def _find_siblings(elements: Sequence[Element]) -> None:
    groups: defaultdict[tuple[int, str, str], Siblings] = defaultdict(Siblings)
    for element in elements:
        group = groups[element.parent.place, element.tag, element.names.first]
        group.size += 1
        group.filled += element.words > 0
        group.words += element.words
        group.unlinked += _unlinked(element)
        element.siblings = group


def _inherit(elements: Sequence[Element]) -> None:
    page = elements[0]
    page.levels = dict.fromkeys(_LEVELS, 0.0)
    for element in elements[1:]:
        parent, place, tag = element.parent, element.place, element.tag
        element.table = parent.table
        if parent.table:
            elements[parent.table].inside[tag] += 1
        if tag == "table":
            element.table, element.inside = place, Counter()
        if not element.words:
            continue
        element.depth = parent.depth + 1
        element.dominated = parent.dominated
        if parent.dominant != place:
            element.dominated += parent.rest
        element.run, element.run_words = parent.run, parent.run_words
        likelihood = _run_likelihood(element)
        if likelihood:
            element.run = place
            # The cells of a row may be a run within the run of the rows.
            around = likelihood * element.siblings.unlinked
            element.run_words = max(element.run_words, around)
        # An element with nearly all of the page is not boilerplate.
        element.in_frame = parent.in_frame or (
            (element.names.flags & _NAMED_FRAME > 0 or tag in _FRAME_TAGS)
            and element.words < 0.95 * page.words
        )
        element.levels = above = parent.levels
        own = _levels(element, page)
        if any(own.values()):
            largest = {name: max(level, above[name]) for name, level in own.items()}
            element.levels = above | largest


def _levels(element: Element, page: Element) -> dict[str, float]:
    """Return features by the names and the tag of an element; others are 0."""
    tag, flags, alike = element.tag, element.names.flags, element.siblings.size
    levels: dict[str, float] = {}
    if flags or tag in _TELLING_TAGS:
        # An element with much of the page is not beside the text, whatever its name.
        share = (element.words / page.words / 0.3) ** 4
        named, tagged = 1.0 / (1.0 + share), 1.0 / (1.0 + share / 16.0)
        over = 1.0 / (1.0 + share * (0.3 / 0.9) ** 4)
        header = named if flags & Named.HEADER else 0.0
        levels = {
            "beside_names": named if flags & Named.BESIDE else 0.0,
            "beside_tags": tagged if tag in BESIDE_TAGS else 0.0,
            "overlay_names": over if flags & Named.OVERLAY else 0.0,
            "hidden_names": over if flags & Named.HIDDEN else 0.0,
            "header": max(header, tagged) if tag == "header" else header,
            "content_names": float(flags & Named.CONTENT > 0 or tag in CONTENT_TAGS),
            "footer_names": named if flags & Named.FOOTER else 0.0,
            "footer_tag": tagged if tag == "footer" else 0.0,
        }
    if flags & Named.APART:
        beside = 1.0 / (1.0 + (20.0 / max(element.parent.prose, 1)) ** 4)
        below = 0.55 if flags & Named.BELOW else 0.0
        whole = 1.0 + (element.words / page.words / 0.9) ** 16
        levels["apart"] = max(beside, below) / whole
    if tag in LIST_TAGS:
        levels["in_list"] = 1.0
    if alike > 1 and tag not in COMMON_TAGS:
        levels["like_siblings"] = log(alike)
    if element.notices:
        levels["copyright_element"] = 1.0 / (1.0 + (element.words / 80.0) ** 2)
    return levels


def _unlinked(element: Element) -> float:
    """Return the words of a table or list, without most of those in links."""
    return max(element.words - 0.8 * element.linked, 0.0)


def _run_likelihood(element: Element) -> float:
    """Return the likelihood, 0 to 1, that an element and its siblings are a list of short items."""
    many = element.siblings.filled
    if many < 3 or element.tag in COMMON_TAGS or element.tag in CELL_TAGS:
        return 0.0
    return (1 - 1 / many) / (1 + (element.siblings.words / many / 40) ** 2)


def _table_likelihood(table: Element) -> float:
    """Return the likelihood, 0 to 1, of a data table: of several rows and short cells."""
    rows, cells = table.inside["tr"], sum(table.inside[tag] for tag in CELL_TAGS)
    if rows < 2 or cells < 4:
        return 0.0
    # A table that contains tables is for layout.
    return (1 - 1 / rows) / (1 + (table.words / cells / 15) ** 2) / (1 + table.inside["table"])


def _find_unit(block: TextBlock, elements: Sequence[Element]) -> None:
    """Find the table, list or run of similar siblings that a block is in.

    A cell or an item means little alone. Of a list in a cell, or a table in an item, the inner one
    counts.
    """
    element = block.element
    if element.table > element.run:
        table = elements[element.table]
        block.in_table = _table_likelihood(table)
        block.unit = block.in_table * _unlinked(table)
    elif element.run:
        block.in_run, block.unit = _run_likelihood(elements[element.run]), element.run_words


def places_of_headings(blocks: Sequence[TextBlock]) -> list[tuple[float, float, float]]:
    """Return which blocks are before the first h1, under it, and after the last heading.

    Under the h1 are later blocks in its parent (1) or grandparent (0.5). The more of the prose
    precedes an h1, the less it is the title, and the less both count. After the last heading are
    later blocks outside its parent.
    """
    tags = [block.element.tag for block in blocks]
    prose = [len(block.words) - block.linked for block in blocks]
    first = tags.index("h1") if "h1" in tags else 0
    around = blocks[first].element.parent if "h1" in tags else None
    last = max((at for at, tag in enumerate(tags) if tag in HEADING_TAGS), default=len(tags))
    share = sum(prose[:first]) / max(sum(prose), 1) / _TITLE_SHARE
    for _ in range(4):
        share *= share
    title = 1.0 / (1.0 + share)
    places = []
    for at, element in enumerate(block.element for block in blocks):
        under = after = 0.0
        if around is not None and at >= first:
            if around.holds(element):
                under = title
            elif around.parent.place and around.parent.holds(element):
                under = 0.5 * title
        if at > last:
            after = float(not blocks[last].element.parent.holds(element))
        places.append((title * (at < first), under, after))
    return places
