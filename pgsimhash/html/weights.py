"""Compute the weight of each text block of a page, between 0 and 1, and which blocks are shown.

Weights change little when the page changes, and no block is ignored, so none flips in or out.
Each feature of a block has a coefficient; ``bench/fit.py`` fitted them to the distances of
simhashes of labelled pages.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import exp, log, log1p
from typing import Final

from pgsimhash.html.blocks import CELL_BLOCKS, LIST_TAGS, TITLE_TAGS, Element, Named, Outline, words
from pgsimhash.html.page_words import (
    LISTED_FROM,
    NUMBER,
    WORD,
    TextBlock,
    is_framed,
    larger_around,
    look_around,
    places_of,
    table_likelihood,
)

COEFFICIENTS: Final = {
    # Names and tags of the elements around.
    "beside_names": -0.4698,
    "beside_tags": -3.739,
    "overlay_names": -0.5241,
    "hidden_names": -5.584,
    "header": -0.8646,
    "content_names": 0.9812,
    "footer_names": -0.6898,
    "footer_tag": -4.076,
    "apart": -6.0,
    "copyright_element": -1.384,
    "outside_main": -5.88,
    "outside_article": -2.433,
    # The share of text outside links: in the block, around it, in the elements around it.
    "unlinked": 1.17,
    "unlinked_near": 0.4298,
    "unlinked_around": 0.2631,
    "unlinked_parent": -0.6037,
    "unlinked_grandparent": 0.3782,
    # The amount of text.
    "words_near": 0.5842,
    "element_words": 1.743,
    "unit_words": 0.8692,
    "unit_numbers": -0.3457,
    "unit_words_under_h1": 0.7361,
    "in_table": 1.066,
    "in_run": 0.7452,
    "number_share": 1.801,
    "parent_share": 0.5063,
    # The position of the block.
    "lateness": -0.7792,
    "before_h1": -3.526,
    "under_h1": 1.53,
    "after_headings": -0.7382,
    "depth": 2.106,
    "repeated_words": 1.543,
    # The small print.
    "copyright_near": -1.922,
    "legal_words": -4.257,
    # Corrections for pages without prose, whose boilerplate looks different.
    "listing_words": -0.5582,
    "listing_lateness": 0.4829,
    "listing_frame": -2.594,
}
"""The coefficient of each feature in the logarithm of a block's level."""

# On a page with this many effective words, blocks are compared with half their mean level.
LEVEL: Final = 50.0
# Scores are clipped to this range around 0, so that no exponential overflows.
SCORE_MAX: Final = 25.0
# A page with a lower mean level may be all boilerplate: none of 7,400 labelled pages has one.
_FRAME_LEVEL: Final = exp(-7.35)
_OWN_WORDS: Final = 6  # a page with fewer words outside the boilerplate has no content
# Blocks below this share of the largest weight are not shown; the second if they are links.
_SHOWN, _SHOWN_LINKS = 0.1, 0.25
# With this many words of other prose, a part named as no content counts half as such.
_OTHER_PROSE: Final = 25.0
# With this many words outside the boilerplate, a listing's boilerplate counts half as such.
_OWN_LISTING: Final = 40.0
_LINKS: Final = 0.5  # a block or list with a larger share of its words in links consists of links

LEGAL_WORDS: Final = words(
    "copyright trademark trademarks rights reserved licensed license warranty disclaimer terms"
    " privacy powered logo registered rechte vorbehalten droits réservés derechos reservados"
    " diritti riservati защищены الحقوق محفوظة הזכויות שמורות"
    " 版权 权声 转载 许可 版權 權聲 轉載 許可 作権 無断 転載 备案 備案 저작권 무단전재 재배포"
    # Labels and offers between paragraphs.
    " newsletter newsletters advertisement advertisements sponsored werbung anzeige publicité"
    " publicidad publicidade pubblicità advertentie реклама"
)
PRIVACY_WORDS: Final = words("cookie cookies gdpr dsgvo rgpd")
_FOOTER_LINKS: Final = 0.2  # with a larger share, a sentence in a footer names categories
# A block of this many words between shown blocks is a sentence, a plain one in an element of which
# most is shown a remark.
_SENTENCE_WORDS, _REMARK_WORDS = 8, 4
_QUESTION_WORDS: Final = 3  # a shown title of this many words has an answer
_BYLINE_WORDS, _ITEM_WORDS = 15, 5  # between a title and its text; of the title of an item
_BOILERPLATE: Final = ("beside_names", "beside_tags", "footer_names", "footer_tag")
_WHOLE_TAGS: Final = LIST_TAGS | words("blockquote figure pre table")


def weigh(outline: Outline, all_blocks: Sequence[TextBlock]) -> bool:
    """Set the weights of text blocks and which are shown; return whether all is boilerplate."""
    for place, block in enumerate(all_blocks):
        block.shown = False
        block.element.start = min(block.element.start, place)
        block.element.stop = place + 1
    blocks = [block for block in all_blocks if block.words]
    if not blocks:
        return False
    levels = []
    for block, own in zip(blocks, features(outline.elements, blocks), strict=True):
        block.is_apart = own["apart"] > 0.5
        score = sum(coefficient * own[name] for name, coefficient in COEFFICIENTS.items())
        levels.append(exp(min(max(score, -SCORE_MAX), SCORE_MAX)))
    counts = [len(block.words) for block in blocks]
    for block, weight in zip(blocks, weights_of(levels, counts), strict=True):
        block.weight = weight
    _show(outline.elements, blocks)
    _show_notes(outline.elements, all_blocks)
    _show_whole(outline.elements, all_blocks)
    whole, squares = _masses(levels, counts)
    if squares >= _FRAME_LEVEL * whole:
        return False
    # Its blocks look like boilerplate, and nearly all are in elements with such names or tags.
    outside = (block for block in blocks if not (block.element.in_frame or block.has_notice))
    return sum(len(block.words) for block in outside) < _OWN_WORDS


def weights_of(levels: Sequence[float], counts: Sequence[float]) -> list[float]:
    """Return the weights of blocks by their levels, relative to the level of the page.

    A block's level is the exponential of its score. The page's level is the mean of these, each
    weighted by its own words and level. It is lower on a page with few effective words, so that an
    index keeps its list.
    """
    whole, squares = _masses(levels, counts)
    own = squares / whole / (1.0 + LEVEL * squares / (whole * whole))
    return [level / (level + own) for level in levels]


def _masses(levels: Sequence[float], counts: Sequence[float]) -> tuple[float, float]:
    """Return the sums of words times level, and of words times level squared."""
    masses = [count * level for count, level in zip(counts, levels, strict=True)]
    return sum(masses), sum(mass * level for mass, level in zip(masses, levels, strict=True))


def features(
    elements: Sequence[Element], blocks: Sequence[TextBlock]
) -> Iterator[dict[str, float]]:
    """Set the context of the blocks of a page, which have words, and yield their features."""
    look_around(elements, blocks)
    page = elements[0]
    counts = [len(block.words) for block in blocks]
    linked = [block.linked for block in blocks]
    middle = [end - count / 2 for end, count in zip(accumulate(counts), counts, strict=True)]
    near, near_linked = nearby(middle, counts, 40.0), nearby(middle, linked, 40.0)
    around, around_linked = nearby(middle, counts, 150.0), nearby(middle, linked, 150.0)
    lateness = [exp((place - page.words) / 60.0) for place in middle]
    # A notice in a long text means little.
    own = [block.has_notice * exp(-len(block.words) / 60.0) for block in blocks]
    near_notices = nearby(middle, own, 15.0)
    notices = [max(one, sums / (1.0 + sums)) for one, sums in zip(own, near_notices, strict=True)]
    apart, listing, framed = _corrections(blocks, lateness, notices)
    spread = Counter(word for block in blocks for word in set(block.words))
    for at, (block, place) in enumerate(zip(blocks, places_of(elements, blocks), strict=True)):
        element, count = block.element, counts[at]
        parent = element.parent
        above = parent.parent
        levels = element.levels | {"apart": apart * element.levels["apart"]}
        numbers = block.kinds.count(NUMBER) / count
        element_words = log(element.own / (element.own + 15.0))
        unit_words = max(log(block.unit / (block.unit + 15.0) + 1e-9) - element_words, 0.0)
        fading = exp((near_linked[at] - 1.1 * near[at] - count) / 20.0)
        repeated = sum(spread[word] > 1 for word in block.words) / count
        legal = sum(word in LEGAL_WORDS for word in block.words)
        inside = place["under_h1"] * (1 - place["outside_main"]) * (1 - place["outside_article"])
        yield {
            **levels,
            **place,
            "unlinked": log(1.1 - linked[at] / count),
            "unlinked_near": log(1.1 - near_linked[at] / near[at]),
            "unlinked_around": log(1.1 - around_linked[at] / around[at]),
            "unlinked_parent": log(1.1 - element.linked / element.words),
            "unlinked_grandparent": log(1.1 - above.linked / above.words),
            "words_near": log(1.0 - fading),
            "element_words": element_words,
            "unit_words": unit_words,
            "unit_numbers": unit_words * numbers,
            "unit_words_under_h1": unit_words * inside,
            "in_table": block.in_table,
            "in_run": block.in_run,
            "number_share": numbers,
            "parent_share": log(parent.words / page.words + 0.01),
            "lateness": lateness[at],
            "depth": log1p(element.depth) - 2.0,
            "repeated_words": repeated - 0.5,
            "copyright_near": notices[at],
            "legal_words": min(legal, 2) / 2.0 * exp(-count / 60.0),
            "listing_words": element_words * listing,
            "listing_lateness": lateness[at] * listing,
            "listing_frame": levels["frame"] * framed,
        }


def _corrections(
    blocks: Sequence[TextBlock], lateness: Sequence[float], notices: Sequence[float]
) -> tuple[float, float, float]:
    """Return factors for what is apart, for an index and for its boilerplate.

    A page with hardly any other prose has its content in parts named as no content: the first is
    near 0. The second is 1 for an index, which has little prose, and near 0 for an article. The
    third is near 0 also for a page with hardly any words outside its boilerplate.
    """
    amounts: list[float] = []
    own = 1.0
    for block, notice in zip(blocks, notices, strict=True):
        levels = block.element.levels
        names = max(levels[name] for name in _BOILERPLATE)
        notice = max(notice, levels["copyright_element"])
        amounts.append((len(block.words) - block.linked) * (1 - names) * (1 - notice))
        own += len(block.words) * (1 - levels["frame"]) * (not block.has_notice)
    aparts = [block.element.levels["apart"] for block in blocks]
    other = sum(amount * (1 - apart) for amount, apart in zip(amounts, aparts, strict=True))
    apart = 1.0 / (1.0 + (_OTHER_PROSE / max(other, 1.0)) ** 4)
    prose = sum(
        amount * (1 - part * apart) * (1 - 0.8 * late)
        for amount, part, late in zip(amounts, aparts, lateness, strict=True)
    )
    listing = 1.0 / (1.0 + (prose / 60.0) ** 2)
    return apart, listing, listing / (1.0 + (_OWN_LISTING / own) ** 4)


def nearby(middle: Sequence[float], amounts: Sequence[float], window: float) -> list[float]:
    """Return the sum of amounts around each place, which count 1/e at the distance ``window``."""
    sums = [float(amount) for amount in amounts]
    fades = [exp((before - behind) / window) for before, behind in pairwise(middle)]
    carried = 0.0
    for at, fade in enumerate(fades):
        carried = (carried + amounts[at]) * fade
        sums[at + 1] += carried
    carried = 0.0
    for at in reversed(range(len(fades))):
        carried = (carried + amounts[at + 1]) * fades[at]
        sums[at] += carried
    return sums


def _show(elements: Sequence[Element], blocks: Sequence[TextBlock]) -> None:
    """Set which of the blocks with words are shown; those that are apart are not.

    A short line has little weight alone and much with the text around it. So the geometric mean of
    its weight and the mean weight in its element's parent decides. A heading is shown if the block
    behind it is, also below a line such as its date, if it is near. So is the linked title of an
    item in a list.
    """
    for block in blocks:
        block.element.mass += len(block.words) * block.weight
    for element in elements[:0:-1]:
        element.parent.mass += element.mass
        element.parent.start = min(element.parent.start, element.start)
        element.parent.stop = max(element.parent.stop, element.stop)
    heaviest = max(block.weight for block in blocks)
    behind, between = elements[0], _BYLINE_WORDS + 1  # a shown element, and the words before it
    for block in reversed(blocks):
        parent = block.element.parent
        least = _SHOWN_LINKS if block.linked > _LINKS * len(block.words) else _SHOWN
        squared = block.weight * (parent.mass / parent.words)
        shown = squared >= (least * heaviest) ** 2
        is_item = squared >= (_SHOWN * heaviest) ** 2 and len(block.words) >= _ITEM_WORDS
        is_item = is_item and block.is_listed
        # A question may be a button in a heading.
        is_title = block.element.tag in TITLE_TAGS or parent.tag in TITLE_TAGS
        is_text = behind.tag not in TITLE_TAGS and parent.parent.holds(behind)
        is_near = not between or (between <= _BYLINE_WORDS and is_text)
        block.shown = (shown or ((is_title or is_item) and is_near)) and not block.is_apart
        between += (_BYLINE_WORDS if is_title else 0) + len(block.words)
        if block.shown and (shown or is_title):
            behind, between = block.element, 0


def _show_notes(elements: Sequence[Element], all_blocks: Sequence[TextBlock]) -> None:
    """Show what has little weight in the main content, and a reader would miss.

    That are titles (h1) and sentences between shown blocks and above them in their main or article
    element, sentences in headers and footers of articles, and notes: corrections, warnings and
    leads. Notes are also shown below the h1, and in an element of which most is shown.
    """
    blocks = [(at, block) for at, block in enumerate(all_blocks) if block.words]
    shown = [at for at, block in blocks if block.shown] or [blocks[0][0]]
    seen = [0, *accumulate(len(block.words) * block.shown for block in all_blocks)]
    first, second, last = shown[0], shown[:2][-1], shown[-1]
    titles = (at for at, block in blocks if block.element.tag == "h1")
    title = min(first, next(titles, first))
    around = all_blocks[first].element
    while around.place and around.tag not in ("main", "article"):
        around = around.parent
    above = around.start - 1 if around.place else first
    for (_, before), (at, block) in pairwise([blocks[0], *blocks]):
        element, count = block.element, len(block.words)
        if block.is_apart or block.has_notice or block.linked > _LINKS * count:
            continue
        if not PRIVACY_WORDS.isdisjoint(block.words):
            continue
        around = elements[element.note] if element.note else larger_around(element)
        own = seen[around.stop] - seen[around.start]
        is_mostly = own > _LINKS * (around.words - around.linked)
        if element.note:
            is_in_text = title < at < last or (around.place > 1 and is_mostly)
        else:
            levels = element.levels
            over = max(levels["hidden_names"], levels["overlay_names"])
            over_or_beside = max(over, levels["beside_names"], levels["beside_tags"])
            if levels["in_article"] and max(levels["footer_names"], levels["footer_tag"]) > 0.5:
                is_free = over_or_beside <= 0.5 and block.linked <= _FOOTER_LINKS * count
                is_in_text = is_free and first < at and block.kinds.count(WORD) >= _SENTENCE_WORDS
            else:
                is_title = element.tag == "h1"
                # A name such as "title-align-left" does not set a title aside.
                beside = max(over, levels["beside_tags"]) if is_title else over_or_beside
                # A teaser without links between the title and the text is the lead.
                teaser = element if element.names.flags & Named.TEASER else element.parent
                is_lead = teaser.names.flags & Named.TEASER and title < at < second
                is_lead = is_lead and not teaser.linked
                is_free = (over if is_lead or first < at else beside) <= 0.5 and above < at
                is_text = count >= _SENTENCE_WORDS and (is_lead or not element.in_frame)
                is_answer = count < _SENTENCE_WORDS and _is_answer(block, before)
                if is_answer or (is_mostly and _REMARK_WORDS <= count < _SENTENCE_WORDS):
                    is_plain = is_answer or block.kinds.count(WORD) == count
                    is_plain = is_plain and LEGAL_WORDS.isdisjoint(block.words)
                    is_text = is_plain and not block.linked and not element.in_frame
                # The lead may be in the header of the article, too.
                if levels["in_article"] and levels["header"] > 0.5 >= over_or_beside:
                    is_text = block.kinds.count(WORD) >= _SENTENCE_WORDS
                is_in_text = is_free and (at < last or is_answer) and (is_text or is_title)
        block.shown = block.shown or is_in_text


def _is_answer(block: TextBlock, title: TextBlock) -> bool:
    """Return whether a block without dates is directly behind a shown title of some words."""
    element, around = title.element, title.element.parent
    tag = element.tag if element.tag in TITLE_TAGS else around.tag
    is_title = tag in TITLE_TAGS and tag != "h1" and len(title.words) >= _QUESTION_WORDS
    is_title = is_title and title.shown and not title.linked and around.parent.holds(block.element)
    is_plain = block.kinds.count(WORD) + block.kinds.count(NUMBER) == len(block.words)
    return is_title and is_plain and block.element.tag not in TITLE_TAGS


def _show_whole(elements: Sequence[Element], all_blocks: Sequence[TextBlock]) -> None:
    """Show more blocks, including those without words.

    Data tables, lists, quotations and code are shown whole if a part of them is shown, or a block
    next to them: in the two elements around. Figures and lists of links are shown if they are
    between shown blocks. Boilerplate by its names or tags is not shown.
    """
    # Sums of the blocks before each place.
    shown = [0, *accumulate(block.shown for block in all_blocks)]
    linked = [0, *accumulate(block.linked for block in all_blocks)]
    counts = [0, *accumulate(len(block.words) for block in all_blocks)]
    framed = [0, *accumulate(is_framed(block, elements) for block in all_blocks)]
    changes = [0] * (len(all_blocks) + 1)
    # The nearest element around each that holds more blocks.
    larger = [elements[0]]
    for element in elements[1:]:
        parent, first, last = element.parent, element.start, element.stop
        is_all = (parent.start, parent.stop) == (first, last)
        near = larger[parent.place] if is_all else parent
        larger.append(near)
        if element.tag not in _WHOLE_TAGS or first >= last or framed[first] < framed[last]:
            continue
        if element.tag == "table" and not _is_data(element):
            continue
        # Around most of a page, it indents or lacks its end tag.
        if element.tag == "blockquote" and element.words > 0.5 * elements[0].words:
            continue
        wide = near.parent
        before, behind = shown[near.start] < shown[first], shown[last] < shown[near.stop]
        is_text = linked[last] - linked[first] <= _LINKS * (counts[last] - counts[first])
        is_text = is_text and element.tag != "figure"
        if (before and behind) or (is_text and shown[wide.start] < shown[wide.stop]):
            changes[first] += 1
            changes[last] -= 1
    for block, around in zip(all_blocks, accumulate(changes), strict=False):
        block.shown = block.shown or around > 0


def _is_data(table: Element) -> bool:
    """Return whether a table is a data table, by the rule of ``is_data_table`` or short cells."""
    tags = table.inside
    if table_likelihood(table) > LISTED_FROM:
        return True
    return not tags["table"] and (
        tags["th"] > 0 or (tags["tr"] > 1 and CELL_BLOCKS.isdisjoint(tags))
    )
