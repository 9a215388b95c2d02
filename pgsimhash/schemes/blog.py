"""Read a page by a recipe on which many crawlers are based, to the letter.

Its first steps are those of BeautifulSoup: they remove elements by 13 selectors, elements with one
of 13 strings anywhere in their class or id, and lists and blocks that are mostly links. Readability
chooses the article. If that has less than 400 characters, the first container with as many is used,
else the body. Its Markdown is the text. docs/schemes.md describes the effects.

Some of readability's steps read the same text many times: for each ancestor, for each list below a
heading, for each empty element nearby. The characters read are counted, and a page that needs too
many is read without it. The first page loads the package.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.article import Article
from pgsimhash.html.blocks import structure_of, words
from pgsimhash.html.charset import clean_text, clean_utf8
from pgsimhash.html.head import read_head, restore_images
from pgsimhash.html.markdown import render
from pgsimhash.html.parse import parse

TAGS: Final = words("script style nav header footer form input button template")
"""The elements that are not content; a template's content is not part of the page."""

ROLES: Final = words("navigation complementary")
"""The roles of elements that are not content."""

NAME_PARTS: Final = words(
    "nav menu sidebar footer header advertisement ad- social share comment-form cookie popup modal"
)
"""The strings in the class or id, in any case, of elements that are not content.

The recipe's selectors ``.sidebar``, ``.advertisement`` and ``.cookie-banner`` have some of them.
"""

LINK_SHARE: Final = 0.8
"""A list or ``div`` with a larger share of its text in links is not content."""

CONTAINERS: Final = ("//article", "//main", "//*[@role='main']", "//*[@id='content']")
"""The paths of the content without readability."""

CHARS_MIN: Final = 400
"""The fewest characters of content, including white space."""

ELEMENTS_MAX: Final = 30_000
"""The most elements of a page."""

ATTRIBUTES_MAX: Final = 60_000
"""How many attributes of a page count."""

WORK_MAX: Final = 1_000_000_000
"""The most elements times characters of HTML for readability, which reads all text for each
element in some steps."""

DEPTH_MAX: Final = 100
"""The deepest nesting for readability, which reads all ancestors of each element in some steps."""

CHARS_MAX: Final = 2_500_000
"""The most characters of HTML of a page."""

LOOKED_AT_MAX: Final = 30_000_000
"""The most characters to read, with repetitions; each reading counts :data:`_LOOK` more."""

_LOOK: Final = 50

_SPACE: Final = " \t\n\r"

_LONG: Final = re.compile(r"(?<!\s)\s{255,}")
_BREAKS: Final = re.compile(r"(?<!\s)\s*\n\s*")
_BLANKS: Final = re.compile(r"\t|[ \t]{2,}")

_work = threading.local()

_PRESENTATION: Final = re.compile("width|height|[-a-z]*color|background[-a-z]*|on*", re.IGNORECASE)
"""The attributes that readability removes from an article, with a pass over the text for each."""


def spaced_words(text: str) -> list[str]:
    """Return the words of lower-cased ``text``, separated by white space.

    White space is that of JavaScript's regular expressions, including U+FEFF.
    """
    return text.lower().replace("\ufeff", " ").split()


def long_words(text: str) -> list[str]:
    """Return the :func:`spaced_words` of ``text`` with more than 2 characters."""
    return [word for word in spaced_words(text) if len(word) > 2]


def read_blog(html: bytes | str, url: str | None = None, charset: str | None = None) -> Article:
    """Return the main content of a page by the recipe; its text is the Markdown.

    The arguments are those of :func:`pgsimhash.html.read_article`.

    Raises:
        PageError: the bytes have another format (``not_html``), or the page has more than 30,000
            elements (``too_large``).
    """
    # XML, in which the tree is written below, has no form feeds.
    text = clean_utf8(html, charset).replace(b"\f", b" ")
    root = parse(text, ELEMENTS_MAX)
    if root is None:
        return Article("", "")
    title, base, canonical, language = read_head(root, url)
    structure = structure_of(root)
    restore_images(root)
    _limit_attributes(root)
    content = _content(root)
    markdown = "" if content is None else clean_text(render(content, base))
    return Article(markdown, markdown, title, canonical, language, structure)


def _limit_attributes(root: HtmlElement) -> None:
    left = ATTRIBUTES_MAX
    for node in root.iter():
        for name, value in node.items():
            if left and not (value and _PRESENTATION.fullmatch(name)):
                left -= 1
            else:
                del node.attrib[name]


def _content(root: HtmlElement) -> HtmlElement | None:
    left_out = _left_out(root)
    for node in left_out:
        node.tag = "template"
    etree.strip_elements(root, "template", with_tail=False)
    body = next(root.iter("body"), None)
    if body is None or root in left_out:
        return None
    html = _written(root)
    article = None if _is_too_much(root, len(html)) else article_of(html)
    if article is not None and _length(article) >= CHARS_MIN:
        return article
    for path in CONTAINERS:
        container = next(iter(root.xpath(path)), None)
        if container is not None and _length(container) >= CHARS_MIN:
            return parse(_written(container))
    # The recipe then searches for a block with more text than the body, and finds nothing.
    return parse(_written(body))


def _left_out(root: HtmlElement) -> set[HtmlElement]:
    """Return the elements that are not content, and shorten the white space between tags.

    Of it, BeautifulSoup keeps one character, which counts as text.
    """
    left_out = set(filter(_is_boilerplate, root.iter()))
    link_lists = set()
    # The characters in each open element, and in its links.
    chars, linked = [0], [0]
    preformatted = 0
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, node in walker:
        if event == "start":
            chars.append(0)
            linked.append(0)
            preformatted += node.tag in ("pre", "textarea")
            if node in left_out:
                walker.skip_subtree()
            elif node.text:
                if not preformatted and not node.text.strip(_SPACE):
                    node.text = "\n" if "\n" in node.text else " "
                chars[-1] += len(node.text)
            continue
        preformatted -= node.tag in ("pre", "textarea")
        inside, in_links = chars.pop(), linked.pop()
        if node not in left_out:
            if node.tag in ("ul", "ol", "div") and inside and in_links / inside > LINK_SHARE:
                link_lists.add(node)
            chars[-1] += inside
            # A link in a link counts twice.
            linked[-1] += in_links + (inside if node.tag == "a" else 0)
        if node.tail:
            if not preformatted and not node.tail.strip(_SPACE):
                node.tail = "\n" if "\n" in node.tail else " "
            chars[-1] += len(node.tail)
    return left_out | link_lists


def _is_boilerplate(node: HtmlElement) -> bool:
    names = f"{node.get('class', '')} {node.get('id', '')}".lower()
    return (
        node.tag in TAGS or node.get("role") in ROLES or any(part in names for part in NAME_PARTS)
    )


def _length(root: HtmlElement) -> int:
    return sum(map(len, root.itertext()))


def _written(element: HtmlElement) -> str:
    # As XML, because libxml2 changes URLs when it writes HTML.
    return etree.tostring(element, encoding="unicode", with_tail=False)


def _is_too_much(root: HtmlElement, chars: int) -> bool:
    return bool(
        chars > CHARS_MAX
        or root.xpath("count(//*)") * chars > WORK_MAX
        or root.xpath(f"boolean({'/*' * (DEPTH_MAX + 1)})")
    )


class _TooMuchError(BaseException):
    """Readability takes too long. Not an ``Exception``, because readability catches those."""


def article_of(html: str) -> HtmlElement | None:
    """Return the article that readability chooses, or None if the page takes too long."""
    own = _readability()
    _work.left = LOOKED_AT_MAX
    try:
        return parse(str(own.Summary(html).summary()))
    except (own.Unparseable, _TooMuchError):
        return None


def _look_at(size: int) -> None:
    _work.left -= size + _LOOK
    if _work.left < 0:
        raise _TooMuchError


def clean(text: str) -> str:
    """Return the result of readability's ``clean``, in linear time."""
    _look_at(len(text))
    text = _LONG.sub(" " * 255, text)
    text = _BREAKS.sub("\n", text)
    return _BLANKS.sub(" ", text).strip()


def _counted(written: Callable[..., str | bytes]) -> Callable[..., str | bytes]:
    def write(*arguments: Any, **options: Any) -> str | bytes:
        text = written(*arguments, **options)
        _look_at(len(text))
        return text

    return write


def _around(
    elements: Iterable[HtmlElement], holds: Callable[[HtmlElement], bool]
) -> Iterator[HtmlElement]:
    """Yield the elements that, or an ancestor of which, satisfies ``holds``, called once each."""
    known: dict[HtmlElement | None, bool] = {None: False}
    for element in elements:
        unknown: list[HtmlElement] = []
        node: HtmlElement | None = element
        while node is not None and node not in known:
            unknown.append(node)
            node = node.getparent()
        is_inside = known[node]
        for below in reversed(unknown):
            known[below] = is_inside = is_inside or holds(below)
        if known[element]:
            yield element


def _lists_contents(element: HtmlElement) -> bool:
    heading = element.getprevious() if element.tag == "ul" else None
    return (
        heading is not None
        and heading.tag in ("h2", "h3", "h4")
        and clean(heading.text_content()).lower() == "table of contents"
    )


@cache
def _readability() -> Any:
    """Return a private copy of readability's module, with some functions replaced."""
    spec = importlib.util.find_spec("readability.readability")
    assert spec is not None
    assert spec.loader is not None
    own: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    own.clean = clean
    own.tostring, own.tounicode = _counted(own.tostring), _counted(own.tounicode)
    # Used only for its log, and they keep the last page in memory.
    own.describe = own.text_content = lambda *_: ""
    # It logs every page without an article as an error.
    logging.getLogger("readability").addHandler(logging.NullHandler())

    class Summary(own.Document):  # type: ignore[misc]
        """Readability with bounds on depth and time."""

        def _parse(self, input: str) -> HtmlElement:  # noqa: A002
            return super()._parse(parse(input))

        def get_clean_html(self) -> str:
            # The attributes that it removes are already gone.
            return str(etree.tostring(self.html, encoding="unicode", method="html"))

        def get_link_density(self, elem: HtmlElement) -> float:
            _look_at(int(elem.xpath("count(.//*)")))
            return float(super().get_link_density(elem))

        def get_editorial_leads(self, best_elem: HtmlElement) -> list[HtmlElement]:
            matches = own.REGEXES["editorialLeadRe"].search
            named = self.html.xpath("//*[@class or @id]")
            leads = sum(
                1 for node in named if matches(f"{node.get('class', '')} {node.get('id', '')}")
            )
            # It searches the previous leads for each lead and its ancestors.
            _look_at(10 * leads * leads)
            return list(super().get_editorial_leads(best_elem))

        def get_preserved_elements(self, node: HtmlElement) -> dict[HtmlElement, bool]:
            lists = _around(self.tags(node, "ul"), _lists_contents)
            blocks = _around(self.tags(node, "div", "section"), self._leads_to_quote)
            return dict.fromkeys([*lists, *blocks], True)

        def _leads_to_quote(self, element: HtmlElement) -> bool:
            following = element.getnext()
            if following is None or next(following.iterdescendants("blockquote"), None) is None:
                return False
            text = clean(element.text_content())
            return len(text) >= self.min_text_length and text.endswith(":")

    own.Summary = Summary
    return own
