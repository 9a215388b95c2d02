"""Turn tokens into the weighted features that vote for a simhash.

A shingle is a window of neighbouring tokens, joined by one space. Single words survive edits;
shingles separate pages that share a vocabulary (Manku, Jain, Das Sarma, WWW 2007, section 2;
Broder, "On the Resemblance and Containment of Documents", 1997). The weight of a feature grows
more slowly than its count tf, so repetition does not dominate a page.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeVar

from pgsimhash.errors import ArgumentError

_Token = TypeVar("_Token")

Damping = Literal["sqrt", "linear"]

DAMPINGS: Final[Mapping[Damping, Callable[[int], float]]] = {"sqrt": math.sqrt, "linear": float}
"""The weight of a feature that occurs tf times: sqrt(tf) or tf."""


def shingles(tokens: Sequence[str], size: int) -> list[str]:
    """Return each window of ``size`` neighbouring tokens, joined by one space.

    Fewer tokens than ``size`` give an empty list.
    """
    if size < 1:
        raise ArgumentError("invalid_argument", f"a shingle has 1 token or more, not {size}")
    if size == 1:
        return list(tokens)
    return list(map(" ".join, zip(*(tokens[start:] for start in range(size)), strict=False)))


def shingle(tokens: Iterable[_Token], window: int = 4) -> Iterator[list[_Token]]:
    """Return an iterator over the windows of ``window`` neighbouring tokens, each a list.

    Use it to build your own features, such as hashes; :func:`shingles` returns strings.
    """
    if window < 1:
        raise ArgumentError("invalid_argument", f"a window has 1 token or more, not {window}")

    def windows() -> Iterator[list[_Token]]:
        last: deque[_Token] = deque(maxlen=window)
        for token in tokens:
            last.append(token)
            if len(last) == window:
                yield list(last)

    return windows()


def weigh(
    tokens: Sequence[str], sizes: Sequence[int] = (1, 2), damping: Damping = "sqrt"
) -> dict[str, float]:
    """Return the shingles of ``tokens``, of all ``sizes``, with their weights.

    ``damping`` gives a shingle's weight from its count. Keys are in order of ``sizes``, then of
    first occurrence.
    """
    if damping not in DAMPINGS:
        raise ArgumentError(
            "invalid_argument", f"damping is one of {', '.join(DAMPINGS)}, not {damping!r}"
        )
    weighted: dict[str, float] = {}
    for size in sizes:
        counts = Counter(shingles(tokens, size))
        # Few counts differ, so Python code runs once per count, not per feature.
        weights = {count: DAMPINGS[damping](count) for count in set(counts.values())}
        weighted.update(zip(counts, map(weights.__getitem__, counts.values()), strict=True))
    return weighted
