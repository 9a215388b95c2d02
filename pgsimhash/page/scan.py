"""One pass over the bytes of a page to its text and the containers in it, as compiled loops.

A tokenizer after WHATWG HTML, section 13.2.5, without a tree: an end tag ends the nearest open
container of its name among the innermost :data:`REACH`, and what is open within that. So each
byte is read once, and a page costs time and memory in proportion to its size whatever is in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.jit import compiled
from pgsimhash.page import kinds

REACH: Final = 32
PADDING: Final = 8
"""How many NUL bytes have to follow the page, in which there is none."""

FLAGS, PARENT, START, END, LINKED = range(5)
"""The columns of containers: flags, place of the parent, where in the text, bytes in links."""

_Octets = NDArray[np.uint8]
_Keys = NDArray[np.uint64]
_Values = NDArray[np.int64]

_PRIME: Final = np.uint64(0x100000001B3)
_OFFSET: Final = np.uint64(0xCBF29CE484222325)
_LOW: Final = np.uint64(1)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGHS: Final = np.uint64(0x8080808080808080)
_LT, _GT, _SLASH, _EQUALS, _AMP, _DASH, _BANG, _HASH, _SEMICOLON = b"<>/=&-!#;"
_NAMES_MAX: Final = 1000
_REFERENCE_MAX: Final = 32
# What the numbers 128 to 159 stand for: windows-1252, as browsers have it.
_CP1252: Final = np.array(
    [ord(bytes([code]).decode("cp1252", "replace")) for code in range(0x80, 0xA0)], dtype=np.int64
)
# Per byte: 1 white space, 2 also ends a name in a tag, 0 the rest.
_SPACES: Final = np.array([byte in b" \t\n\r\f" for byte in range(256)], dtype=np.bool_)
_ENDS: Final = np.array([byte in b" \t\n\r\f/>\0" for byte in range(256)], dtype=np.bool_)
_LETTERS: Final = np.array([bytes([byte]).isalpha() for byte in range(256)], dtype=np.bool_)
_ALNUM: Final = np.array([bytes([byte]).isalnum() for byte in range(256)], dtype=np.bool_)
_TEXT: Final = np.array([byte > 0x20 and byte not in b"<&\x7f" for byte in range(256)])


@compiled
def _at(data: _Octets, place: int) -> int:
    # An unsigned index: a signed one is looked at first, for it may count from the end.
    return data[np.uint64(place)]


@compiled
def _find(data: _Octets, at: int, byte: int) -> int:
    """Return the next place of ``byte`` from ``at`` on, or where the page ends."""
    # Eight at a time, while none of them is that byte or NUL.
    pattern = _ONES * np.uint64(byte)
    while True:
        start = np.uint64(at)
        eight = (
            np.uint64(data[start])
            | np.uint64(data[start + np.uint64(1)]) << np.uint64(8)
            | np.uint64(data[start + np.uint64(2)]) << np.uint64(16)
            | np.uint64(data[start + np.uint64(3)]) << np.uint64(24)
            | np.uint64(data[start + np.uint64(4)]) << np.uint64(32)
            | np.uint64(data[start + np.uint64(5)]) << np.uint64(40)
            | np.uint64(data[start + np.uint64(6)]) << np.uint64(48)
            | np.uint64(data[start + np.uint64(7)]) << np.uint64(56)
        )
        other = eight ^ pattern
        if (((eight - _ONES) & ~eight) | ((other - _ONES) & ~other)) & _HIGHS:
            break
        at += 8
    while _at(data, at) != byte and _at(data, at) != 0:
        at += 1
    return at


@compiled
def _step(state: np.uint64, byte: int) -> np.uint64:
    return (state ^ np.uint64(byte)) * _PRIME


@compiled
def _lower(byte: int) -> int:
    return byte | 0x20 if 0x41 <= byte <= 0x5A else byte


@compiled
def _look_up(key: np.uint64, keys: _Keys, values: _Values) -> int:
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] != key:
        if keys[slot] == 0:
            return 0
        slot = (slot + _LOW) & mask
    return values[slot]


@compiled
def _hashed(sign: int, data: _Octets, start: int, end: int) -> np.uint64:
    """The hash of ``sign`` and the bytes, in lower case."""
    state = _step(_OFFSET, sign)
    for at in range(start, end):
        state = _step(state, _lower(_at(data, at)))
    return state


@compiled
def _names_beside(data: _Octets, start: int, end: int, keys: _Keys, values: _Values) -> bool:
    """Whether a name in a class or id has a word for what stands beside, and none for text."""
    beside = False
    text = False
    at = start
    while at <= end:
        if at == end or _SPACES[_at(data, at)]:
            if beside and not text:
                return True
            beside = text = False
            at += 1
            continue
        first = at
        while at < end and 0x41 <= _at(data, at) <= 0x5A:
            at += 1
        if at < end and 0x61 <= _at(data, at) <= 0x7A:
            if at - first > 1:
                # In XMLHttp the second word begins at the last capital.
                at -= 1
            else:
                while at < end and 0x61 <= _at(data, at) <= 0x7A:
                    at += 1
        elif at == first:
            at += 1
            continue
        found = _look_up(_hashed(0x2E, data, first, at), keys, values)
        beside |= found == 1
        text |= found == 2
    return False


@compiled
def _style_hides(data: _Octets, start: int, end: int, keys: _Keys, values: _Values) -> bool:
    state = _step(_OFFSET, _SEMICOLON)
    for at in range(start, end):
        if _at(data, at) == _SEMICOLON:
            state = _step(_OFFSET, _SEMICOLON)
        elif not _SPACES[_at(data, at)]:
            state = _step(state, _lower(_at(data, at)))
            if _look_up(state, keys, values):
                return True
    return False


@compiled
def _said(
    name: int, data: _Octets, start: int, end: int, keys: _Keys, values: _Values
) -> int:
    """What the attribute of that number says by its value."""
    if name == kinds.HIDDEN:
        return kinds.NAMED
    end = min(end, start + _NAMES_MAX)
    if name == kinds.CLASS or name == kinds.ID:
        if _names_beside(data, start, end, keys, values):
            return kinds.NAMED
        if name == kinds.ID:
            return _look_up(_hashed(_HASH, data, start, end), keys, values)
    elif name == kinds.ROLE:
        role = _look_up(_hashed(_EQUALS, data, start, end), keys, values)
        return kinds.NAMED if role == kinds.BESIDE else role
    elif name == kinds.STYLE and _style_hides(data, start, end, keys, values):
        return kinds.NAMED
    elif name == kinds.REL:
        first = start
        for at in range(start, end + 1):
            if at == end or _SPACES[_at(data, at)]:
                if _look_up(_hashed(0x7E, data, first, at), keys, values):
                    return kinds.READ
                first = at + 1
    return 0


@compiled
def _read_attributes(
    data: _Octets, at: int, wanted: bool, keys: _Keys, values: _Values
) -> tuple[int, int]:
    """Return where the tag ends, and what its attributes say, if that is ``wanted``."""
    said = 0
    while True:
        while _SPACES[_at(data, at)] or _at(data, at) == _SLASH:
            at += 1
        if _at(data, at) == 0:
            return at, said
        if _at(data, at) == _GT:
            return at + 1, said
        first = at
        at += 1
        while not _ENDS[_at(data, at)] and _at(data, at) != _EQUALS:
            at += 1
        name = _look_up(_hashed(0x40, data, first, at), keys, values) if wanted else 0
        while _SPACES[_at(data, at)]:
            at += 1
        start = end = at
        if _at(data, at) == _EQUALS:
            at += 1
            while _SPACES[_at(data, at)]:
                at += 1
            quote = _at(data, at)
            start = at
            if quote == 0x22 or quote == 0x27:
                start = at + 1
                end = at = _find(data, start, quote)
                if _at(data, at) != 0:
                    at += 1
            else:
                while _at(data, at) != _GT and _at(data, at) != 0 and not _SPACES[_at(data, at)]:
                    at += 1
                end = at
        if name:
            said |= _said(name, data, start, end, keys, values)


@compiled
def _after(data: _Octets, at: int) -> int:
    """Return the place behind the next ``>``, or the end."""
    at = _find(data, at, _GT)
    return at + 1 if _at(data, at) else at


@compiled
def _after_comment(data: _Octets, at: int) -> int:
    """Return the place behind the comment whose ``<!--`` ends at ``at``."""
    if _at(data, at) == _GT:
        return at + 1
    if _at(data, at) == _DASH and _at(data, at + 1) == _GT:
        return at + 2
    while True:
        at = _find(data, at, _DASH)
        if _at(data, at) == 0:
            return at
        if _at(data, at + 1) == _DASH:
            if _at(data, at + 2) == _GT:
                return at + 3
            if _at(data, at + 2) == _BANG and _at(data, at + 3) == _GT:
                return at + 4
        at += 1


@compiled
def _raw_end(data: _Octets, at: int, name: int, length: int) -> int:
    """Return where the end tag begins of the element whose name is at ``name``, or the end."""
    while True:
        at = _find(data, at, _LT)
        if _at(data, at) == 0:
            return at
        if _at(data, at + 1) == _SLASH:
            same = 0
            while same < length and _lower(_at(data, at + 2 + same)) == _lower(
                _at(data, name + same)
            ):
                same += 1
            if same == length and _ENDS[_at(data, at + 2 + length)]:
                return at
        at += 1


@compiled
def _reference(
    data: _Octets, at: int, keys: _Keys, values: _Values
) -> tuple[int, int]:
    """Return where the character reference at ``&`` ends, and its code points; 0 for none."""
    at += 1
    if _at(data, at) != _HASH:
        state = _step(_OFFSET, _AMP)
        end = found = 0
        for read in range(at, at + _REFERENCE_MAX):
            byte = _at(data, read)
            if not _ALNUM[byte] and byte != _SEMICOLON:
                break
            state = _step(state, byte)
            value = _look_up(state, keys, values)
            if value:
                found = value
                end = read + 1
            if byte == _SEMICOLON:
                break
        return end, found
    at += 1
    base = 10
    if _at(data, at) == 0x78 or _at(data, at) == 0x58:
        base = 16
        at += 1
    first = at
    code = 0
    while True:
        byte = _lower(_at(data, at))
        if 0x30 <= byte <= 0x39:
            digit = byte - 0x30
        elif base == 16 and 0x61 <= byte <= 0x66:
            digit = byte - 0x57
        else:
            break
        code = min(code * base + digit, 0x110000)
        at += 1
    if at == first:
        return 0, 0
    if _at(data, at) == _SEMICOLON:
        at += 1
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        code = 0xFFFD
    elif 0x80 <= code < 0xA0:
        code = _CP1252[code - 0x80]
    return at, code


@compiled
def _put(code: int, text: _Octets, write: int) -> int:
    """Write a code point in UTF-8, and return the place behind it."""
    if code < 0x80:
        text[np.uint64(write)] = code
        return write + 1
    if code < 0x800:
        text[np.uint64(write)] = 0xC0 | code >> 6
    else:
        if code < 0x10000:
            text[np.uint64(write)] = 0xE0 | code >> 12
        else:
            text[np.uint64(write)] = 0xF0 | code >> 18
            write += 1
            text[np.uint64(write)] = 0x80 | (code >> 12 & 0x3F)
        write += 1
        text[np.uint64(write)] = 0x80 | (code >> 6 & 0x3F)
    text[np.uint64(write + 1)] = 0x80 | (code & 0x3F)
    return write + 2


@compiled
def scan(
    data: _Octets,
    room: int,
    names: _Keys,
    meanings: _Values,
    references: _Keys,
    characters: _Values,
) -> tuple[_Octets, _Values, _Values]:
    """Return the text of a page, its containers, and where the tags of its head are.

    Args:
        data: shape (n,), dtype uint8: the page in UTF-8, without NUL but for :data:`PADDING` of
            them at the end.
        room: one more than the number of ``<`` in it.
        names: as ``kinds.names`` says, and ``meanings`` too.
        references: as ``kinds.references`` says, and ``characters`` too.
    """
    size = len(data) - PADDING
    text = np.empty(size + size // 2 + 16, dtype=np.uint8)
    elements = np.empty((room, 5), dtype=np.int64)
    stack = np.empty(room, dtype=np.int64)
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
        byte = _at(data, at)
        if _TEXT[byte]:
            if never:
                at = _find(data, at, _LT)
                continue
            if gap and write:
                text[np.uint64(write)] = 0x0A if gap == 2 else 0x20
                write += 1
            gap = 0
            while _TEXT[byte]:
                text[np.uint64(write)] = byte
                write += 1
                at += 1
                byte = _at(data, at)
            continue
        if byte != _LT and byte != _AMP:
            if _SPACES[byte]:
                gap = max(gap, 1)
            at += 1
            while _SPACES[_at(data, at)]:
                at += 1
            continue
        code = np.int64(byte)
        if byte == _AMP:
            end, found = _reference(data, at, references, characters)
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
            following = _at(data, at + 1)
            closing = following == _SLASH
            first = at + 2 if closing else at + 1
            if not _LETTERS[_at(data, first)]:
                if following == _BANG and _at(data, at + 2) == _DASH and _at(data, at + 3) == _DASH:
                    at = _after_comment(data, at + 4)
                    continue
                if closing or following == _BANG or following == 0x3F:
                    at = _after(data, at + 2)
                    continue
                at += 1
            else:
                start = at
                at = first
                while not _ENDS[_at(data, at)]:
                    at += 1
                length = at - first
                tag = _look_up(_hashed(_LT, data, first, at), names, meanings)
                wanted = not closing and (tag & (kinds.CONTAINER | kinds.READ)) != 0
                at, said = _read_attributes(data, at, wanted, names, meanings)
                alone = _at(data, at - 1) == _GT and _at(data, at - 2) == _SLASH
                if _at(data, at - 1) != _GT:
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
                        at = _raw_end(data, at, first, length)
                        if number == kinds.TITLE and never == 0 and marks[2] < 0:
                            for place in range(inner, at):
                                if not _SPACES[_at(data, place)]:
                                    marks[2] = inner
                                    marks[3] = at
                                    break
                elif tag & kinds.CONTAINER:
                    if not (tag & kinds.NEVER and alone):
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
        write = _put(code & 0xFFFFFFFF, text, write)
        if code >> 32:
            write = _put(code >> 32, text, write)
    if anchor >= 0:
        linked += write - anchor
    elements[0, LINKED] = 0
    while depth >= 0:
        elements[stack[depth], END] = write
        elements[stack[depth], LINKED] += linked
        depth -= 1
    return text[:write], elements[:count], marks
