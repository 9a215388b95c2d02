"""The recipes that quality.py measures beside the default one.

Each turns a page into a simhash (None: too little text), or into another signature of whole
numbers. MinHash is measured by how many of its 128 permutations differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pgsimhash import PageError, TooShortError, fingerprint, hamming_distance
from pgsimhash.features import shingles
from pgsimhash.page import Article
from pgsimhash.page.decode import decode
from pgsimhash.page.parse import parse
from pgsimhash.schemes import DEFAULT_SCHEME, TEXT_SCHEME
from pgsimhash.tokens import tokenize

Kind = Literal["scheme", "plain", "peer"]
Signature = int | tuple[int, ...]
MINHASH_CUTS = (12, 25, 38)
"""How many of 128 permutations may differ for a Jaccard similarity of .9, .8 and .7."""
_UNREAD = ("script", "style", "noscript", "template", "head")


@dataclass
class Page:
    """A page, read once for all recipes."""

    html: bytes

    @cached_property
    def article(self) -> Article:
        return DEFAULT_SCHEME.extract(self.html, None, None)

    @cached_property
    def shingles(self) -> list[str]:
        tokens = tokenize(self.article.text)
        return tokens + shingles(tokens, 2) if len(tokens) >= DEFAULT_SCHEME.min_tokens else []


Recipe = Callable[[Page], Signature | None]


def whole(name: str) -> Recipe:
    """A scheme that ships and reads pages in its own way, on the page's bytes."""

    def recipe(page: Page) -> int | None:
        try:
            return fingerprint(page.html, scheme=name).simhash
        except PageError:
            return None

    return recipe


def raw_html(page: Page) -> int | None:
    """Words and pairs of the source, tags and all."""
    return _simhash(decode(page.html))


def visible_text(page: Page) -> int | None:
    """Words and pairs of everything a reader sees."""
    root = parse(decode(page.html))
    if root is None:
        return None
    for element in list(root.iter(*_UNREAD)):
        if element.getparent() is not None:
            element.drop_tree()
    return _simhash(" ".join(root.itertext()))


def _simhash(text: str) -> int | None:
    try:
        return TEXT_SCHEME.simhash(text)
    except TooShortError:
        return None


def leonsim(page: Page) -> int | None:
    """leonsim's simhash of our words and pairs, unweighted."""
    from simhash import Simhash

    return int(Simhash(page.shingles).value) if page.shingles else None


def gaoya(page: Page) -> int | None:
    """gaoya's simhash of the words and pairs of our text, cut at white space."""
    from gaoya.simhash import SimHashStringIndex

    if not page.shingles:
        return None
    index = SimHashStringIndex(lowercase=True, ngram_range=(1, 2)).index
    return int(index.tokenize_and_simhash(page.article.text))


def minhash(page: Page) -> tuple[int, ...] | None:
    """datasketch's MinHash of our words and pairs."""
    from datasketch import MinHash

    if not page.shingles:
        return None
    signature = MinHash(num_perm=128)
    signature.update_batch([feature.encode() for feature in page.shingles])
    return tuple(signature.hashvalues.tolist())


def distance(a: Signature, b: Signature) -> int:
    """Return in how many bits two simhashes, or permutations two MinHashes, differ."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return sum(x != y for x, y in zip(a, b, strict=True))
    assert isinstance(a, int)
    assert isinstance(b, int)
    return hamming_distance(a, b)


RECIPES: dict[str, tuple[Kind, Recipe]] = {
    "pgsimhash-fast-1": ("scheme", whole("pgsimhash-fast-1")),
    "pgsimhash-blog-words-1": ("scheme", whole("pgsimhash-blog-words-1")),
    "pgsimhash-blog-shingles-1": ("scheme", whole("pgsimhash-blog-shingles-1")),
    "pgsimhash-interop-1": ("scheme", whole("pgsimhash-interop-1")),
    "raw HTML": ("plain", raw_html),
    "visible text": ("plain", visible_text),
    "leonsim simhash": ("peer", leonsim),
    "gaoya": ("peer", gaoya),
    "datasketch MinHash": ("peer", minhash),
}
"""What is measured with --schemes, --plain and --peers."""

PACKAGES = {"leonsim simhash": "simhash", "gaoya": "gaoya", "datasketch MinHash": "datasketch"}
"""What to install for a peer."""


def chosen(kinds: Sequence[str], installed: Sequence[str]) -> list[str]:
    """Return the names of the recipes of these kinds that can be run."""
    return [
        name
        for name, (kind, _) in RECIPES.items()
        if kind in kinds and PACKAGES.get(name, "") in ("", *installed)
    ]
