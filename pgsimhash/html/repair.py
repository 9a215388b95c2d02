"""Repair a page where the parser reads it differently from browsers, or where a script shows text.

The source is repaired before it is parsed, and the tree afterwards, so both implementations of the
reader see the same tree. Sections are those of the WHATWG HTML standard.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from html import escape
from itertools import islice, takewhile
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html import native
from pgsimhash.html.blocks import HEADING_TAGS, NEVER_TEXT, Named, named, storable, words
from pgsimhash.html.hidden import LABEL_PARTS, PARAGRAPHS, begin_of, is_text_button, show, words_in

# The elements of a head (13.2.6.4.4); any other begins the body.
HEAD: Final = words("base basefont bgsound link meta noframes noscript script style template title")

# The body goes on behind </body> and </html> (13.2.6.4.19 and 22), where libxml2 ends the page.
# Faster than with a flag. What does not end is matched too, so that no part is searched twice.
_PAGE_END: Final = re.compile(rb"</(?i:body|html)(?:[\s/](?:[^>-]|-(?!->)){0,1000}+)?(>?)")
# A slash ends no start tag of HTML, so the page goes on behind its own, and what others hide to
# their end tag, but in drawings.
_SELF_CLOSED: Final = re.compile(
    rb"""<(?:(/?)(?:svg|math)\b[^<>]*+|(html|body|script|style|title|textarea|iframe|noscript"""
    rb"""|template|video|audio|canvas|noembed|noframes"""
    rb"""|(?:div|span|aside|section)(?=\s[^<>]*\b(?:hidden|none)\b))\b"""
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
_COMMENT_OR_CDATA: Final = rb"<!(?:--(?:-?>|(?:[^-]|-(?!-!?>))*+(?:--!?>)?)|\[CDATA\[)"
_IN_XHTML: Final = re.compile(_COMMENT_OR_CDATA)
_IN_DRAWING: Final = re.compile(
    _COMMENT_OR_CDATA + rb"|<(?P<begins>(?i:svg|math)\b[^<>]*+(?<!/)>|/(?i:foreignobject)\b)"
    rb"|<(?P<ends>/(?i:svg|math)\b|(?i:%s)\b)" % "|".join(_ENDS_DRAWING).encode()
)

# In browsers the end tags of these end a <div> in them (13.2.6.4.7). In libxml2 they do not, and
# all that follows is in the menu or hidden part.
ENDING: Final = frozenset(
    b"address article aside blockquote button center dd details dialog dl dt fieldset figcaption"
    b" figure footer h1 h2 h3 h4 h5 h6 header hgroup li main menu nav noscript ol pre search"
    b" section summary template ul".split()
)
_CELLS: Final = frozenset((b"td", b"th", b"caption"))
_ROWS: Final = frozenset((b"tr", b"thead", b"tbody", b"tfoot"))
_HEADINGS: Final = frozenset((b"h1", b"h2", b"h3", b"h4", b"h5", b"h6"))
_SCOPE: Final = _CELLS | {b"table"}
_NESTED: Final = ENDING | _SCOPE | _ROWS | {b"div"}
_TERMS: Final = frozenset((b"dd", b"dt"))
# For each tag the elements that it ends, and those that stop the search.
_OF_ROWS: Final = {name: (_CELLS, {b"table"}) for name in _CELLS | _ROWS}
_ENDED_BY_START: Final[dict[bytes, tuple[Collection[bytes], Collection[bytes]]]] = {
    **_OF_ROWS,
    b"li": ({b"li"}, _NESTED - {b"div", b"address"}),
    **dict.fromkeys(_TERMS, (_TERMS, _NESTED - {b"div", b"address"})),
}
_ENDED_BY_END: Final[dict[bytes, tuple[Collection[bytes], Collection[bytes]]]] = {
    **{name: ({name}, _SCOPE) for name in ENDING | {b"div"}},
    **dict.fromkeys(_HEADINGS, (_HEADINGS, _SCOPE)),
    **_OF_ROWS,
    b"li": ({b"li"}, _SCOPE | {b"ul", b"ol"}),
    b"table": ({b"table"}, ()),
}
_RAW: Final = frozenset(b"script style textarea title iframe noembed noframes xmp".split())
_KNOWN: Final = _NESTED | _RAW
_TAGS: Final = re.compile(
    rb"""<(?:!--(?:-?>|(?:[^-]|-(?!-!?>))*+(?:--!?>)?)"""
    rb"""|(/?)([a-z][^\s/>]*+)[^"'>]*+(?:(?:"[^"]*+"|'[^']*+')[^"'>]*+)*+>?)"""
)
_OPEN_MAX: Final = 30  # how many open elements are searched for one that ends

# Elements that only a drawing or formula does not show.
_DRAWN: Final = words(
    "annotation annotation-xml clippath defs desc marker mask metadata mphantom pattern symbol"
)
_REPAIRED: Final = _DRAWN | words(
    "applet button dialog embed ins math noscript object pre select svg switch template tspan"
)
# Declarative shadow DOM (4.12.3), of which the second attribute is Chrome's older one; and a layer.
_SHOWS: Final = {"template": ("shadowrootmode", "shadowroot"), "dialog": ("open",)}

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
_SECTIONS_MAX: Final = 1000  # of how many titles the sections are compared with them
_TITLES_MAX, _TITLE_WORDS = 3, 3  # how many h1 may be that of the page, and their fewest words
_COPIES_MAX: Final = 100  # how many elements of noscript are compared with the page
_LINE_NUMBER: Final = re.compile("[0-9]{1,6}")
_INLINE: Final = words("b em i span strong u")


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
    marks = _IN_XHTML if is_xhtml else _IN_DRAWING
    while mark := marks.search(source, at):
        at = mark.end()
        if mark[0] == _CDATA and is_text:
            end = source.find(b"]]>", at)
            if end < 0:
                break
            data = source[at:end].decode("utf-8", "replace")
            parts += source[done : mark.start()], escape(data, quote=False).encode()
            at = done = end + 3
        elif mark.lastgroup:
            is_text = mark.lastgroup == "begins"
    return b"".join((*parts, source[done:]))


def _opened(source: bytes) -> bytes:
    """Return a page with its self-closed start tags opened, if there is an end tag behind them."""
    ends = dict.fromkeys((b"html", b"body"), len(source))
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


def with_ended_divs(source: bytes) -> bytes:
    """Return a page with the end tags of the divs that other tags end in browsers."""
    parts: list[bytes] = []
    opened: list[bytes] = []
    lower, at, done = source.lower(), 0, 0
    while tag := _TAGS.search(lower, at):
        at, name = tag.end(), tag[2]
        if name not in _KNOWN:
            continue
        start, is_end = tag.start(), tag[1]
        if name in _RAW and not is_end:
            at = lower.find(b"</" + name, at)
            if at < 0:
                break
        if name in _RAW or lower.endswith(b"/>", start, at):
            continue
        rule = (_ENDED_BY_END if is_end else _ENDED_BY_START).get(name)
        if rule is not None and (place := _ended(opened, *rule)) is not None:
            if name != b"div" and (divs := opened[place:].count(b"div")):
                parts += source[done:start], b"</div>" * divs
                done = start
            del opened[place:]
        if not (is_end or name in _ROWS):
            opened.append(name)
    return b"".join((*parts, source[done:]))


def _ended(
    opened: Sequence[bytes], names: Collection[bytes], stops: Collection[bytes]
) -> int | None:
    """Return the place of the innermost element with one of the names, up to a stop, if any."""
    for place in range(len(opened) - 1, max(len(opened) - _OPEN_MAX, 0) - 1, -1):
        if opened[place] in names:
            return place
        if opened[place] in stops:
            return None
    return None


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
            elif is_text_button(element):
                element.tag = "div"
                element.set("aria-expanded", "")  # it stays what opens something
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
            if _is_numbering(element):
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


def _is_numbering(pre: HtmlElement) -> bool:
    """Return whether a ``pre`` has the numbers of the lines of code in the next cell."""
    cells = (around for around in islice(pre.iterancestors(), 2) if around.tag == "td")
    cell = next(cells, None)
    code = None if cell is None else cell.getnext()
    if code is None or all(part.tag != "pre" for part in islice(code.iter(), LABEL_PARTS)):
        return False
    numbers = " ".join(pre.itertext()).split()
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
        if first.tag in _ENDS_DRAWING:
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


def clear_topics(root: HtmlElement) -> None:
    """Remove ids that say what the sections of a manual are about, as their titles do: "cookies".

    Behind such a section is one with another name; comments and newsletters are below the last.
    """
    for title in islice(root.iter(*HEADING_TAGS), _SECTIONS_MAX):
        section = title.getparent()
        if section is not None and _is_apart(section) and _is_titled(section):
            others = islice(section.itersiblings(str(section.tag)), LABEL_PARTS)
            if any(_is_titled(other) and not _is_apart(other) for other in others):
                del section.attrib["id"]


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


def _is_titled(section: HtmlElement) -> bool:
    """Return whether a section begins with a title that has the words of its id."""
    names = tokenize(section.get("id", "")[:100]) if len(section) else []
    return bool(names) and {*names} <= {*tokenize(begin_of(section[0]))}


def _show_copies(root: HtmlElement, copies: Iterable[HtmlElement]) -> None:
    """Show each noscript that has text of the page that is nowhere else."""
    page: str | None = None
    for noscript in copies:
        words = words_in(noscript)
        text = " ".join(words)
        # A browser with scripts saved its markup as text.
        if (noscript.text or "").lstrip().startswith("<"):
            continue
        if len(words) <= _MESSAGE_WORDS and _SCRIPTS.search(text):
            continue
        is_of_script = next(noscript.iter("a", "img"), None) is not None
        if len(words) < (_FALLBACK_WORDS if is_of_script else _TEXT_WORDS):
            continue
        page = " ".join(words_in(root)) if page is None else page
        if " ".join(words[:_FALLBACK_WORDS]) not in page:
            _make_text(noscript)
            page = f"{page} {text}"
