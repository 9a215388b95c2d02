"""Show what a page hides until its reader opens it, or until a script shows it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.hashing.tokens import tokenize
from pgsimhash.html.blocks import BLOCK, NEVER_TEXT, TITLE_TAGS, Named, is_hidden, named, words

PARAGRAPHS: Final = words("p article section h1 h2 h3 h4 h5 h6 ul ol table")
_QUESTION_WORDS: Final = 3  # a title on a button that opens something; a menu has fewer
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f", "\u037e")
_LABEL_WORDS: Final = 12  # a button text of this many words is no label
# A hidden element is the page only if it has this many words.
_HIDDEN_WORDS = 20
_ALONE = 0.8  # with this share of the words of its siblings, it is shown without them
# How many texts of a button or title are read, and how many characters of these.
LABEL_PARTS, _LABEL_CHARS = 40, 10_000
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
_TOGGLES: Final = ("aria-expanded", "data-toggle", "data-bs-toggle", "popovertarget")
_CLICKED: Final = (*_TOGGLES, "onclick")
_FOLDS: Final = re.compile(r"accordion|collapsible|faq(?<=\bfaq)")
_NAMING: Final = ("aria-controls", "popovertarget", "data-target", "data-bs-target", "data-tab")
_OPENERS: Final = etree.XPath(
    f"descendant::*[@{' or @'.join(_NAMING)} or @onclick"
    " or starts-with(@href, '#') or starts-with(@href, 'javascript:')]"
)
# The values of these attributes, one by one, in a tenth of the time.
_REFERENCES: Final = [
    etree.XPath(f"descendant::*/@{name}", smart_strings=False)
    for name in ("href", *_NAMING, "onclick")
]
_HERE: Final = ("#", "javascript:")
# Titles of what they open are shown with it.
_RETAGGED: Final = {"a": "span", **dict.fromkeys(("b", "button", "div", "p", "strong"), "summary")}
_TITLED: Final = TITLE_TAGS | {"th"}  # a button in a header sorts its column
_FOLD_TITLES: Final = TITLE_TAGS | words("b button div p span strong")
_TABS: Final = re.compile(
    r"\btab(?:s|bed)?[-_]{0,2}(?:pane|panel|content|body|block|box|item|section|\d)", re.IGNORECASE
)
_POPUPS: Final = re.compile(r"pop-?up|modal|dialog|overlay|tool-?tip|lightbox|fancybox|menu")
_STRINGS: Final = re.compile(r"['\"]#?([\w:.-]+)['\"]")  # in a script
_NUMBERED: Final = re.compile(r" [^ ']*\d[^ ']*")  # the second name of "answer answer-3"
_JSON: Final = re.compile(r'\s*[\[{][\[{\s]*"')  # the data of a script


def open_hidden(root: HtmlElement, hidden: Iterable[HtmlElement]) -> bool:
    """Show those of a page's hidden elements that readers open; return whether there were any.

    These are the panels of tabs, what is directly behind a question, a title that opens it or
    one of several that look alike, and prose that a link or button opens: it names it, or is
    beside it.
    """
    parts = {part: words for part in islice(hidden, _OPENED_MAX) if (words := _prose_words(part))}
    if not parts:
        return False
    ids = {name for part in parts if (name := part.get("id"))}
    values = " ".join(chain.from_iterable(find(root) for find in _REFERENCES)) if ids else ""
    linked = _OPENERS(root) if any(name in values for name in ids) else ()
    named_by = ((part, ids & set(_controlled(part))) for part in linked)
    asked, mentioned = set[str](), set[str]()
    for opener, names in islice((opener for opener in named_by if opener[1]), _OPENED_MAX):
        if is_text_button(opener):
            asked |= names
        elif (_label(opener)[0] or begin_of(opener).strip().isdecimal()) and not _POPUPS.search(
            " ".join(opener.attrib.values()).lower()
        ):
            mentioned |= names
    folds = _folds(parts)
    opened = [
        part
        for part, words in parts.items()
        if part.get("role") == "tabpanel"
        or (
            words >= (_FOLD_WORDS if part.get("id") in mentioned else _HIDDEN_WORDS)
            and _TABS.search(f"{part.get('class')} {part.get('id')}")
        )
        or part.get("id") in asked
        or part in folds
        or _is_opened(part, words, part.get("id") in mentioned)
    ]
    openers = (folds.get(part, _opener(_beside(part, before=True))) for part in opened)
    titles = {begin_of(title): title for title in openers if title is not None}
    # Otherwise they say "Read more".
    if len(titles) > 1:
        for title in titles.values():
            for element in (title, *islice(title.iterdescendants("a"), 1)):
                element.tag = _RETAGGED.get(str(element.tag), element.tag)
    for part in opened:
        show(part)
    return bool(opened)


def _folds(parts: dict[HtmlElement, int]) -> dict[HtmlElement, HtmlElement]:
    """Return the titles directly before hidden prose, of those that look alike and differ."""
    alike = defaultdict[str, dict[HtmlElement, HtmlElement]](dict)
    for part, size in parts.items():
        title = _beside(part, before=True)
        if size < _FOLD_WORDS or title is None:
            continue
        if title.tag not in _FOLD_TITLES and not _opens(title):
            continue
        is_title = 0 < _label(title)[0] <= _TITLE_WORDS
        if is_title and size >= len(words_in(part, most=_PARTS_MAX)) / 2:
            # A button of some words is a block now, a shorter one is not.
            tag = "button" if title.get("aria-expanded") == "" else title.tag
            looks = str((str(tag), str(part.tag), title.get("class"), part.get("class")))
            alike[_NUMBERED.sub("", looks)][part] = title
    differ = (fold for fold in alike.values() if len({*map(begin_of, fold.values())}) > 1)
    return {part: title for fold in differ for part, title in fold.items()}


def _prose_words(part: HtmlElement) -> int:
    """Return how many words outside links a hidden part has, none for a dialog, form or data."""
    if part.get("role") != "tabpanel" and (
        named(part).flags & _DIALOG
        or part.tag == "dialog"
        or _POPUPS.search(part.get("class", "").lower())
        or next(part.iter(*_CONTROLS), None) is not None
        or _JSON.match(begin_of(part))
    ):
        return 0
    return len(words_in(part, _LINKED, _PARTS_MAX))


def _controlled(opener: HtmlElement) -> Iterator[str]:
    """Yield the ids that an element names as those of what it opens."""
    for key in (*_NAMING, "href"):
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
    for part in islice(element.iter(), LABEL_PARTS):
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


def show_hidden(hidden: Iterable[HtmlElement], least: int, of_main: int, *, is_prose: bool) -> bool:
    """Show what a page hides until a script shows it; return whether there was anything.

    That is a hidden element of at least ``least`` words, of prose those outside links, or several
    with one tag and one first name or parent: those with the most words. With ``main`` in it, there
    are at least ``of_main``.
    """
    skipped = _LINKED if is_prose else NEVER_TEXT
    siblings = defaultdict[tuple[object, str], dict[HtmlElement, int]](dict)
    for element in hidden:
        names = named(element)
        is_opened = names.flags & _OPENED and element.tag != "body"
        is_layer = element.tag == "dialog" or element.get("popover") is not None
        if not (is_opened or is_layer or _JSON.match(begin_of(element))):
            alike = names.first or element.getparent()
            siblings[alike, str(element.tag)][element] = len(words_in(element, skipped))
    amounts = max(siblings.values(), key=lambda group: sum(group.values()), default={})
    whole = sum(amounts.values())
    is_main = any(next(element.iter("main"), None) is not None for element in amounts)
    if whole < max(of_main if is_main else least, _HIDDEN_WORDS):
        return False
    largest = max(amounts, key=lambda element: amounts[element])
    is_alone = amounts[largest] >= _ALONE * whole
    for element in [largest] if is_alone else amounts:
        show(element)
    return True


def show(element: HtmlElement) -> None:
    """Remove what hides an element."""
    if is_hidden(element):
        for name in ("hidden", "popover", "style"):
            element.attrib.pop(name, None)


def is_text_button(button: HtmlElement) -> bool:
    """Return whether a button is a question or title that opens an answer, or was never closed."""
    if button.get("role") == "tab" or next(button.iterancestors(*_TITLED), None) is not None:
        return True
    if len(button) and next(button.iterdescendants(*PARAGRAPHS), None) is not None:
        return True
    words, is_question = _label(button)
    classes = button.get("class", "").lower()
    is_toggle = "collaps" in classes or any(button.get(name) is not None for name in _TOGGLES)
    if is_question or words >= (_QUESTION_WORDS if is_toggle else _LABEL_WORDS):
        return True
    if not words or next(button.iterancestors("nav", "aside"), None) is not None:
        return False
    if _FOLDS.search(classes):
        return True
    # What is hidden behind it, other rules open.
    behind = button.getnext() if is_toggle else None
    if behind is None or behind.tag not in BLOCK or is_hidden(behind):
        return False
    return _prose_words(behind) >= _FOLD_WORDS


def _label(element: HtmlElement) -> tuple[int, bool]:
    """Return how many words the begin of an element has, and whether it is a question."""
    text = begin_of(element).rstrip()
    words = _size(text)
    return words, words > _QUESTION_WORDS and text.endswith(_QUESTION_MARKS)


@lru_cache
def _size(text: str) -> int:
    return len(tokenize(text))


def begin_of(element: HtmlElement) -> str:
    """Return the first texts of an element, which may contain nearly all of a page."""
    if not len(element):
        return (element.text or "")[:_LABEL_CHARS]
    texts = _texts_in(element, frozenset(), _LABEL_EVENTS)
    return " ".join(text[:_LABEL_CHARS] for text in islice(texts, LABEL_PARTS))[:_LABEL_CHARS]


def is_mostly_unlinked(element: HtmlElement) -> bool:
    """Return whether most words of an element, or of its first parts, are outside links."""
    unlinked = len(words_in(element, _LINKED, _PARTS_MAX))
    return 2 * unlinked > len(words_in(element, most=_PARTS_MAX))


def words_in(
    element: HtmlElement, skipped: frozenset[str] = NEVER_TEXT, most: int | None = None
) -> list[str]:
    """Return the words of an element, without the parts with such tags, or of its first parts."""
    return tokenize(" ".join(_texts_in(element, skipped, most)))


def _texts_in(element: HtmlElement, skipped: frozenset[str], most: int | None) -> Iterator[str]:
    """Yield the texts of an element, as :func:`words_in` reads them."""
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, node in islice(walker, most):
        if event == "start":
            if node is not element and node.tag in skipped:
                walker.skip_subtree()
            elif node.text:
                yield node.text
        elif node is not element and node.tail:
            yield node.tail
