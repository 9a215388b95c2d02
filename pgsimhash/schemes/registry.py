"""Compute the fingerprint of a page by a built-in scheme, or by one that you registered.

tests/vectors/README.md describes each step of the built-in schemes. A released recipe never
changes. A scheme that reads pages differently becomes a new entry, with an extraction that has the
signature of ``read_article``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pgsimhash.errors import ArgumentError
from pgsimhash.hashing.hashes import jenkins_64, murmur3_32_32
from pgsimhash.hashing.tokens import tokenize_with_numbers
from pgsimhash.html import read_article
from pgsimhash.pages.records import PageFields
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import MAX_BYTES, BytesLike, checked_size, frozen
from pgsimhash.schemes.article_features import BlockWeights, murmur3_64_of_words
from pgsimhash.schemes.blog import long_words, read_blog, spaced_words
from pgsimhash.schemes.interop import CategoryWords, read_with_references
from pgsimhash.schemes.recipe import Scheme
from pgsimhash.schemes.text_parts import ShingleWeights, ShortWeights, read_text, short_words

DEFAULT_SCHEME: Final[Scheme] = Scheme(
    "pgsimhash-article-1",
    read_article,
    BlockWeights(),
    hash_features=murmur3_64_of_words,
    min_tokens=12,
)

TEXT_SCHEME: Final = Scheme(
    "pgsimhash-text-1",
    read_text,
    ShingleWeights((1, 2), "sqrt"),
    tokenize=tokenize_with_numbers,
    hash_features=murmur3_64_of_words,
)

SHORT_SCHEME: Final = Scheme(
    "pgsimhash-short-1", read_text, ShortWeights(), tokenize=short_words, min_tokens=2, distance=6
)

BLOG_WORDS_SCHEME: Final = Scheme(
    "pgsimhash-blog-words-1",
    read_blog,
    ShingleWeights((1,), "linear"),
    tokenize=long_words,
    hash_features=murmur3_32_32,
    min_tokens=1,
    distance=3,
)

BLOG_SHINGLES_SCHEME: Final = Scheme(
    "pgsimhash-blog-shingles-1",
    read_blog,
    ShingleWeights((3,), "linear"),
    tokenize=spaced_words,
    hash_features=murmur3_32_32,
    min_tokens=1,
    distance=3,
)

INTEROP_SCHEME: Final = Scheme(
    "pgsimhash-interop-1",
    read_with_references,
    ShingleWeights((1,), "linear"),
    tokenize=CategoryWords(),
    hash_features=jenkins_64,
    distance=3,
)

_schemes: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        DEFAULT_SCHEME,
        TEXT_SCHEME,
        SHORT_SCHEME,
        BLOG_WORDS_SCHEME,
        BLOG_SHINGLES_SCHEME,
        INTEROP_SCHEME,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint(PageFields):
    """The fingerprint of one page; all fields but ``url`` are those of a stored page.

    Attributes:
        simhash: 0 <= simhash < 2**64.
        scheme: the name of the recipe.
        url: the given URL.
        markdown: the main content; empty if it was not requested.
    """

    simhash: int
    scheme: str
    url: str | None
    features: int
    tokens: int
    html_bytes: int
    signature: int
    text_digest: int
    markdown: str


def fingerprint(
    html: BytesLike | str,
    url: str | None = None,
    *,
    charset: str | None = None,
    scheme: Scheme | str = DEFAULT_SCHEME,
    max_bytes: int = MAX_BYTES,
    markdown: bool = True,
) -> Fingerprint:
    """Return the fingerprint of a page.

    Args:
        html: the page, as bytes or text.
        url: its absolute http, https or file URL.
        charset: the label in the HTTP header, if any; for bytes only.
        scheme: the recipe, or the name of a registered one.
        max_bytes: the largest size of a page.
        markdown: whether to render the main content, which can take as long as all other steps.

    Raises:
        PageError: the page has no fingerprint: it is ``too_large``, ``not_html``, ``too_short`` for
            the scheme, an ``error_page``, ``blocked`` or ``needs_script``; or ``url`` is not
            absolute (``invalid_url``).
        ArgumentError: no scheme has this name.
    """
    recipe = get_scheme(scheme)
    values = page_values(frozen(html), url, charset, recipe, max_bytes, markdown=markdown)
    return Fingerprint(scheme=recipe.name, url=url, **values)


def page_values(
    html: bytes | str,
    url: str | None,
    charset: str | None,
    scheme: Scheme,
    max_bytes: int,
    *,
    markdown: bool,
) -> dict[str, Any]:
    """Return the simhash of a page and the values of :class:`PageFields`; see :func:`fingerprint`.

    Raises:
        PageError: the page has no fingerprint, or ``url`` is not absolute.
    """
    size = checked_size(html, max_bytes)
    if url is not None:
        check_url(url)
    article = scheme.extract(html, url, charset)
    return {
        **scheme.vote(article)._asdict(),
        "title": article.title,
        "canonical_url": article.canonical_url,
        "language": article.language,
        "structure": article.structure,
        "html_bytes": size,
        "markdown": article.markdown if markdown else "",
    }


def get_scheme(name: str | Scheme) -> Scheme:
    """Return the scheme of that name; return a scheme unchanged.

    Raises:
        ArgumentError: no scheme has this name; the message lists the names.
    """
    if isinstance(name, Scheme):
        return name
    try:
        return _schemes[name]
    except KeyError:
        raise ArgumentError(
            "unknown_scheme",
            f"there is no scheme {name!r}, only {', '.join(scheme_names())}; "
            "register yours in this process with pgsimhash.schemes.register_scheme()",
        ) from None


def scheme_names() -> list[str]:
    """Return the names of all schemes in order of registration, built-in schemes first."""
    return list(_schemes)


def register_scheme(scheme: Scheme) -> Scheme:
    """Register ``scheme`` by its name in this process, and return it.

    The same recipe may be registered again. Other processes do not learn of it: functions that use
    several processes pickle the scheme itself.

    Raises:
        ArgumentError: another recipe has this name.
    """
    known = _schemes.setdefault(scheme.name, scheme)
    if known != scheme:
        raise ArgumentError(
            "invalid_argument",
            f"the name {scheme.name!r} is taken by another recipe; simhashes of the two cannot be "
            "compared, so choose a different name",
        )
    return known
