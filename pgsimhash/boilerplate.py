"""What stands on most pages of a host and so says nothing about any of them.

A paragraph that is on more than half of a host's pages (a slogan, an invitation to subscribe, a
legal note) is left out of their fingerprints, by a scheme whose name carries the version of what
was left out: simhashes with and without it never meet in one collection.

Paragraphs are counted by lossy counting (Manku, Motwani, "Approximate Frequency Counts over Data
Streams", VLDB 2002), so that memory is bounded however many pages a host has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pgsimhash.errors import BoilerplateError
from pgsimhash.hashes import murmur3_64
from pgsimhash.page import Article
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, get_scheme
from pgsimhash.schemes.recipe import Extraction
from pgsimhash.tokens import tokenize
from pgsimhash.urls import host_of

SHARE: Final = 0.5
"""A paragraph on more than this share of a host's pages is boilerplate."""

PAGES_MIN: Final = 5
"""Of fewer pages nothing is learnt."""

_ERROR: Final = 0.01
"""Counts are too low by at most this share of the pages."""

_FORMAT: Final = "pgsimhash-boilerplate-1"


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The boilerplate of some hosts: from host to the hashes of paragraphs."""

    hosts: Mapping[str, frozenset[int]]

    @property
    def version(self) -> str:
        """Eight hex digits that change with the content."""
        content = json.dumps(self._sorted(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    def as_json(self) -> str:
        """Return it as JSON, the same text for the same content."""
        return json.dumps({"format": _FORMAT, "hosts": self._sorted()}, indent=1, sort_keys=True)

    def remove(self, text: str, url: str | None) -> str:
        """Return ``text`` without the boilerplate of the host of ``url``, line by line."""
        known = None if url is None else self.hosts.get(host_of(url) or "")
        if not known:
            return text
        lines = text.split("\n")
        return "\n".join(line for line in lines if _paragraph(line) not in known)

    def _sorted(self) -> dict[str, list[str]]:
        return {
            host: sorted(f"{value:016x}" for value in values) for host, values in self.hosts.items()
        }

    def __hash__(self) -> int:
        return hash(self.version)


@dataclass(frozen=True, slots=True)
class BoilerplateReader:
    """An extraction that leaves boilerplate out of the text; the Markdown keeps it."""

    extract: Extraction
    boilerplate: Boilerplate

    def __call__(self, html: bytes | str, url: str | None, charset: str | None) -> Article:
        """Return the main content of a page."""
        article = self.extract(html, url, charset)
        return dataclasses.replace(article, text=self.boilerplate.remove(article.text, url))


def without_boilerplate(boilerplate: Boilerplate, scheme: Scheme | str = DEFAULT_SCHEME) -> Scheme:
    """Return ``scheme`` without ``boilerplate``; its name ends with the version of that.

    Raises:
        SchemeError: no scheme is registered under that name.
    """
    recipe = get_scheme(scheme)
    return dataclasses.replace(
        recipe,
        name=f"{recipe.name}+{boilerplate.version}",
        extract=BoilerplateReader(recipe.extract, boilerplate),
    )


def learn(
    pages: Iterable[tuple[str, str]], *, share: float = SHARE, pages_min: int = PAGES_MIN
) -> Boilerplate:
    """Return the paragraphs that stand on more than ``share`` of the pages of their host.

    Args:
        pages: URL and main text (``Article.text``) of each page; a URL counts each time.
        share: above 0.02 and below 1.
        pages_min: hosts with fewer pages are left out.

    Raises:
        BoilerplateError: ``share`` is outside its range.
    """
    if not 2 * _ERROR < share < 1:
        raise BoilerplateError(f"a share is above {2 * _ERROR:g} and below 1, not {share:g}")
    counters: dict[str, _Counter] = {}
    for url, text in pages:
        host = host_of(url)
        if host is not None:
            counters.setdefault(host, _Counter()).add(text)
    found = {
        host: counter.above(share)
        for host, counter in counters.items()
        if counter.pages >= pages_min
    }
    return Boilerplate({host: values for host, values in found.items() if values})


def read_boilerplate(text: str) -> Boilerplate:
    """Return what :meth:`Boilerplate.as_json` wrote.

    Raises:
        BoilerplateError: it is something else.
    """
    try:
        found: Any = json.loads(text)
        if found["format"] != _FORMAT:
            raise BoilerplateError(f"the format is {found['format']!r}, not {_FORMAT!r}")
        return Boilerplate(
            {
                str(host): frozenset(int(value, 16) for value in values)
                for host, values in found["hosts"].items()
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, BoilerplateError):
            raise
        raise BoilerplateError(
            "this is no boilerplate file; write one with: pgsimhash learn-boilerplate PATH -o FILE"
        ) from error


class _Counter:
    """On how many pages each paragraph stands, at most ``_ERROR`` of the pages too low."""

    def __init__(self) -> None:
        self.pages = 0
        self._counts: dict[int, int] = {}
        self._missed: dict[int, int] = {}

    def add(self, text: str) -> None:
        window = round(1 / _ERROR)
        before = self.pages // window
        self.pages += 1
        for value in set(_paragraphs(text)):
            if value not in self._counts:
                self._missed[value] = before
            self._counts[value] = self._counts.get(value, 0) + 1
        if self.pages % window == 0:
            rare = [
                value
                for value, count in self._counts.items()
                if count + self._missed[value] <= self.pages // window
            ]
            for value in rare:
                del self._counts[value], self._missed[value]

    def above(self, share: float) -> frozenset[int]:
        """Return the paragraphs on more than ``share`` of the pages, less the error."""
        least = share * self.pages if self.pages < 1 / _ERROR else (share - _ERROR) * self.pages
        return frozenset(value for value, count in self._counts.items() if count > least)


def _paragraphs(text: str) -> Iterator[int]:
    for line in text.split("\n"):
        value = _paragraph(line)
        if value is not None:
            yield value


def _paragraph(line: str) -> int | None:
    """Return what stands for a line: its words, whatever their case and the marks between."""
    words = tokenize(line)
    return int(murmur3_64([" ".join(words)])[0]) if words else None
