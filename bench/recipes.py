"""The recipes that quality.py compares with the default one.

Each turns a page into a simhash (None: too little text), or into another signature of integers.
Extractors are evaluated by the default's features of their text, with equal weights. MinHash is
measured by the number of its 128 permutations that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pgsimhash import PageError, fingerprint, hamming_distance
from pgsimhash.hashing.features import shingles
from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html import Article
from pgsimhash.html.charset import decode
from pgsimhash.html.parse import parse
from pgsimhash.schemes import DEFAULT_SCHEME, TEXT_SCHEME, scheme_names

Kind = Literal["always", "scheme", "plain", "peer"]
Signature = int | tuple[int, ...]
MINHASH_CUTS = (12, 25, 38)
"""How many of 128 permutations may differ for a Jaccard similarity of .9, .8 and .7."""
_UNREAD = ("script", "style", "noscript", "template", "head")


@dataclass
class Page:
    """A page, read once for all recipes."""

    html: bytes
    truth: str = ""

    @cached_property
    def article(self) -> Article:
        return DEFAULT_SCHEME.extract(self.html, None, None)

    @cached_property
    def shingles(self) -> list[str]:
        tokens = tokenize(self.article.text)
        return tokens + shingles(tokens, 2) if len(tokens) >= DEFAULT_SCHEME.min_tokens else []


Recipe = Callable[[Page], Signature | None]


def by_scheme(name: str) -> Recipe:
    """A built-in scheme, from the page's bytes on."""

    def recipe(page: Page) -> int | None:
        try:
            return fingerprint(page.html, scheme=name).simhash
        except PageError:
            return None

    return recipe


def true_text(page: Page) -> int | None:
    """The default's features, unweighted, of the labelled main text: the ceiling."""
    return simhash_of(page.truth) if page.truth else None


def trafilatura(page: Page) -> int | None:
    """The default's features, unweighted, of the text that trafilatura extracts."""
    from trafilatura import extract

    return simhash_of(extract(decode(page.html), include_comments=False) or "")


def resiliparse(page: Page) -> int | None:
    """The default's features, unweighted, of the main content that Resiliparse extracts."""
    from resiliparse.extract.html2text import extract_plain_text

    return simhash_of(extract_plain_text(decode(page.html), main_content=True))


def readability(page: Page) -> int | None:
    """The default's features, unweighted, of the text that readability-lxml extracts."""
    from readability import Document
    from readability.readability import Unparseable

    try:
        summary = Document(decode(page.html)).summary()
    except (Unparseable, ValueError):
        return None
    root = parse(summary)
    return None if root is None else simhash_of("\n".join(root.itertext()))


def raw_html(page: Page) -> int | None:
    """Words and pairs of the source, including tags."""
    return simhash_of(decode(page.html))


def visible_text(page: Page) -> int | None:
    """Words and pairs of all visible text."""
    root = parse(decode(page.html))
    if root is None:
        return None
    for element in list(root.iter(*_UNREAD)):
        if element.getparent() is not None:
            element.drop_tree()
    return simhash_of("\n".join(root.itertext()))


def simhash_of(text: str) -> int | None:
    try:
        return DEFAULT_SCHEME.simhash(text)
    except PageError:
        return None


def leonsim(page: Page) -> int | None:
    """leonsim's simhash of pgsimhash's words and pairs, unweighted."""
    from simhash import Simhash

    return int(Simhash(page.shingles).value) if page.shingles else None


def gaoya(page: Page) -> int | None:
    """gaoya's simhash of the words and pairs of pgsimhash's text, split at white space."""
    from gaoya.simhash import SimHashStringIndex

    if not page.shingles:
        return None
    index = SimHashStringIndex(lowercase=True, ngram_range=(1, 2)).index
    return int(index.tokenize_and_simhash(page.article.text))


def minhash(page: Page) -> tuple[int, ...] | None:
    """datasketch's MinHash of pgsimhash's words and pairs."""
    from datasketch import MinHash

    if not page.shingles:
        return None
    signature = MinHash(num_perm=128)
    signature.update_batch([feature.encode() for feature in page.shingles])
    return tuple(signature.hashvalues.tolist())


def distance(a: Signature, b: Signature) -> int:
    """Return the number of bits in which two simhashes differ, or of permutations for MinHashes."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return sum(x != y for x, y in zip(a, b, strict=True))
    assert isinstance(a, int)
    assert isinstance(b, int)
    return hamming_distance(a, b)


OURS = DEFAULT_SCHEME.name
CEILING = "the true main text"
RECIPES: dict[str, tuple[Kind, Recipe]] = {
    OURS: ("always", by_scheme(OURS)),
    CEILING: ("always", true_text),
    "readability-lxml": ("always", readability),
    **{
        name: ("scheme", by_scheme(name))
        for name in scheme_names()
        if name not in (OURS, TEXT_SCHEME.name)
    },
    "raw HTML": ("plain", raw_html),
    "visible text": ("plain", visible_text),
    "trafilatura": ("peer", trafilatura),
    "resiliparse": ("peer", resiliparse),
    "leonsim simhash": ("peer", leonsim),
    "gaoya": ("peer", gaoya),
    "datasketch MinHash": ("peer", minhash),
}
"""The recipes that are always measured, and those of --schemes, --plain and --peers."""

PACKAGES = {
    "trafilatura": "trafilatura",
    "resiliparse": "resiliparse",
    "leonsim simhash": "simhash",
    "gaoya": "gaoya",
    "datasketch MinHash": "datasketch",
}
"""The package to install for a peer."""


def chosen(kinds: Sequence[str], installed: Sequence[str]) -> list[str]:
    """Return the names of the runnable recipes of these kinds."""
    return [
        name
        for name, (kind, _) in RECIPES.items()
        if kind in ("always", *kinds) and PACKAGES.get(name, "") in ("", *installed)
    ]
