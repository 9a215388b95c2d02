"""Extract the text blocks of a tree, with the elements around them.

A text block is a run of text between two block tags. No block is left out for its appearance;
:mod:`pgsimhash.html.weights` decides its weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import SIGNS
from pgsimhash.html.names import NEVER_TEXT, UNNAMED, Names, is_hidden, names, words

BLOCK: Final = words(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hr html li main menu nav ol option p pre section"
    " summary table tbody td tfoot th thead tr ul"
)
"""The tags whose start and end separate text blocks."""

_PLAIN: Final = words("b code em font i label small strong sub sup time tt u")
_EMPTY: Final = words("br img input link meta")

NAMED_MAX: Final = 50_000
"""How many block elements are classified by their attributes."""

_BEGIN, _LINK_BEGIN, _LINK_END, _SIGN = (f" {sign} " for sign in SIGNS[:4])


class Piece(NamedTuple):
    """The position of a piece of a text block: the text or the tail of an element."""

    block: int
    element: HtmlElement
    is_tail: bool

    def around(self) -> HtmlElement:
        """Return the element that directly contains the text."""
        return self.element.getparent() if self.is_tail else self.element


@dataclass(frozen=True, slots=True)
class Outline:
    """The block elements in document order, and the text blocks in them.

    Element 0 stands for the page; the others follow their parents. The first four lists have an
    entry for each element.

    Attributes:
        parents: the index of the element's parent, -1 for element 0.
        tags: the element's tag.
        said_to_be: the meaning of its class, id and role.
        ends: the index behind its last descendant.
        owners: for each text block, the element that directly contains it.
        text: the texts of all blocks, with the signs of :mod:`pgsimhash.hashing.tokens`. The first
            begins a block, the second and third enclose links, and the fourth is a copyright sign.
            The fifth is for :func:`pgsimhash.html.numbers.mark_dates`.
    """

    parents: list[int]
    tags: list[str]
    said_to_be: list[Names]
    ends: list[int]
    owners: list[int]
    text: str

    def texts(self) -> list[str]:
        """Return the text of each block, on one line."""
        plain = self.text.replace(_LINK_BEGIN, "").replace(_LINK_END, "").replace(_SIGN, "\xa9")
        return [" ".join(text.split()) for text in plain.split(_BEGIN)[1:]]


def outline(body: HtmlElement, pieces: list[Piece] | None = None) -> Outline:
    """Return the outline of a page.

    Hidden elements, scripts, controls and images are left out with all their content. Elements
    within ``pre`` do not begin text blocks.
    """
    parents, tags, said_to_be, ends = [-1], [""], [UNNAMED], [0]
    owners: list[int] = []
    texts: list[str] = []
    # The state around the next children; ``goes_on``: they continue the last text block.
    element, in_link, in_pre, goes_on = 0, False, False, False

    # An explicit stack of the elements around, because pages may be deep.
    around: list[tuple[Iterator[HtmlElement], HtmlElement, int, bool, bool, bool]] = []
    children: Iterator[HtmlElement] = iter((body,))
    while True:
        child = next(children, None)
        if child is None:
            # The element ends.
            if not around:
                break
            inner = element
            children, child, element, in_link, in_pre, is_block = around.pop()
            if is_block:
                ends[inner] = len(parents)
                goes_on = False
            elif in_pre and goes_on and len(child):
                # Each line of code may be an element.
                texts.append(" " if child.tag in BLOCK else "")
            text, is_tail = child.tail, True
        else:
            tag = child.tag
            is_block = tag in BLOCK
            if goes_on and (tag in _EMPTY or (in_pre and is_block)):
                texts.append(" ")
            is_block = is_block and not in_pre
            says: Names | None = None
            if tag not in NEVER_TEXT and tag not in _EMPTY:
                if is_block and pieces is None and len(tags) <= NAMED_MAX:
                    attributes = child.items()
                    says = names(attributes) if attributes else UNNAMED
                elif tag in _PLAIN or not is_hidden(child):
                    says = UNNAMED
            if says is None:
                goes_on = goes_on and not is_block
                text, is_tail = child.tail, True
            else:
                around.append((children, child, element, in_link, in_pre, is_block))
                if is_block:
                    parents.append(element)
                    element = len(tags)
                    tags.append(tag)
                    said_to_be.append(says)
                    ends.append(len(tags))
                    goes_on = False
                in_link, in_pre = in_link or tag == "a", in_pre or tag == "pre"
                children = iter(child)
                text, is_tail = child.text, False
        # Text behind the body is not part of the page.
        if not text or not around:
            continue
        if text.isspace():
            if goes_on:
                texts.append(" ")
            continue
        if not goes_on:
            goes_on = True
            owners.append(element)
            texts.append(_BEGIN)
        texts.append(f"{_LINK_BEGIN}{text}{_LINK_END}" if in_link else text)
        if pieces is not None:
            pieces.append(Piece(len(owners) - 1, child, is_tail))
    ends[0] = len(parents)
    text = "".join(texts).replace("\xa9", _SIGN)
    return Outline(parents, tags, said_to_be, ends, owners, text)
