"""From a page to its fingerprint, by a scheme."""

from __future__ import annotations

from dataclasses import dataclass

from pgsimhash.octets import MAX_BYTES, Octets, checked_size, frozen
from pgsimhash.schemes.recipe import Scheme
from pgsimhash.schemes.registry import get_scheme
from pgsimhash.schemes.shipped import DEFAULT_SCHEME
from pgsimhash.urls import check_url


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The record of one page.

    Attributes:
        simhash: 0 <= simhash < 2**64.
        scheme: the name of the recipe.
        features: how many distinct features voted.
        tokens: how many tokens the main content has.
        title: the page's title.
        canonical_url: what its ``rel=canonical`` says, absolute.
        language: what its ``lang`` says.
        markdown: the main content; empty where it was not asked for.
        html_bytes: the size of the page, in bytes.
        url: where it was found, as given.
        sketch: 128 bits of the features, 0 <= sketch < 2**128, to verify a match; see
            :mod:`pgsimhash.sketch`.
        structure: the simhash of the page's shape: pages of one template are near each other,
            12 bits or less as a rule.
        text_digest: 64 bits, the same for pages whose main content has the same words and numbers.
        unseen: the share of the page's words that carry less than a tenth of the mean weight; None
            where the scheme does not weigh blocks.
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
    sketch: int
    structure: int | None
    text_digest: int
    unseen: float | None = None


def fingerprint(
    html: Octets | str,
    url: str | None = None,
    *,
    charset: str | None = None,
    scheme: Scheme | str = DEFAULT_SCHEME,
    max_bytes: int = MAX_BYTES,
    markdown: bool = True,
) -> Fingerprint:
    """Return the fingerprint of a page.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found: an absolute http, https or file URL.
        charset: the label in the HTTP header, if there was one; for bytes only.
        scheme: the recipe, or the name of a registered one.
        max_bytes: a larger page is refused before any work.
        markdown: whether to render the main content, which can take as long as all the rest.

    Raises:
        PageError: the page has none: it is ``too_large``, ``not_html``, ``too_short`` for the
            scheme, an ``error_page``, ``blocked`` or ``needs_script``; or ``url`` is not absolute
            (``invalid_url``).
        ArgumentError: no scheme is registered under that name.
    """
    recipe = get_scheme(scheme)
    size = checked_size(html, max_bytes)
    if url is not None:
        check_url(url)
    article = recipe.extract(frozen(html), url, charset)
    voted = recipe.vote(article)
    return Fingerprint(
        simhash=voted.simhash,
        scheme=recipe.name,
        features=voted.features,
        tokens=voted.tokens,
        sketch=voted.sketch,
        title=article.title,
        canonical_url=article.canonical_url,
        language=article.language,
        markdown=article.markdown if markdown else "",
        html_bytes=size,
        url=url,
        structure=article.structure,
        text_digest=voted.text_digest,
        unseen=voted.unseen,
    )
