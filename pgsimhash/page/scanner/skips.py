"""Where in a page what is no text ends, as compiled loops."""

from __future__ import annotations

from pgsimhash.jit import compiled
from pgsimhash.page.scanner.octets import (
    BANG,
    DASH,
    ENDS,
    GT,
    LT,
    SLASH,
    Octets,
    byte_at,
    find,
    lower,
)


@compiled
def after(data: Octets, at: int) -> int:
    """Return the place behind the next ``>``, or the end."""
    at = find(data, at, GT)
    return at + 1 if byte_at(data, at) else at


@compiled
def after_comment(data: Octets, at: int) -> int:
    """Return the place behind the comment whose ``<!--`` ends at ``at``."""
    if byte_at(data, at) == GT:
        return at + 1
    if byte_at(data, at) == DASH and byte_at(data, at + 1) == GT:
        return at + 2
    while True:
        at = find(data, at, DASH)
        if byte_at(data, at) == 0:
            return at
        if byte_at(data, at + 1) == DASH:
            if byte_at(data, at + 2) == GT:
                return at + 3
            if byte_at(data, at + 2) == BANG and byte_at(data, at + 3) == GT:
                return at + 4
        at += 1


@compiled
def raw_end(data: Octets, at: int, name: int, length: int) -> int:
    """Return where the end tag begins of the element whose name is at ``name``, or the end."""
    while True:
        at = find(data, at, LT)
        if byte_at(data, at) == 0:
            return at
        if byte_at(data, at + 1) == SLASH:
            same = 0
            while same < length and lower(byte_at(data, at + 2 + same)) == lower(
                byte_at(data, name + same)
            ):
                same += 1
            if same == length and ENDS[byte_at(data, at + 2 + length)]:
                return at
        at += 1
