"""Read the words and numbers of a page by text block, and the context of each block.

A number is a run of digits. It is volatile if it is part of a date, a time of day, a counter or a
telephone number: ``12:30``, ``7/5/2016``, "12 March", "3 days ago", "1,204 views". Volatile numbers
have little weight in a simhash. Passing numbers count visitors or stand in a note such as "Updated
12 March". They change between visits, so the digest of a text leaves them out, with "days ago" and
"updated".

The context is the names, tags and text of the elements around. Parents precede their children. So
one pass in document order gives each element the values of those around it, and one in reverse
order sums up what is below.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, compress, groupby
from typing import Final, NamedTuple

from pgsimhash.hashing.tokens import SIGNS, tokenize_signed
from pgsimhash.html.blocks import (
    BESIDE_TAGS,
    CELL_TAGS,
    COMMON_TAGS,
    CONTENT_TAGS,
    HEADING_TAGS,
    Element,
    Named,
    Outline,
    Siblings,
    block_texts,
    outline_of_text,
    words,
)

# The kinds of tokens. LISTED are parts of dates and times in data tables and lists, so they are
# data. PASSING are volatile, and the digest of the text leaves them out.
WORD, NUMBER, LISTED, VOLATILE, PASSING = range(5)

# The digits come first, because re skips to them quickly; the lookbehind then sees them.
_DATES: Final = re.compile(
    r"[0-9](?<![0-9][0-9])[0-9]{0,3}"
    r"(?:(?<![0-9]{3}):[0-9]{2}(?::[0-9]{2})?|([./-])[0-9]{1,2}\1[0-9]{1,4})(?![0-9])"
    # A telephone number with the code of a country.
    r"|\+[0-9](?:[ ()./-]{0,3}[0-9]){6,}"
)
MONTHS: Final = words(
    "jan january feb february mar march apr april may jun june jul july aug august sep sept"
    " september oct october nov november dec december januar februar märz mai juni juli oktober"
    " dezember janvier février mars avril juin juillet août septembre octobre novembre décembre"
    " enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    " gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre"
    " января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
    " mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday"
)
_POSTED: Final = words("posted published copyright")
UPDATED: Final = words(
    "updated modified generated retrieved accessed aktualisiert geändert actualizado modificado"
    " aggiornato обновлено 发表 表于 更新 新于 发布 布于 發表 表於 新於 發布 佈於"
)
_HOURS: Final = words("am pm utc gmt est edt pst pdt cet cest uhr")
VISITS: Final = words(
    "views view visits hits visitors online comments comment replies reply likes shares followers"
    " downloads aufrufe kommentare"
)
_COUNTED: Final = words(
    "reads read like share reactions votes vote points readers members users posts"
)
CONTACTS: Final = words(
    "tel telephone telefon téléphone telefono teléfono tél тел телефон 電話 هاتف tlf phone phones"
    " fax faks telefax факс فاكس 傳真 传真 电话 mobil gsm"
)
# Runs of this many digits are telephone numbers in a block of at most this many words with one such
# as "fax".
_CONTACT_DIGITS, _CONTACT_WORDS = 5, 30
# A block of at most this many words with one such as "updated" is a note of a date.
_NOTE_WORDS: Final = 12
_COUNTER_WORDS: Final = 30  # a longer block tells something by its counters
YEARS: Final = frozenset(map(str, range(1900, 2100)))
BEFORE: Final = MONTHS | _POSTED | UPDATED | set(SIGNS[3:])
BEHIND: Final = MONTHS | _HOURS | _COUNTED  # what makes the numbers behind or before it volatile

_NAMED_FRAME: Final = Named.BESIDE | Named.FOOTER | Named.HEADER | Named.APART
_FRAME_TAGS: Final = BESIDE_TAGS | words("footer header")
_TELLING_TAGS: Final = _FRAME_TAGS | CONTENT_TAGS
_LEVELS: Final = words(
    "beside_names beside_tags overlay_names hidden_names header content_names footer_names"
    " footer_tag frame in_article apart copyright_element"
)
# The features of boilerplate that contains no notes about the main content.
_SIDES: Final = words("beside_names beside_tags overlay_names hidden_names footer_names footer_tag")
_TITLE_SHARE: Final = 0.75  # with this share of the prose before it, an h1 counts half as the title
# It also counts half with so many words of prose before it in its parent. With fewer between two,
# the second may be the title.
_LEAD: Final = 20.0
_FEW: Final = 5.0  # with this many words, ``main`` and ``article`` count half
# From this likelihood on, a table or list contains data, and its dates are data too.
LISTED_FROM: Final = 0.4


@dataclass(slots=True, eq=False)
class TextBlock:
    """A text block: a line of plain text, or a run of text between two block tags of a page."""

    element: Element  # the one that directly contains it
    words: list[str] = field(default_factory=list)  # and numbers, in order
    kinds: bytes = b""  # the kind of each, WORD to PASSING
    linked: int = 0  # how many of the words are in links
    has_notice: bool = False  # whether it has a copyright sign, or the word
    # The unlinked words of its table or list, times the likelihood (0 to 1) of a data table, or
    # of a list of short items.
    unit: float = 0.0
    in_table: float = 0.0
    in_run: float = 0.0
    is_listed: bool = False  # whether it is in a data table or list
    row: int = 0  # the place of its row in such a table or list, 0 for none
    weight: float = 1.0  # 0 to 1
    is_apart: bool = False  # whether an element around has a name that says that it is no content
    shown: bool = True  # whether it is part of the visible main content
    counted: bool = True  # the same; no block of a page with nothing but boilerplate is counted


class WeightedWords(NamedTuple):
    """The text blocks of a page that have words, in order and with their weights."""

    blocks: list[TextBlock]
    texts: Callable[[], list[str]]
    """Returns the text of each block, on one line."""

    @property
    def length(self) -> int:
        """The number of words of the visible main content."""
        return sum(len(block.words) for block in self.blocks if block.counted)

    @property
    def unseen(self) -> float:
        """The share of words in blocks with less than a tenth of the mean weight of words.

        Such blocks hardly affect the simhash.
        """
        words = max(sum(len(block.words) for block in self.blocks), 1)
        mean = sum(len(block.words) * block.weight for block in self.blocks) / words
        light = (len(block.words) for block in self.blocks if block.weight < 0.1 * mean)
        return sum(light) / words

    def lasting_words(self) -> list[str]:
        """Return the visible words and numbers in order, without the passing ones."""
        return [
            word
            for block in self.blocks
            if block.counted
            for word, kind in zip(block.words, block.kinds, strict=True)
            if kind != PASSING
        ]


def read_words(outline: Outline) -> list[TextBlock]:
    """Return all text blocks of a page with their words, numbers included."""
    begin, link, link_end, notice, _ = SIGNS
    blocks = list(map(TextBlock, outline.owners))
    following = iter(blocks)
    # The fifth sign precedes each time, date and telephone number in digits.
    tokens = tokenize_signed(_DATES.sub(rf" {SIGNS[4]} \g<0> ", outline.text))
    block, in_link = TextBlock(outline.elements[0]), False
    for token in tokens:
        if token[0] != "\0":
            block.words.append(token)
            block.linked += in_link
        elif token == begin:
            block = next(following)
        elif token in (link, link_end):
            in_link = token == link
        else:
            block.words.append(token)
    has_numbers = any(map(str.isdecimal, tokens))
    for block in blocks:
        signed = block.words
        kinds = kinds_of(signed) if has_numbers else bytes(len(signed))
        block.has_notice = notice in signed or "copyright" in signed
        is_word = [token[0] != "\0" for token in signed]
        block.words, block.kinds = list(compress(signed, is_word)), bytes(compress(kinds, is_word))
    return blocks


def words_by_line(text: str) -> WeightedWords:
    """Return the words of plain text; each line is a block of weight 1."""
    outline = outline_of_text(text)
    return weighted_words(outline, read_words(outline))


def weighted_words(outline: Outline, blocks: Sequence[TextBlock]) -> WeightedWords:
    """Return those of a page's blocks that have words, with their texts."""

    def texts() -> list[str]:
        own = zip(block_texts(outline.text), blocks, strict=True)
        return [text for text, block in own if block.words]

    return WeightedWords([block for block in blocks if block.words], texts)


def kinds_of(tokens: Sequence[str]) -> Sequence[int]:
    """Return the kinds of the tokens of a text block, among them signs of copyright and dates."""
    has_contact = len(tokens) <= _CONTACT_WORDS and not CONTACTS.isdisjoint(tokens)
    kinds: list[int] = []
    for is_number, run in groupby(tokens, str.isdecimal):
        size = len(list(run))
        kind = _kind_of_run(tokens, len(kinds), size, has_contact) if is_number else WORD
        kinds += [kind] * size
    for place, word in enumerate(tokens[2:]):
        if word == "ago" and tokens[place].isdecimal() and not tokens[place + 1].isdecimal():
            kinds[place + 1] = kinds[place + 2] = PASSING
    if len(tokens) <= _NOTE_WORDS and not UPDATED.isdisjoint(tokens):
        is_dated = any(kind >= VOLATILE for kind in kinds) or not MONTHS.isdisjoint(tokens)
        for place, token in enumerate(tokens):
            if kinds[place] == VOLATILE or token in MONTHS or (is_dated and token in UPDATED):
                kinds[place] = PASSING
    if len(tokens) > _COUNTER_WORDS:
        kinds = [min(kind, VOLATILE) for kind in kinds]
    return kinds


def _kind_of_run(tokens: Sequence[str], start: int, size: int, has_contact: bool) -> int:
    """Return the kind of a run of numbers by the tokens around it."""
    numbers = tokens[start : start + size]
    before = tokens[start - 1] if start else ""
    behind, second = [*tokens[start + size : start + size + 2], "", ""][:2]
    if behind in VISITS or second == "ago":
        return PASSING
    if (
        before in BEFORE
        or behind in BEHIND
        or (1 < size < 4 and not YEARS.isdisjoint(numbers))
        or (has_contact and sum(map(len, numbers)) >= _CONTACT_DIGITS)
    ):
        return VOLATILE
    return NUMBER


def look_around(elements: Sequence[Element], blocks: Sequence[TextBlock]) -> None:
    """Set the context of the elements of a page, and of its text blocks, which have words.

    Dates in data tables and lists become LISTED.
    """
    _sum_up(elements, blocks)
    _find_siblings(elements)
    _inherit(elements)
    for block in blocks:
        _find_unit(block, elements)
        block.is_listed = max(block.in_table, block.in_run) > LISTED_FROM
        if block.is_listed:
            block.kinds = block.kinds.replace(bytes([VOLATILE]), bytes([LISTED]))
            parent = block.element.parent
            if block.in_table:
                block.row = block.element.row
            elif parent.run == parent.place:
                block.row = parent.place


def _sum_up(elements: Sequence[Element], blocks: Sequence[TextBlock]) -> None:
    for block in blocks:
        element = block.element
        element.own += len(block.words)
        element.linked += block.linked
        element.notices += block.has_notice
    for element in reversed(elements):
        element.words += element.own
        parent = element.parent
        if parent is element:
            continue
        parent.words += element.words
        parent.linked += element.linked
        parent.notices += element.notices
        if element.tag == "p":
            parent.prose += element.words - element.linked


def _find_siblings(elements: Sequence[Element]) -> None:
    groups: defaultdict[tuple[int, str, str], Siblings] = defaultdict(Siblings)
    for element in elements:
        group = groups[element.parent.place, element.tag, element.names.first]
        group.filled += element.words > 0
        group.words += element.words
        group.unlinked += _unlinked(element)
        element.siblings = group


def _inherit(elements: Sequence[Element]) -> None:
    page = elements[0]
    page.levels = dict.fromkeys(_LEVELS, 0.0)
    before = 0  # the unlinked words of the paragraphs before an element
    for element in elements[1:]:
        parent, place, tag = element.parent, element.place, element.tag
        element.table, element.row = parent.table, parent.row
        if tag in ("table", "tr"):
            element.row = place if tag == "tr" else 0
        if parent.table:
            elements[parent.table].inside[tag] += 1
        if tag == "table":
            element.table, element.inside = place, Counter()
        if not element.words:
            continue
        element.depth = parent.depth + 1
        element.run, element.run_words = parent.run, parent.run_words
        likelihood = _run_likelihood(element)
        if likelihood:
            element.run = place
            # The cells of a row may be a run within the run of the rows.
            around = likelihood * element.siblings.unlinked
            element.run_words = max(element.run_words, around)
        # An element with nearly all of the page is not boilerplate; one with most of its prose is
        # not boilerplate by its name.
        has_most = element.words - element.linked > 0.5 * (page.words - page.linked)
        element.in_frame = parent.in_frame or place * (
            (tag in _FRAME_TAGS or (element.names.flags & _NAMED_FRAME > 0 and not has_most))
            and element.words < 0.95 * page.words
        )
        element.note = parent.note or _place_of_note(element)
        element.levels = above = parent.levels
        own = _levels(element, page, before)
        if tag == "p":
            before += element.words - element.linked
        if own:
            element.levels = above | {name: max(own[name], above[name]) for name in own}


def _place_of_note(element: Element) -> int:
    """Return the place of the element around a note, of more words; 0 if an element is no note.

    An aside without a telling name is a note only between shown blocks: its place is the body's.
    """
    flags, around = element.names.flags, element.parent
    is_note = flags & Named.NOTE and not flags & (Named.APART | Named.OVERLAY)
    is_aside = element.tag == "aside" and not flags
    if not (is_note or is_aside) or max(around.levels[name] for name in _SIDES) > 0.5:
        return 0
    return max(larger_around(element).place, 1) if is_note else 1


def larger_around(element: Element) -> Element:
    """Return the nearest element around one that has more words, or the page."""
    around = element.parent
    while around.place and around.words == element.words:
        around = around.parent
    return around


def _levels(element: Element, page: Element, before: int) -> dict[str, float]:
    """Return features by the names and the tag of an element; others are 0."""
    tag, flags = element.tag, element.names.flags
    levels: dict[str, float] = {}
    if flags or tag in _TELLING_TAGS:
        # An element with much of the page is not beside the text, whatever its name.
        share = (element.words / page.words / 0.3) ** 4
        named, tagged = 1.0 / (1.0 + share), 1.0 / (1.0 + share / 16.0)
        over = 1.0 / (1.0 + share * (0.3 / 0.9) ** 4)
        header = named if flags & Named.HEADER else 0.0
        levels = {
            "beside_names": named if flags & Named.BESIDE else 0.0,
            "beside_tags": tagged if tag in BESIDE_TAGS else 0.0,
            "overlay_names": over if flags & Named.OVERLAY else 0.0,
            "hidden_names": over if flags & Named.HIDDEN else 0.0,
            "header": max(header, tagged) if tag == "header" else header,
            "content_names": float(flags & Named.CONTENT > 0 or tag in CONTENT_TAGS),
            "footer_names": named if flags & Named.FOOTER else 0.0,
            "footer_tag": tagged if tag == "footer" else 0.0,
            "frame": over
            if flags & (Named.BESIDE | Named.FOOTER | Named.APART)
            else tagged * (tag in BESIDE_TAGS or tag == "footer"),
            "in_article": float(tag == "article"),
        }
    if flags & Named.APART:
        here = 1.0 / (1.0 + (20.0 / max(larger_around(element).prose, 1)) ** 4)
        if flags & Named.BELOW:
            # Below an article, or much less text than the rest of the page.
            inside = element.words - element.linked
            outside = page.words - page.linked - inside
            below = 1.0 / (1.0 + (10.0 / max(before, 1)) ** 4)
            small = 1.0 / (1.0 + (3.0 * inside / max(outside, 1)) ** 8)
            here = max(here, 0.55) * max(below, small)
        # Not if it is most of the page, or one of the paragraphs that are. Comments below an
        # article and layers over a page may be most of it.
        share = (element.siblings if tag == "p" else element).words / page.words
        most = 0.9 if flags & (Named.BELOW | Named.OVERLAY) and tag != "p" else 0.6
        levels["apart"] = here / (1.0 + (share / most) ** 16)
    if element.notices:
        levels["copyright_element"] = 1.0 / (1.0 + (element.words / 80.0) ** 2)
    return levels


def _unlinked(element: Element) -> float:
    """Return the words of a table or list, without most of those in links."""
    return max(element.words - 0.8 * element.linked, 0.0)


def _run_likelihood(element: Element) -> float:
    """Return the likelihood, 0 to 1, that an element and its siblings are a list of short items."""
    many = element.siblings.filled
    if many < 3 or element.tag in COMMON_TAGS or element.tag in CELL_TAGS:
        return 0.0
    return (1 - 1 / many) / (1 + (element.siblings.words / many / 40) ** 2)


def table_likelihood(table: Element) -> float:
    """Return the likelihood, 0 to 1, of a data table: of several rows and short cells."""
    rows, cells = table.inside["tr"], sum(table.inside[tag] for tag in CELL_TAGS)
    if rows < 2 or cells < 4:
        return 0.0
    # A table that contains tables is for layout.
    return (1 - 1 / rows) / (1 + (table.words / cells / 15) ** 2) / (1 + table.inside["table"])


def _find_unit(block: TextBlock, elements: Sequence[Element]) -> None:
    """Find the table, list or run of similar siblings that a block is in.

    A cell or an item means little alone. Of a list in a cell, or a table in an item, the inner one
    counts.
    """
    element = block.element
    if element.table > element.run:
        table = elements[element.table]
        block.in_table = table_likelihood(table)
        block.unit = block.in_table * _unlinked(table)
    elif element.run:
        block.in_run, block.unit = _run_likelihood(elements[element.run]), element.run_words


def is_framed(block: TextBlock, elements: Sequence[Element]) -> bool:
    """Return whether words are in boilerplate, and not only in a named cell of a data table."""
    frame = elements[block.element.in_frame]
    is_cell = frame.tag in CELL_TAGS and block.in_table > LISTED_FROM
    return frame.place > 0 and block.words != [] and not is_cell


def places_of(
    elements: Sequence[Element], blocks: Sequence[TextBlock]
) -> Iterator[dict[str, float]]:
    """Yield where each block is: features between 0 and 1.

    Under the title are later blocks in its parent (1) or grandparent (0.5). The title is the first
    h1, or one close behind it that is in an ``article`` or content by its names. The more of the
    prose precedes an h1, above all among its siblings, the less it is the title, and the less it
    counts. After the last heading are later blocks outside its parent. The largest ``main`` counts,
    and if the h1 is in an ``article``, all of them; either less with few words.
    """
    page = elements[0]
    mains = (element for element in elements if element.tag == "main")
    main = max(mains, key=lambda element: element.words, default=page)
    tags = [block.element.tag for block in blocks]
    prose = [0, *accumulate(len(block.words) - block.linked for block in blocks)]
    first, best = 0, (-1.0, 0.0)
    for at, block in enumerate(blocks):
        levels = block.element.levels
        rank = levels["in_article"], levels["content_names"]
        if tags[at] == "h1" and rank > best and (best[0] < 0 or prose[at] - prose[first] < _LEAD):
            first, best = at, rank
    around = blocks[first].element.parent if best[0] >= 0 else None
    last = max((at for at, tag in enumerate(tags) if tag in HEADING_TAGS), default=len(tags))
    share = prose[first] / max(prose[-1], 1) / _TITLE_SHARE
    for _ in range(4):
        share *= share
    siblings = (each for each in blocks[:first] if each.element.parent is around is not page)
    lead = sum(len(block.words) - block.linked for block in siblings)
    title = 1.0 / (1.0 + share) / (1.0 + (lead / _LEAD) ** 4)
    article = around or page
    while article.tag != "article" and article is not page:
        article = article.parent
    of_main = main.words / (main.words + _FEW)
    of_article = title * (article.place > 0) * article.words / (article.words + _FEW)
    for at, element in enumerate(block.element for block in blocks):
        under = after = 0.0
        if around is not None and at >= first:
            if around.holds(element):
                under = title
            elif around.parent.place and around.parent.holds(element):
                under = 0.5 * title
        if at > last:
            after = float(not blocks[last].element.parent.holds(element))
        yield {
            "before_h1": title * (at < first),
            "under_h1": under,
            "after_headings": after,
            "outside_main": 0.0 if main.holds(element) else of_main,
            "outside_article": of_article * (1 - element.levels["in_article"]),
        }
