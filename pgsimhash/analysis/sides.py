"""Read one side of a comparison of two pages: its values and its features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from pgsimhash.errors import PageError
from pgsimhash.hashing.bits import from_bigint, hamming_distance
from pgsimhash.hashing.signature import from_halves
from pgsimhash.html import Article, WeightedWords
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import BytesLike, checked_size, frozen
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schemes import BlockWeights, Scheme
from pgsimhash.store import Store
from pgsimhash.store.lookups import present_pages, unknown_page

Origin = Literal["page", "markdown"]

_BLOCKS: Final = 5
_BLOCK_CHARS: Final = 150
"""How many low-weight text blocks are listed, and how many characters of each."""


@dataclass(frozen=True, slots=True)
class Side:
    """A page to compare; a bare simhash has no other values.

    Attributes:
        simhash: 0 <= simhash < 2**64.
        url: its URL.
        title: its title.
        fetched_at: when this version was fetched.
        signature: 128 bits that verify a match; see :mod:`pgsimhash.hashing.signature`.
        structure: the simhash of its structure.
        article: its main content, from the page or from kept Markdown.
        origin: which of the two; None without an article.
        unseen: the share of the page's words in low-weight blocks, see
            :attr:`pgsimhash.html.WeightedWords.unseen`; None without HTML, or if the scheme does
            not weigh blocks.
        unseen_blocks: the beginnings of the largest low-weight blocks.
    """

    simhash: int
    url: str | None = None
    title: str | None = None
    fetched_at: datetime | None = None
    signature: int | None = None
    structure: int | None = None
    article: Article | None = None
    origin: Origin | None = None
    unseen: float | None = None
    unseen_blocks: tuple[str, ...] = ()


class Weighted(NamedTuple):
    """The features of a side.

    ``weights`` maps features to weights. ``bits_off`` is the distance of their simhash from the
    page's. It is 0 for the features of the page itself, None if they are too few for a simhash.
    """

    weights: Mapping[str, float]
    bits_off: int | None


def read_side(
    html: BytesLike | str, scheme: Scheme, url: str | None = None, charset: str | None = None
) -> Side:
    """Return the side of a page's HTML, read by ``scheme``.

    Raises:
        PageError: the page has no fingerprint (too short, too large, not HTML, ...).
    """
    checked_size(html)
    if url is not None:
        check_url(url)
    article = scheme.extract(frozen(html), url, charset)
    vote = scheme.vote(article)
    words = article.words if isinstance(scheme.weigh, BlockWeights) else None
    unseen, blocks = (None, []) if words is None else words.unseen
    return Side(
        vote.simhash,
        url,
        article.title,
        signature=vote.signature,
        structure=article.structure,
        article=article,
        origin="page",
        unseen=unseen,
        unseen_blocks=tuple(_beginning(words, block) for block in blocks[:_BLOCKS] if words),
    )


def _beginning(words: WeightedWords, block: int) -> str:
    """Return the beginning of a block's words."""
    numbers = words.words[words.blocks == block].tolist()
    text = " ".join(words.vocabulary[number] for number in numbers)
    return text if len(text) <= _BLOCK_CHARS else f"{text[:_BLOCK_CHARS]} ..."


_COLUMNS: Final = (
    "simhash",
    "url",
    "title",
    "fetched_at",
    "structure",
    "signature_high",
    "signature_low",
    "markdown",
)


def known_side(store: Store, url: str) -> Side:
    """Return the current version of a page in a store.

    Raises:
        NotFoundError: the collection does not have the URL.
        ArgumentError: the collection's scheme is not registered in this process.
    """
    with store.session.reading() as (connection, collection):
        rows = present_pages(connection, collection, [collection.page_url(url)], *_COLUMNS)
    if not rows:
        raise unknown_page(collection, url)
    ((simhash, page_url, title, fetched_at, structure, high, low, markdown),) = rows
    article = kept_article(markdown, title, collection.scheme)
    return Side(
        from_bigint(simhash),
        page_url,
        title,
        fetched_at,
        from_halves(high, low),
        None if structure is None else from_bigint(structure),
        article,
        None if article is None else "markdown",
    )


def weighted_features(side: Side, scheme: Scheme) -> Weighted | None:
    """Return the features of a side by the scheme's tokenizer and weighting; None without a text.

    Raises:
        ArgumentError: a weight is negative or not finite.
    """
    if side.article is None:
        return None
    weights = scheme.weigh(scheme.tokenize(side.article.text), side.article)
    if side.origin == "page":
        return Weighted(weights, 0)
    try:
        return Weighted(weights, hamming_distance(scheme.vote(side.article).simhash, side.simhash))
    except PageError:
        return Weighted(weights, None)
