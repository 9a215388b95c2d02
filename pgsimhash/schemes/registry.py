"""Schemes: named recipes from a page to its simhash, built-in ones and those that you register.

tests/vectors/README.md describes each step of the built-in schemes. A released recipe never
changes. A scheme that reads pages differently becomes a new entry, with an extraction that has the
signature of ``read_article``.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, Final, cast

import numpy as np

from pgsimhash.errors import ArgumentError, PageError, invalid_argument
from pgsimhash.hashing.bits import NEAR_MAX, check_distance
from pgsimhash.hashing.hashes import HashFunction, jenkins_64, murmur3_32_32, murmur3_64
from pgsimhash.hashing.signature import PLAIN_TEXT
from pgsimhash.hashing.tokens import TOKENS_MAX, tokenize
from pgsimhash.hashing.votes import signature_hashes, vote
from pgsimhash.html import Article, read_article
from pgsimhash.pages.records import PageFields, SourcePage
from pgsimhash.pages.selectors import Selectors
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import MAX_BYTES, BytesLike, checked_size
from pgsimhash.schemes.blog import long_words, read_blog, spaced_words
from pgsimhash.schemes.features import (
    BlockWeights,
    ShingleWeights,
    Vote,
    murmur3_64_of_words,
    read_text,
    short_weights,
    short_words,
    words_digest,
    words_of,
)
from pgsimhash.schemes.interop import CategoryWords, read_with_references
from pgsimhash.search.layout import DISTANCE_MAX

_OF_ARTICLE: Final = (
    "title", "canonical_url", "language", "noindex", "alternates", "structure", "content_missing",
)  # fmt: skip
# What a caller passed instead of a page.
_PLACE: Final = re.compile(r"(?i)https?://\S+|[\w.~/\\:%-]+\.(?:x?html?|txt|md|pdf|json|gz)")


@dataclass(frozen=True, slots=True)
class Scheme:
    """A named recipe from a page to its simhash.

    Only simhashes of one scheme can be compared, so a recipe that changes a simhash needs a new
    name. Schemes with equal parts are equal. Build parts from functions of a module or from frozen
    dataclasses: both can be compared and sent to other processes, unlike lambdas.

    Attributes:
        name: the name of the recipe in stores, with its version at the end.
        extract: returns the article of a page, its URL and its HTTP header's charset, such as
            :func:`pgsimhash.html.read_article`. To support ``content`` and ``ignore``, it needs the
            argument ``selectors`` too.
        weigh: returns the weighted features of the tokens of an article, such as
            ``ShingleWeights((1, 2))``.
        tokenize: returns the tokens of a text in order.
        hash_features: returns the 64-bit hashes of features, such as those of
            :mod:`pgsimhash.hashing.hashes`.
        min_tokens: the fewest tokens of an article with a fingerprint.
        distance: the default distance of collections: the most bits in which copies differ. It is
            not part of the recipe, so comparisons of schemes ignore it.
    """

    name: str
    extract: Callable[..., Article]
    weigh: Callable[[Sequence[str], Article], Mapping[str, float]]
    tokenize: Callable[[str], Sequence[str]] = tokenize
    hash_features: HashFunction = murmur3_64
    min_tokens: int = 20
    distance: int = field(default=NEAR_MAX, compare=False)

    def __post_init__(self) -> None:
        check_distance(self.distance, DISTANCE_MAX)

    def vote(self, article: Article) -> Vote:
        """Return the simhash and more of ``article``, by its first 500,000 tokens.

        Raises:
            PageError: the article has fewer than ``min_tokens`` tokens, or no feature.
        """
        if isinstance(self.weigh, BlockWeights) and self.hash_features is murmur3_64_of_words:
            blocks = self.weigh.vote(article, partial(self._check_length, article=article))
            return blocks._replace(signature=marked(blocks.signature, self))
        tokens = self.tokenize(article.text)[:TOKENS_MAX]
        self._check_length(len(tokens), article)
        weighted = self.weigh(tokens, article)
        weights = np.fromiter(weighted.values(), dtype=np.float64, count=len(weighted))
        hashes = self.hash_features(weighted.keys())
        signature = marked(signature_hashes(hashes, weights, weights), self)
        digest = words_digest(words_of(article))
        return Vote(vote(hashes, weights), signature, len(hashes), len(tokens), digest)

    def simhash(self, text: str) -> int:
        """Return the simhash of ``text`` as the main content; the errors are those of a vote."""
        return self.vote(Article(markdown=text, text=text)).simhash

    def _check_length(self, tokens: int, article: Article) -> None:
        if tokens < self.min_tokens:
            if _PLACE.fullmatch(text := article.text.strip()):
                raise PageError(
                    "not_html", f"{text!r:.80} is a path or a URL; give the page that it names"
                )
            raise PageError(
                "too_short",
                f"the main content has {tokens} words, and a fingerprint needs "
                f"{self.min_tokens}: fewer would match unrelated pages",
            )

    def check_portable(self) -> Scheme:
        """Return this scheme, if it can be pickled for other processes."""
        try:
            pickle.dumps(self)
        except Exception as error:
            raise invalid_argument(
                f"the scheme {self.name!r} cannot be sent to other processes ({error}); make its "
                "parts functions of a module or frozen dataclasses, or use one process"
            ) from error
        return self


def marked(signature: int, scheme: Scheme) -> int:
    """Return a signature with the mark of plain texts, if the scheme reads these."""
    return signature | PLAIN_TEXT if reads_texts(scheme) else signature


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
    BlockWeights(),
    hash_features=murmur3_64_of_words,
)

SHORT_SCHEME: Final = Scheme(
    "pgsimhash-short-1", read_text, short_weights, tokenize=short_words, min_tokens=2
)

_blog_scheme = partial(
    Scheme, extract=read_blog, hash_features=murmur3_32_32, min_tokens=1, distance=3
)

_OTHERS: Final = (
    _blog_scheme("pgsimhash-blog-words-1", weigh=ShingleWeights((1,)), tokenize=long_words),
    _blog_scheme("pgsimhash-blog-shingles-1", weigh=ShingleWeights((3,)), tokenize=spaced_words),
    Scheme(
        "pgsimhash-interop-1",
        read_with_references,
        ShingleWeights((1,)),
        tokenize=CategoryWords(),
        hash_features=jenkins_64,
        distance=3,
    ),
)
_schemes = {scheme.name: scheme for scheme in (DEFAULT_SCHEME, TEXT_SCHEME, SHORT_SCHEME, *_OTHERS)}


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
    content: str | None = None,
    ignore: str | None = None,
) -> Fingerprint:
    """Return the fingerprint of a page.

    Args:
        html: the page, as bytes or text.
        url: its absolute http, https or file URL.
        charset: the label in the HTTP header, if any; for bytes only.
        scheme: the recipe, or the name of a registered one.
        max_bytes: the largest size of a page.
        markdown: whether to render the main content, which can take as long as all other steps.
        content: CSS selectors of the part of the page that counts.
        ignore: CSS selectors of what does not count.

    Raises:
        PageError: the page has no fingerprint: it is ``too_large``, ``not_html``, ``too_short`` for
            the scheme, ``cut_short`` by the selectors, an ``error_page``, ``blocked`` or
            ``needs_script``; or ``url`` is not absolute (``invalid_url``).
    """
    recipe = get_scheme(scheme)
    # Unlike pages of a store, it may have no URL.
    page = SourcePage(cast(Any, url), cast(Any, html), charset, content=content, ignore=ignore)
    return Fingerprint(**read_page(page, recipe, max_bytes, markdown=markdown), scheme=recipe.name)


def read_page(
    page: SourcePage, scheme: Scheme, max_bytes: int, *, markdown: bool
) -> dict[str, Any]:
    """Return the URL, the simhash and the fields of a page; see :func:`fingerprint`."""
    size = checked_size(page.html, max_bytes)
    if page.url is not None:
        check_url(page.url, any_id=reads_texts(scheme))
    selectors, (article, vote) = Selectors(page.content, page.ignore), read_and_vote(page, scheme)
    return {
        **vote._asdict(),
        **{name: getattr(article, name) for name in _OF_ARTICLE},
        "url": page.url,
        "html_bytes": size,
        "selectors": selectors.digest if any(selectors) else None,
        "markdown": article.markdown if markdown else "",
    }


def read_and_vote(page: SourcePage, scheme: Scheme) -> tuple[Article, Vote]:
    """Return the article of a page, cut by its selectors, and its vote."""
    given, selectors = (page.html, page.url, page.charset), Selectors(page.content, page.ignore)
    if not any(selectors):
        article = scheme.extract(*given)
        return article, scheme.vote(article)
    checked_selectors(scheme, selectors)
    article = scheme.extract(*given, selectors=selectors)
    try:
        return article, scheme.vote(article)
    except PageError as error:
        # It raises an error of its own if it has too little without them too.
        scheme.vote(scheme.extract(*given))
        raise PageError("cut_short", f"{error}; it was cut by {selectors}") from error


def checked_selectors(scheme: Scheme | str, selectors: Selectors) -> Selectors:
    """Return valid selectors, if the scheme can apply them; raise ArgumentError otherwise."""
    recipe = get_scheme(scheme)
    if any(selectors.checked()) and "selectors" not in signature(recipe.extract).parameters:
        raise invalid_argument(
            f"content and ignore need HTML, and the reader of scheme {recipe.name!r} takes no "
            "selectors"
        )
    return selectors


def reads_texts(scheme: str | Scheme) -> bool:
    """Return whether a scheme reads plain texts; their URLs may be any ids."""
    return get_scheme(scheme).extract is read_text


def get_scheme(name: str | Scheme) -> Scheme:
    """Return the scheme of that name; return a scheme unchanged."""
    if isinstance(name, Scheme):
        return name
    try:
        return _schemes[name]
    except (KeyError, TypeError):
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

    The same recipe may be registered again, another one of its name not. Other processes do not
    learn of it: functions that use several processes pickle the scheme itself.
    """
    known = _schemes.setdefault(scheme.name, scheme)
    if known != scheme:
        raise invalid_argument(
            f"the name {scheme.name!r} is taken by another recipe; simhashes of the two cannot be "
            "compared, so choose a different name"
        )
    return known
