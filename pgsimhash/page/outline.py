"""The measures of a tree: how much text, and how much of it in links, each element holds."""

from __future__ import annotations

from lxml import etree
from lxml.html import HtmlElement


class Outline:
    """The elements of a tree in document order, with the text below each.

    Attributes:
        nodes: the elements.
        parents: for each, the index of its parent; 0 for the root itself.
        chars: for each, the characters of text in it, white space at the ends of texts aside.
        linked: for each, how many of those are in links.
        removed: the indices of the elements taken out.
    """

    def __init__(self, root: HtmlElement) -> None:
        self.nodes: list[HtmlElement] = []
        self.parents: list[int] = []
        self._own: list[int] = []
        self._own_linked: list[int] = []
        self.removed: set[int] = set()
        self._read(root)
        self.chars: list[int] = []
        self.linked: list[int] = []
        self.measure()

    def _read(self, root: HtmlElement) -> None:
        nodes, parents, own, own_linked = self.nodes, self.parents, self._own, self._own_linked
        here = 0
        links = 0
        for event, node in etree.iterwalk(root, events=("start", "end")):
            if event == "start":
                parents.append(here)
                here = len(nodes)
                nodes.append(node)
                own.append(0)
                own_linked.append(0)
                if node.tag == "a":
                    links += 1
                text = node.text
            else:
                if node.tag == "a":
                    links -= 1
                here = parents[here]
                text = node.tail
            if text:
                size = len(text.strip())
                own[here] += size
                if links:
                    own_linked[here] += size

    def measure(self) -> None:
        """Add up the texts again, without what was removed."""
        chars, linked, parents, removed = (
            self._own[:],
            self._own_linked[:],
            self.parents,
            self.removed,
        )
        for index in range(len(chars) - 1, 0, -1):
            if index in removed:
                chars[index] = linked[index] = 0
            parent = parents[index]
            chars[parent] += chars[index]
            linked[parent] += linked[index]
        self.chars, self.linked = chars, linked

    def unlinked(self, index: int) -> int:
        """Return how many characters of text an element holds outside links."""
        return self.chars[index] - self.linked[index]
