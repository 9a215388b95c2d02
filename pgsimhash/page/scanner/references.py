"""Character references (WHATWG HTML, section 13.2.5.72) and UTF-8, as compiled loops."""

from __future__ import annotations

from typing import Final

import numpy as np

from pgsimhash.jit import compiled
from pgsimhash.page.scanner.octets import (
    AMP,
    HASH,
    OFFSET,
    SEMICOLON,
    Keys,
    Octets,
    Values,
    byte_at,
    look_up,
    lower,
    step,
)

_REFERENCE_MAX: Final = 32
# What the numbers 128 to 159 stand for: windows-1252, as browsers have it.
_CP1252: Final = np.array(
    [ord(bytes([code]).decode("cp1252", "replace")) for code in range(0x80, 0xA0)], dtype=np.int64
)
_ALNUM: Final = np.array([bytes([byte]).isalnum() for byte in range(256)])


@compiled
def read_reference(data: Octets, at: int, keys: Keys, values: Values) -> tuple[int, int]:
    """Return where the character reference at ``&`` ends, and its code points; 0 for none."""
    at += 1
    if byte_at(data, at) != HASH:
        state = step(OFFSET, AMP)
        end = found = 0
        for read in range(at, at + _REFERENCE_MAX):
            byte = byte_at(data, read)
            if not _ALNUM[byte] and byte != SEMICOLON:
                break
            state = step(state, byte)
            value = look_up(state, keys, values)
            if value:
                found = value
                end = read + 1
            if byte == SEMICOLON:
                break
        return end, found
    at += 1
    base = 10
    if byte_at(data, at) == 0x78 or byte_at(data, at) == 0x58:
        base = 16
        at += 1
    first = at
    code = 0
    while True:
        byte = lower(byte_at(data, at))
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
    if byte_at(data, at) == SEMICOLON:
        at += 1
    if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        code = 0xFFFD
    elif 0x80 <= code < 0xA0:
        code = _CP1252[code - 0x80]
    return at, code


@compiled
def put(code: int, text: Octets, write: int) -> int:
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
