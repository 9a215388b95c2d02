"""Cut the tree of a page by CSS selectors, before it is read.

Each compound selector is one XPath expression without a nested search, and sets of elements connect
them. So the time grows with the elements times the names in selectors, however deep a page is.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, cast

from cssselect import HTMLTranslator, parse
from cssselect.parser import CombinedSelector, Selector, Tree
from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.errors import PageError
from pgsimhash.html.blocks import BLOCK, storable
from pgsimhash.pages.selectors import Selectors

_IGNORED: Final = "IGNORED"  # no tag of a parsed page has capital letters
_NAMES: Final = re.compile(r"[.#:\[\s>,]+")  # what separates the names in selectors
WORK_MAX: Final = 2_000_000
"""The most elements of a page times the names in its selectors: some seconds of work."""


class _Step(NamedTuple):
    is_child: bool  # of an element that matches the step before it, else below one
    find: etree.XPath


def cut(root: HtmlElement, selectors: Selectors) -> bool:
    """Remove what does not count from the body; return whether ``content`` matches nothing.

    In that case all of the body counts. An element in another match counts once. The elements that
    ``content`` selects become children of the body, without those around them.

    Raises:
        PageError: the page has too many elements for so many selectors.
    """
    names = sum(len(_NAMES.findall(text)) + 1 for text in selectors if text)
    if root.xpath("count(//*) > $limit", limit=WORK_MAX // max(names, 1)):
        raise PageError("too_large", f"its elements times {names} names of selectors are too many")
    body = root.find("body")
    body = root if body is None else body
    around = {root, body}
    content, ignored = (_matches(root, text) if text else [] for text in selectors)
    parts = content if around.intersection(content) else _below(content, {body})
    is_missing = bool(selectors.content) and not parts
    if around.intersection(ignored):
        del body[:]
        body.text = None
        return is_missing
    for element in _below(ignored, {body}):
        if element.tag in BLOCK:
            element.tail = f" {storable(element.tail)}"
        element.tag = _IGNORED
    if ignored:
        etree.strip_elements(body, _IGNORED, with_tail=False)
    if parts and not around.intersection(parts):
        parts = _below(parts, {body})
        nested = set(_below(parts, set(parts)))
        parts = [part for part in parts if part not in nested]
        for part in parts:
            part.tail = " "
        body.text = None
        body[:] = parts
    return is_missing


def _matches(root: HtmlElement, text: str) -> list[HtmlElement]:
    """Return the elements that match one of several selectors, in document order."""
    lists = [found for steps in _compiled(text) if (found := _found(root, steps))]
    if len(lists) < 2:
        return lists[0] if lists else []
    matched = {element for found in lists for element in found}
    return [element for element in root.iter() if element in matched]


def _found(root: HtmlElement, steps: Iterable[_Step]) -> list[HtmlElement]:
    found: list[HtmlElement] = []
    for number, step in enumerate(steps):
        elements, around = cast("list[HtmlElement]", step.find(root)), set(found)
        if step.is_child:
            found = [element for element in elements if element.getparent() in around]
        else:
            found = _below(elements, around) if number else elements
    return found


def _below(elements: Iterable[HtmlElement], around: set[HtmlElement]) -> list[HtmlElement]:
    """Return the elements that are in other ones; each element is visited once."""
    known = dict.fromkeys(around, True)
    found = []
    for element in elements:
        path = []
        parent = element.getparent()
        while parent is not None and parent not in known:
            path.append(parent)
            parent = parent.getparent()
        is_below = parent is not None and known[parent]
        known.update(dict.fromkeys(path, is_below))
        if is_below:
            found.append(element)
    return found


@lru_cache
def _compiled(text: str) -> tuple[tuple[_Step, ...], ...]:
    translator = HTMLTranslator()

    def steps(tree: Tree) -> tuple[_Step, ...]:
        if isinstance(tree, CombinedSelector):
            before, own = steps(tree.selector), tree.subselector
            return (*before, _Step(tree.combinator == ">", _xpath(translator, own)))
        return (_Step(False, _xpath(translator, tree)),)

    return tuple(steps(selector.parsed_tree) for selector in parse(text))


def _xpath(translator: HTMLTranslator, tree: Tree) -> etree.XPath:
    return etree.XPath(translator.selector_to_xpath(Selector(tree)))
