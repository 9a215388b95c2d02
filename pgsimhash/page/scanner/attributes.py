"""What the attributes of a tag say, as compiled loops."""

from __future__ import annotations

from typing import Final

from pgsimhash.jit import compiled
from pgsimhash.page.scanner import kinds
from pgsimhash.page.scanner.octets import (
    ENDS,
    EQUALS,
    GT,
    HASH,
    OFFSET,
    SEMICOLON,
    SLASH,
    SPACES,
    Keys,
    Octets,
    Values,
    byte_at,
    find,
    hashed,
    look_up,
    lower,
    step,
)

_NAMES_MAX: Final = 1000
_DOT, _TILDE, _AT_SIGN = b".~@"


@compiled
def _names_beside(data: Octets, start: int, end: int, keys: Keys, values: Values) -> bool:
    """Whether a name in a class or id has a word for what stands beside, and none for text."""
    beside = False
    text = False
    at = start
    while at <= end:
        if at == end or SPACES[byte_at(data, at)]:
            if beside and not text:
                return True
            beside = text = False
            at += 1
            continue
        first = at
        while at < end and 0x41 <= byte_at(data, at) <= 0x5A:
            at += 1
        if at < end and 0x61 <= byte_at(data, at) <= 0x7A:
            if at - first > 1:
                # In XMLHttp the second word begins at the last capital.
                at -= 1
            else:
                while at < end and 0x61 <= byte_at(data, at) <= 0x7A:
                    at += 1
        elif at == first:
            at += 1
            continue
        found = look_up(hashed(_DOT, data, first, at), keys, values)
        beside |= found == 1
        text |= found == 2
    return False


@compiled
def _style_hides(data: Octets, start: int, end: int, keys: Keys, values: Values) -> bool:
    state = step(OFFSET, SEMICOLON)
    for at in range(start, end):
        if byte_at(data, at) == SEMICOLON:
            state = step(OFFSET, SEMICOLON)
        elif not SPACES[byte_at(data, at)]:
            state = step(state, lower(byte_at(data, at)))
            if look_up(state, keys, values):
                return True
    return False


@compiled
def _said(name: int, data: Octets, start: int, end: int, keys: Keys, values: Values) -> int:
    """What the attribute of that number says by its value."""
    if name == kinds.HIDDEN:
        return kinds.NAMED
    end = min(end, start + _NAMES_MAX)
    if name == kinds.CLASS or name == kinds.ID:
        if _names_beside(data, start, end, keys, values):
            return kinds.NAMED
        if name == kinds.ID:
            return look_up(hashed(HASH, data, start, end), keys, values)
    elif name == kinds.ROLE:
        role = look_up(hashed(EQUALS, data, start, end), keys, values)
        return kinds.NAMED if role == kinds.BESIDE else role
    elif name == kinds.STYLE and _style_hides(data, start, end, keys, values):
        return kinds.NAMED
    elif name == kinds.REL:
        first = start
        for at in range(start, end + 1):
            if at == end or SPACES[byte_at(data, at)]:
                if look_up(hashed(_TILDE, data, first, at), keys, values):
                    return kinds.READ
                first = at + 1
    return 0


@compiled
def read_attributes(
    data: Octets, at: int, wanted: bool, keys: Keys, values: Values
) -> tuple[int, int]:
    """Return where the tag ends, and what its attributes say, if that is ``wanted``."""
    said = 0
    while True:
        while SPACES[byte_at(data, at)] or byte_at(data, at) == SLASH:
            at += 1
        if byte_at(data, at) == 0:
            return at, said
        if byte_at(data, at) == GT:
            return at + 1, said
        first = at
        at += 1
        while not ENDS[byte_at(data, at)] and byte_at(data, at) != EQUALS:
            at += 1
        name = look_up(hashed(_AT_SIGN, data, first, at), keys, values) if wanted else 0
        while SPACES[byte_at(data, at)]:
            at += 1
        start = end = at
        if byte_at(data, at) == EQUALS:
            at += 1
            while SPACES[byte_at(data, at)]:
                at += 1
            quote = byte_at(data, at)
            start = at
            if quote == 0x22 or quote == 0x27:
                start = at + 1
                end = at = find(data, start, quote)
                if byte_at(data, at) != 0:
                    at += 1
            else:
                while (
                    byte_at(data, at) != GT
                    and byte_at(data, at) != 0
                    and not SPACES[byte_at(data, at)]
                ):
                    at += 1
                end = at
        if name:
            said |= _said(name, data, start, end, keys, values)
