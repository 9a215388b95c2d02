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
from operator import sub
from typing import Final, Literal

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.analysis.block_pairs import vote_shares
from pgsimhash.analysis.wording import shortened
from pgsimhash.errors import ArgumentError, PageError, invalid_argument
from pgsimhash.hashing.bits import hamming_distance
from pgsimhash.hashing.signature import verified
from pgsimhash.html.article import article_of_tree
from pgsimhash.html.blocks import BESIDE_TAGS, CONTENT_TAGS, LIST_TAGS, outline
from pgsimhash.html.page_words import TextBlock, WeightedWords, read_words
from pgsimhash.html.parse import clean_utf8, parse
from pgsimhash.pages.records import JsonRecord, SourcePage
from pgsimhash.pages.selectors import Selectors, check_selectors
from pgsimhash.pages.urls import host_of
from pgsimhash.schemes.features import BlockWeights, words_of
from pgsimhash.schemes.registry import DEFAULT_SCHEME, Fingerprint, fingerprint

_PAGES_MAX: Final = 200  # of a host that are examined
_ROWS_MAX: Final = 12
_CLASSES: Final = 10  # of an element that are tried
_TAGS: Final = {*BESIDE_TAGS, *CONTENT_TAGS, *LIST_TAGS, "header", "footer", "section", "table"}
_LEAST, _MOST = 0.005, 0.95  # a part has from _LEAST of the words or votes to _MOST of the words
_ON_PAGES: Final = 0.2  # and is on this share of the pages
_TEXT: Final = 80  # characters of a part's text

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

    ``match`` is a pair that matches only with the selectors, and ``no_match`` one that matches only
    without them; ``distance`` is that with the selectors, in bits. A page would be ``too_short``,
    read whole (``content_missing``), or have no fingerprint (``failed``).
    """

    host: str
    effect: Effect
    url: str
    title: str | None
    other_url: str | None = None
    other_title: str | None = None
    distance: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Element:
    """An element with a selector: the number of its page, its pieces of text, its shares."""

    page: int
    start: int
    stop: int
    depth: int
    selectors: list[str]
    words: float
    votes: float
    digest: int
    text: str


def template_parts(pages: Iterable[object]) -> Iterator[TemplatePart]:
    """Yield at most 12 parts of the pages of each host, the outermost first.

    A selector is an id, a class or a tag; the first of those with the same elements is listed.
    Within a part with the same text on most of its pages, no other part is listed. Up to 200 pages
    of a host are examined; memory holds the shares of their elements.

    ``pages`` are those of :func:`pgsimhash.sources.read_pages`. Failures, pages without a
    fingerprint and pages with the text of an earlier one are omitted.
    """
    by_host = defaultdict[str, list[list[_Element]]](list)
    for host, page, _ in _different(pages):
        with suppress(PageError):
            by_host[host].append(_elements(page, len(by_host[host])))
    for host, known in by_host.items():
        yield from _parts(host, known)


def selector_effects(
    pages: Iterable[object], *, content: str | None = None, ignore: str | None = None
) -> Iterator[SelectorEffect]:
    """Yield what selectors would change: for pages, then for pairs of pages of a host.

    ``pages`` are as those of :func:`template_parts`; the same are examined. ``content`` are CSS
    selectors of the part of a page that counts, ``ignore`` of what does not count.

    Raises:
        ArgumentError: there is no selector, or one is not supported.
    """
    if not any(Selectors(content, ignore).checked()):
        raise invalid_argument("give content, ignore or both: the selectors to try")
    read = partial(fingerprint, markdown=False, content=content, ignore=ignore)
    by_host = defaultdict[str, list[tuple[Fingerprint, Fingerprint]]](list)
    for host, page, before in _different(pages):
        about = partial(SelectorEffect, host, url=page.url, title=before.title)
        try:
            after = read(page.html, page.url, charset=page.charset)
        except PageError as error:
            yield about("too_short" if error.reason == "cut_short" else "failed")
            continue
        if after.content_missing:
            yield about("content_missing")
        by_host[host].append((before, after))
    for host, known in by_host.items():
        for (a, a_after), (b, b_after) in combinations(known, 2):
            if (is_match := _match(a_after, b_after)) != _match(a, b):
                bits = hamming_distance(a_after.simhash, b_after.simhash)
                effect: Effect = "match" if is_match else "no_match"
                yield SelectorEffect(host, effect, str(a.url), a.title, b.url, b.title, bits)


def _different(pages: Iterable[object]) -> Iterator[tuple[str, SourcePage, Fingerprint]]:
    """Yield pages of different texts with their hosts, at most 200 of each."""
    texts = defaultdict[str, set[int]](set)
    for page in pages:
        if isinstance(page, SourcePage):
            known = texts[host := host_of(page.url) or ""]
            with suppress(PageError):
                if len(known) < _PAGES_MAX:
                    read = fingerprint(page.html, page.url, charset=page.charset, markdown=False)
                    if read.text_digest not in known:
                        known.add(read.text_digest)
                        yield host, page, read


def _elements(page: SourcePage, number: int) -> list[_Element]:
    """Return the elements of a page that have a selector and text, in document order."""
    root = parse(clean_utf8(page.html, page.charset))
    body = root.find("body")
    body = root if body is None else body
    # Reading may show hidden elements, so the outline comes after.
    weighed = words_of(article_of_tree(root, page.url))
    outlined = outline(body)
    pieces = outlined.pieces
    texts = [(each.element.tail if each.is_tail else each.element.text) or "" for each in pieces]
    sums = _sums(read_words(outlined), weighed, [piece.block for piece in pieces], texts)
    known = {(piece.element, piece.is_tail) for piece in pieces}
    found: list[_Element] = []
    at, starts = 0, list[int]()
    for event, element in etree.iterwalk(body, events=("start", "end")):
        if event == "start":
            starts.append(at)
            at += (element, False) in known
            continue
        start, stop, depth = starts.pop(), at, len(starts)
        at += (element, True) in known
        words, votes, digest = map(sub, sums[stop], sums[start])
        if depth and max(words, votes) >= _LEAST and (selectors := _selectors(element)):
            text = " ".join(text[:_TEXT] for text in texts[start : min(stop, start + _TEXT)])
            text = shortened(" ".join(text.split()), _TEXT)
            found.append(
                _Element(number, start, stop, depth, selectors, words, votes, digest, text)
            )
    return sorted(found, key=lambda element: (element.start, element.depth))


def _sums(
    blocks: list[TextBlock], weighed: WeightedWords, places: list[int], texts: list[str]
) -> list[tuple[float, float, int]]:
    """Return the shares of words and votes, and a digest, of the pieces before each place."""
    count = sum(len(block.words) for block in blocks) or 1
    votes = iter(vote_shares(weighed, BlockWeights()))
    shares = [(len(block.words) / count, next(votes) if block.words else 0.0) for block in blocks]
    sizes = Counter[int]()
    for place, text in zip(places, texts, strict=True):
        sizes[place] += len(text)
    sums = [(0.0, 0.0, 0)]
    for place, text in zip(places, texts, strict=True):
        part = len(text) / sizes[place]
        words, vote, digest = sums[-1]
        own_words, own_vote = shares[place]
        digest += sum(map(hash, text.split()))
        sums.append((words + part * own_words, vote + part * own_vote, digest))
    return sums


def _selectors(element: HtmlElement) -> list[str]:
    classes = _CLASS.findall(element.get("class") or "")[:_CLASSES]
    names = [f"#{element.get('id') or ''}", *(f".{name}" for name in classes)]
    names += [str(element.tag)] if element.tag in _TAGS else []
    return [selector for selector in map(_selector, names) if selector]


@lru_cache(10_000)
def _selector(name: str) -> str | None:
    selector = name[0] + _TO_ESCAPE.sub(r"\\\g<0>", name[1:])
    with suppress(ArgumentError):
        check_selectors("selector", selector)
        return selector
    return None


def _parts(host: str, pages: list[list[_Element]]) -> list[TemplatePart]:
    outermost = defaultdict[str, list[_Element]](list)
    for elements in pages:
        stops: dict[str, int] = {}
        for element in elements:
            for selector in element.selectors:
                if element.start >= stops.get(selector, 0):
                    outermost[selector].append(element)
                    stops[selector] = element.stop
    parts: dict[tuple[_Element, ...], TemplatePart] = {}
    for selector, elements in outermost.items():
        part = _part(host, selector, len(pages), elements)
        if part.pages >= max(2, _ON_PAGES * len(pages)) and part.words <= _MOST:
            parts.setdefault(tuple(elements), part)
    repeated = {each for key, part in parts.items() if 2 * part.same > part.pages for each in key}
    inside: set[_Element] = set()
    for elements in pages:
        stop = 0
        for element in elements:
            if element.start < stop:
                inside.add(element)
            elif element in repeated:
                stop = element.stop
    listed = [
        (min(each.depth for each in key), -max(part.words, part.votes), part.selector, part)
        for key, part in parts.items()
        if not inside.issuperset(key)
    ]
    return [part for *_, part in sorted(listed)[:_ROWS_MAX]]


def _part(host: str, selector: str, examined: int, elements: list[_Element]) -> TemplatePart:
    digests = Counter[int]()
    for element in elements:
        digests[element.page] += element.digest
    pages, same = len(digests), max(Counter(digests.values()).values())
    sums = (sum(each.words for each in elements), sum(each.votes for each in elements))
    words, votes = (round(whole / pages, 4) for whole in sums)
    return TemplatePart(host, selector, examined, pages, same, words, votes, elements[0].text)


def _match(a: Fingerprint, b: Fingerprint) -> bool:
    bits = hamming_distance(a.simhash, b.simhash)
    return bits <= DEFAULT_SCHEME.distance and verified(bits, a.signature, b.signature)
