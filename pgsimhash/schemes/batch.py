"""Many plain texts to simhashes: with the extra ``fast``, many times as fast as one by one.

Whether compiled loops do it is settled by what is installed, and by the scheme: there are loops
for ``tokenize``, ``ShingleWeights`` and ``murmur3_64`` together. Nothing else uses them; pages are
weighed by their blocks, and reading one takes longer than voting on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pgsimhash.errors import PageError, check_many, check_type
from pgsimhash.features import DAMPINGS, Damping
from pgsimhash.hashes import murmur3_64
from pgsimhash.schemes.recipe import Scheme
from pgsimhash.schemes.registry import get_scheme
from pgsimhash.schemes.shipped import TEXT_SCHEME
from pgsimhash.schemes.weights import ShingleWeights
from pgsimhash.tokens import TOKENS_MAX, code_points, fold_table, tokenize
from pgsimhash.votes import WEIGHT_UNIT


def simhash_texts(texts: Iterable[str], scheme: Scheme | str = TEXT_SCHEME) -> Iterator[int | None]:
    """Yield the simhash of each text, in order; None for one that is too short to have one.

    The simhashes are those of ``scheme.simhash(text)``. A scheme of ``tokenize``,
    ``ShingleWeights`` and ``murmur3_64``, such as the default, is computed by compiled loops if
    numba is installed (extra ``fast``): the first call compiles them, which takes some seconds
    once.

    Args:
        texts: the main contents.
        scheme: the recipe, or the name of a registered one; its extraction is not used.

    Raises:
        ArgumentError: no scheme is registered under that name; ``texts`` is a text itself, or
            something in it is none.
    """
    check_many("texts", texts, "a list of them, such as ['some text']")
    recipe = get_scheme(scheme)
    simhash = compiled_simhash(recipe) or recipe.simhash

    def simhashes() -> Iterator[int | None]:
        for text in texts:
            check_type("a text", text, str, wanted="a str; leave out what is none")
            try:
                yield simhash(text)
            except PageError:
                yield None

    return simhashes()


def compiled_simhash(scheme: Scheme) -> Callable[[str], int] | None:
    """Return what computes ``scheme.simhash`` by compiled loops.

    It raises :class:`~pgsimhash.errors.PageError` as that does.

    Returns:
        None if there are none for the parts of this scheme, or numba is not installed.
    """
    weigh = scheme.weigh
    if (
        scheme.tokenize is not tokenize
        or scheme.hash_features is not murmur3_64
        or not isinstance(weigh, ShingleWeights)
    ):
        return None
    try:
        from pgsimhash.schemes.compiled import count_shingles, find_tokens, join_tokens, vote_counts
    except ImportError:
        return None
    sizes = np.array(weigh.sizes, dtype=np.int64)
    table = fold_table()
    damping = weigh.damping

    def compute(text: str) -> int:
        joined, starts, ends = find_tokens(code_points(text), table)
        if not len(joined):
            joined, starts, ends = join_tokens(tokenize(text))
        starts, ends = starts[:TOKENS_MAX], ends[:TOKENS_MAX]
        scheme.check_length(len(starts))
        hashes, counts = count_shingles(joined, starts, ends, sizes)
        if not len(hashes):
            raise PageError("too_short", "there is no feature to vote, so there is no simhash")
        # A power of two, so that few tables serve all texts.
        units = _units(damping, 1 << int(counts.max()).bit_length())
        return int(vote_counts(hashes, counts, units))

    return compute


@cache
def _units(damping: Damping, size: int) -> NDArray[np.int64]:
    """Return the weight of each count below ``size``, in units of ``WEIGHT_UNIT``."""
    weights = [0.0, *map(DAMPINGS[damping], range(1, size))]
    return np.rint(np.array(weights) / WEIGHT_UNIT).astype(np.int64)
