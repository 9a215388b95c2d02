"""Finds the blocks whose own words say that they stand beside the text."""

from __future__ import annotations

from typing import Final

from pgsimhash.page.labels import (
    CALL_MAX,
    LABEL_MAX,
    calls_to_sign_up,
    heads_comments,
    heads_other_articles,
    labels_advertisement,
    tells_of_cookies,
)
from pgsimhash.page.names import PROTECTED, words
from pgsimhash.page.outline import Outline

_AD_MAX: Final = 400
_AD_SHARE: Final = 0.2
_BANNER_MAX: Final = 600
_BANNER_SHARE: Final = 0.2
_LINKED_SHARE: Final = 0.4
_BLOCKS: Final = words("ul ol dl div section table")
_CLIMB_MAX: Final = 16
_BEFORE_MAX: Final = 64


def labelled_blocks(outline: Outline, index: int, text: str, large: float) -> list[int]:
    """Return the elements that ``text``, at the start of element ``index``, says are beside.

    Args:
        outline: the page.
        index: an element that stays so far.
        text: its text before its first child, 400 characters at most.
        large: what has more text than this outside links, in characters, is never returned.
    """
    said = text.strip().lower()
    if not said:
        return []
    if len(said) <= LABEL_MAX:
        if labels_advertisement(said):
            return [_advertisement(outline, index)]
        if heads_comments(said):
            return _headed(outline, index, large, 0)
        if heads_other_articles(said):
            return _headed(outline, index, large, _LINKED_SHARE)
    if len(said) <= CALL_MAX and outline.chars[index] <= CALL_MAX and calls_to_sign_up(said):
        return [index]
    if tells_of_cookies(said):
        return _banner(outline, index, large)
    return []


def _advertisement(outline: Outline, index: int) -> int:
    parent = outline.parents[index]
    small = outline.chars[parent] <= min(_AD_MAX, _AD_SHARE * outline.chars[0])
    return parent if small and outline.nodes[parent].tag not in PROTECTED else index


def _headed(outline: Outline, index: int, large: float, links: float) -> list[int]:
    """Return the block that begins with the heading at ``index``, or heading and next block."""
    chars, parents = outline.chars, outline.parents
    at = index
    for _ in range(_CLIMB_MAX):
        if chars[parents[at]] != chars[at] or outline.nodes[parents[at]].tag in PROTECTED:
            break
        at = parents[at]

    def beside(block: int) -> bool:
        return (
            outline.nodes[block].tag not in PROTECTED
            and outline.unlinked(block) <= large
            and outline.linked[block] >= links * (chars[block] - chars[at])
        )

    around = parents[at]
    if at - around <= _BEFORE_MAX and not any(chars[around + 1 : at]) and beside(around):
        return [around]
    following = outline.nodes[at].getnext()
    if following is not None and following.tag in _BLOCKS and beside(outline.places[following]):
        return [at, outline.places[following]]
    return []


def _banner(outline: Outline, index: int, large: float) -> list[int]:
    """Return the small block around ``index``, if it stands directly in the page or one below."""
    parents, most = outline.parents, min(_BANNER_MAX, _BANNER_SHARE * outline.chars[0], large)
    at = index
    for _ in range(_CLIMB_MAX):
        above = parents[at]
        if outline.nodes[above].tag in PROTECTED or outline.chars[above] > most:
            break
        at = above
    above = outline.nodes[parents[at]].tag
    higher = outline.nodes[parents[parents[at]]].tag
    if outline.chars[at] <= most and (
        above == "body" or (higher == "body" and outline.nodes[at].tag != "p" and above == "div")
    ):
        return [at]
    return []
