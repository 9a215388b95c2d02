"""The loops from plain text to a simhash, compiled when first called by numba (extra ``fast``).

They give what ``tokenize``, ``ShingleWeights``, ``murmur3_64`` and ``vote`` give one after the
other, without a Python object for a feature. Features are counted by their hash; two of one text
with the same hash would count as one, which takes some 2**32 features to be likely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pgsimhash.tokens import COMPLEX

_Function = TypeVar("_Function", bound=Callable[..., object])

# Numba makes a float of a signed and an unsigned number, so every constant here is unsigned.
_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_M1: Final = np.uint64(0xFF51AFD7ED558CCD)
_M2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_N1: Final = np.uint64(0x52DCE729)
_N2: Final = np.uint64(0x38495AB5)
_FIVE: Final = np.uint64(5)
_ONE: Final = np.uint64(1)
_ZERO: Final = np.uint64(0)
_64: Final = np.uint64(64)
_33: Final = np.uint64(33)
_SPACE: Final = 0x20
_DIGIT_0: Final = 0x30
_DIGIT_9: Final = 0x39
_PADDING: Final = 17
"""Room behind the text: for the last space, and for reading eight bytes anywhere in it."""


def _compiled(function: _Function) -> _Function:
    """Return ``function`` as machine code, made when it is first called and kept on disk."""
    # What is kept is renewed when this file changes, so nothing compiled stands in another one.
    try:
        return cast(_Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        # There is no directory that numba may write to.
        return cast(_Function, njit(nogil=True)(function))


@_compiled
def _load_eight(data: NDArray[np.uint8], start: int) -> np.uint64:
    """Return the eight bytes from ``start`` on as a little-endian number.

    Nothing checks that ``start`` is not negative and that ``data`` has eight bytes from there on.
    """
    # Unsigned indexes and no loop: this becomes one load.
    at = np.uint64(start)
    return (
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    )


@_compiled
def _rotated(value: np.uint64, by: np.uint64) -> np.uint64:
    return (value << by) | (value >> (_64 - by))


@_compiled
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _33)) * _M1
    value = (value ^ (value >> _33)) * _M2
    return value ^ (value >> _33)


@_compiled
def _word(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Up to eight bytes as a little-endian number; missing ones are zero."""
    value = _load_eight(data, start)
    if end - start >= 8:
        return value
    return value & ((_ONE << np.uint64(8 * (end - start))) - _ONE)


@_compiled
def _murmur3(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """The first half of MurmurHash3 x64 128 with seed 0."""
    length = np.uint64(end - start)
    h1 = _ZERO
    h2 = _ZERO
    while end - start >= 16:
        k1 = _rotated(_word(data, start, end) * _C1, np.uint64(31)) * _C2
        h1 = (_rotated(h1 ^ k1, np.uint64(27)) + h2) * _FIVE + _N1
        k2 = _rotated(_word(data, start + 8, end) * _C2, np.uint64(33)) * _C1
        h2 = (_rotated(h2 ^ k2, np.uint64(31)) + h1) * _FIVE + _N2
        start += 16
    if end - start > 8:
        h2 ^= _rotated(_word(data, start + 8, end) * _C2, np.uint64(33)) * _C1
    if end > start:
        h1 ^= _rotated(_word(data, start, end) * _C1, np.uint64(31)) * _C2
    h1 ^= length
    h2 ^= length
    h1 += h2
    h2 += h1
    return _mixed(h1) + _mixed(h2)


@_compiled
def find_tokens(
    codes: NDArray[np.uint32], table: NDArray[np.uint32]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the tokens of a text, without those of digits alone, joined by one space.

    Args:
        codes: shape (n,), dtype uint32: the code points of the text.
        table: shape (m,), dtype uint32: what each folds to, as ``tokens.fold_table`` says.

    Returns:
        The joined tokens in UTF-8, and where in them each begins and ends, shape (tokens,). If a
        character cannot be folded by itself, the first array is empty.
    """
    size = len(codes)
    last = np.uint64(len(table) - 1)
    joined = np.empty(3 * size + _PADDING, dtype=np.uint8)
    starts = np.empty(size // 2 + 1, dtype=np.int64)
    ends = np.empty(size // 2 + 1, dtype=np.int64)
    count = 0
    first = 0
    write = 0
    digits = True
    for read in range(size + 1):
        code = _SPACE if read == size else table[min(np.uint64(codes[read]), last)]
        if code == _SPACE:
            if digits:
                write = first
            else:
                starts[count] = first
                ends[count] = write
                count += 1
                joined[write] = _SPACE
                write += 1
                first = write
                digits = True
        elif code < 0x80:
            digits = digits and _DIGIT_0 <= code <= _DIGIT_9
            joined[write] = code
            write += 1
        elif code == COMPLEX:
            return joined[:0], starts[:0], ends[:0]
        else:
            digits = False
            if code < 0x800:
                joined[write] = 0xC0 | code >> 6
            else:
                joined[write] = 0xE0 | code >> 12
                write += 1
                joined[write] = 0x80 | (code >> 6 & 0x3F)
            joined[write + 1] = 0x80 | (code & 0x3F)
            write += 2
    return joined, starts[:count], ends[:count]


def join_tokens(
    tokens: list[str],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return ``tokens`` as :func:`find_tokens` returns them."""
    padding = bytes(_PADDING)
    joined = np.frombuffer(" ".join(tokens).encode("utf-8", "replace") + padding, dtype=np.uint8)
    length = len(joined) - len(padding)
    ends = np.append(np.flatnonzero(joined[:length] == _SPACE), length)[: len(tokens)]
    starts = np.append(0, ends[:-1] + 1)[: len(tokens)]
    return joined, starts, ends


@_compiled
def count_shingles(
    joined: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes of the distinct shingles of all ``sizes``, and how often each occurs."""
    words = len(starts)
    total = 0
    for size in sizes:
        total += max(words - size + 1, 0)
    slots = 4
    while slots < 2 * total:
        slots *= 2
    table = np.full(slots, -1, dtype=np.int64)
    mask = np.uint64(slots - 1)
    hashes = np.empty(total, dtype=np.uint64)
    counts = np.empty(total, dtype=np.int64)
    found = 0
    for size in sizes:
        for first in range(words - size + 1):
            value = _murmur3(joined, starts[first], ends[first + size - 1])
            slot = value & mask
            while table[slot] >= 0 and hashes[table[slot]] != value:
                slot = (slot + _ONE) & mask
            if table[slot] >= 0:
                counts[table[slot]] += 1
            else:
                table[slot] = found
                hashes[found] = value
                counts[found] = 1
                found += 1
    return hashes[:found], counts[:found]


@_compiled
def vote_counts(
    hashes: NDArray[np.uint64], counts: NDArray[np.int64], units: NDArray[np.int64]
) -> np.uint64:
    """Return the simhash of ``hashes``; ``units[count]`` is a feature's weight in whole units."""
    ones = np.zeros(64, dtype=np.int64)
    total = 0
    for feature in range(len(hashes)):
        weight = units[counts[feature]]
        total += weight
        value = hashes[feature]
        for bit in range(64):
            ones[bit] += weight * np.int64((value >> np.uint64(bit)) & _ONE)
    simhash = _ZERO
    for bit in range(64):
        if 2 * ones[bit] > total:
            simhash |= _ONE << np.uint64(bit)
    return simhash
