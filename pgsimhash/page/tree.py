"""What the steps of reading a page share: measuring, walking and pruning an element tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree
from lxml.html import HtmlElement


@dataclass(slots=True)
class Amount:
    """How many characters an element holds, how many of them in links, and how many links."""

    text: int = 0
    linked: int = 0
    links: int = 0

    def add(self, other: Amount) -> None:
        """Add what a child holds."""
        self.text += other.text
        self.linked += other.linked
        self.links += other.links

    @property
    def unlinked(self) -> int:
        """How many characters are outside links."""
        return self.text - self.linked


def body_of(root: HtmlElement) -> HtmlElement:
    """Return the body of a page, or the root where there is none (a page of frames)."""
    body = root.find("body")
    return root if body is None else body


def amounts(root: HtmlElement) -> dict[HtmlElement, Amount]:
    """Measure every element under ``root`` in one pass, white space at the ends left out."""
    measured: dict[HtmlElement, Amount] = {}
    for event, element in walk(root):
        if event == "start":
            measured[element] = Amount(length(element.text))
            continue
        own = measured[element]
        if element.tag == "a":
            own.linked, own.links = own.text, 1
        if element is not root:
            above = measured[element.getparent()]
            above.add(own)
            above.text += length(element.tail)
    return measured


def walk(root: HtmlElement) -> Iterator[tuple[str, HtmlElement]]:
    """Yield ``start`` and ``end`` of every element under ``root``, without recursion."""
    yield from etree.iterwalk(root, events=("start", "end"))


def remove(element: HtmlElement) -> None:
    """Take an element out of its tree and leave the text behind it where it is."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        before = element.getprevious()
        if before is not None:
            before.tail = f"{before.tail or ''} {element.tail}"
        else:
            parent.text = f"{parent.text or ''} {element.tail}"
    parent.remove(element)


def length(text: str | None) -> int:
    """Return how many characters ``text`` has, white space at its ends left out."""
    return len(text.strip()) if text else 0
