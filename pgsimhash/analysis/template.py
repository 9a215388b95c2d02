"""Find the parts that pages of a host share, and what selectors would change.

Nothing is stored or applied: people decide which part of a page counts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Final, Literal, NamedTuple

from lxml.html import HtmlElement

from pgsimhash.analysis.block_pairs import vote_shares
from pgsimhash.analysis.wording import shortened
from pgsimhash.errors import ArgumentError, PageError, invalid_argument
from pgsimhash.hashing.bits import check_distance, hamming_distance
from pgsimhash.hashing.signature import verified
from pgsimhash.html.article import article_of_tree
from pgsimhash.html.blocks import BESIDE_TAGS, CONTENT_TAGS, LIST_TAGS, Piece, outline
from pgsimhash.html.page_words import TextBlock, WeightedWords, read_words
from pgsimhash.html.parse import clean_utf8, parse
from pgsimhash.pages.records import JsonRecord, SourcePage
from pgsimhash.pages.selectors import Selectors, check_selectors
from pgsimhash.pages.urls import host_of
from pgsimhash.schemes import DEFAULT_SCHEME, Fingerprint, fingerprint
from pgsimhash.schemes.features import BlockWeights, words_of
from pgsimhash.search.layout import DEFAULT_LAYOUT

_PAGES_MAX: Final = 200  # of a host that are examined
_ROWS_MAX: Final = 12
_CLASSES: Final = 10  # of an element that are tried
_TAGS: Final = {*BESIDE_TAGS, *CONTENT_TAGS, *LIST_TAGS, "header", "footer", "section", "table"}
_LEAST, _MOST = 0.005, 0.95  # a part has from _LEAST of the words or votes to _MOST of the words
_ON_PAGES: Final = 0.2  # and is on this share of the pages
_TEXT: Final = 80  # characters of a part's text
_PRIME, _BASE = (1 << 61) - 1, 1_000_003  # of hashes of texts

_CLASS: Final = re.compile(r"[^ \t\n\r\f]+")
_TO_ESCAPE: Final = re.compile(r"[\x01-,./:-@[-^`{-\x7f]")

Effect = Literal["too_short", "failed", "content_missing", "match", "no_match"]


@dataclass(frozen=True, slots=True)
class TemplatePart(JsonRecord):
    """What a selector matches on pages of a host.

    It is on ``pages`` of the ``examined`` pages, with the same text on ``same`` of them; ``text``
    is the beginning on one page. ``words`` and ``votes`` are its mean shares of such pages, 0 to 1.
    """

    host: str
    selector: str
    examined: int
    pages: int
    same: int
    words: float
    votes: float
    text: str


@dataclass(frozen=True, slots=True)
class SelectorEffect(JsonRecord):
    """What selectors would change for a page, or for a pair of pages, of a host.

    ``match`` is a pair that matches only with the selectors, and ``no_match`` one that matches
    only without them; ``distance`` is that with the selectors, in bits. A page would be
    ``too_short``, read whole (``content_missing``), or without a fingerprint for another reason
    (``failed``).
    """

    host: str
    effect: Effect
    url: str
    title: str | None
    other_url: str | None = None
    other_title: str | None = None
    distance: int | None = None


class _Element(NamedTuple):
    around: int  # the place of the named element around it on its page, or -1
    selectors: list[str]
    digest: int
    words: float
    votes: float
    text: str


class _Sums(NamedTuple):
    """Shares of the words and votes of a page up to a place, and the hash of its words there."""

    words: float = 0.0
    votes: float = 0.0
    digest: int = 0
    length: int = 0


def template_parts(pages: Iterable[object], host: str | None = None) -> Iterator[TemplatePart]:
    """Yield at most 12 parts of the pages of each host, the outermost first.

    A selector is an id, a class or a tag; the first of those with the same elements is listed.
    Within a part with the same text on most of its pages, no other part is listed. Up to 200 pages
    of a host are examined; memory holds the shares of their elements.

    Args:
        pages: pages of :func:`pgsimhash.sources.read_pages`. Failures, pages without a fingerprint
            and pages with the text of an earlier one are left out.
        host: the only host to examine.
    """
    by_host = defaultdict[str, list[list[_Element]]](list)
    for site, page, _ in _different(pages, host):
        with suppress(PageError):
            by_host[site].append(_elements(page))
    for site, known in by_host.items():
        yield from _parts(site, known)


def selector_effects(
    pages: Iterable[object],
    *,
    content: str | None = None,
    ignore: str | None = None,
    host: str | None = None,
    distance: int | None = None,
) -> Iterator[SelectorEffect]:
    """Yield what selectors would change: for pages, then for pairs of pages of a host.

    Args:
        pages: as those of :func:`template_parts`; the same are examined.
        content: CSS selectors of the part of a page that counts.
        ignore: CSS selectors of what does not count.
        host: the only host to examine.
        distance: the largest number of differing bits of a match, by default the scheme's.

    Raises:
        ArgumentError: there is no selector, or one, or the distance, is not supported.
    """
    selectors = Selectors(content, ignore).checked()
    if not any(selectors):
        raise invalid_argument("give content, ignore or both: the selectors to try")
    limit = DEFAULT_SCHEME.distance if distance is None else distance
    return _effects(pages, selectors, host, check_distance(limit, DEFAULT_LAYOUT.distances[-1]))


def _different(
    pages: Iterable[object], host: str | None
) -> Iterator[tuple[str, SourcePage, Fingerprint]]:
    """Yield pages of different texts with their hosts, at most 200 of each."""
    texts = defaultdict[str, set[int]](set)
    for page in pages:
        if not isinstance(page, SourcePage):
            continue
        site = host_of(page.url) or ""
        if host not in (None, site) or len(texts[site]) >= _PAGES_MAX:
            continue
        with suppress(PageError):
            found = fingerprint(page.html, page.url, charset=page.charset, markdown=False)
            if found.text_digest not in texts[site]:
                texts[site].add(found.text_digest)
                yield site, page, found


def _elements(page: SourcePage) -> list[_Element]:
    """Return the elements of a page that have a selector and text, in document order."""
    root = parse(clean_utf8(page.html, page.charset))
    if root is None:
        return []
    body = root.find("body")
    body = root if body is None else body
    # Reading may show hidden elements, so the outline comes after.
    words = words_of(article_of_tree(root, page.url))
    outlined = outline(body)
    pieces = outlined.pieces
    texts = [(each.element.tail if each.is_tail else each.element.text) or "" for each in pieces]
    sums = _sums(read_words(outlined), words, pieces, texts)
    elements = [*body.iter()]
    spans: dict[HtmlElement, tuple[int, int]] = {}
    for at, piece in enumerate(pieces):
        spans[piece.around()] = spans.get(piece.around(), (at,))[0], at + 1
    parents = {child: element for element in elements for child in element}
    for element in elements[:0:-1]:
        if element in spans:
            start, stop = spans[element]
            first, last = spans.get(parents[element], (start, stop))
            spans[parents[element]] = min(first, start), max(last, stop)
    found: list[_Element] = []
    places = {body: -1}
    for element in elements[1:]:
        around = places[element] = places[parents[element]]
        start, stop = spans.get(element, (0, 0))
        begin, end = sums[start], sums[stop]
        shares = end.words - begin.words, end.votes - begin.votes
        if max(shares) >= _LEAST and (selectors := _selectors(element)):
            places[element] = len(found)
            shift = pow(_BASE, end.length - begin.length, _PRIME)
            digest = (end.digest - begin.digest * shift) % _PRIME
            text = " ".join(text[:_TEXT] for text in texts[start : min(stop, start + _TEXT)])
            text = shortened(" ".join(text.split()), _TEXT)
            found.append(_Element(around, selectors, digest, *shares, text))
    return found


def _sums(
    blocks: list[TextBlock], filled: WeightedWords, pieces: list[Piece], texts: list[str]
) -> list[_Sums]:
    """Return the sums before each piece of text of a page, and behind the last one."""
    count = sum(len(block.words) for block in blocks) or 1
    votes = iter(vote_shares(filled, BlockWeights()))
    shares = [(len(block.words) / count, next(votes) if block.words else 0.0) for block in blocks]
    sizes = Counter[int]()
    for piece, text in zip(pieces, texts, strict=True):
        sizes[piece.block] += len(text)
    sums = [_Sums()]
    for piece, text in zip(pieces, texts, strict=True):
        before, part = sums[-1], len(text) / sizes[piece.block]
        words, vote = shares[piece.block]
        digest, own = before.digest, text.split()
        for word in own:
            digest = (digest * _BASE + hash(word)) % _PRIME
        words, vote = before.words + part * words, before.votes + part * vote
        sums.append(_Sums(words, vote, digest, before.length + len(own)))
    return sums


def _selectors(element: HtmlElement) -> list[str]:
    given = [("#", element.get("id") or "")]
    given += [(".", name) for name in _CLASS.findall(element.get("class") or "")[:_CLASSES]]
    found = [selector for sign, name in given if (selector := _selector(sign, name))]
    tag = str(element.tag)
    return [*found, tag] if tag in _TAGS else found


@lru_cache(10_000)
def _selector(sign: str, name: str) -> str | None:
    """Return the selector of an id or a class, if one can be written."""
    selector = sign + _TO_ESCAPE.sub(r"\\\g<0>", name)
    try:
        check_selectors("selector", selector)
    except ArgumentError:
        return None
    return selector


def _parts(host: str, pages: list[list[_Element]]) -> Iterator[TemplatePart]:
    """Yield the parts of different pages of a host."""
    outermost = defaultdict[str, list[tuple[int, int]]](list)
    for page, elements in enumerate(pages):
        ends = [at + 1 for at in range(len(elements))]
        for at, element in reversed([*enumerate(elements)]):
            if element.around >= 0:
                ends[element.around] = max(ends[element.around], ends[at])
        until: dict[str, int] = {}
        for at, element in enumerate(elements):
            for selector in element.selectors:
                if at >= until.get(selector, 0):
                    outermost[selector].append((page, at))
                    until[selector] = ends[at]
    parts: dict[tuple[tuple[int, int], ...], TemplatePart] = {}
    for selector, places in outermost.items():
        part = _part(host, selector, pages, places)
        if part.pages >= max(2, _ON_PAGES * len(pages)) and part.words <= _MOST:
            parts.setdefault(tuple(places), part)
    # The number of parts around each place of a part, and whether one of them is repeated.
    listed, repeated = set[tuple[int, int]](), set[tuple[int, int]]()
    for key, part in parts.items():
        listed.update(key)
        repeated.update(key if 2 * part.same > part.pages else ())
    inside: dict[tuple[int, int], tuple[int, bool]] = {}
    for page, elements in enumerate(pages):
        for at, element in enumerate(elements):
            outer = page, element.around
            level, is_repeated = inside.get(outer, (0, False))
            inside[page, at] = level + (outer in listed), is_repeated or outer in repeated
    kept = {
        part: min(inside[at][0] for at in key)
        for key, part in parts.items()
        if not all(inside[at][1] for at in key)
    }
    yield from sorted(kept, key=lambda part: (kept[part], -max(part.words, part.votes)))[:_ROWS_MAX]


def _part(
    host: str, selector: str, pages: list[list[_Element]], places: list[tuple[int, int]]
) -> TemplatePart:
    """Return the shares of the elements at these places, which are pages and places on them."""
    elements = [pages[page][at] for page, at in places]
    digests = defaultdict[int, list[int]](list)
    for (page, _), element in zip(places, elements, strict=True):
        digests[page].append(element.digest)
    return TemplatePart(
        host=host,
        selector=selector,
        examined=len(pages),
        pages=len(digests),
        same=max(Counter(map(tuple, digests.values())).values()),
        words=round(sum(element.words for element in elements) / len(digests), 4),
        votes=round(sum(element.votes for element in elements) / len(digests), 4),
        text=elements[0].text,
    )


def _effects(
    pages: Iterable[object], selectors: Selectors, host: str | None, limit: int
) -> Iterator[SelectorEffect]:
    content, ignore = selectors
    read = partial(fingerprint, markdown=False, content=content, ignore=ignore)
    by_host = defaultdict[str, list[tuple[Fingerprint, Fingerprint]]](list)
    for site, page, before in _different(pages, host):
        about = partial(SelectorEffect, site, url=page.url, title=before.title)
        try:
            after = read(page.html, page.url, charset=page.charset)
        except PageError as error:
            yield about("too_short" if error.reason == "cut_short" else "failed")
            continue
        if after.content_missing:
            yield about("content_missing")
        by_host[site].append((before, after))
    for site, known in by_host.items():
        for (a, a_after), (b, b_after) in combinations(known, 2):
            bits = hamming_distance(a_after.simhash, b_after.simhash)
            is_match = bits <= limit and verified(bits, a_after.signature, b_after.signature)
            now = hamming_distance(a.simhash, b.simhash)
            if is_match != (now <= limit and verified(now, a.signature, b.signature)):
                effect: Effect = "match" if is_match else "no_match"
                yield SelectorEffect(site, effect, str(a.url), a.title, b.url, b.title, bits)
