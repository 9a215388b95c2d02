"""The default scheme as plain loops: a page to its simhash, signature, digest and structure.

It follows tests/vectors/README.md step by step, one feature of one block at a time, without arrays
and caches. From the package come only the steps before the tree (the encoding and the parser) and
the tables (lists of words, patterns, coefficients). test_plain_loops.py compares the results with
those of the package, bit by bit.

It leaves out the limits of the package: 500,000 tokens, 50,000 elements that are looked up by name,
and the pieces of a line of more than 262,144 characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, inf, log, log1p
from typing import NamedTuple

import mmh3
from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import _UNSEEN, _UNSPACED, _WORD, MARKS_MAX
from pgsimhash.html import blocks as lists
from pgsimhash.html.article import _TAG
from pgsimhash.html.blocks import (
    _CONTAINERS,
    _EMPTY,
    _PLAIN,
    BESIDE_TAGS,
    BLOCK,
    DEPTH_MAX,
    HEADING_TAGS,
    LIST_TAGS,
    NEVER_TEXT,
)
from pgsimhash.html.charset import clean_utf8
from pgsimhash.html.markdown_syntax import CELL_BLOCKS
from pgsimhash.html.page_words import (
    _CONTACT_DIGITS,
    _CONTACT_WORDS,
    _CONTACTS,
    _COUNTED,
    _HOURS,
    _LEGAL,
    _MONTHS,
    _NOTE_WORDS,
    _POSTED,
    _UPDATED,
    _VISITS,
)
from pgsimhash.html.parse import parse
from pgsimhash.html.weights import COEFFICIENTS
from pgsimhash.schemes.article_features import OCCURRENCES

MASK = (1 << 64) - 1
GOLDEN_RATIO = 0x9E3779B97F4A7C15
WORD, NUMBER, LISTED, VOLATILE, PASSING = range(5)
HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
DATE = re.compile(
    r"(?<!\d)\d{1,4}(?:(?<!\d{3}):\d\d(?::\d\d)?|([./-])\d\d?\1\d{1,4})(?!\d)"
    r"|\+\d(?:[ ()./-]{0,3}\d){6,}",
    re.A,
)
YEARS = {str(year) for year in range(1900, 2100)}
COMMON_TAGS = {"body", "h2", "h3", "p", "pre", "td", "tr"}
CELLS = {"td", "th"}


class Fingerprint(NamedTuple):
    simhash: int
    signature: int
    text_digest: int
    structure: int | None
    tokens: int


@dataclass(eq=False)
class Element:
    """A block-level element; ``place`` is its number in document order."""

    place: int
    tag: str = ""
    around: Element | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    # Words directly in it; words, linked words and copyright notices in it and below.
    own: int = 0
    words: int = 0
    linked: int = 0
    notices: int = 0

    @property
    def parent(self) -> Element:
        """The element around it; the page is around itself."""
        return self.around or self

    def with_all_around(self) -> Iterator[Element]:
        element: Element | None = self
        while element is not None:
            yield element
            element = element.around

    def contains(self, other: Element) -> bool:
        return any(element is self for element in other.with_all_around())

    def below(self) -> Iterator[Element]:
        waiting = self.children[::-1]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += element.children[::-1]


@dataclass
class Token:
    """A word or a number; "" stands for a copyright sign, and for the start of a date or call."""

    text: str
    linked: bool = False
    kind: int = WORD
    is_copyright: bool = False


@dataclass(eq=False)
class Block:
    """A text block: runs of text in and outside links, then their tokens.

    A run in a link to a telephone number begins with NUL.
    """

    element: Element
    runs: list[tuple[str, bool]] = field(default_factory=list)
    items: list[Token] = field(default_factory=list)
    weight: float = 1.0
    apart: bool = False
    shown: bool = True

    @property
    def tokens(self) -> list[Token]:
        return [item for item in self.items if item.text]

    @property
    def words(self) -> int:
        return len(self.tokens)

    @property
    def linked(self) -> int:
        return sum(token.linked for token in self.tokens)

    @property
    def has_notice(self) -> bool:
        return any(item.is_copyright or item.text == "copyright" for item in self.items)

    def add(self, text: str, linked: bool) -> None:
        # Each text in a link is read alone; texts outside links that follow one another are one.
        if not linked and self.runs and not self.runs[-1][1]:
            text = self.runs.pop()[0] + text
        self.runs.append((text, linked))


# 1. Text blocks.


def is_hidden(node: HtmlElement) -> bool:
    if HIDDEN_STYLE.search(node.get("style", "")):
        return True
    # React streams content as hidden elements that its script moves into place.
    return "hidden" in node.attrib and not re.fullmatch("S:[0-9a-f]+", node.get("id", ""))


def read_blocks(body: HtmlElement) -> tuple[list[Element], list[Block]]:
    """Return the block-level elements, the page before them, and the text blocks."""
    elements, blocks = [Element(0)], list[Block]()
    goes_on = False
    # The element around; the kind of link it is in, "call" for telephone numbers; whether it is in
    # a pre, and whether it is skipped.
    around = [(elements[0], "", False, False)]

    def add(text: str | None) -> None:
        nonlocal goes_on
        element, in_link, *_ = around[-1]
        begin = "\0" if in_link == "call" else ""
        if text and (goes_on or not text.isspace()):
            if not goes_on:
                blocks.append(Block(element))
                goes_on = True
            linked = bool(in_link) and not text.isspace()
            blocks[-1].add(" " if text.isspace() else begin + text, linked)

    walker = etree.iterwalk(body, events=("start", "end"))
    for event, node in walker:
        if event == "start":
            element, in_link, in_pre, _ = around[-1]
            is_block = node.tag in BLOCK and not in_pre
            if goes_on and (node.tag in _EMPTY or (in_pre and node.tag in BLOCK)):
                add(" ")
            # The tags that only mark a few words are never looked at for being hidden.
            skipped = node.tag in NEVER_TEXT | _EMPTY or (
                node.tag not in _PLAIN and is_hidden(node)
            )
            if is_block:
                goes_on = False
            if skipped:
                walker.skip_subtree()
            elif is_block:
                element = Element(len(elements), node.tag, element, dict(node.items()))
                element.parent.children.append(element)
                elements.append(element)
            if node.tag == "a" and not in_link:
                in_link = "call" if node.get("href", "")[:4] in ("tel:", "fax:") else "link"
            around.append((element, in_link, in_pre or node.tag == "pre", skipped))
            if not skipped:
                add(node.text)
        else:
            *_, skipped = around.pop()
            in_pre = around[-1][2]
            if node is body:
                break
            if node.tag in BLOCK and not skipped:
                if not in_pre:
                    goes_on = False
                elif goes_on and len(node):
                    add(" ")
            add(node.tail)
    return elements, blocks


# 2. Words.


def words_of(text: str) -> list[str]:
    kept: list[str] = []
    marks = 0
    for character in _UNSEEN.sub("", text):
        first = unicodedata.normalize("NFKD", character)[0]
        marks = marks + 1 if unicodedata.combining(first) else 0
        if marks <= MARKS_MAX:
            kept.append(character)
    folded = unicodedata.normalize("NFKC", "".join(kept)).casefold()
    words: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", folded)):
        if len(word) > 1 and re.match(f"[{_UNSPACED}]", word):
            words += map("".join, pairwise(word))
        else:
            words.append(word)
    return words


def read_words(blocks: list[Block]) -> None:
    for block in blocks:
        for run, linked in block.runs:
            if run.startswith("\0"):
                block.items.append(Token(""))
            for number, text in enumerate(run.removeprefix("\0").split("\xa9")):
                if number:
                    block.items.append(Token("", is_copyright=True))
                start = 0
                for date in DATE.finditer(text):
                    block.items += [
                        Token(word, linked) for word in words_of(text[start : date.start()])
                    ]
                    block.items.append(Token(""))
                    start = date.start()
                    block.items += [Token(word, linked) for word in words_of(date[0])]
                    start = date.end()
                block.items += [Token(word, linked) for word in words_of(text[start:])]


def find_kinds(blocks: list[Block]) -> None:
    """Tell the numbers of dates, times and counters from others."""
    if not any(token.text.isdecimal() for block in blocks for token in block.tokens):
        return
    for block in blocks:
        items = block.items
        texts = [item.text for item in items]
        is_contact = len(items) <= _CONTACT_WORDS and not _CONTACTS.isdisjoint(texts)
        start = 0
        while start < len(items):
            end = start
            while end < len(items) and texts[end].isdecimal():
                end += 1
            if end > start:
                before = texts[start - 1] if start else "the start"
                behind, second = [*texts[end : end + 2], "", ""][:2]
                years = sum(text in YEARS for text in texts[start:end])
                ago = second == "ago"
                kind = NUMBER
                if (
                    before in _MONTHS | _POSTED | _UPDATED | {""}
                    or behind in _MONTHS | _HOURS | _COUNTED | _VISITS
                    or (years and 1 < end - start < 4)
                ):
                    kind = VOLATILE
                if behind in _VISITS or ago:
                    kind = PASSING
                digits = sum(map(len, texts[start:end]))
                if is_contact and digits >= _CONTACT_DIGITS and kind == NUMBER:
                    kind = VOLATILE
                for item in items[start:end]:
                    item.kind = kind
            start = max(end, start + 1)
        if len(items) <= _NOTE_WORDS and not _UPDATED.isdisjoint(texts):
            for item in items:
                if item.kind == VOLATILE or item.text in _MONTHS:
                    item.kind = PASSING


# 3. Features of blocks.


def sum_up(elements: list[Element], blocks: list[Block]) -> None:
    for block in blocks:
        block.element.own += block.words
        for element in block.element.with_all_around():
            element.words += block.words
            element.linked += block.linked
            element.notices += block.has_notice


class Names(NamedTuple):
    """What the class, id and role of an element say."""

    said: frozenset[str]
    first: str
    hides: bool
    apart: bool
    below: bool


def names_of(element: Element) -> Names:
    classes, identity, role = (
        element.attributes.get(name, "")[: lists._NAMES_MAX] for name in ("class", "id", "role")
    )
    text = f"{classes} {identity}" if identity else classes
    names = [
        [part.lower() for part in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)]
        for name in text[: lists._NAMES_MAX].split()
    ]
    if role:
        names.append([f"role={role}".lower()])
    parts = [part for name in names for part in name]
    apart = [set(name) for name in names if sets_apart(set(name))]
    hides = ":" not in classes and not lists._HIDING.isdisjoint(classes.split())
    below = any(not lists._BELOW.isdisjoint(name) for name in apart)
    return Names(frozenset(parts), parts[0] if parts else "", hides, bool(apart), below)


def sets_apart(name: set[str]) -> bool:
    """Return whether the words of one class, id or role name a part that is no content."""
    if not name.isdisjoint(lists._LAYOUT):
        return False
    short = not name.isdisjoint(lists._SHORT) and name <= lists._SHORT | lists._SHORT_WITH
    return short or not name.isdisjoint(lists._APART | lists._BELOW)


def nearby(places: list[float], amounts: list[float], window: float) -> list[float]:
    """Return for each place the sum of all amounts, which fade by e over each ``window``."""
    sums = list(amounts)
    for order in (range(len(places)), range(len(places))[::-1]):
        carried, last = 0.0, 0
        for number in order:
            carried *= exp(-abs(places[number] - places[last]) / window)
            sums[number] += carried
            carried += amounts[number]
            last = number
    return sums


class Features:
    """Computes the features of the blocks of a page that have words."""

    def __init__(self, elements: list[Element], blocks: list[Block]) -> None:
        self.elements, self.blocks = elements, blocks
        self.page = elements[0]
        self.names = {element: names_of(element) for element in elements}
        self.kin: dict[Element, tuple[Element | None, str, str]] = {
            element: (element.around, element.tag, self.names[element].first)
            for element in elements
        }
        self.sizes = Counter(self.kin.values())
        self._find_units()
        self._inherit()

    # What the elements around say: the most that one of them says.

    def _inherit(self) -> None:
        self.inherited: dict[Element, dict[str, float]] = {}
        for element in self.elements:
            own = self._levels(element)
            above = self.inherited[element.around] if element.around else own
            self.inherited[element] = {name: max(own[name], above[name]) for name in own}

    def _levels(self, element: Element) -> dict[str, float]:
        tag, (said, _, hides, apart, below) = element.tag, self.names[element]
        share = (element.words / self.page.words / 0.3) ** 4
        named, tagged = 1 / (1 + share), 1 / (1 + share / 16)
        over = 1 / (1 + share * (0.3 / 0.9) ** 4)

        def says(words: frozenset[str]) -> bool:
            return not said.isdisjoint(words)

        paragraphs = [one for one in element.parent.children if one.tag == "p"]
        prose = sum(one.words - one.linked for one in paragraphs)
        beside = 1 / (1 + (20 / max(prose, 1)) ** 4)
        whole = 1 / (1 + (element.words / self.page.words / 0.9) ** 16)
        is_notice = element.notices > 0 and element is not self.page
        alike = 1 if tag in COMMON_TAGS or element is self.page else self.sizes[self.kin[element]]
        return {
            "beside_names": named * says(lists._BESIDE),
            "beside_tags": tagged * (tag in BESIDE_TAGS),
            "overlay_names": over * says(lists._OVERLAY),
            "hidden_names": over * hides,
            "header": max(named * says(lists._HEADER), tagged * (tag == "header")),
            "content_names": float(says(lists._CONTENT) or tag in ("article", "main")),
            "footer_names": named * says(lists._FOOTER),
            "footer_tag": tagged * (tag == "footer"),
            "apart": apart * max(beside, 0.55 * below) * whole,
            "in_list": float(tag in LIST_TAGS),
            "like_siblings": log(alike),
            "copyright_element": is_notice / (1 + (element.words / 80) ** 2),
        }

    # A table, a list or a run of similar siblings counts as a whole.

    def _find_units(self) -> None:
        groups: defaultdict[object, list[Element]] = defaultdict(list)
        for element in self.elements:
            groups[self.kin[element]].append(element)
        mass = {one: max(one.words - 0.8 * one.linked, 0.0) for one in self.elements}
        runs: dict[Element, tuple[float, float]] = {}
        for group in groups.values():
            filled = sum(element.words > 0 for element in group)
            if filled > 2 and group[0].tag not in COMMON_TAGS | CELLS:
                each = sum(element.words for element in group) / filled
                likelihood = (1 - 1 / filled) / (1 + (each / 40) ** 2)
                for element in group:
                    runs[element] = likelihood, sum(mass[one] for one in group)
        tables = {element for element in self.elements if element.tag == "table"}
        within: defaultdict[Element, Counter[str]] = defaultdict(Counter)
        for element in self.elements:
            # A table within another one counts in the outer one.
            start = element.parent if element.tag == "table" else element
            table = _innermost(start, tables)
            if table is not None:
                within[table][element.tag] += 1
        self.units: dict[Block, tuple[float, float, float]] = {}
        for block in self.blocks:
            run, table = _innermost(block.element, runs), _innermost(block.element, tables)
            in_run = 0.0 if run is None else runs[run][0]
            # The cells of a row may be a run within the run of the rows.
            around = [runs[one] for one in block.element.with_all_around() if one in runs]
            run_mass = max([0.0, *(likelihood * mass for likelihood, mass in around)])
            in_table = table_mass = 0.0
            # If a list is in a cell, or a table in an item, the inner one counts.
            if table is not None and (run is None or table.place > run.place):
                in_run, table_mass = 0.0, mass[table]
                rows, cells = within[table]["tr"], within[table]["td"] + within[table]["th"]
                if rows > 1 and cells > 3:
                    each = table.words / cells
                    in_table = (
                        (1 - 1 / rows) / (1 + (each / 15) ** 2) / (1 + within[table]["table"])
                    )
            unit = max(in_table * table_mass, run_mass)
            self.units[block] = unit, in_table, in_run

    # How much other branches of the tree dominate.

    def _dominance(self, element: Element) -> tuple[float, int]:
        """Return the logarithm of the rest that the dominant children leave, and the depth."""

        def mass(one: Element) -> float:
            return 1.1 * one.words - one.linked

        def rest(one: Element) -> float:
            if mass(one) <= 0:
                return 0.0
            best = max([0.0, *map(mass, one.children)])
            return log(max(1 - best / max(mass(one), 1e-9), 1e-3))

        total, depth = rest(element), 0
        for one in element.with_all_around():
            if one.around is not None:
                siblings = one.around.children
                if one is not max(siblings, key=mass) or mass(one) < 0:
                    total += rest(one.around)
                depth += 1
        return total, depth

    def _headings(self) -> list[tuple[float, float, float]]:
        """Return which blocks are before the first h1, under it, and after the last heading."""
        tags = [block.element.tag for block in self.blocks]
        first = tags.index("h1") if "h1" in tags else None
        last = max((at for at, tag in enumerate(tags) if tag in HEADING_TAGS), default=None)
        places = []
        for at, block in enumerate(self.blocks):
            before = under = after = 0.0
            if first is not None:
                parent = self.blocks[first].element.parent
                before = float(at < first)
                if at >= first and parent.contains(block.element):
                    under = 1.0
                elif at >= first and parent.parent is not self.page:
                    under = 0.5 * parent.parent.contains(block.element)
            if last is not None and at > last:
                after = float(not self.blocks[last].element.parent.contains(block.element))
            places.append((before, under, after))
        return places

    def all(self) -> list[dict[str, float]]:
        """Return the features of each block."""
        blocks, page = self.blocks, self.page
        counts = [float(block.words) for block in blocks]
        linked = [float(block.linked) for block in blocks]
        middle, total = list[float](), 0.0
        for count in counts:
            middle.append(total + count / 2)
            total += count
        near, around = (nearby(middle, counts, window) for window in (40.0, 150.0))
        near_linked, around_linked = (nearby(middle, linked, window) for window in (40.0, 150.0))
        notices = [block.has_notice * exp(-block.words / 60) for block in blocks]
        near_notices = nearby(middle, notices, 15.0)
        used = Counter(word for block in blocks for word in {token.text for token in block.tokens})
        headings = self._headings()
        features: list[dict[str, float]] = []
        for at, block in enumerate(blocks):
            element, parent = block.element, block.element.parent
            above = parent.parent
            unit, in_table, in_run = self.units[block]
            numbers = sum(token.kind == NUMBER for token in block.tokens) / block.words
            element_words = log(element.own / (element.own + 15))
            unit_words = max(log(unit / (unit + 15) + 1e-9) - element_words, 0.0)
            unlinked = {
                "unlinked": log(1.1 - linked[at] / counts[at]),
                "unlinked_near": log(1.1 - near_linked[at] / near[at]),
                "unlinked_around": log(1.1 - around_linked[at] / around[at]),
                "unlinked_parent": log(1.1 - element.linked / max(element.words, 1)),
                "unlinked_grandparent": log(1.1 - above.linked / max(above.words, 1)),
            }
            dominance, depth = self._dominance(element)
            elsewhere = sum(used[token.text] > 1 for token in block.tokens)
            legal = sum(token.text in _LEGAL for token in block.tokens)
            fading = exp((near_linked[at] - 1.1 * near[at] - counts[at]) / 20)
            before, under, after = headings[at]
            features.append(
                self.inherited[element]
                | unlinked
                | {
                    "words_near": log(1 - fading),
                    "element_words": element_words,
                    "unit_words": unit_words,
                    "unit_numbers": unit_words * numbers,
                    "unit_links": (in_table + in_run) * unlinked["unlinked"],
                    "in_table": in_table,
                    "in_run": in_run,
                    "number_share": numbers,
                    "parent_share": log(parent.words / page.words + 0.01),
                    "lateness": exp((middle[at] - total) / 60),
                    "before_h1": before,
                    "under_h1": under,
                    "after_headings": after,
                    "depth": log1p(depth) - 2,
                    "repeated_words": elsewhere / block.words - 0.5,
                    "not_dominated": dominance,
                    "copyright_near": max(notices[at], near_notices[at] / (1 + near_notices[at])),
                    "legal_words": min(legal, 2) / 2 * exp(-block.words / 60),
                    "listing_links": sum(unlinked.values()) / len(unlinked),
                }
            )
        self._add_listing(features)
        return features

    def _add_listing(self, features: list[dict[str, float]]) -> None:
        """Repeat three features, the more, the less prose there is outside the boilerplate.

        What is apart counts less if it has nearly all of the prose.
        """
        boilerplate = ("beside_names", "beside_tags", "footer_names", "footer_tag")
        amounts = []
        for block, own in zip(self.blocks, features, strict=True):
            notice = max(own["copyright_near"], own["copyright_element"])
            outside = (1 - max(own[name] for name in boilerplate)) * (1 - notice)
            amounts.append((block.words - block.linked) * outside)
        other = sum(
            amount * (1 - own["apart"]) for amount, own in zip(amounts, features, strict=True)
        )
        prose = 0.0
        for amount, own in zip(amounts, features, strict=True):
            own["apart"] /= 1 + (25 / max(other, 1)) ** 4
            prose += amount * (1 - own["apart"]) * (1 - 0.8 * own["lateness"])
        listing = 1 / (1 + (prose / 60) ** 2)
        for own in features:
            own["listing_links"] *= listing
            own["listing_words"] = own["element_words"] * listing
            own["listing_lateness"] = own["lateness"] * listing

    # Boilerplate by its names or tags.

    def in_frame(self, block: Block) -> bool:
        words = lists._BESIDE | lists._FOOTER | lists._HEADER
        return any(
            self.names[one].apart
            or not self.names[one].said.isdisjoint(words)
            or one.tag in BESIDE_TAGS | {"footer", "header"}
            for one in block.element.with_all_around()
            if one.words < 0.95 * self.page.words
        )


def _innermost(element: Element, chosen: object) -> Element | None:
    return next((one for one in element.with_all_around() if one in chosen), None)  # type: ignore[operator]


# 4. Weights, and what is shown.


def weigh(features: Features) -> bool:
    """Set the weights of blocks, and return whether the page is nothing but boilerplate."""
    blocks = features.blocks
    levels = []
    for block, own in zip(blocks, features.all(), strict=True):
        block.apart = own["apart"] > 0.5
        score = sum(coefficient * own[name] for name, coefficient in COEFFICIENTS.items())
        levels.append(exp(min(max(score, -25.0), 25.0)))
    mass = sum(block.words * level for block, level in zip(blocks, levels, strict=True))
    squares = sum(block.words * level**2 for block, level in zip(blocks, levels, strict=True))
    page_level = squares / mass / (1 + 50 * squares / mass**2)
    for block, level in zip(blocks, levels, strict=True):
        block.weight = level / (level + page_level)
    if squares >= exp(-7.35) * mass:
        return False
    outside = [one for one in blocks if not (features.in_frame(one) or one.has_notice)]
    return sum(block.words for block in outside) < 6


def show(features: Features, all_blocks: list[Block]) -> None:
    """Set which blocks are main content, all blocks and those with words among them."""
    blocks = features.blocks
    mass: defaultdict[Element, float] = defaultdict(float)
    for block in blocks:
        for element in block.element.with_all_around():
            mass[element] += block.words * block.weight
    heaviest = max(block.weight for block in blocks)
    for block in all_blocks:
        block.shown = False
    for block in blocks:
        parent = block.element.parent
        around = mass[parent] / max(parent.words, 1)
        least = 0.25 if block.linked > 0.5 * block.words else 0.1
        block.shown = block.weight * around >= (least * heaviest) ** 2 and not block.apart
    for block, behind in reversed(list(pairwise(blocks))):
        is_heading = block.element.tag in HEADING_TAGS and not block.apart
        block.shown |= is_heading and behind.shown
    _show_whole(features, all_blocks)


def _show_whole(features: Features, all_blocks: list[Block]) -> None:
    """Show tables, lists, figures and code whole."""
    places: defaultdict[Element, list[int]] = defaultdict(list)
    for place, block in enumerate(all_blocks):
        for element in block.element.with_all_around():
            places[element].append(place)
    seen = [block.shown for block in all_blocks]
    whole: list[Element] = []
    for element in features.elements:
        if element.tag not in LIST_TAGS | {"table", "figure", "pre"} or not places[element]:
            continue
        if element.tag == "table" and not _is_data(element):
            continue
        first, last = places[element][0], places[element][-1] + 1
        near = element.parent
        while len(places[near]) == len(places[element]) and near.around is not None:
            near = near.around
        wide = near.parent
        inside = [block for block in all_blocks[first:last] if block.words]
        linked = sum(block.linked for block in inside)
        is_text = linked <= 0.5 * sum(block.words for block in inside) and element.tag != "figure"
        shown_before = any(seen[places[near][0] : first])
        shown_behind = any(seen[last : places[near][-1] + 1])
        chosen = shown_before and shown_behind
        if is_text:
            chosen |= any(seen[places[wide][0] : places[wide][-1] + 1])
        if chosen and not any(features.in_frame(block) for block in inside):
            whole.append(element)
    for element in whole:
        for place in places[element]:
            all_blocks[place].shown = True


def _is_data(table: Element) -> bool:
    tags = Counter(element.tag for element in table.below())
    if tags["table"]:
        return False
    return tags["th"] > 0 or (tags["tr"] > 1 and not any(tags[tag] for tag in CELL_BLOCKS))


# 5. Hashes, votes and signature.


def murmur(text: str) -> int:
    return mmh3.hash64(text.encode(errors="replace"), signed=False)[0]


def mixed(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ value >> 33


def features_of(blocks: list[Block]) -> dict[int, float]:
    """Return the hash of each word and pair, and the sum of the weights of its occurrences."""
    sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
    factors = [*OCCURRENCES.values()]
    for block in blocks:
        tokens = block.tokens
        for token in tokens:
            sums[(token.text,)] += block.weight * factors[min(token.kind, VOLATILE)]
        for first, second in pairwise(tokens):
            kind = min(max(first.kind, second.kind), VOLATILE)
            sums[first.text, second.text] += block.weight * factors[4 + kind]
    return {_hash_of(words): weight for words, weight in sums.items()}


def _hash_of(words: tuple[str, ...]) -> int:
    first, *second = map(murmur, words)
    return mixed((first * GOLDEN_RATIO + second[0]) & MASK) if second else first


def vote(weights: dict[int, float]) -> int:
    units = {value: round(weight * 65536) for value, weight in weights.items()}
    total = sum(units.values())
    simhash = 0
    for bit in range(64):
        ones = sum(unit for value, unit in units.items() if value >> bit & 1)
        simhash |= (2 * ones > total) << bit
    return simhash


def sign(weights: dict[int, float]) -> int:
    """Return the signature: see the head of pgsimhash/hashing/signature.py."""
    best: dict[int, tuple[float, int]] = {}
    for value, weight in weights.items():
        value = mixed(value ^ GOLDEN_RATIO)
        number, place = value >> 57, (value << 7 & MASK) >> 11
        key = -log1p(-place * 2.0**-53) / max(weight, 2.0**-40)
        # The least key; of equal ones the larger hash.
        best[number] = min(best.get(number, (inf, 0)), (key, -value))
    signature = 0
    for number in range(128):
        others = sorted(range(128), key=lambda other: mixed(128 * number + other))
        source = next(one for one in (number, *others) if one in best)
        least = -best[source][1]
        signature |= (mixed(least ^ mixed(number)) & 1) << number
    return signature


def structure_of(elements: list[Element]) -> int:
    features = {""}
    for element in elements:
        path = [one.tag for one in element.with_all_around() if one.tag in _CONTAINERS][::-1]
        features.add("".join(f"/{tag}" for tag in path[:DEPTH_MAX]))
        if element.tag in _CONTAINERS:
            features.add(">".join(["", *path][-2:]))
    return vote({murmur(feature): 1.0 for feature in features})


def fingerprint(html: str | bytes, charset: str | None = None) -> Fingerprint | None:
    """Return the fingerprint of a page, or None if it is too short."""
    source = clean_utf8(html, charset)
    structure = None
    if _TAG.search(source) is None:
        page = Element(0)
        all_blocks = [Block(page, [(line, False)]) for line in source.decode().split("\n")]
    else:
        root = parse(source)
        if root is None:
            return None
        body = root.find("body")
        elements, all_blocks = read_blocks(root if body is None else body)
        structure = structure_of(elements)
    read_words(all_blocks)
    find_kinds(all_blocks)
    blocks = [block for block in all_blocks if block.words]
    if not blocks:
        return None
    if structure is not None:
        sum_up(elements, blocks)
        features = Features(elements, blocks)
        is_boilerplate = weigh(features)
        show(features, all_blocks)
        for block in blocks:
            block.shown &= not is_boilerplate
            _, in_table, in_run = features.units[block]
            for token in block.tokens:
                if token.kind == VOLATILE and max(in_table, in_run) > 0.4:
                    token.kind = LISTED
    shown = [token for block in blocks if block.shown for token in block.tokens]
    if len(shown) < 12:
        return None
    sums = features_of(blocks)
    return Fingerprint(
        vote({value: total / (1 + total) ** 0.85 for value, total in sums.items()}),
        sign({value: total / (total + 0.1) for value, total in sums.items()}),
        murmur(" ".join(token.text for token in shown if token.kind != PASSING)),
        structure,
        len(shown),
    )
