"""Repair the tree of a page where browsers show it differently, or where a script shows text.

Both implementations of the reader see the same tree. Sections are those of the WHATWG HTML
standard.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, islice, takewhile
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import is_unspaced, tokenize
from pgsimhash.html.blocks import HEADING_TAGS, NEVER_TEXT, Named, named, storable, words
from pgsimhash.html.hidden import (
    LABEL_PARTS,
    PARAGRAPHS,
    begin_of,
    is_mostly_unlinked,
    is_text_button,
    show,
    words_in,
)
from pgsimhash.html.markup import ENDS_DRAWING

# The elements of a head (13.2.6.4.4); any other begins the body.
HEAD: Final = words("base basefont bgsound link meta noframes noscript script style template title")

_DRAWINGS: Final = ("svg", "math")
# A browser draws the texts of other elements: these are for browsers that do not draw.
_UNDRAWN: Final = etree.XPath("(descendant-or-self::svg|.//g|.//use)/text()[normalize-space()]")
# The elements in a drawing that contain HTML (13.2.6.5).
_HTML_IN_DRAWING: Final = words("foreignobject desc title mi mo mn ms mtext annotation-xml")
# Elements that only a drawing or formula does not show.
_DRAWN: Final = words(
    "annotation annotation-xml clippath defs desc marker mask metadata mphantom pattern symbol"
)
_REPAIRED: Final = _DRAWN | words(
    "applet button dialog embed footer ins math nav noscript object pre select svg switch template"
    " tspan"
)
# Declarative shadow DOM (4.12.3), of which the second attribute is Chrome's older one; and a layer.
_SHOWS: Final = {"template": ("shadowrootmode", "shadowroot"), "dialog": ("open",)}

# A message about scripts has at most this many words, among them one of these; in Chinese, Japanese
# and Thai, words are pairs of characters.
_MESSAGE_WORDS: Final = 60
_SCRIPTS: Final = re.compile(
    r"java ?script|\bscript(s|ing)?\b|\bjs\b|browser|cookies|loading|sz?krip|skrypt|скрипт"
    r"|navigateur|navegador|przeglądar|webbläsar|nettleser|\btaray|prohlížeč|böngész|\bselai[nm]"
    r"|trình duyệt|peramban|περιηγητ|переглядач|브라우저|متصفح|דפדפן|览器|覽器|ラウ ウザ|รา าว ว์"
    r"|браузер|스크립트|سكري?بت|اسکریپت|स्क्रिप्ट|סקריפט|สค คร|脚本|指令 令碼|クリ リプ"
)
_FALLBACK_WORDS: Final = 10  # a shorter noscript with an image or a link is that of a script
_TEXT_WORDS: Final = 3  # another noscript with fewer says nothing
_SENTENCE_WORDS: Final = 5  # a sentence has this many words besides a button within it
_SECTIONS_MAX: Final = 1000  # of how many titles the sections are compared with them
_TITLES_MAX, _TITLE_WORDS = 3, 3  # how many h1 may be that of the page, and their fewest words
_COPIES_MAX: Final = 100  # how many elements of noscript are compared with the page
_LINE_NUMBER: Final = re.compile("[0-9]{1,6}")
_STREAMED: Final = re.compile(r"[BP]:([0-9a-f]+)")  # the place of what React streams
_INLINE: Final = words("b em i span strong u")


def repair(root: HtmlElement) -> None:
    """Make the text that readers see text of the tree."""
    _empty_head(root)
    copies: list[HtmlElement] = []
    ended, hosts = set[HtmlElement](), set[HtmlElement | None]()
    places: dict[str, HtmlElement] = {}
    for element in list(root.iter(*_REPAIRED)):
        if element.tag in _DRAWINGS and element not in ended:
            _end_drawing(element, ended)
        if element.tag in _DRAWN:
            if next(element.iterancestors(*_DRAWINGS), None) is None:
                element.tag = "span"
        elif element.tag == "tspan":
            if element.get("x"):  # It is drawn at a place of its own.
                element.tail = f" {storable(element.tail)}"
        elif element.tag == "switch":
            # A browser draws its first element.
            for other in element[1:]:
                other.tag = "desc"
        elif element.tag == "button":
            if _is_word(element):
                element.tag = "span"
            elif is_text_button(element):
                element.tag = "div"
                element.set("aria-expanded", "")  # it stays what opens something
        elif element.tag == "nav" and "w-dropdown" in element.get("class", ""):
            # Webflow opens answers so; in a menu, most words are links.
            if is_mostly_unlinked(element):
                element.tag = "div"
        elif element.tag == "footer":
            # It says whose words a quotation has.
            quotation = element.getparent()
            if quotation is not None and quotation.tag == "blockquote":
                element.tag = "div"
                element.attrib.pop("class", None)
        elif element.tag == "noscript":
            copies.append(element)
        elif element.tag in ("applet", "object", "select"):
            # Browsers without the plug-in show the text in it; a select may lack its end tag.
            if next(element.iter(*PARAGRAPHS), None) is not None:
                element.tag = "div"
        elif element.tag == "embed":
            # It has no end tag, so what the parser puts into it is behind it.
            element.tag = "span"
        elif element.tag == "ins":
            # An advertisement is a block, whose names count.
            if "adsbygoogle" in element.get("class", ""):
                element.tag = "div"
        elif element.tag == "math" and _is_copy(element):
            element.tag = "annotation"
        elif element.tag == "pre":
            after = element.getnext()  # the numbers of VuePress are there
            if _is_numbering(element):
                element.tag = "annotation"
            elif after is not None and "line-number" in after.get("class", "") and _counts(after):
                after.tag = "annotation"
        elif element.tag == "template" and (found := _STREAMED.fullmatch(element.get("id", ""))):
            places.setdefault(found[1], element)
        elif any(element.get(name) is not None for name in _SHOWS.get(str(element.tag), ())):
            if element.tag == "template":
                host = element.getparent()
                if host in hosts:  # has its shadow tree
                    continue
                hosts.add(host)
                if len(hosts) <= _COPIES_MAX:
                    _fill_slots(element)
            _make_text(element)
        elif element.tag == "dialog":
            element.set("hidden", "")  # until it is opened
    _show_copies(root, copies[:_COPIES_MAX])
    streamed = root.iter("div") if places else ()
    for part in [part for part in streamed if part.get("id", "").startswith("S:")][:_COPIES_MAX]:
        place = places.pop(part.get("id", "")[2:], None)
        if place is not None and part not in place.iterancestors():
            place.addnext(part)


def _fill_slots(template: HtmlElement) -> None:
    """Move what is beside a shadow tree into its slots, where browsers show it."""
    host = template.getparent()
    slots: dict[str, HtmlElement] = {}
    for slot in template.iter("slot"):
        if next(slot.iterancestors("template")) is template:
            slots.setdefault(slot.get("name", ""), slot)
    beside = defaultdict[str, list[HtmlElement]](list)
    for part in () if host is None else host:
        if part is not template:
            beside[part.get("slot", "")].append(part)
    # Without a slot, none of it is seen; a script may still add the slots of an empty tree.
    for part in chain(*beside.values()) if slots or words_in(template) else ():
        if part.get("slot", "") not in slots:
            part.tag = "template"
    for name, slot in slots.items():
        text = "" if name else storable(template.tail)
        if beside[name] or text.strip():
            slot[:], slot.text = beside[name], text
    if "" in slots:
        template.tail = None


def _make_text(element: HtmlElement) -> None:
    """Make an element a part of its paragraph, or else a block."""
    element.tag = "div" if next(element.iterancestors("p"), None) is None else "span"


def _is_copy(math: HtmlElement) -> bool:
    """Return whether a formula is the copy, for screen readers, of the drawn one beside it."""
    around = math.getparent()
    beside = () if around is None else (around.getprevious(), around.getnext())
    return any(
        other is not None
        and other.get("aria-hidden") == "true"
        and other.tag != "svg"
        and any(text.strip() for text in other.itertext())
        for other in beside
    )


def _is_numbering(pre: HtmlElement) -> bool:
    """Return whether a ``pre`` has the numbers of the lines of code in the next cell."""
    cells = (around for around in islice(pre.iterancestors(), 2) if around.tag == "td")
    cell = next(cells, None)
    code = None if cell is None else cell.getnext()
    if code is None or all(part.tag != "pre" for part in islice(code.iter(), LABEL_PARTS)):
        return False
    return _counts(pre)


def _counts(element: HtmlElement) -> bool:
    numbers = " ".join(element.itertext()).split()
    first = int(numbers[0]) if numbers and _LINE_NUMBER.fullmatch(numbers[0]) else 0
    return numbers == [str(first + place) for place in range(len(numbers))]


def _empty_head(root: HtmlElement) -> None:
    """Move elements of the body from the head to the body, if ``<body>`` was omitted."""
    head = root.find("head")
    if head is None or not (misplaced := [child for child in head if child.tag not in HEAD]):
        return
    found = root.find("body")
    body = etree.SubElement(root, "body") if found is None else found
    if body.text:
        misplaced[-1].tail = storable(misplaced[-1].tail) + storable(body.text)
        body.text = None
    body[:0] = misplaced


def _end_drawing(svg: HtmlElement, ended: set[HtmlElement]) -> None:
    """Show what is in a drawing from its first element of HTML on, which ends it.

    The drawings before it, which end with this one, are added to ``ended``.
    """
    walker = etree.iterwalk(svg, events=("start",))
    for _, first in walker:
        if first.tag in ENDS_DRAWING:
            for around in takewhile(lambda around: around is not svg, first.iterancestors()):
                if around.tag in NEVER_TEXT:
                    around.tag, around.text = "span", None
                show(around)
            show(svg)
            return
        if first.tag in _DRAWINGS:
            ended.add(first)
        elif first.tag in _HTML_IN_DRAWING:
            walker.skip_subtree()
    if next(svg.iterancestors(*_DRAWINGS), None) is not None:  # which is read whole
        return
    text = etree.tostring(svg, encoding="utf-8", method="text", with_tail=False)
    for part in _UNDRAWN(svg) if text.strip() else ():
        setattr(part.getparent(), "tail" if part.is_tail else "text", None)


def _is_word(button: HtmlElement) -> bool:
    """Return whether a button is a word of a sentence, such as a term that it explains."""
    part, around, tail = button, button.getparent(), button.tail or ""
    while around is not None and around.tag in _INLINE and len(around) == 1:
        if f"{around.text or ''}{tail}".strip():
            break
        part, tail = around, around.tail or ""
        around = part.getparent()
    if around is None or around.tag not in ("p", "li", "dd") or tail[:1].isalnum():
        return False
    before, behind = (
        " ".join(
            f"{other.text or ''} {other.tail or ''}" if other.tag != "button" else other.tail or ""
            for other in islice(part.itersiblings(preceding=preceding), LABEL_PARTS)
        )
        for preceding in (True, False)
    )
    before = f"{around.text or ''} {before}"
    is_within = tail.strip() or (before.strip() and behind.strip())
    return bool(is_within) and len(tokenize(f"{before} {tail} {behind}")) >= _SENTENCE_WORDS


def clear_topics(root: HtmlElement, page_title: str | None) -> None:
    """Remove ids that say what sections of a manual and titles are about, as they do: "cookies".

    Behind such a section is one with another name; comments and newsletters are below the last.
    The id of a term that is defined says the same of it. A form around the title of the page
    becomes a ``div``: it sells what the page shows.
    """
    titles: list[HtmlElement] = []
    for title in islice(root.iter("dt", *HEADING_TAGS), _SECTIONS_MAX):
        if title.tag == "h1":
            titles.append(title)
        for part in (title, title.getparent()):
            if part is not None and _is_apart(part) and (part.tag == "dt" or _is_titled(part)):
                behind, before = (
                    islice(part.itersiblings(str(part.tag), preceding=preceding), LABEL_PARTS)
                    for preceding in (False, True)
                )
                others = chain(behind, before if part is title else ())
                if part.tag == "dt" or any(map(_is_other_topic, others)):
                    del part.attrib["id"]
    for title in titles[:_TITLES_MAX]:
        form = next(title.iterancestors("form"), None)
        if form is not None and {*tokenize(begin_of(title))} <= {*tokenize(page_title or "")}:
            form.tag = "div"


def clear_around_title(root: HtmlElement, page_title: str | None) -> bool:
    """Remove names that set apart what is around the title of the page, an h1 with its words.

    They are about something else in it, such as "content-sidebar". Return whether there were any.
    """
    title_words = {*tokenize(page_title or "")}
    cleared: list[HtmlElement] = []
    for title in islice(root.iter("h1"), _TITLES_MAX):
        words = tokenize(begin_of(title))
        if len(words) >= _TITLE_WORDS and {*words} <= title_words:
            cleared += (part for part in title.iterancestors() if named(part).flags & Named.APART)
    for part in cleared:
        part.attrib.pop("class", None)
        part.attrib.pop("id", None)
    return bool(cleared)


def _is_apart(section: HtmlElement) -> bool:
    name = section.get("id", "")
    return bool(name) and named({"id": name}).flags & Named.APART > 0


def _is_other_topic(section: HtmlElement) -> bool:
    return _is_titled(section) and not _is_apart(section)


def _is_titled(section: HtmlElement) -> bool:
    """Return whether a section begins with a title that has the words of its id."""
    names = tokenize(section.get("id", "")[:100].partition("(")[0])  # addCookie(Cookie)
    # Another id of it may stand above it.
    parts = (section,) if section.tag in HEADING_TAGS else section
    title = next((part for part in parts if len(part) or part.text), None)
    return bool(names) and title is not None and {*names} <= {*tokenize(begin_of(title))}


def _show_copies(root: HtmlElement, copies: Iterable[HtmlElement]) -> None:
    """Show each noscript that has text of the page that is nowhere else."""
    page: str | None = None
    for noscript in copies:
        words = words_in(noscript)
        text = " ".join(words)
        # A browser with scripts saved its markup as text.
        if (noscript.text or "").lstrip().startswith("<"):
            continue
        size = len(words) - sum(map(is_unspaced, words)) / 2
        if size <= _MESSAGE_WORDS and _SCRIPTS.search(text):
            continue
        is_of_script = next(noscript.iter("a", "img"), None) is not None
        if len(words) < (_FALLBACK_WORDS if is_of_script else _TEXT_WORDS):
            continue
        page = " ".join(words_in(root)) if page is None else page
        if " ".join(words[:_FALLBACK_WORDS]) not in page:
            _make_text(noscript)
            page = f"{page} {text}"
