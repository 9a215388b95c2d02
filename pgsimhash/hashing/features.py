"""Turn tokens into the weighted features that vote for a simhash.

A shingle is a window of neighbouring tokens, joined by one space. Single words survive edits;
shingles separate pages that share a vocabulary (Manku, Jain, Das Sarma, WWW 2007, section 2;
Broder, "On the Resemblance and Containment of Documents", 1997). The weight of a feature grows
more slowly than its count tf, so repetition does not dominate a page.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeVar

from pgsimhash.errors import ArgumentError

_Token = TypeVar("_Token")

Damping = Literal["sqrt", "log", "linear", "binary"]

DAMPINGS: Final[Mapping[Damping, Callable[[int], float]]] = {
    "sqrt": math.sqrt,
    "log": lambda count: 1.0 + math.log(count),
    "linear": float,
    "binary": lambda count: 1.0,
}
"""The weight of a feature that occurs tf times: sqrt(tf), 1 + ln(tf), tf, or always 1."""

STOP_WORDS: Final = frozenset(
    """
    a about after all an and are as at be been but by can for from had has have he her his i if in
    into is it its more not of on one or other our she so some than that the their them then there
    these they this to up was we were what when which who will with would you your
    """.split()  # noqa: SIM905 - a list of 68 strings reads worse
)
"""Frequent English words, which mean little alone."""

_IMAGE: Final = re.compile(r"!\[(?:[^\]\\]|\\.){0,300}\]\(<?([^)\s>]+)")


def shingles(tokens: Sequence[str], size: int) -> list[str]:
    """Return each window of ``size`` neighbouring tokens, joined by one space.

    Fewer tokens than ``size`` give an empty list.

    Raises:
        ArgumentError: ``size`` is below 1.
    """
    if size < 1:
        raise ArgumentError("invalid_recipe", f"a shingle has 1 token or more, not {size}")
    if size == 1:
        return list(tokens)
    return list(map(" ".join, zip(*(tokens[start:] for start in range(size)), strict=False)))


def shingle(tokens: Iterable[_Token], window: int = 4) -> Iterator[list[_Token]]:
    """Return an iterator over the windows of ``window`` neighbouring tokens, each a list.

    Use it to build your own features, such as hashes; :func:`shingles` returns strings.

    Raises:
        ArgumentError: ``window`` is below 1.
    """
    if window < 1:
        raise ArgumentError("invalid_recipe", f"a window has 1 token or more, not {window}")

    def windows() -> Iterator[list[_Token]]:
        last: deque[_Token] = deque(maxlen=window)
        for token in tokens:
            last.append(token)
            if len(last) == window:
                yield list(last)

    return windows()


def stop_word_shingles(
    tokens: Sequence[str], size: int = 3, stop_words: Collection[str] = STOP_WORDS
) -> list[str]:
    """Return the :func:`shingles` that include at least one stop word.

    Sentences are full of stop words. Advertisements and menus are not, so these shingles leave most
    of them out.

    Raises:
        ArgumentError: ``size`` is below 1.
    """
    wanted = [token in stop_words for token in tokens]
    return [
        text
        for start, text in enumerate(shingles(tokens, size))
        if any(wanted[start : start + size])
    ]


def image_features(markdown: str, key: Callable[[str], str | None] | None = None) -> list[str]:
    """Return a feature ``image:...`` for each image in ``markdown``.

    Args:
        markdown: Markdown with images as ``![alt](url)``.
        key: a function from an image's URL to its key, for example a hash of its pixels, or to
            None to leave the image out. By default the URL is the key.
    """
    urls = _IMAGE.findall(markdown)
    keys: Iterable[str | None] = urls if key is None else map(key, urls)
    return [f"image:{name}" for name in keys if name is not None]


def weigh(
    tokens: Sequence[str], sizes: Sequence[int] = (1, 2), damping: Damping = "sqrt"
) -> dict[str, float]:
    """Return the shingles of ``tokens``, of all ``sizes``, with their weights.

    ``damping`` gives a shingle's weight from its count. Keys are in order of ``sizes``, then of
    first occurrence.

    Raises:
        ArgumentError: a size is below 1.
    """
    weighted: dict[str, float] = {}
    for size in sizes:
        weighted.update(damped(Counter(shingles(tokens, size)), damping))
    return weighted


def damped(counts: Mapping[str, int], damping: Damping) -> dict[str, float]:
    """Return the weight of each feature, given its count.

    Raises:
        ArgumentError: the damping is unknown.
    """
    damp = DAMPINGS.get(damping)
    if damp is None:
        raise ArgumentError(
            "invalid_recipe", f"damping is one of {', '.join(DAMPINGS)}, not {damping!r}"
        )
    # Few counts differ, so Python code runs once per count, not per feature.
    weights = {count: damp(count) for count in set(counts.values())}
    return dict(zip(counts, map(weights.__getitem__, counts.values()), strict=True))
