"""The schemes: named recipes from a page to its simhash.

Simhashes compare only within one scheme, so whatever changes a simhash gets a new name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pgsimhash.errors import TooLargeError, TooShortError
from pgsimhash.features import tokenize, weigh
from pgsimhash.page import read_article
from pgsimhash.urls import check_url
from pgsimhash.votes import hash_features, vote

MAX_BYTES: Final = 10_000_000
"""How large a page may be by default, in bytes of HTML."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A named recipe.

    Attributes:
        name: what the recipe is called in stores.
        min_tokens: a main content of fewer tokens gets no fingerprint.
        shingle_sizes: the sizes of the shingles that vote; 1 stands for the tokens themselves.
    """

    name: str
    min_tokens: int
    shingle_sizes: tuple[int, ...]


DEFAULT_SCHEME: Final = Scheme("pgsimhash-article-1", min_tokens=20, shingle_sizes=(1, 2))


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The record of one page.

    Attributes:
        simhash: 0 <= simhash < 2**64.
        scheme: the name of the recipe.
        features: how many distinct features voted.
        words: how many tokens the main content has.
        title: the page's title.
        canonical_url: what its ``rel=canonical`` says, absolute.
        language: what its ``lang`` says.
        markdown: the main content.
        html_bytes: the size of the page, in bytes.
        url: where it was found, as given.
        structure: the simhash of the page's shape: pages of one template are near each other,
            12 bits or less as a rule.
    """

    simhash: int
    scheme: str
    features: int
    words: int
    title: str | None
    canonical_url: str | None
    language: str | None
    markdown: str
    html_bytes: int
    url: str | None
    structure: int | None = None


def fingerprint(
    html: bytes | str,
    url: str | None = None,
    *,
    charset: str | None = None,
    scheme: Scheme = DEFAULT_SCHEME,
    max_bytes: int = MAX_BYTES,
) -> Fingerprint:
    """Return the fingerprint of a page.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found: an absolute http, https or file URL.
        charset: the label in the HTTP header, if there was one; for bytes only.
        scheme: the recipe.
        max_bytes: a larger page is refused before any work.

    Raises:
        TooLargeError: the page is larger than ``max_bytes``.
        InvalidUrlError: ``url`` is not an absolute URL.
        NotHtmlError: the bytes are an image, an archive, a PDF or another binary format.
        TooShortError: the main content has fewer than ``scheme.min_tokens`` tokens.
    """
    size = _checked_size(html, max_bytes)
    if url is not None:
        check_url(url)
    article = read_article(html, url, charset)
    tokens = tokenize(article.text)
    if len(tokens) < scheme.min_tokens:
        raise TooShortError(
            f"the main content has {len(tokens)} words, and a fingerprint takes "
            f"{scheme.min_tokens}: fewer would match unrelated pages"
        )
    weighted = weigh(tokens, scheme.shingle_sizes)
    weights = np.fromiter(weighted.values(), dtype=np.float64, count=len(weighted))
    return Fingerprint(
        simhash=vote(hash_features(weighted), weights),
        scheme=scheme.name,
        features=len(weighted),
        words=len(tokens),
        title=article.title,
        canonical_url=article.canonical_url,
        language=article.language,
        markdown=article.markdown,
        html_bytes=size,
        url=url,
        structure=article.structure,
    )


def _checked_size(html: bytes | str, max_bytes: int) -> int:
    size = len(html)
    if size <= max_bytes and isinstance(html, str):
        size = len(html.encode("utf-8", "replace"))
    if size > max_bytes:
        raise TooLargeError(
            f"the page is larger than {max_bytes:,} bytes; pass max_bytes to allow more"
        )
    return size
