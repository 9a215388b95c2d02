"""The functions of the package simhash-py, with the same results: ``from pgsimhash import compat``.

Tables in memory and its older interface have no counterpart here; a store takes their place.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import SupportsIndex, TypeVar

from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.bits import BITS, check_distance, checked_integer
from pgsimhash.hashing.bits import hamming_distance as num_differing_bits
from pgsimhash.hashing.votes import simhash
from pgsimhash.search.pairs import find_pairs

__all__ = ["compute", "find_all", "num_differing_bits", "shingle", "unsigned_hash"]

_Token = TypeVar("_Token")


def unsigned_hash(obj: bytes) -> int:
    """Return the first 64 bits of the MD5 of ``obj``."""
    return int.from_bytes(hashlib.md5(obj, usedforsecurity=False).digest()[:8])


def compute(hashes: Iterable[int]) -> int:
    """Return the simhash of hashes of 64 bits, 0 without any."""
    known = list(hashes)
    return simhash(known) if known else 0


def find_all(
    hashes: Iterable[SupportsIndex], number_of_blocks: int, different_bits: int
) -> list[tuple[int, int]]:
    """Return the pairs of distinct hashes within ``different_bits``, the smaller one first.

    The result does not depend on ``number_of_blocks``.
    """
    rule = f"number_of_blocks is an integer above different_bits, up to {BITS}"
    if checked_integer(number_of_blocks, BITS, rule) <= check_distance(different_bits, BITS):
        raise invalid_argument(f"{rule}, not {number_of_blocks}")
    pairs = find_pairs(list(hashes) if isinstance(hashes, Iterator) else hashes, different_bits)
    return list(zip(pairs.low.tolist(), pairs.high.tolist(), strict=True))


def shingle(tokens: Iterable[_Token], window: int = 4) -> Iterator[list[_Token]]:
    """Return an iterator over the windows of neighbouring tokens."""
    if checked_integer(window, 2**31, "a window is an integer from 1") < 1:
        raise invalid_argument(f"a window has 1 token or more, not {window}")
    known = list(tokens)
    return (known[start : start + window] for start in range(len(known) - window + 1))
