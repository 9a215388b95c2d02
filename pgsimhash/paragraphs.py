"""The paragraphs of a text: counted over many pages, and taken out of one.

A paragraph is known by a hash of its words. A text may break it into lines, as the HTML did;
made of Markdown again, it is one line. So what is taken out may stand on several lines.

Paragraphs are counted by lossy counting (Manku, Motwani, "Approximate Frequency Counts over Data
Streams", VLDB 2002), so that memory is bounded however many pages there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pgsimhash.hashes import murmur3_64
from pgsimhash.tokens import tokenize

COUNT_ERROR: Final = 0.01
"""Counts are too low by at most this share of the pages."""

LINES_MAX: Final = 12
"""Over how many lines a paragraph is looked for: 99.9% of those on real pages have no more."""

_CHARS_MAX: Final = 10_000
"""Longer paragraphs are looked for on one line only."""

_WINDOW: Final = round(1 / COUNT_ERROR)


def without_paragraphs(text: str, known: Collection[int]) -> str:
    """Return ``text`` without the lines that hold ``known`` paragraphs, the longest first.

    Args:
        text: lines, as ``Article.text`` has them.
        known: hashes, 0 <= hash < 2**64.
    """
    lines = text.split("\n")
    said = [(number, words) for number, line in enumerate(lines) if (words := _words(line))]
    dropped: set[int] = set()
    place = 0
    while place < len(said):
        hashes = _hashes(list(_runs(said[place : place + LINES_MAX])))
        size = max((size for size, value in enumerate(hashes, 1) if value in known), default=0)
        dropped.update(number for number, _ in said[place : place + size])
        place += size or 1
    return "\n".join(line for number, line in enumerate(lines) if number not in dropped)


class ParagraphCounter:
    """On how many pages each paragraph stands, at most ``COUNT_ERROR`` of the pages too low."""

    def __init__(self) -> None:
        self.pages = 0
        self._counts: dict[int, int] = {}
        self._missed: dict[int, int] = {}

    def add(self, text: str) -> None:
        """Count the lines of a page, each once."""
        before = self.pages // _WINDOW
        self.pages += 1
        for value in _hashes({words for line in text.split("\n") if (words := _words(line))}):
            if value not in self._counts:
                self._missed[value] = before
            self._counts[value] = self._counts.get(value, 0) + 1
        if self.pages % _WINDOW == 0:
            rare = [
                value
                for value, count in self._counts.items()
                if count + self._missed[value] <= self.pages // _WINDOW
            ]
            for value in rare:
                del self._counts[value], self._missed[value]

    def above(self, share: float) -> frozenset[int]:
        """Return the paragraphs on more than ``share`` of the pages, less the error."""
        least = share * self.pages if self.pages < _WINDOW else (share - COUNT_ERROR) * self.pages
        return frozenset(value for value, count in self._counts.items() if count > least)


def _runs(said: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yield the words of the first line, of the first two, and so on."""
    run = ""
    for _, words in said:
        run = f"{run} {words}" if run else words
        yield run
        if len(run) > _CHARS_MAX:
            return


def _words(line: str) -> str:
    """Return what stands for a line: its words, whatever their case and the marks between."""
    return " ".join(tokenize(line))


def _hashes(words: Collection[str]) -> list[int]:
    return murmur3_64(words).tolist() if words else []
