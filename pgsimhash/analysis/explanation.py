"""Explain why two pages match or not: bits, signatures, features, text."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from pgsimhash.analysis.changes import Difference, known_distance, side_by_side, stored_versions
from pgsimhash.errors import PageError
from pgsimhash.hashing.bits import BITS, check_distance, hamming_distance
from pgsimhash.hashing.signature import containment, containment_min, verified
from pgsimhash.html import Article
from pgsimhash.pages.records import json_values
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import BytesLike, checked_size, frozen
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schemes import DEFAULT_SCHEME, BlockWeights, Scheme, get_scheme
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, get_layout
from pgsimhash.store import Store

TOP: Final = 20
"""How many features of each side an explanation lists."""

Reason = Literal["same_simhash", "within_distance", "beyond_distance", "signatures_differ"]
Origin = Literal["page", "markdown"]

_VALUES: Final = "simhash", "url", "title", "fetched_at", "signature", "structure", "markdown"
_BLOCKS: Final = 5
_BLOCK_CHARS: Final = 150
"""How many low-weight text blocks are listed, and how many characters of each."""


@dataclass(frozen=True, slots=True)
class Side:
    """A page to compare; a bare simhash has no other values.

    ``signature`` has the 128 bits that verify a match (:mod:`pgsimhash.hashing.signature`), and
    ``structure`` is the simhash of the page's structure. ``article`` is its main content, and
    ``origin`` says whether that is from the page or from kept Markdown. ``unseen`` is the share of
    the words in low-weight blocks (``WeightedWords.unseen``), and
    ``unseen_blocks`` are the beginnings of the largest. It is None without HTML, or if the scheme
    does not weigh blocks.
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


class BlockBits(NamedTuple):
    """A bit block: its bits in both simhashes, as digits, and how many differ."""

    a: str
    b: str
    differing: int


@dataclass(frozen=True, slots=True)
class FeatureList:
    """The features that only one side has: the heaviest first, their number and total weight.

    ``bits_off`` is the distance of the features' simhash from the side's: 0 for the features of the
    page itself, None if they are too few for a simhash.
    """

    top: tuple[tuple[str, float], ...]
    count: int
    weight: float
    bits_off: int | None

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The heaviest features with formatted weights; small weights keep two digits."""
        return [
            (feature, f"{weight:,.1f}" if weight >= 1 else f"{weight:.2g}")
            for feature, weight in self.top
        ]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of two pages: those of one only, and the number and weight of shared ones."""

    only_a: FeatureList
    only_b: FeatureList
    shared: int
    shared_weight: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Two pages, and everything that decides whether they match at ``max_distance``.

    ``distance`` is their distance in bits. ``matches_from`` is the smallest ``max_distance`` at
    which they match, or None. ``features`` and ``difference`` need both texts.
    """

    a: Side
    b: Side
    scheme: str
    layout: str
    max_distance: int
    distance: int
    matches: bool
    reason: Reason
    matches_from: int | None
    sentence: str
    blocks: tuple[BlockBits, ...]
    containment: float | None
    structure_distance: int | None
    features: Features | None
    difference: Difference | None

    def __repr__(self) -> str:
        return f"<{self.scheme}: {self.sentence}>"

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON values, simhashes as 16 hex digits."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **values,
            "a": _side_json(self.a),
            "b": _side_json(self.b),
            "blocks": [block._asdict() for block in self.blocks],
            "features": self.features and asdict(self.features),
            "difference": self.difference and self.difference.as_json(),
        }


def explain(
    store: Store, a: str | int | Side, b: str | int | Side, *, distance: int | None = None
) -> Explanation:
    """Explain whether two pages match, at which distance, and what differs between them.

    Each page is the URL of a known one, for its current version, a simhash, or :func:`read_side` of
    HTML. ``distance`` is the largest number of differing bits, by default the collection's.

    Features and the difference of the texts need both texts. A known page has a text if the
    collection keeps Markdown. Its features are then computed from the Markdown, and the explanation
    includes the distance of their simhash from the page's. The sentence names a mark on the two
    pages; all other fields ignore marks.

    Raises:
        NotFoundError: the collection does not have the URL.
        ArgumentError: the layout does not support ``distance``, or the collection's scheme is not
            registered in this process.
    """
    pages = [Side(page) if isinstance(page, int) else page for page in (a, b)]
    sides = [page if isinstance(page, Side) else known_side(store, page) for page in pages]
    explanation = explain_sides(
        *sides,
        scheme=get_scheme(store.collection.scheme),
        layout=get_layout(store.collection.layout),
        distance=store.collection.checked_distance(distance),
    )
    with store._session.calls_to_read() as calls:
        marks = calls.marks()
    for mark in marks:
        if {mark.a, mark.b} == {side.url for side in sides}:
            name = "the same" if mark.same else "different"
            sentence = f"{explanation.sentence} But they are marked as {name}: that decides."
            return replace(explanation, sentence=sentence)
    return explanation


def explain_sides(
    a: Side,
    b: Side,
    *,
    scheme: Scheme = DEFAULT_SCHEME,
    layout: Layout = DEFAULT_LAYOUT,
    distance: int | None = None,
) -> Explanation:
    """Explain whether two pages with simhashes of ``scheme`` match, without a store.

    ``distance`` is the largest number of differing bits, by default the scheme's.

    Raises:
        ArgumentError: a simhash is not in 0..2**64-1, or the layout does not support ``distance``.
    """
    largest = layout.distances[-1]
    limit = min(scheme.distance, largest) if distance is None else check_distance(distance, largest)
    bits = hamming_distance(a.simhash, b.simhash)
    agreed = verified(bits, a.signature, b.signature)
    share, signatures = None, ""
    if a.signature is not None and b.signature is not None:
        share = containment(a.signature, b.signature)
        least = containment_min(bits, a.signature, b.signature)
        signatures = (
            f"by their signatures, the larger page has {share:.0%} of the smaller one, and of "
            f"copies as near as this {least:.0%} or more"
        )
    reason, sentence = _decision(bits, limit, agreed, signatures, layout)
    features = difference = None
    if a.article is not None and b.article is not None:
        features = _features(a, b, scheme)
        difference = side_by_side(a.article.markdown, b.article.markdown)
    return Explanation(
        a=a,
        b=b,
        scheme=scheme.name,
        layout=layout.name,
        max_distance=limit,
        distance=bits,
        matches=bits <= limit and agreed,
        reason=reason,
        matches_from=bits if bits in layout.distances and agreed else None,
        sentence=sentence,
        blocks=tuple(block_bits(a.simhash, b.simhash, layout)),
        containment=share,
        structure_distance=known_distance(a.structure, b.structure),
        features=features,
        difference=difference,
    )


def read_side(html: BytesLike | str, scheme: Scheme, url: str | None = None) -> Side:
    """Return the side of a page's HTML, read by ``scheme``.

    Raises:
        PageError: the page has no fingerprint (too short, too large, not HTML, ...).
    """
    checked_size(html)
    if url is not None:
        check_url(url)
    article = scheme.extract(frozen(html), url, None)
    vote = scheme.vote(article)
    words = article.words if isinstance(scheme.weigh, BlockWeights) else None
    unseen, blocks = (None, []) if words is None else words.unseen
    texts = (" ".join(block.words) for block in blocks[:_BLOCKS])
    return Side(
        vote.simhash,
        url,
        article.title,
        signature=vote.signature,
        structure=article.structure,
        article=article,
        origin="page",
        unseen=unseen,
        unseen_blocks=tuple(
            text if len(text) <= _BLOCK_CHARS else f"{text[:_BLOCK_CHARS]} ..." for text in texts
        ),
    )


def known_side(store: Store, url: str) -> Side:
    """Return the current version of a page in a store.

    Raises:
        NotFoundError: the collection does not have the URL.
        ArgumentError: the collection's scheme is not registered in this process.
    """
    (page,) = stored_versions(store, url, _VALUES)
    article = kept_article(page.pop("markdown"), page["title"], store.collection.scheme)
    return Side(**page, article=article, origin=None if article is None else "markdown")


def block_bits(a: int, b: int, layout: Layout) -> Iterator[BlockBits]:
    """Yield the bits of both simhashes in each block of the layout, highest first."""
    for block in layout.blocks:
        left, right = (value >> block.shift & block.mask for value in (a, b))
        digits = f"0{block.width}b"
        yield BlockBits(f"{left:{digits}}", f"{right:{digits}}", (left ^ right).bit_count())


def _decision(
    bits: int, limit: int, agreed: bool, signatures: str, layout: Layout
) -> tuple[Reason, str]:
    """Return why two pages match or not, as a code and as a sentence."""
    largest = layout.distances[-1]
    requested = f"the requested distance is {limit}"
    differ = f"They differ in {bits} of {BITS} bits"
    if bits <= limit and not agreed:
        return "signatures_differ", (
            f"{differ}, which is within the requested distance of {limit}. But {signatures}: "
            "no match, unless lookups do not verify."
        )
    if bits == 0:
        same = "They have the same simhash, so they match at every distance"
        return "same_simhash", f"{same}; {requested}."
    above = f"they match at distance {bits} and above"
    if bits <= limit:
        return "within_distance", f"{differ}, so {above}; {requested}."
    why = f"; {above}."
    if bits > largest:
        why = f", nor at any distance that the layout {layout.name} supports (0 to {largest})."
    elif not agreed:
        why = f", nor at a larger distance: {signatures}."
    return "beyond_distance", f"{differ}, and {requested}: no match{why}"


def _features(a: Side, b: Side, scheme: Scheme) -> Features:
    weights_a, bits_a = weighted_features(a, scheme)
    weights_b, bits_b = weighted_features(b, scheme)
    shared = weights_a.keys() & weights_b.keys()

    def only(weights: Mapping[str, float], bits_off: int | None) -> FeatureList:
        features = [(name, weight) for name, weight in weights.items() if name not in shared]
        features.sort(key=lambda item: (-item[1], item[0]))
        total = sum(weight for _, weight in features)
        return FeatureList(tuple(features[:TOP]), len(features), total, bits_off)

    return Features(
        only(weights_a, bits_a),
        only(weights_b, bits_b),
        len(shared),
        sum(min(weights_a[feature], weights_b[feature]) for feature in shared),
    )


def _side_json(side: Side) -> dict[str, Any]:
    values = json_values(side, "url", "title", "simhash", "fetched_at")
    blocks = json_values(side, "unseen", "unseen_blocks")
    return {**values, "text": side.origin, **blocks}


def weighted_features(side: Side, scheme: Scheme) -> tuple[Mapping[str, float], int | None]:
    """Return the weights of a side's features, and ``FeatureList.bits_off``."""
    if side.article is None:
        return {}, None
    weights = scheme.weigh(scheme.tokenize(side.article.text), side.article)
    if side.origin == "page":
        return weights, 0
    try:
        return weights, hamming_distance(scheme.vote(side.article).simhash, side.simhash)
    except PageError:
        return weights, None
