"""Compute the fingerprint of a page by a scheme."""

from __future__ import annotations

from dataclasses import dataclass

from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import MAX_BYTES, BytesLike, checked_size, frozen
from pgsimhash.schemes.recipe import Scheme
from pgsimhash.schemes.registry import get_scheme
from pgsimhash.schemes.shipped import DEFAULT_SCHEME


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of one page.

    Attributes:
        simhash: 0 <= simhash < 2**64.
        scheme: the name of the recipe.
        features: the number of distinct features.
        tokens: the number of tokens of the main content.
        title: the page's title.
        canonical_url: the absolute URL of its ``rel=canonical``.
        language: the value of its ``lang``.
        markdown: the main content; empty if it was not requested.
        html_bytes: the size of the page in bytes.
        url: the given URL.
        signature: 128 bits that verify a match, 0 <= signature < 2**128; see
            :mod:`pgsimhash.hashing.signature`.
        structure: the simhash of the page's structure; pages of one template usually differ by at
            most 12 bits.
        text_digest: 64 bits, equal for pages whose main content has the same words and numbers;
            counters and dates of the visit do not count.
        unseen: the share of the page's words in blocks with less than a tenth of the mean weight;
            None if the scheme does not weigh blocks.
    """

    simhash: int
    scheme: str
    features: int
    tokens: int
    title: str | None
    canonical_url: str | None
    language: str | None
    markdown: str
    html_bytes: int
    url: str | None
    signature: int
    structure: int | None
    text_digest: int
    unseen: float | None = None


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
    size = checked_size(html, max_bytes)
    if url is not None:
        check_url(url)
    article = recipe.extract(frozen(html), url, charset)
    vote = recipe.vote(article)
    return Fingerprint(
        simhash=vote.simhash,
        scheme=recipe.name,
        features=vote.features,
        tokens=vote.tokens,
        signature=vote.signature,
        title=article.title,
        canonical_url=article.canonical_url,
        language=article.language,
        markdown=article.markdown if markdown else "",
        html_bytes=size,
        url=url,
        structure=article.structure,
        text_digest=vote.text_digest,
        unseen=vote.unseen,
    )
