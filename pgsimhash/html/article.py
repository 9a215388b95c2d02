"""Define the result of reading a page, for all readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgsimhash.html.numbers import PASSING


class WeightedWords(NamedTuple):
    """The words of a page in order, and the weights of its text blocks.

    Attributes:
        vocabulary: the distinct words.
        words: the index in ``vocabulary`` of each word of the page (shape (n,), dtype int64).
        kinds: each word's kind, see :mod:`pgsimhash.html.numbers` (shape (n,), dtype int64).
        blocks: each word's block number, ascending (shape (n,), dtype int64).
        weights: each block's weight, 0 to 1 (shape (m,), dtype float64).
        shown: whether each block is part of the visible main content (shape (m,), dtype bool).
    """

    vocabulary: list[str]
    words: NDArray[np.int64]
    kinds: NDArray[np.int64]
    blocks: NDArray[np.int64]
    weights: NDArray[np.float64]
    shown: NDArray[np.bool_]

    @property
    def length(self) -> int:
        """The number of words of the visible main content."""
        return int(np.count_nonzero(self.shown[self.blocks]))

    @property
    def unseen(self) -> tuple[float, list[int]]:
        """The share of words in low-weight blocks, and these blocks, those with most words first.

        A low-weight block has less than a tenth of the mean weight of the page's words, so it
        hardly affects the simhash.
        """
        counts = np.bincount(self.blocks, minlength=len(self.weights))
        words = max(len(self.blocks), 1)
        is_light = self.weights < 0.1 * (counts @ self.weights) / words
        light = np.flatnonzero(is_light & (counts > 0))
        largest_first = light[np.argsort(-counts[light], kind="stable")]
        return float(counts[light].sum() / words), largest_first.tolist()

    def lasting_words(self) -> list[str]:
        """Return the visible words and numbers in order, without the passing ones."""
        lasting = self.words[self.shown[self.blocks] & (self.kinds != PASSING)].tolist()
        return [self.vocabulary[word] for word in lasting]


class Article:
    """The main content of a page: ``markdown`` for people, ``text`` for simhashes.

    Articles with equal content are equal.

    Args:
        markdown: the main content, or a function that renders it on first use.
        text: the same words without markup, a line per block, or a function that returns them.
        title: the page's title.
        canonical_url: the absolute URL of its ``rel=canonical``.
        language: the value of its ``lang``.
        structure: the simhash of its structure; None if the reader does not compute it.
        words: all words of the page with weights, if the reader computes weights, or a function
            that returns them.
    """

    def __init__(
        self,
        markdown: str | Callable[[], str],
        text: str | Callable[[], str],
        title: str | None = None,
        canonical_url: str | None = None,
        language: str | None = None,
        structure: int | None = None,
        words: WeightedWords | Callable[[], WeightedWords] | None = None,
    ) -> None:
        self._markdown = markdown
        self._text = text
        self.title = title
        self.canonical_url = canonical_url
        self.language = language
        self.structure = structure
        self._words = words

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Article) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[str | int | None, ...]:
        return (
            self.markdown,
            self.text,
            self.title,
            self.canonical_url,
            self.language,
            self.structure,
        )

    @property
    def markdown(self) -> str:
        """The main content in Markdown."""
        if not isinstance(self._markdown, str):
            self._markdown = self._markdown()
        return self._markdown

    @property
    def text(self) -> str:
        """The main content without markup, a line per block."""
        if not isinstance(self._text, str):
            self._text = self._text()
        return self._text

    @property
    def words(self) -> WeightedWords | None:
        """All words of the page with the weights of their blocks, if the reader computes them."""
        if callable(self._words):
            self._words = self._words()
        return self._words
