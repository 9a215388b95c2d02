"""From the containers of a scanned page to its main text, as compiled loops."""

from __future__ import annotations

from typing import Final

import numpy as np

from pgsimhash.jit import compiled
from pgsimhash.page.scanner import kinds, phrases
from pgsimhash.page.scanner.notices import LABEL_MAX, kind_of_line, line_end, without_notices
from pgsimhash.page.scanner.octets import Keys, Octets, Values
from pgsimhash.page.scanner.scan import END, FLAGS, LINKED, PARENT, START

_LARGE_SHARE: Final = 0.4
_REST_SHARE: Final = 0.3
_LINK_SHARE: Final = 0.6
_ENOUGH: Final = 0.35
_AD_MAX: Final = 400
_AD_SHARE: Final = 0.2
_HEADED_SHARE: Final = 0.4


@compiled
def _is_headed(kind: int, heading: int, chars: int, linked: int, total: int, large: float) -> bool:
    """Whether a container that begins with a line of this kind is beside the text."""
    if kind == phrases.ADVERTISEMENT:
        return chars <= min(_AD_MAX, _AD_SHARE * total)
    if chars - linked > large:
        return False
    if kind == phrases.COMMENTS:
        return True
    return kind == phrases.OTHERS and linked >= _HEADED_SHARE * (chars - heading)


@compiled
def _measure(
    elements: Values,
    removed: Octets,
    chars: Values,
    linked: Values,
) -> None:
    """Set what each container holds without what is removed; in that, nothing holds anything."""
    count = len(elements)
    gone = np.zeros(count, dtype=np.bool_)
    for at in range(count):
        gone[at] = removed[at] or (at > 0 and gone[elements[at, PARENT]])
        chars[at] = 0 if gone[at] else elements[at, END] - elements[at, START]
        linked[at] = 0 if gone[at] else elements[at, LINKED]
    # Parents come before their children, so this goes up from the innermost.
    lost = np.zeros((count, 2), dtype=np.int64)
    for at in range(count - 1, 0, -1):
        above = elements[at, PARENT]
        if gone[above]:
            continue
        if gone[at]:
            lost[at, 0] = elements[at, END] - elements[at, START]
            lost[at, 1] = elements[at, LINKED]
        else:
            chars[at] -= lost[at, 0]
            linked[at] -= lost[at, 1]
        lost[above, 0] += lost[at, 0]
        lost[above, 1] += lost[at, 1]
    chars[0] -= lost[0, 0]
    linked[0] -= lost[0, 1]


@compiled
def main_text(
    text: Octets,
    elements: Values,
    keys: Keys,
    values: Values,
) -> Octets:
    """Return the main text.

    Args:
        text: shape (n,), dtype uint8: the page's text in UTF-8.
        elements: shape (containers, 5), dtype int64: the page's containers.
        keys: the keys of ``phrases.phrases``.
        values: their values.

    Returns:
        The main text in UTF-8, a line for each piece.
    """
    count = len(elements)
    removed = np.zeros(count, dtype=np.uint8)
    chars = np.empty(count, dtype=np.int64)
    linked = np.empty(count, dtype=np.int64)
    _measure(elements, removed, chars, linked)
    total = chars[0] - linked[0]
    large = _LARGE_SHARE * total
    for at in range(1, count):
        flags = elements[at, FLAGS]
        if chars[at] - linked[at] > large or flags & (kinds.ARTICLE | kinds.MAIN):
            continue
        if flags & kinds.BESIDE:
            removed[at] = 2
        elif flags & kinds.NAMED:
            removed[at] = 1
        else:
            start = elements[at, START]
            if start < len(text) and text[start] <= 0x20:
                start += 1
            end = min(start + LABEL_MAX + 1, elements[at, END])
            end = line_end(text, start, end)
            if end - start <= LABEL_MAX:
                kind = kind_of_line(text, start, end, keys, values)
                if kind and _is_headed(kind, end - start, chars[at], linked[at], chars[0], large):
                    removed[at] = 1
    _measure(elements, removed, chars, linked)
    if chars[0] - linked[0] < _REST_SHARE * total:
        for at in range(1, count):
            removed[at] = removed[at] == 2
        _measure(elements, removed, chars, linked)
    large = _LARGE_SHARE * (chars[0] - linked[0])
    for at in range(1, count):
        if (
            linked[at] > _LINK_SHARE * chars[at]
            and chars[at] - linked[at] <= large
            and elements[at, FLAGS] & kinds.LINKS
        ):
            removed[at] = 1
    _measure(elements, removed, chars, linked)
    enough = _ENOUGH * chars[0]
    main = 0
    best = 5
    for at in range(1, count):
        if chars[at] < enough:
            continue
        flags = elements[at, FLAGS]
        rank = 5
        if flags & kinds.ARTICLE:
            rank = 1
        elif flags & kinds.MAIN:
            rank = 2
        elif flags & kinds.ROLE_MAIN:
            rank = 3
        elif flags & kinds.ID_CONTENT:
            rank = 4
        if rank < best:
            best = rank
            main = at
    kept = np.empty(len(text), dtype=np.uint8)
    write = 0
    read = elements[main, START]
    end = elements[main, END]
    for at in range(main + 1, count):
        if elements[at, START] >= end:
            break
        if removed[at] and elements[at, START] >= read:
            stop = elements[at, START]
            while read < stop:
                kept[write] = text[read]
                read += 1
                write += 1
            read = elements[at, END]
    while read < end:
        kept[write] = text[read]
        read += 1
        write += 1
    return without_notices(kept, write, keys, values)
