"""What stands on most pages of a host and so says nothing about any of them.

A paragraph that is on more than half of a host's pages (a slogan, an invitation to subscribe, a
legal note) is left out of their fingerprints, by a scheme whose name carries the version of what
was left out: simhashes with and without it never meet in one collection.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import numpy as np

from pgsimhash.errors import BoilerplateError, InvalidUrlError
from pgsimhash.html import Article
from pgsimhash.paragraphs import COUNT_ERROR, ParagraphCounter, without_paragraphs
from pgsimhash.schemes import DEFAULT_SCHEME, Scheme, get_scheme
from pgsimhash.schemes.recipe import Extraction
from pgsimhash.urls import check_url, host_of

SHARE: Final = 0.5
"""A paragraph on more than this share of a host's pages is boilerplate."""

PAGES_MIN: Final = 5
"""Of fewer pages nothing is learnt."""

_FORMAT: Final = "pgsimhash-boilerplate-1"

_VERSION: Final = re.compile(r"(.+)\+([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Boilerplate:
    """The boilerplate of some hosts.

    Attributes:
        hosts: host to the hashes of its paragraphs, 0 <= hash < 2**64.
        pages: how many pages it was learnt from, 0 where nobody knows; not part of the content.
        digest: the SHA-256 of the content.
    """

    hosts: Mapping[str, frozenset[int]]
    pages: int = field(default=0, compare=False)
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", _digest(self.hosts))

    @property
    def version(self) -> str:
        """Eight hex digits that change with the content."""
        return self.digest.hex()[:8]

    @property
    def paragraphs(self) -> int:
        """How many paragraphs there are, of all hosts."""
        return sum(map(len, self.hosts.values()))

    def as_json(self) -> str:
        """Return it as JSON, the same text for the same content and number of pages."""
        hosts = {
            host: sorted(f"{value:016x}" for value in values) for host, values in self.hosts.items()
        }
        found = {"format": _FORMAT, "pages": self.pages, "hosts": hosts}
        return json.dumps(found, indent=1, sort_keys=True)

    def remove(self, text: str, url: str | None) -> str:
        """Return ``text`` without the boilerplate of the host of ``url``, by whole lines."""
        known = self.hosts.get(host_of(url) or "") if url is not None else None
        return without_paragraphs(text, known) if known else text

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True)
class BoilerplateReader:
    """An extraction that leaves boilerplate out of the text; the Markdown keeps it."""

    extract: Extraction
    boilerplate: Boilerplate

    def __call__(self, html: bytes | str, url: str | None, charset: str | None) -> Article:
        """Return the main content of a page."""
        article = self.extract(html, url, charset)
        return article.keep_lines(self.boilerplate.remove(article.text, url))


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


def own_text(scheme: Scheme, text: str, url: str | None) -> str:
    """Return the main text of a page without what ``scheme`` leaves out of it."""
    for boilerplate in read_with(scheme.extract)[1]:
        text = boilerplate.remove(text, url)
    return text


def read_with(extract: Extraction) -> tuple[Extraction, tuple[Boilerplate, ...]]:
    """Return the reader that makes the Markdown, and the boilerplate left out of its text."""
    left_out: list[Boilerplate] = []
    while isinstance(extract, BoilerplateReader):
        left_out.append(extract.boilerplate)
        extract = extract.extract
    return extract, tuple(reversed(left_out))


def split_name(scheme: str) -> tuple[str, str | None]:
    """Return the name of the scheme below, and the version of what this one leaves out of it.

    The version is None where the name carries none.
    """
    found = _VERSION.fullmatch(scheme)
    return (scheme, None) if found is None else (found[1], found[2])


def base_name(scheme: str) -> str:
    """Return the name of the scheme that leaves nothing out yet."""
    base, version = split_name(scheme)
    return base if version is None else base_name(base)


def learn(
    pages: Iterable[tuple[str, str]],
    *,
    share: float = SHARE,
    pages_min: int = PAGES_MIN,
    by_host: bool = False,
) -> Boilerplate:
    """Return the paragraphs that stand on more than ``share`` of the pages of their host.

    Args:
        pages: URL and main text (``Article.text``) of each page; a URL counts each time. Pages
            without a host, and those whose URL is none, teach nothing.
        share: above 0.02 and below 1.
        pages_min: hosts with fewer pages are left out.
        by_host: whether the pages of a host come one after the other. Then the paragraphs of
            one host at a time are held, else those of all.

    Raises:
        BoilerplateError: ``share`` is outside its range.
    """
    if not 2 * COUNT_ERROR < share < 1:
        raise BoilerplateError(f"a share is above {2 * COUNT_ERROR:g} and below 1, not {share:g}")
    texts = _with_hosts(pages)
    hosts: dict[str, frozenset[int]] = {}
    read = 0
    for host, counter in _one_by_one(texts) if by_host else _together(texts):
        read += counter.pages
        values = counter.above(share)
        if values and counter.pages >= pages_min:
            hosts[host] = values | hosts.get(host, frozenset())
    return Boilerplate(hosts, read)


def read_boilerplate(text: str) -> Boilerplate:
    """Return what :meth:`Boilerplate.as_json` wrote.

    Raises:
        BoilerplateError: it is something else.
    """
    try:
        found: Any = json.loads(text)
        if found["format"] != _FORMAT:
            raise BoilerplateError(f"the format is {found['format']!r}, not {_FORMAT!r}")
        hosts = {
            host: frozenset(int(value, 16) for value in values)
            for host, values in found["hosts"].items()
        }
        if not all(map(str.isprintable, hosts)):
            raise BoilerplateError("a host in it has characters that no URL has; correct it")
        return Boilerplate(hosts, int(found.get("pages", 0)))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, BoilerplateError):
            raise
        raise BoilerplateError(
            "this is no boilerplate file; write one with: pgsimhash learn-boilerplate PATH -o FILE"
        ) from error


def _digest(hosts: Mapping[str, frozenset[int]]) -> bytes:
    found = hashlib.sha256()
    for host in sorted(hosts):
        name = host.encode("utf-8", "surrogatepass")
        values = np.sort(np.fromiter(hosts[host], dtype=np.uint64, count=len(hosts[host])))
        # With both lengths no two contents give the same bytes.
        found.update(np.array([len(name), len(values)], dtype=">u8").tobytes())
        found.update(name + values.astype(">u8").tobytes())
    return found.digest()


def _with_hosts(pages: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for url, text in pages:
        try:
            host = host_of(check_url(url))
        except InvalidUrlError:
            continue
        if host is not None:
            yield host, text


def _together(texts: Iterable[tuple[str, str]]) -> Iterable[tuple[str, ParagraphCounter]]:
    counters: dict[str, ParagraphCounter] = {}
    for host, text in texts:
        counters.setdefault(host, ParagraphCounter()).add(text)
    return counters.items()


def _one_by_one(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ParagraphCounter]]:
    for host, group in groupby(texts, key=lambda found: found[0]):
        counter = ParagraphCounter()
        for _, text in group:
            counter.add(text)
        yield host, counter
