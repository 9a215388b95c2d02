"""From the text of an article to its simhash and sketch by compiled loops (extra ``fast``).

The loops of :mod:`pgsimhash.compiled` give the same numbers as the parts of a scheme one by one,
for schemes of the tokens, weights and hashes they know.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import TooShortError
from pgsimhash.features import DAMPINGS, Damping
from pgsimhash.hashes import HashFunction, murmur3_64
from pgsimhash.schemes.weights import ShingleWeights
from pgsimhash.sketch import LENDERS
from pgsimhash.tokens import TOKENS_MAX, code_points, fold_table, tokenize
from pgsimhash.votes import WEIGHT_UNIT

PATIENCE: Final = 1000
"""So many articles a process votes on without the loops: importing numba takes as long."""

_PADDING: Final = bytes(16)
_SPACE: Final = 0x20
_articles = count()


class Vote(NamedTuple):
    """What a scheme makes of an article: simhash, sketch, distinct features and tokens."""

    simhash: int
    sketch: int
    features: int
    words: int


Loops = Callable[[str, int], Vote]
"""From a text and the fewest tokens it may have to its vote."""


def too_short(words: int, least: int) -> TooShortError:
    """Return the error for a text of fewer tokens than it takes."""
    return TooShortError(
        f"the main content has {words} words, and a fingerprint takes "
        f"{least}: fewer would match unrelated pages"
    )


def compiled_loops(tokens: object, weigh: object, hash_features: HashFunction) -> Loops | None:
    """Return loops that do what these parts of a scheme do together.

    They raise :class:`~pgsimhash.errors.TooShortError` for too few tokens, and for no feature.

    Returns:
        None if there are none for these parts, or numba is not installed.
    """
    if (
        tokens is not tokenize
        or hash_features is not murmur3_64
        or not isinstance(weigh, ShingleWeights)
    ):
        return None
    return _loops(weigh.sizes, weigh.damping)


def loops_that_pay(tokens: object, weigh: object, hash_features: HashFunction) -> Loops | None:
    """Return the same, but None while importing numba would take longer than it saves.

    That is for the first :data:`PATIENCE` calls, unless something else has imported it.
    """
    if "numba" in sys.modules or next(_articles) >= PATIENCE:
        return compiled_loops(tokens, weigh, hash_features)
    return None


@cache
def _loops(sizes: tuple[int, ...], damping: Damping) -> Loops | None:
    try:
        from pgsimhash.compiled import count_shingles, find_tokens, sketch_counts, vote_counts
    except ImportError:
        return None
    lengths = np.array(sizes, dtype=np.int64)
    table = fold_table()
    lenders = LENDERS.astype(np.int64)

    def compute(text: str, least: int) -> Vote:
        joined, starts, ends = find_tokens(code_points(text), table)
        if not len(joined):
            joined, starts, ends = _joined(tokenize(text))
        starts, ends = starts[:TOKENS_MAX], ends[:TOKENS_MAX]
        words = len(starts)
        if words < least:
            raise too_short(words, least)
        hashes, counts = count_shingles(joined, starts, ends, lengths)
        if not len(hashes):
            raise TooShortError("there is no feature to vote, so there is no simhash")
        # A power of two, so that few tables serve all texts.
        units = _units(damping, 1 << int(counts.max()).bit_length())
        high, low = sketch_counts(hashes, lenders)
        simhash = int(vote_counts(hashes, counts, units))
        return Vote(simhash, int(high) << 64 | int(low), len(hashes), words)

    return compute


def _joined(
    tokens: list[str],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return ``tokens`` as ``find_tokens`` returns them."""
    joined = np.frombuffer(" ".join(tokens).encode("utf-8", "replace") + _PADDING, dtype=np.uint8)
    length = len(joined) - len(_PADDING)
    ends = np.append(np.flatnonzero(joined[:length] == _SPACE), length)[: len(tokens)]
    starts = np.append(0, ends[:-1] + 1)[: len(tokens)]
    return joined, starts, ends


@cache
def _units(damping: Damping, size: int) -> NDArray[np.int64]:
    """Return the weight of each count below ``size``, in units of ``WEIGHT_UNIT``."""
    weights = [0.0, *map(DAMPINGS[damping], range(1, size))]
    return np.rint(np.array(weights) / WEIGHT_UNIT).astype(np.int64)
