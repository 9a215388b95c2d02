"""From a tree to its blocks of text: what stands where, and what the elements around it say.

A block is a run of text between two tags of blocks. No block is left out for what it looks like:
how much each counts is for :mod:`pgsimhash.html.weights` to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from lxml.html import HtmlElement

from pgsimhash.html.names import NEVER_TEXT, UNNAMED, Names, is_hidden, names, words
from pgsimhash.tokens import SIGNS

BLOCK: Final = words(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hr html li main menu nav ol option p pre section"
    " summary table tbody td tfoot th thead tr ul"
)
"""The tags whose start and end are the borders of blocks."""

_PLAIN: Final = words("b code em font i label small strong sub sup time tt u")
_EMPTY: Final = words("br img input link meta")

NAMED_MAX: Final = 50_000
"""Of so many blocks it counts what their attributes say: of the first ones."""

_BEGIN, _LINK_BEGIN, _LINK_END, _SIGN = (f" {sign} " for sign in SIGNS[:4])


class Piece(NamedTuple):
    """Where a piece of a block's text stands: the text or the tail of an element."""

    block: int
    element: HtmlElement
    is_tail: bool

    def around(self) -> HtmlElement:
        """Return the element that the text is directly in."""
        return self.element.getparent() if self.is_tail else self.element


@dataclass(frozen=True, slots=True)
class Outline:
    """The elements that make blocks, in document order, and the blocks in them.

    Element 0 stands for the page; the others follow their parents. Lists are parallel.

    Attributes:
        parents: the index of each element's parent, -1 for element 0.
        tags: its tag.
        said_to_be: what its class, id and role say.
        ends: the index behind its last descendant.
        owners: for each block, the element whose own text it is.
        text: the texts of all blocks, with the signs of :mod:`pgsimhash.tokens`: each block begins
            with the first, links stand between the second and the third, and the fourth is a
            copyright sign. The fifth is for :func:`pgsimhash.html.numbers.mark_dates`.
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

    Hidden elements, scripts, controls and pictures are left out with all that is in them. Within
    ``pre``, only what is around it makes blocks.

    Args:
        body: the tree, from :func:`pgsimhash.html.parse.parse`.
        pieces: takes note of where the text of each block stands, for whoever needs that; what
            elements say is then left out.
    """
    parents, tags, said_to_be, ends = [-1], [""], [UNNAMED], [0]
    owners: list[int] = []
    said: list[str] = []
    # What stands around the children that come next: the element, a link, a pre; and whether the
    # last block goes on with them.
    element, in_link, in_pre, goes_on = 0, False, False, False

    # The elements around, on a stack of our own: pages may be deep.
    around: list[tuple[Iterator[HtmlElement], HtmlElement, int, bool, bool, bool]] = []
    children: Iterator[HtmlElement] = iter((body,))
    while True:
        child = next(children, None)
        if child is None:
            # An element ends.
            if not around:
                break
            inner = element
            children, child, element, in_link, in_pre, is_block = around.pop()
            if is_block:
                ends[inner] = len(parents)
                goes_on = False
            elif in_pre and goes_on and len(child):
                # Lines of code may be elements of their own.
                said.append(" " if child.tag in BLOCK else "")
            text, is_tail = child.tail, True
        else:
            tag = child.tag
            is_block = tag in BLOCK
            if goes_on and (tag in _EMPTY or (in_pre and is_block)):
                said.append(" ")
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
        # What is behind the body is not in the page.
        if not text or not around:
            continue
        if text.isspace():
            if goes_on:
                said.append(" ")
            continue
        if not goes_on:
            goes_on = True
            owners.append(element)
            said.append(_BEGIN)
        said.append(f"{_LINK_BEGIN}{text}{_LINK_END}" if in_link else text)
        if pieces is not None:
            pieces.append(Piece(len(owners) - 1, child, is_tail))
    ends[0] = len(parents)
    text = "".join(said).replace("\xa9", _SIGN)
    return Outline(parents, tags, said_to_be, ends, owners, text)
