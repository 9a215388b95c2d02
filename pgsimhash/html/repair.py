"""Repair a page where the parser reads it differently from browsers, or where a script shows text.

The source is repaired before it is parsed, and the tree afterwards, so both implementations of the
reader see the same tree. Sections are those of the WHATWG HTML standard.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from itertools import chain, islice, takewhile
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html import native
from pgsimhash.html.blocks import (
    HEADING_TAGS,
    NEVER_TEXT,
    TITLE_TAGS,
    Named,
    is_hidden,
    named,
    storable,
    words,
)

# The elements of a head (13.2.6.4.4); any other begins the body.
HEAD: Final = words("base basefont bgsound link meta noframes noscript script style template title")

# The body goes on behind </body> and </html> (13.2.6.4.19 and 22), where libxml2 ends the page.
# Faster than with a flag. What does not end is matched too, so that no part is searched twice.
_PAGE_END: Final = re.compile(rb"</(?i:body|html)(?:[\s/](?:[^>-]|-(?!->)){0,1000}+)?(>?)")
# A slash ends no start tag of HTML, so what these hide goes on to their end tag, but in drawings.
_SELF_CLOSED: Final = re.compile(
    rb"""<(?:(/?)(?:svg|math)\b[^<>]*+|(script|style|title|textarea|iframe|noscript|template|video"""
    rb"""|audio|canvas|noembed|noframes|(?:div|span|aside|section)(?=\s[^<>]*\b(?:hidden|none)\b))\b"""
    rb"""(?:[^<>"'/]++|/(?!>)|"[^"<]*+"|'[^'<]*+')*+/>)""",
    re.IGNORECASE,
)
_XML_DECLARATION: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml\s")
_DRAWINGS: Final = ("svg", "math")
# The start tags that end a drawing, and the elements in it that contain HTML (13.2.6.5).
_ENDS_DRAWING: Final = words(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li"
    " listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_HTML_IN_DRAWING: Final = words("foreignobject desc title mi mo mn ms mtext annotation-xml")
# Sections of CDATA are text in XHTML and in drawings (13.2.5.42), elsewhere comments.
_CDATA: Final = b"<![CDATA["
_IN_DRAWING: Final = re.compile(
    rb"<!--(?:-?>|(?:[^-]|-(?!-!?>))*+(?:--!?>)?)|<!\[CDATA\["
    rb"|<(?P<begins>(?i:svg|math)\b[^<>]*+(?<!/)>|/(?i:foreignobject)\b)"
    rb"|<(?P<ends>/(?i:svg|math)\b|(?i:%s)\b)" % "|".join(_ENDS_DRAWING).encode()
)

# Elements that only a drawing or formula does not show.
_DRAWN: Final = words(
    "annotation annotation-xml clippath defs desc marker mask metadata mphantom pattern symbol"
)
_REPAIRED: Final = _DRAWN | words(
    "applet button dialog embed ins math noscript object select svg switch template tspan"
)
# Declarative shadow DOM (4.12.3), of which the second attribute is Chrome's older one; and a layer.
_SHOWS: Final = {"template": ("shadowrootmode", "shadowroot"), "dialog": ("open",)}

_QUESTION_WORDS: Final = 3  # a title on a button that opens something; a menu has fewer
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e")
_LABEL_WORDS: Final = 12  # a button text of this many words is no label
# A message about scripts has at most this many words, among them one of these; in Chinese and
# Japanese, words are pairs of characters.
_MESSAGE_WORDS: Final = 60
_SCRIPTS: Final = re.compile(
    r"java ?script|\bscript(s|ing)?\b|\bjs\b|browser|cookies|loading|skript|skrypt|скрипт|браузер"
    r"|스크립트|سكريبت|स्क्रिप्ट|סקריפט|脚本|クリ リプ"
)
_FALLBACK_WORDS: Final = 10  # a shorter noscript with an image or a link is that of a script
_TEXT_WORDS: Final = 3  # another noscript with fewer says nothing
_SENTENCE_WORDS: Final = 5  # a sentence has this many words besides a button within it
# A hidden element is the page only if it has this many words.
_HIDDEN_WORDS = 20
_ALONE = 0.8  # with this share of the words of its siblings, it is shown without them
_SECTIONS_MAX: Final = 1000  # of how many titles the sections are compared with them
_COPIES_MAX: Final = 100  # how many elements of noscript are compared with the page
# How many texts of a button or title are read, and how many characters of these.
_LABEL_PARTS, _LABEL_CHARS = 40, 10_000
# A part of a page that a script opens, such as a menu or a dialog, is no text of its own.
_DIALOG: Final = Named.FOOTER | Named.OVERLAY | Named.APART
_OPENED: Final = Named.BESIDE | _DIALOG
_CONTROLS: Final = ("form", "input", "textarea", "select")
_UNSEEN: Final = ("br", "script", "style")
_LINKED: Final = NEVER_TEXT | {"a"}
# How many starts and ends of elements of a hidden part are read, and of a button or title.
_PARTS_MAX, _LABEL_EVENTS = 200, 1000
_OPENED_MAX: Final = 200  # how many hidden elements are read, and how many that open one
_ALIKE_MAX: Final = 20  # how many elements are passed over between it and what opens it
_TITLE_WORDS: Final = 30  # a title or a link that opens something has at most this many words
_FOLD_WORDS: Final = 5  # what a link or title directly before it opens has at least this many
_TOGGLES: Final = ("aria-expanded", "data-toggle", "data-bs-toggle")
_CLICKED: Final = (*_TOGGLES, "onclick")
_FOLDS: Final = re.compile(r"accordion|collapsible|\bfaq")
_INLINE: Final = words("b em i span strong u")
_OPENERS: Final = etree.XPath(
    "descendant::*[@aria-controls or @data-target or @data-bs-target or @onclick"
    " or starts-with(@href, '#') or starts-with(@href, 'javascript:')]"
)
# The values of these attributes, one by one, in a tenth of the time.
_REFERENCES: Final = [
    etree.XPath(f"descendant::*/@{name}", smart_strings=False)
    for name in ("href", "aria-controls", "data-target", "data-bs-target", "onclick")
]
_HERE: Final = ("#", "javascript:")
# Titles of what they open are shown with it.
_RETAGGED: Final = {"a": "span", **dict.fromkeys(("b", "button", "div", "p", "strong"), "summary")}
_TITLED: Final = TITLE_TAGS | {"th"}  # a button in a header sorts its column
_FOLD_TITLES: Final = TITLE_TAGS | words("b button div p span strong")
_TABS: Final = re.compile(
    r"\btab(?:s|bed)?[-_]{0,2}(?:pane|panel|content|body|block|box|item|section)", re.IGNORECASE
)
_POPUPS: Final = re.compile(r"pop-?up|modal|dialog|overlay|tool-?tip|lightbox|fancybox|menu")
_STRINGS: Final = re.compile(r"['\"]#?([\w:.-]+)['\"]")  # in a script


def repaired_source(source: bytes) -> bytes:
    """Return the UTF-8 of a page so that libxml2's parser reads it as browsers do."""
    end, has_slash, has_cdata = native.odd_tags(source)
    is_xhtml = _XML_DECLARATION.match(source) is not None
    if has_cdata and _CDATA in source:
        source, end = _without_cdata(source, is_xhtml), 0
    if has_slash and not is_xhtml:
        source, end = _opened(source), 0
    rest = _PAGE_END.sub(lambda tag: b"" if tag[1] else tag[0], source[end:])
    return b"".join((memoryview(source)[:end], rest)) if end < len(source) else source


def _without_cdata(source: bytes, is_xhtml: bool) -> bytes:
    """Return a page with its CDATA sections as text, of HTML those in drawings and formulas."""
    parts: list[bytes] = []
    at, done, is_text = 0, 0, is_xhtml
    while mark := _IN_DRAWING.search(source, at):
        at = mark.end()
        if mark[0] == _CDATA and is_text:
            end = source.find(b"]]>", at)
            if end < 0:
                break
            data = source[at:end].decode("utf-8", "replace")
            parts += source[done : mark.start()], escape(data, quote=False).encode()
            at = done = end + 3
        elif mark.lastgroup and not is_xhtml:
            is_text = mark.lastgroup == "begins"
    return b"".join((*parts, source[done:]))


def _opened(source: bytes) -> bytes:
    """Return a page with its self-closed start tags opened, if there is an end tag behind them."""
    ends: dict[bytes, int] = {}
    in_drawing = False

    def opened(tag: re.Match[bytes]) -> bytes:
        nonlocal in_drawing
        if tag[2] is None:
            in_drawing = not (tag[1] or tag[0].endswith(b"/"))
            return tag[0]
        name = tag[2].lower()
        if name not in ends:
            ends[name] = source.lower().rfind(b"</" + name)
        return tag[0] if in_drawing or ends[name] < tag.end() else tag[0][:-2] + b">"

    return _SELF_CLOSED.sub(opened, source)


def repair(root: HtmlElement) -> None:
    """Make the text that readers see text of the tree."""
    _empty_head(root)
    copies: list[HtmlElement] = []
    ended, shadows = set[HtmlElement](), 0
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
            elif _is_text(element):
                element.tag = "div"
                element.set("aria-expanded", "")  # it stays what opens something
        elif element.tag == "noscript":
            copies.append(element)
        elif element.tag in ("applet", "object", "select"):
            # Browsers without the plug-in show the text in it; a select may lack its end tag.
            if next(element.iter(*_PARAGRAPHS), None) is not None:
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
        elif any(element.get(name) is not None for name in _SHOWS.get(str(element.tag), ())):
            if element.tag == "template" and (shadows := shadows + 1) <= _COPIES_MAX:
                _fill_slots(element)
            _make_text(element)
    _show_copies(root, copies[:_COPIES_MAX])


def _fill_slots(template: HtmlElement) -> None:
    """Move what is beside a shadow tree into its slots, where browsers show it."""
    host = template.getparent()
    slots: dict[str, HtmlElement] = {}
    for slot in template.iter("slot"):
        if next(slot.iterancestors("template")) is template:
            slots.setdefault(slot.get("name", ""), slot)
    beside = defaultdict[str, list[HtmlElement]](list)
    for part in host if slots and host is not None else ():
        if part is not template:
            beside[part.get("slot", "")].append(part)
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
        if first.tag in _ENDS_DRAWING:
            for around in takewhile(lambda around: around is not svg, first.iterancestors()):
                if around.tag in NEVER_TEXT:
                    around.tag, around.text = "span", None
                _show(around)
            _show(svg)
            return
        if first.tag in _DRAWINGS:
            ended.add(first)
        elif first.tag in _HTML_IN_DRAWING:
            walker.skip_subtree()


def _is_word(button: HtmlElement) -> bool:
    """Return whether a button is a word of a sentence, such as a term that it explains."""
    part, around, tail = button, button.getparent(), button.tail or ""
    while around is not None and around.tag in _INLINE and len(around) == 1:
        if f"{around.text or ''}{tail}".strip():
            break
        part, tail = around, around.tail or ""
        around = part.getparent()
    if around is None or around.tag not in ("p", "li", "dd"):
        return False
    if not tail.strip() or tail[0].isalnum():
        return False
    before = part.getprevious()
    text = around.text if before is None else before.tail
    return len(tokenize(f"{text or ''} {tail}")) >= _SENTENCE_WORDS


def _is_text(button: HtmlElement) -> bool:
    """Return whether a button is a question or title that opens an answer, or was never closed."""
    if button.get("role") == "tab" or next(button.iterancestors(*_TITLED), None) is not None:
        return True
    if len(button) and next(button.iterdescendants(*_PARAGRAPHS), None) is not None:
        return True
    words, is_question = _label(button)
    classes = button.get("class", "").lower()
    is_toggle = "collaps" in classes or any(button.get(name) is not None for name in _TOGGLES)
    least = _QUESTION_WORDS if is_toggle else _LABEL_WORDS
    if _FOLDS.search(classes) and next(button.iterancestors("nav", "aside"), None) is None:
        least = 1
    return is_question or words >= least


_PARAGRAPHS: Final = words("p article section h1 h2 h3 h4 h5 h6 ul ol table")


def _label(element: HtmlElement) -> tuple[int, bool]:
    """Return how many words the begin of an element has, and whether it is a question."""
    text = _begin_of(element).rstrip()
    words = len(tokenize(text)) if text else 0
    return words, words > _QUESTION_WORDS and text.endswith(_QUESTION_MARKS)


def _begin_of(element: HtmlElement) -> str:
    """Return the first texts of an element, which may contain nearly all of a page."""
    texts = _texts_in(element, frozenset(), _LABEL_EVENTS)
    return " ".join(text[:_LABEL_CHARS] for text in islice(texts, _LABEL_PARTS))[:_LABEL_CHARS]


def clear_topics(root: HtmlElement) -> None:
    """Remove ids that say what the sections of a manual are about, as their titles do: "cookies".

    Behind such a section is one with another name; comments and newsletters are below the last.
    """
    for title in islice(root.iter(*HEADING_TAGS), _SECTIONS_MAX):
        section = title.getparent()
        if section is not None and _is_apart(section) and _is_titled(section):
            others = islice(section.itersiblings(str(section.tag)), _LABEL_PARTS)
            if any(_is_titled(other) and not _is_apart(other) for other in others):
                del section.attrib["id"]


def _is_apart(section: HtmlElement) -> bool:
    name = section.get("id", "")
    return bool(name) and named({"id": name}).flags & Named.APART > 0


def _is_titled(section: HtmlElement) -> bool:
    """Return whether a section begins with a title that has the words of its id."""
    names = tokenize(section.get("id", "")[:100]) if len(section) else []
    return bool(names) and {*names} <= {*tokenize(_begin_of(section[0]))}


def open_hidden(root: HtmlElement, hidden: Iterable[HtmlElement]) -> bool:
    """Show those of a page's hidden elements that readers open; return whether there were any.

    These are the panels of tabs, what is directly behind a question, a title that opens it or
    one of several that look alike, and prose that a link or button opens: it names it, or is
    beside it.
    """
    parts = {part: words for part in islice(hidden, _OPENED_MAX) if (words := _prose_words(part))}
    ids = {name for part in parts if (name := part.get("id"))}
    values = " ".join(chain.from_iterable(find(root) for find in _REFERENCES)) if ids else ""
    linked = _OPENERS(root) if any(name in values for name in ids) else ()
    named_by = ((part, ids & set(_controlled(part))) for part in linked)
    asked, mentioned = set[str](), set[str]()
    for opener, names in islice((opener for opener in named_by if opener[1]), _OPENED_MAX):
        if _is_text(opener):
            asked |= names
        elif _label(opener)[0] and not _POPUPS.search(" ".join(opener.attrib.values()).lower()):
            mentioned |= names
    folds = _folds(parts)
    opened = [
        part
        for part, words in parts.items()
        if part.get("role") == "tabpanel"
        or (words >= _HIDDEN_WORDS and _TABS.search(part.get("class", "")))
        or part.get("id") in asked
        or part in folds
        or _is_opened(part, words, part.get("id") in mentioned)
    ]
    openers = (folds.get(part, _opener(_beside(part, before=True))) for part in opened)
    titles = {_begin_of(title): title for title in openers if title is not None}
    # Otherwise they say "Read more".
    if len(titles) > 1:
        for title in titles.values():
            for element in (title, *islice(title.iterdescendants("a"), 1)):
                element.tag = _RETAGGED.get(str(element.tag), element.tag)
    for part in opened:
        _show(part)
    return bool(opened)


def _folds(parts: dict[HtmlElement, int]) -> dict[HtmlElement, HtmlElement]:
    """Return the titles directly before hidden prose, of those that look alike and differ."""
    alike = defaultdict[str, dict[HtmlElement, HtmlElement]](dict)
    for part, size in parts.items():
        title = _beside(part, before=True)
        if size < _FOLD_WORDS or title is None or title.tag not in _FOLD_TITLES:
            continue
        is_title = 0 < _label(title)[0] <= _TITLE_WORDS
        if is_title and size >= len(_words_in(part, most=_PARTS_MAX)) / 2:
            looks = str([(str(each.tag), each.get("class")) for each in (title, part)])
            alike[looks][part] = title
    differ = (fold for fold in alike.values() if len({*map(_begin_of, fold.values())}) > 1)
    return {part: title for fold in differ for part, title in fold.items()}


def _prose_words(part: HtmlElement) -> int:
    """Return how many words outside links a hidden part has, none for a dialog or form."""
    if part.get("role") != "tabpanel" and (
        named(part).flags & _DIALOG
        or _POPUPS.search(part.get("class", "").lower())
        or next(part.iter(*_CONTROLS), None) is not None
    ):
        return 0
    return len(_words_in(part, _LINKED, _PARTS_MAX))


def _controlled(opener: HtmlElement) -> Iterator[str]:
    """Yield the ids that an element names as those of what it opens."""
    for key in ("aria-controls", "data-target", "data-bs-target", "href"):
        yield from opener.get(key, "").replace("#", " ").split()
    yield from _STRINGS.findall(f"{opener.get('onclick')} {opener.get('href')}")


def _is_opened(part: HtmlElement, size: int, is_named: bool) -> bool:
    """Return whether what is beside a hidden part opens it, or what names it opens prose."""
    before, is_prose = _beside(part, before=True), size >= _HIDDEN_WORDS
    if before is not None:
        words, is_question = _label(before)
        is_titled = is_named and words >= _QUESTION_WORDS and size >= _FOLD_WORDS
        may_open = words <= _TITLE_WORDS and (is_prose or is_titled or before.tag in TITLE_TAGS)
        if is_question or (may_open and _opener_in(before, words) is not None):
            return True
        if is_prose and before.tag == "p" and _opens(_end_of(before)):
            return True
    if is_named or not is_prose:
        return is_prose
    return _opener(_beside(part, before=False)) is not None


def _beside(part: HtmlElement, before: bool) -> HtmlElement | None:
    """Return what is seen directly before or behind an element, or else the one around it.

    Hidden paragraphs or items beside it are passed over, but no slides.
    """
    around = (part, *islice(part.iterancestors(), 1))
    sides = (islice(element.itersiblings(preceding=before), _ALIKE_MAX) for element in around)
    for other in chain(*sides):
        if other.tag not in _UNSEEN:
            if not is_hidden(other):
                return other
            if other.tag not in ("p", "li") or "absolute" in other.get("style", ""):
                break
    return None


def _opener(beside: HtmlElement | None) -> HtmlElement | None:
    return None if beside is None else _opener_in(beside, _label(beside)[0])


def _opener_in(element: HtmlElement, words: int) -> HtmlElement | None:
    """Return the part of an element that opens something, if it has most of its words.

    If the element has few ``words``, any part may open something.
    """
    for part in islice(element.iter(), _LABEL_PARTS):
        if _opens(part):
            is_label = part.tag == "input" or 0 < words <= _QUESTION_WORDS
            return part if is_label or 2 * _label(part)[0] > words else None
    return None


def _opens(part: HtmlElement) -> bool:
    """Return whether a part of a page may open something."""
    is_link = part.tag == "a" and part.get("href", "#").startswith(_HERE)
    is_button = "button" in (part.tag, part.get("role"), part.get("type"))
    return is_link or is_button or any(part.get(name) is not None for name in _CLICKED)


def _end_of(element: HtmlElement) -> HtmlElement:
    """Return the last link or button of an element, if it ends with one, or its last element."""
    while len(element) and not _opens(element) and not tokenize(element[-1].tail or ""):
        element = element[-1]
    return element


def show_hidden(hidden: Iterable[HtmlElement], least: int, *, is_prose: bool) -> bool:
    """Show what a page hides until a script shows it; return whether there was anything.

    That is a hidden element of at least ``least`` words, of prose those outside links, or several
    with one tag and one first name or parent: those with the most words.
    """
    skipped = _LINKED if is_prose else NEVER_TEXT
    siblings: defaultdict[tuple[HtmlElement | str | None, str], dict[HtmlElement, int]]
    siblings = defaultdict(dict)
    for element in hidden:
        if not named(element).flags & _OPENED:
            alike = named(element).first or element.getparent()
            siblings[alike, str(element.tag)][element] = len(_words_in(element, skipped))
    amounts = max(siblings.values(), key=lambda group: sum(group.values()), default={})
    whole = sum(amounts.values())
    if whole < max(least, _HIDDEN_WORDS):
        return False
    largest = max(amounts, key=lambda element: amounts[element])
    is_alone = amounts[largest] >= _ALONE * whole
    for element in [largest] if is_alone else amounts:
        _show(element)
    return True


def _show(element: HtmlElement) -> None:
    if is_hidden(element):
        for name in ("hidden", "style"):
            element.attrib.pop(name, None)


def _show_copies(root: HtmlElement, copies: Iterable[HtmlElement]) -> None:
    """Show each noscript that has text of the page that is nowhere else."""
    page: str | None = None
    for noscript in copies:
        words = _words_in(noscript)
        text = " ".join(words)
        # A browser with scripts saved its markup as text.
        if (noscript.text or "").lstrip().startswith("<"):
            continue
        if len(words) <= _MESSAGE_WORDS and _SCRIPTS.search(text):
            continue
        is_of_script = next(noscript.iter("a", "img"), None) is not None
        if len(words) < (_FALLBACK_WORDS if is_of_script else _TEXT_WORDS):
            continue
        page = " ".join(_words_in(root)) if page is None else page
        if " ".join(words[:_FALLBACK_WORDS]) not in page:
            _make_text(noscript)
            page = f"{page} {text}"


def _words_in(
    element: HtmlElement, skipped: frozenset[str] = NEVER_TEXT, most: int | None = None
) -> list[str]:
    """Return the words of an element, without the parts with such tags, or of its first parts."""
    return tokenize(" ".join(_texts_in(element, skipped, most)))


def _texts_in(element: HtmlElement, skipped: frozenset[str], most: int | None) -> Iterator[str]:
    """Yield the texts of an element, as :func:`_words_in` reads them."""
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, node in islice(walker, most):
        if event == "start":
            if node is not element and node.tag in skipped:
                walker.skip_subtree()
            elif node.text:
                yield node.text
        elif node is not element and node.tail:
            yield node.tail
