"""Compare two pages: why they match or do not, and which text both have.

Each text block has its share of the vote, so the comparison says what made the two simhashes alike
or different. The shares are those of the words and pairs of words that voted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nlargest
from math import ceil, floor
from typing import Any, Final, Literal, cast

from pgsimhash.analysis.block_pairs import Block, BlockPair, aligned, blocks_of, blocks_of_text
from pgsimhash.analysis.changes import known_distance, stored_versions
from pgsimhash.analysis.skyline import SMALL_PRINT, places
from pgsimhash.analysis.wording import counted, listed, percent, shortened
from pgsimhash.errors import NotFoundError, PageError, invalid_argument
from pgsimhash.hashing.bits import (
    BITS,
    IDENTICAL_MAX,
    check_distance,
    check_simhash,
    hamming_distance,
)
from pgsimhash.hashing.signature import containment, containment_min, verified
from pgsimhash.html import Article
from pgsimhash.pages.records import JsonRecord, Mark, SourcePage
from pgsimhash.pages.selectors import NO_SELECTORS, Selectors
from pgsimhash.pages.urls import check_url
from pgsimhash.pages.values import BytesLike, checked_size
from pgsimhash.reading.kept_markdown import kept_article
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.schemes.features import BlockWeights, words_of
from pgsimhash.schemes.registry import DEFAULT_SCHEME, read_and_vote
from pgsimhash.search.layout import DEFAULT_LAYOUT, Layout, get_layout
from pgsimhash.store import Store

Reason = Literal["same_simhash", "within_distance", "beyond_distance", "signatures_differ"]
Origin = Literal["page", "markdown"]

_VERSION: Final = re.compile(r"@\d{4}-\d\d-\d\d$")
_VALUES: Final = (
    *("simhash", "url", "title", "fetched_at", "signature", "structure", "markdown"),
    "canonical_url",
)


@dataclass(frozen=True, slots=True)
class Side(JsonRecord):
    """A page, or a standalone simhash without other values. ``cut`` is what selectors removed.

    ``text`` is where its text is from.
    """

    _omitted = ("signature", "structure", "canonical_url", "article")

    simhash: int
    url: str | None = None
    title: str | None = None
    fetched_at: datetime | None = None
    signature: int | None = None
    structure: int | None = None
    canonical_url: str | None = None
    article: Article | None = None
    text: Origin | None = None
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison(JsonRecord):
    """Two pages, and everything that decides whether they match at ``max_distance``.

    ``distance`` is their distance in bits, and ``matches_from`` the smallest ``max_distance`` at
    which they match, or None. ``sentence`` says what decided.

    ``agreement`` is the share of the vote, 0 to 1, that both pages have: twice the smaller weight
    of each shared feature, of all weights. It and ``blocks`` need both texts: those of pages, or
    the Markdown that a collection keeps. Of schemes that do not weigh blocks, they are paragraphs.
    """

    _computed = ("headline", "summary")

    a: Side
    b: Side
    scheme: str
    max_distance: int
    distance: int
    matches: bool
    reason: Reason
    matches_from: int | None
    sentence: str
    containment: float | None
    structure_distance: int | None
    agreement: float | None = None
    shared_words: tuple[str, ...] = ()
    blocks: tuple[BlockPair, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.scheme}: {self.headline}>"

    @property
    def sides(self) -> dict[str, Side]:
        """Both pages, by the names that people read."""
        return {"A": self.a, "B": self.b}

    @property
    def differing(self) -> list[BlockPair]:
        """The blocks that are not on both pages, the largest differences first."""
        differing = [
            pair for pair in self.blocks if pair.kind not in ("same", "moved") or pair.difference
        ]
        return sorted(differing, key=lambda pair: -pair.difference)

    @property
    def headline(self) -> str:
        """Whether they are the same page, and the number of bits, in a few words."""
        bits = self.distance
        if self.matches:
            what = "The same page" if bits <= IDENTICAL_MAX else "Near-duplicates"
        else:
            what = "Different pages" if bits > self.max_distance else "No match"
        if bits == 0:
            return f"{what}: all {BITS} bits are equal"
        return f"{what}: {bits} of {BITS} bits {'differs' if bits == 1 else 'differ'}"

    @property
    def summary(self) -> str:
        """What they share, and what differs most, in one or two sentences."""
        if self.agreement is None:
            missing = [name for name, side in self.sides.items() if not side.article]
            have = "has" if len(missing) == 1 else "have"
            return f"Their texts cannot be compared: {listed(missing)} {have} no text here."
        shared = f"{percent(self.agreement)} of the vote is the same".replace("under", "Under")
        if 0.01 < self.agreement < 0.5 and self.shared_words:
            named = ", ".join(f"“{word}”" for word in self.shared_words)
            shared += f": words such as {named}"
        differing = self.differing
        if not differing:
            return f"{shared}. Every block of one page is on the other."
        pair = differing[0]
        changed = [piece.text.strip() for piece in (*pair.left, *pair.right) if piece.changed]
        text = shortened(max(changed, key=len) if changed else pair.blocks[0].text, 90)
        total = max(map(sum, zip(*(pair.lost for pair in differing), strict=True)))
        if self.matches and total < 0.05:
            but = ("block differs, but it hardly counts", "blocks differ, but they hardly count")
            where = [place for place in places(differing) if place != SMALL_PRINT]
            if not (pair.is_quiet and where):
                where.append(f"“{text}”")
            named = f"{', '.join(where)}: {percent(total)} of the vote"
            return f"{shared}. {counted(len(differing), *but)}: {named}."
        what = "change" if self.matches else "difference"
        share = f"{percent(pair.difference)} of the vote of {'AB'[pair.lost[1] > pair.lost[0]]}"
        return f"{shared}. The biggest {what}, {share}: “{text}”."

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON values, simhashes as 16 hex digits."""
        sides = {"a": self.a.as_json(), "b": self.b.as_json()}
        blocks = [pair.as_json() for pair in self.blocks]
        return {**JsonRecord.as_json(self), **sides, "blocks": blocks}


def compare_pages(
    a: SourcePage | BytesLike | str | int,
    b: SourcePage | BytesLike | str | int,
    *,
    store: Store | None = None,
    scheme: str | Scheme | None = None,
    distance: int | None = None,
) -> Comparison:
    """Compare two pages block by block, and say whether they match and why.

    A page is its HTML, a :class:`~pgsimhash.SourcePage`, or a simhash. With ``store``, a str is the
    URL of a stored page, for its present version, or ``URL@2026-11-25`` for the version of a day.

    Args:
        a: the first page.
        b: the second page.
        store: the store that has the pages of URLs, and whose scheme and distance count.
        scheme: what reads and weighs pages without a store, by default the default scheme.
        distance: the largest number of differing bits of a match, by default the collection's or
            the scheme's.

    A stored page has a text if the collection keeps Markdown, whose blocks weigh all the same. The
    sentence names marks and canonical links between two stored pages.

    Raises:
        NotFoundError: the collection does not have the URL, or no version of that day.
        PageError: a page has no fingerprint (too short, too large, not HTML, ...).
        ArgumentError: the layout does not support ``distance``, the scheme is unknown, or a simhash
            is not in 0..2**64-1.
    """
    if store is None:
        recipe = DEFAULT_SCHEME if scheme is None else get_scheme(scheme)
        layout, limit = DEFAULT_LAYOUT, min(recipe.distance, DEFAULT_LAYOUT.distances[-1])
    elif scheme is None:
        recipe = get_scheme(store.collection.scheme)
        layout, limit = get_layout(store.collection.layout), store.collection.checked_distance(None)
    else:
        raise invalid_argument("the scheme is the store's: give one of both")
    limit = limit if distance is None else check_distance(distance, layout.distances[-1])

    def side(name: str, page: SourcePage | BytesLike | str | int) -> Side:
        if isinstance(page, int):
            return Side(check_simhash(page))
        if store is not None and isinstance(page, str):
            return _stored_side(store, page)
        if store is not None and isinstance(page, SourcePage):
            page = store._selected(page, NO_SELECTORS, store._rules())
        try:
            return _read_side(page, recipe)
        except PageError as error:
            raise PageError(error.reason, f"page {name}: {error}") from error

    first, second = side("A", a), side("B", b)
    found = compared(first, second, recipe, layout, limit)
    named = "" if store is None else _named(store, first, second)
    cuts = [f"Cut from {name}: {one.cut}." for name, one in found.sides.items() if one.cut]
    return replace(found, sentence=" ".join(filter(None, [found.sentence, *cuts, named])))


def compared(a: Side, b: Side, scheme: Scheme, layout: Layout, limit: int) -> Comparison:
    """Return the comparison of two sides at a distance that the layout supports."""
    bits = hamming_distance(a.simhash, b.simhash)
    agreed = verified(bits, a.signature, b.signature)
    share, signatures = None, ""
    if a.signature is not None and b.signature is not None:
        share = containment(a.signature, b.signature)
        least = containment_min(bits, a.signature, b.signature)
        second = hamming_distance(a.signature >> BITS, b.signature >> BITS)
        signatures = f"their second simhashes differ in {second} of {BITS} bits, and " + (
            f"by their signatures the larger page has {floor(100 * share)}% of the smaller one, "
            f"and of copies as near as this {ceil(100 * least)}% or more"
            if least <= 1
            else "together that is too many for a copy"
        )
    reason, sentence = _decision(bits, limit, agreed, signatures, layout)
    found = Comparison(
        a=a,
        b=b,
        scheme=scheme.name,
        max_distance=limit,
        distance=bits,
        matches=bits <= limit and agreed,
        reason=reason,
        matches_from=bits if bits in layout.distances and agreed else None,
        sentence=sentence,
        containment=share,
        structure_distance=known_distance(a.structure, b.structure),
    )
    # Kept Markdown has no weights: beside it, none count.
    one, other = (
        side.article
        if side.article is None or a.text == b.text
        else kept_article(side.article.markdown, side.title, scheme)
        for side in (a, b)
    )
    if one is None or other is None:
        return found
    votes = [scheme.weigh(scheme.tokenize(each.text), each) for each in (one, other)]
    agreement, shared = _agreement(*votes)
    blocks = aligned_blocks(one, other, scheme)
    return replace(found, agreement=agreement, shared_words=shared, blocks=blocks)


def aligned_blocks(a: Article, b: Article, scheme: Scheme) -> tuple[BlockPair, ...]:
    """Return the text blocks of both, or of a scheme that does not weigh blocks, the paragraphs."""
    weigh = scheme.weigh
    own = (
        blocks_of(article, weigh)
        if isinstance(weigh, BlockWeights)
        else blocks_of_text(article.markdown)
        for article in (a, b)
    )
    # Without the tokens: a report holds the blocks of thousands of pages.
    return tuple(pair._replace(a=_bare(pair.a), b=_bare(pair.b)) for pair in aligned(*own))


def _bare(block: Block | None) -> Block | None:
    return block and block._replace(tokens=())


def _read_side(page: SourcePage | BytesLike | str, scheme: Scheme) -> Side:
    if isinstance(page, SourcePage):
        check_url(page.url)
    else:
        page = SourcePage(cast(str, None), cast(str, page))
    checked_size(page.html)
    selectors, (article, vote) = Selectors(page.content, page.ignore), read_and_vote(page, scheme)
    cut = None
    if any(selectors):
        whole = scheme.extract(page.html, page.url, page.charset)
        words, left = (words_of(each).length for each in (whole, article))
        missing = " (content selects nothing)" if article.content_missing else ""
        cut = f"{words - left:,} of {words:,} words by {selectors}{missing}"
    return Side(
        simhash=vote.simhash,
        url=page.url,
        title=article.title,
        fetched_at=page.fetched_at,
        signature=vote.signature,
        structure=article.structure,
        canonical_url=article.canonical_url,
        article=article,
        text="page",
        cut=cut,
    )


def _stored_side(store: Store, url: str) -> Side:
    day = ""
    if _VERSION.search(url):
        url, day = url[:-11], url[-10:]
    pages = stored_versions(store, url, _VALUES, versions=None if day else 1)
    until = [page for page in pages if not day or page["fetched_at"].date().isoformat() <= day]
    if not until:
        raise NotFoundError(
            "unknown_page",
            f"collection {store.collection.name!r} has no version of {url} of {day} or before; "
            "`pgsimhash analyse history` lists its versions",
        )
    page = until[-1]
    article = kept_article(page.pop("markdown"), page["title"], store.collection.scheme)
    return Side(**page, article=article, text=None if article is None else "markdown")


def _named(store: Store, a: Side, b: Side) -> str:
    """Return a sentence on the mark or the canonical links of two stored pages, if any."""
    with store._session.calls_to_read() as calls:
        marks = calls.records("marks", Mark)
    if a.url is not None and a.url == b.url:
        return "Both are versions of one URL, which ingest never compares."
    for mark in marks:
        if {mark.a, mark.b} == {a.url, b.url}:
            name = "the same" if mark.same else "different"
            return f"But they are marked as {name}: that decides."
    for one, name, other in ((a, "A", b), (b, "B", a)):
        if other.url is not None and one.canonical_url == other.url:
            return (
                f"The canonical link of {name} names the other page: that decides where policies "
                "trust such links."
            )
    return ""


def _decision(
    bits: int, limit: int, agreed: bool, signatures: str, layout: Layout
) -> tuple[Reason, str]:
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


def _agreement(
    a: Mapping[str, float], b: Mapping[str, float]
) -> tuple[float | None, tuple[str, ...]]:
    """Return the share of the votes that both pages have, and the loudest words of both."""
    shared = {name: min(weight, b[name]) for name, weight in a.items() if name in b}
    total = sum(a.values()) + sum(b.values())
    names = (name for name in shared if " " not in name)
    words = nlargest(4, names, key=lambda name: (len(name) > 3, shared[name]))
    return (2 * sum(shared.values()) / total if total else None), tuple(words)
