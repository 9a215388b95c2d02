"""One of two pages that are compared: what is known of it, and the features it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from psycopg.rows import tuple_row

from pgsimhash.bits import from_bigint, hamming_distance
from pgsimhash.errors import PageError
from pgsimhash.html import Article, WeightedWords
from pgsimhash.octets import Octets, checked_size, frozen
from pgsimhash.rereading import kept_article
from pgsimhash.schemes import BlockWeights, Scheme
from pgsimhash.sketch import from_halves
from pgsimhash.statements import query
from pgsimhash.store import Store
from pgsimhash.store.reader import unknown_page
from pgsimhash.urls import check_url

Origin = Literal["page", "markdown"]

_BLOCKS: Final = 5
_BLOCK_CHARS: Final = 150
"""How many low-weight blocks are listed, and how many characters of each."""


@dataclass(frozen=True, slots=True)
class Side:
    """A page to compare; of a bare simhash nothing else is known.

    Attributes:
        simhash: 0 <= simhash < 2**64.
        url: where it was found.
        title: its title.
        fetched_at: when the store got this version.
        sketch: 128 bits to verify a match; see :mod:`pgsimhash.sketch`.
        structure: the simhash of its shape.
        article: its main content: as it was hashed, or made of the Markdown that was kept.
        origin: which of the two; None without an article.
        unseen: the share of the page's words in low-weight blocks, see
            :attr:`pgsimhash.html.WeightedWords.unseen`; None if the HTML is not at hand or the
            scheme does not weigh blocks.
        unseen_blocks: the beginnings of the largest low-weight blocks.
    """

    simhash: int
    url: str | None = None
    title: str | None = None
    fetched_at: datetime | None = None
    sketch: int | None = None
    structure: int | None = None
    article: Article | None = None
    origin: Origin | None = None
    unseen: float | None = None
    unseen_blocks: tuple[str, ...] = ()


class Weighted(NamedTuple):
    """The features of a side.

    ``weights`` maps feature to weight; ``bits_off`` says in how many bits the simhash of these
    features differs from the page's: 0 where they are what was hashed, None where they are too
    few to have one.
    """

    weights: Mapping[str, float]
    bits_off: int | None


def read_side(
    html: Octets | str, scheme: Scheme, url: str | None = None, charset: str | None = None
) -> Side:
    """Return a page that is at hand, read by ``scheme``.

    Raises:
        PageError: it has no fingerprint (too short, too large, no HTML, ...).
    """
    checked_size(html)
    if url is not None:
        check_url(url)
    article = scheme.extract(frozen(html), url, charset)
    voted = scheme.vote(article)
    words = article.words if isinstance(scheme.weigh, BlockWeights) else None
    unseen, blocks = (None, []) if words is None else words.unseen
    return Side(
        voted.simhash,
        url,
        article.title,
        sketch=voted.sketch,
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


def known_side(store: Store, url: str) -> Side:
    """Return the present version of a page that a store knows.

    Raises:
        NotFoundError: the collection does not have it.
        ArgumentError: the collection's scheme is not registered in this process.
        StoreError: the database does not answer.
    """
    with (
        store.session.reading() as (connection, collection),
        connection.cursor(row_factory=tuple_row, binary=True) as cursor,
    ):
        parameters = {"collection_id": collection.collection_id, "url": collection.page_url(url)}
        row = cursor.execute(query("explained_page", connection), parameters).fetchone()
    if row is None:
        raise unknown_page(collection, url)
    found, simhash, fetched_at, title, structure, high, low, markdown = row
    article = kept_article(markdown, title, collection.scheme)
    return Side(
        from_bigint(simhash),
        found,
        title,
        fetched_at,
        from_halves(high, low),
        None if structure is None else from_bigint(structure),
        article,
        None if article is None else "markdown",
    )


def weighted_features(side: Side, scheme: Scheme) -> Weighted | None:
    """Return the features of a side by the scheme's own tokenizer and weights, if it has a text.

    Raises:
        ArgumentError: the weighting gave a weight that is negative or not finite.
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
