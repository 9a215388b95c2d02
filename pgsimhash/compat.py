"""The functions of the package simhash-py, with the same results: ``from pgsimhash import compat``.

Tables in memory and its older interface have no counterpart here; a store takes their place.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import SupportsIndex, TypeVar

from pgsimhash.errors import invalid_argument
from pgsimhash.hashing.bits import BITS
from pgsimhash.hashing.bits import hamming_distance as num_differing_bits
from pgsimhash.hashing.votes import simhash
from pgsimhash.search.pairs import find_pairs

__all__ = ["compute", "find_all", "num_differing_bits", "shingle", "unsigned_hash"]

_Token = TypeVar("_Token")


def unsigned_hash(obj: bytes) -> int:
    """Return the first 64 bits of the MD5 of ``obj``."""
    return int.from_bytes(hashlib.md5(obj, usedforsecurity=False).digest()[:8])


def compute(hashes: Iterable[int]) -> int:
    """Return the simhash of hashes of 64 bits, 0 without any.

    Raises:
        ArgumentError: a hash is not in 0..2**64-1.
    """
    known = list(hashes)
    return simhash(known) if known else 0


def find_all(
    hashes: Iterable[SupportsIndex], number_of_blocks: int, different_bits: int
) -> list[tuple[int, int]]:
    """Return the pairs of distinct hashes within ``different_bits``, the smaller one first.

    The result does not depend on ``number_of_blocks``.

    Raises:
        ArgumentError: ``different_bits`` is not in 0..12, or not below ``number_of_blocks``; or
            that is above 64, or a hash is not in 0..2**64-1.
    """
    if not different_bits < number_of_blocks <= BITS:
        raise invalid_argument(f"number_of_blocks is above different_bits, up to {BITS}")
    pairs = find_pairs(hashes, different_bits)
    return list(zip(pairs.low.tolist(), pairs.high.tolist(), strict=True))


def shingle(tokens: Sequence[_Token], window: int = 4) -> Iterator[list[_Token]]:
    """Yield each window of neighbouring tokens.

    Raises:
        ArgumentError: ``window`` is below 1.
    """
    if window < 1:
        raise invalid_argument(f"a window has 1 token or more, not {window}")
    starts = (islice(tokens, start, None) for start in range(window))
    yield from map(list, zip(*starts, strict=False))
