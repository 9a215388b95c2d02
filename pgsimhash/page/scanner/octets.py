"""Bytes and hashes, as the compiled loops of the scanner see them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pgsimhash.jit import compiled, load_eight

Octets = NDArray[np.uint8]
Keys = NDArray[np.uint64]
Values = NDArray[np.int64]

PADDING: Final = 8
"""How many NUL bytes have to follow a page, in which there is none."""

OFFSET: Final = np.uint64(0xCBF29CE484222325)
_PRIME: Final = np.uint64(0x100000001B3)
_LOW: Final = np.uint64(1)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGHS: Final = np.uint64(0x8080808080808080)

LT, GT, SLASH, EQUALS, AMP, DASH, BANG, HASH, SEMICOLON = b"<>/=&-!#;"
SPACES: Final = np.array([byte in b" \t\n\r\f" for byte in range(256)])
ENDS: Final = np.array([byte in b" \t\n\r\f/>\0" for byte in range(256)])
"""What ends a name in a tag."""


@compiled
def byte_at(data: Octets, place: int) -> int:
    """Return the byte at a place that is not negative."""
    # An unsigned index: a signed one is looked at first, for it may count from the end.
    return int(data[np.uint64(place)])


@compiled
def find(data: Octets, at: int, byte: int) -> int:
    """Return the next place of ``byte`` from ``at`` on, or where the page ends."""
    # Eight at a time, while none of them is that byte or NUL.
    pattern = _ONES * np.uint64(byte)
    while True:
        eight = load_eight(data, at)
        other = eight ^ pattern
        if (((eight - _ONES) & ~eight) | ((other - _ONES) & ~other)) & _HIGHS:
            break
        at += 8
    while byte_at(data, at) != byte and byte_at(data, at) != 0:
        at += 1
    return at


@compiled
def step(state: np.uint64, byte: int) -> np.uint64:
    """Return the FNV-1a hash of what ``state`` is the hash of, and one byte more."""
    return (state ^ np.uint64(byte)) * _PRIME


@compiled
def lower(byte: int) -> int:
    """Return the byte, a capital letter of ASCII in lower case."""
    return byte | 0x20 if 0x41 <= byte <= 0x5A else byte


@compiled
def look_up(key: np.uint64, keys: Keys, values: Values) -> int:
    """Return what a hash stands for in a table, 0 for nothing."""
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] != key:
        if keys[slot] == 0:
            return 0
        slot = (slot + _LOW) & mask
    return int(values[slot])


@compiled
def hashed(sign: int, data: Octets, start: int, end: int) -> np.uint64:
    """Return the hash of ``sign`` and the bytes in lower case."""
    state = step(OFFSET, sign)
    for at in range(start, end):
        state = step(state, lower(byte_at(data, at)))
    return state
