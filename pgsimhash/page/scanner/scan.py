"""One pass over the bytes of a page to its text and the containers in it, as compiled loops.

A tokenizer after WHATWG HTML, section 13.2.5, without a tree: an end tag ends the nearest open
container of its name among the innermost :data:`REACH`, and what is open within that. So each
byte is read once, and a page costs time and memory in proportion to its size whatever is in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pgsimhash.jit import compiled
from pgsimhash.page.scanner import kinds
from pgsimhash.page.scanner.attributes import read_attributes
from pgsimhash.page.scanner.octets import (
    AMP,
    BANG,
    DASH,
    ENDS,
    GT,
    LT,
    PADDING,
    SLASH,
    SPACES,
    Keys,
    Octets,
    Values,
    byte_at,
    find,
    hashed,
    look_up,
)
from pgsimhash.page.scanner.references import put, read_reference
from pgsimhash.page.scanner.skips import after, after_comment, raw_end

REACH: Final = 32
_ROOM: Final = 512

FLAGS, PARENT, START, END, LINKED = range(5)
"""The columns of containers: flags, place of the parent, where in the text, bytes in links."""

_LETTERS: Final = np.array([bytes([byte]).isalpha() for byte in range(256)])
_TEXT: Final = np.array([byte > 0x20 and byte not in b"<&\x7f" for byte in range(256)])


@compiled
def scan(
    data: Octets,
    most: int,
    names: Keys,
    meanings: Values,
    references: Keys,
    characters: Values,
) -> tuple[Octets, Values, Values]:
    """Return the text of a page, its containers, and where the tags of its head are.

    Args:
        data: shape (n,), dtype uint8: the page in UTF-8, without NUL but for :data:`PADDING` of
            them at the end.
        most: how many containers it may have.
        names: the keys of ``kinds.names``.
        meanings: their values.
        references: the keys of ``kinds.references``.
        characters: their values.

    Returns:
        The text in UTF-8; the containers, shape (containers, 5), dtype int64, the page itself first
        and each before those within it; where the tag ``html``, what is in ``title``, the tag of
        the canonical ``link`` and the tag ``base`` begin and end in ``data``, or -1 for none.
        If it has too many containers, there is none, not even the page itself.
    """
    size = len(data) - PADDING
    text = np.empty(size + size // 2 + 16, dtype=np.uint8)
    elements = np.empty((_ROOM, 5), dtype=np.int64)
    stack = np.empty(_ROOM, dtype=np.int64)
    marks = np.full(10, -1, dtype=np.int64)
    elements[0, FLAGS] = 0
    elements[0, PARENT] = -1
    elements[0, START] = 0
    stack[0] = 0
    count = 1
    depth = 0
    never = 0
    anchor = -1  # where in the text the open link begins
    anchor_depth = 0
    linked = 0
    gap = 0  # 1: a space is due before the next text, 2: a line break
    write = 0
    at = 0
    while at < size:
        byte = byte_at(data, at)
        if _TEXT[byte]:
            if never:
                at = find(data, at, LT)
                continue
            if gap and write:
                text[np.uint64(write)] = 0x0A if gap == 2 else 0x20
                write += 1
            gap = 0
            while _TEXT[byte]:
                text[np.uint64(write)] = byte
                write += 1
                at += 1
                byte = byte_at(data, at)
            continue
        if byte != LT and byte != AMP:
            if SPACES[byte]:
                gap = max(gap, 1)
            at += 1
            while SPACES[byte_at(data, at)]:
                at += 1
            continue
        code = int(byte)
        if byte == AMP:
            end, found = read_reference(data, at, references, characters)
            at += 1
            if end:
                code = found
                at = end
            if never:
                continue
            if code <= 0x20:
                gap = max(gap, 1)
                continue
        else:
            following = byte_at(data, at + 1)
            closing = following == SLASH
            first = at + 2 if closing else at + 1
            if not _LETTERS[byte_at(data, first)]:
                if (
                    following == BANG
                    and byte_at(data, at + 2) == DASH
                    and byte_at(data, at + 3) == DASH
                ):
                    at = after_comment(data, at + 4)
                    continue
                if closing or following == BANG or following == 0x3F:
                    at = after(data, at + 2)
                    continue
                at += 1
            else:
                start = at
                at = first
                while not ENDS[byte_at(data, at)]:
                    at += 1
                length = at - first
                tag = look_up(hashed(LT, data, first, at), names, meanings)
                wanted = not closing and (tag & (kinds.CONTAINER | kinds.READ)) != 0
                at, said = read_attributes(data, at, wanted, names, meanings)
                alone = byte_at(data, at - 1) == GT and byte_at(data, at - 2) == SLASH
                if byte_at(data, at - 1) != GT:
                    break  # the page ends within a tag, which is none then
                if tag & kinds.BLOCK:
                    gap = 2
                number = tag & 0xFF
                if tag & kinds.ANCHOR:
                    if anchor >= 0:
                        linked += write - anchor
                        anchor = -1
                    if not closing:
                        anchor = write
                        anchor_depth = depth
                elif closing:
                    if tag & kinds.CONTAINER:
                        least = max(depth - REACH, 0)
                        up = depth
                        while up > least and elements[stack[up], FLAGS] & 0xFF != number:
                            up -= 1
                        if up > least:
                            if anchor >= 0 and anchor_depth >= up:
                                linked += write - anchor
                                anchor = -1
                            total = linked + (write - anchor if anchor >= 0 else 0)
                            while depth >= up:
                                element = stack[depth]
                                elements[element, END] = write
                                elements[element, LINKED] += total
                                if elements[element, FLAGS] & kinds.NEVER:
                                    never -= 1
                                depth -= 1
                elif tag & kinds.RAW:
                    if never == 0 or not alone:
                        inner = at
                        at = raw_end(data, at, first, length)
                        if number == kinds.TITLE and never == 0 and marks[2] < 0:
                            for place in range(inner, at):
                                if not SPACES[byte_at(data, place)]:
                                    marks[2] = inner
                                    marks[3] = at
                                    break
                elif tag & kinds.CONTAINER:
                    if not (tag & kinds.NEVER and alone):
                        if count > most:
                            return text[:0], elements[:0], marks
                        if count == len(elements):
                            wider = np.empty((2 * count, 5), dtype=np.int64)
                            wider[:count] = elements
                            elements = wider
                            higher = np.empty(2 * count, dtype=np.int64)
                            higher[:count] = stack
                            stack = higher
                        depth += 1
                        stack[depth] = count
                        elements[count, FLAGS] = tag | said
                        elements[count, PARENT] = stack[depth - 1]
                        elements[count, START] = write
                        total = linked + (write - anchor if anchor >= 0 else 0)
                        elements[count, LINKED] = -total
                        count += 1
                        if tag & kinds.NEVER:
                            never += 1
                elif tag & kinds.READ:
                    if number == kinds.HTML and marks[0] < 0:
                        marks[0] = start
                        marks[1] = at
                    elif number == kinds.LINK and said & kinds.READ and marks[4] < 0:
                        marks[4] = start
                        marks[5] = at
                    elif number == kinds.BASE and marks[6] < 0:
                        marks[6] = start
                        marks[7] = at
                continue
            if never:
                continue
        if gap and write:
            text[np.uint64(write)] = 0x0A if gap == 2 else 0x20
            write += 1
        gap = 0
        write = put(code & 0xFFFFFFFF, text, write)
        if code >> 32:
            write = put(code >> 32, text, write)
    if anchor >= 0:
        linked += write - anchor
    elements[0, LINKED] = 0
    while depth >= 0:
        elements[stack[depth], END] = write
        elements[stack[depth], LINKED] += linked
        depth -= 1
    return text[:write], elements[:count], marks
