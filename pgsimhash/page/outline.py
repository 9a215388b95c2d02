"""The measures of a tree: how much text, and how much of it in links, each element holds."""

from __future__ import annotations

from lxml.html import HtmlElement


class Outline:
    """The elements of a tree in document order, with the text below each.

    Attributes:
        nodes: the elements.
        places: the index of each.
        parents: for each, the index of its parent; 0 for the root itself.
        own: for each, the characters of text directly in it, counted as in ``chars``.
        chars: for each, the characters of text in it, white space at the ends of texts aside.
        linked: for each, how many of those are in links.
        removed: the indices of the elements taken out.
    """

    def __init__(self, root: HtmlElement) -> None:
        self.nodes: list[HtmlElement] = []
        self.places: dict[HtmlElement, int] = {}
        self.parents: list[int] = []
        self.own: list[int] = []
        self._own_linked: list[int] = []
        self.removed: set[int] = set()
        self._read(root)
        self.chars: list[int] = []
        self.linked: list[int] = []
        self.measure()

    def _read(self, root: HtmlElement) -> None:
        nodes, parents, own, own_linked = self.nodes, self.parents, self.own, self._own_linked
        places = self.places
        in_link: list[bool] = []
        # Parents come before their children, so what was seen says all about an element but text.
        for index, node in enumerate(root.iter("*")):
            here = places[node.getparent()] if index else 0
            places[node] = index
            nodes.append(node)
            parents.append(here)
            text, tail = node.text, node.tail
            size = len(text.strip()) if text else 0
            own.append(size)
            linked = node.tag == "a" or (index > 0 and in_link[here])
            in_link.append(linked)
            own_linked.append(size if linked else 0)
            if tail and index:
                size = len(tail.strip())
                own[here] += size
                if in_link[here]:
                    own_linked[here] += size

    def measure(self) -> None:
        """Add up the texts again, without what was removed."""
        chars, linked, parents, removed = (
            self.own[:],
            self._own_linked[:],
            self.parents,
            self.removed,
        )
        for index in range(len(chars) - 1, 0, -1):
            if index in removed:
                chars[index] = linked[index] = 0
                continue
            parent = parents[index]
            chars[parent] += chars[index]
            linked[parent] += linked[index]
        self.chars, self.linked = chars, linked

    def unlinked(self, index: int) -> int:
        """Return how many characters of text an element holds outside links."""
        return self.chars[index] - self.linked[index]
