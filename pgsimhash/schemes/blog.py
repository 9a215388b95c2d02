"""Reads a page by a recipe that many crawlers were built from, to the letter.

BeautifulSoup takes out what 13 selectors find, whatever has one of 13 strings anywhere in its class
or id, and lists and blocks that are mostly links. Readability chooses the article; where it finds
none of 400 characters, the first of some containers that has as many is taken, and else the body.
The Markdown of that is the text. docs/schemes.md says what comes of it.

Both packages are loaded by the first page that is read so.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from lxml import etree
from lxml.html import HtmlElement

from pgsimhash.html.article import Article
from pgsimhash.html.charset import clean_text, decode
from pgsimhash.html.head import canonical_url, page_language, page_title
from pgsimhash.html.links import base_url, restore_images
from pgsimhash.html.markdown import render
from pgsimhash.html.parse import parse
from pgsimhash.html.structure import structure_of
from pgsimhash.schemes.readable import CHARS_MAX, article_of

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

SELECTORS: Final = (
    "script",
    "style",
    "nav",
    "header",
    "footer",
    '[role="navigation"]',
    '[role="complementary"]',
    ".sidebar",
    ".advertisement",
    ".cookie-banner",
    "form",
    "input",
    "button",
)
"""What these select is no content."""

NAME_PARTS: Final = (
    "nav",
    "menu",
    "sidebar",
    "footer",
    "header",
    "advertisement",
    "ad-",
    "social",
    "share",
    "comment-form",
    "cookie",
    "popup",
    "modal",
)
"""Nor is what has one of these anywhere in its class or id, in either case."""

LINK_SHARE: Final = 0.8
"""Nor a list or ``div`` with more than this of its text in links."""

CONTAINERS: Final = ("article", "main", '[role="main"]', "#content")
"""Where the content is looked for without readability."""

CHARS_MIN: Final = 400
"""How many characters of text, white space included, make content."""

ELEMENTS_MAX: Final = 30_000
"""How many elements a page may have: BeautifulSoup takes a kilobyte and more for each."""

ATTRIBUTES_MAX: Final = 60_000
"""How many attributes of a page count, the first ones."""

WORK_MAX: Final = 1_000_000_000
"""Readability sees no page with more elements times characters of HTML: some of its steps look at
all of the text for each element."""

DEPTH_MAX: Final = 100
"""Nor one that is nested deeper: others look at all that is around each element."""


_PRESENTATION: Final = re.compile("width|height|[-a-z]*color|background[-a-z]*|on*", re.IGNORECASE)
"""The attributes that readability takes out of an article, one in each pass over all of it."""


def read_blog(html: bytes | str, url: str | None = None, charset: str | None = None) -> Article:
    """Return the main content of a page by the recipe; its text is the Markdown.

    Args:
        html: the page, as bytes or decoded.
        url: where it was found; relative URLs in it are resolved against this.
        charset: the label in the HTTP header, if there was one.

    Raises:
        PageError: the bytes are another format (``not_html``), or there are more than 30,000
            elements (``too_large``).
    """
    text = clean_text(html) if isinstance(html, str) else decode(html, charset)
    root = parse(text, ELEMENTS_MAX)
    if root is None:
        return Article("", "", None, None, None)
    base = base_url(root, url)
    title = page_title(root)
    canonical = canonical_url(root, base)
    language = page_language(root)
    structure = structure_of(root)
    restore_images(root)
    soup = _soup(root)
    _clean(soup)
    content = _content(soup)
    markdown = "" if content is None else clean_text(render([content], base))
    return Article(markdown, markdown, title, canonical, language, structure)


def _soup(root: HtmlElement) -> BeautifulSoup:
    """Return the tree as BeautifulSoup would have it of the same parser, whatever its depth."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup("", "html.parser")
    attributes = ATTRIBUTES_MAX
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, node in walker:
        if node.tag == "template":
            # What is in it is not in the page.
            if event == "start":
                walker.skip_subtree()
            elif node.tail:
                soup.handle_data(node.tail)
            continue
        if event == "start":
            kept = {
                name: value
                for name, value in islice(node.items() if attributes else (), attributes)
                if not value or _PRESENTATION.fullmatch(name) is None
            }
            attributes -= len(kept)
            soup.handle_starttag(node.tag, None, None, kept)
            if node.text:
                soup.handle_data(node.text)
        else:
            soup.handle_endtag(node.tag)
            if node.tail and node is not root:
                soup.handle_data(node.tail)
    soup.endData()
    return soup


def _clean(soup: BeautifulSoup) -> None:
    """Take out what is no content."""
    removed = set(map(id, soup.select(", ".join(SELECTORS))))
    removed.update(map(id, filter(_is_named_so, soup.find_all(True))))
    removed.update(_link_lists(soup, removed))
    # Backwards, and by its place: BeautifulSoup would look for each among all before it.
    for parent in [soup, *soup.find_all(True)]:
        for place in reversed(range(len(parent.contents))):
            child = parent.contents[place]
            if id(child) in removed:
                child.extract(_self_index=place)


def _is_named_so(tag: Tag) -> bool:
    names = [*tag.get_attribute_list("class"), *tag.get_attribute_list("id")]
    # A part has no white space in it, and so is within one name.
    said = " ".join(filter(None, names)).lower()
    return any(part in said for part in NAME_PARTS)


def _link_lists(soup: BeautifulSoup, removed: set[int]) -> list[int]:
    """Return the ids of lists and blocks that are mostly links, without what was removed."""
    from bs4 import Tag
    from bs4.element import TemplateString

    chars: dict[int, int] = {}
    linked: dict[int, int] = {}
    found = []
    # Backwards, what is in an element comes before it.
    for node in reversed(list(soup.descendants)):
        parent = id(node.parent)
        if not isinstance(node, Tag):
            if not isinstance(node, TemplateString):
                chars[parent] = chars.get(parent, 0) + len(str(node))
            continue
        here = id(node)
        held, links = chars.pop(here, 0), linked.pop(here, 0)
        if here in removed:
            continue
        if node.name in ("ul", "ol", "div") and held and links / held > LINK_SHARE:
            found.append(here)
        # A link in a link counts for both.
        links += held if node.name == "a" else 0
        chars[parent] = chars.get(parent, 0) + held
        linked[parent] = linked.get(parent, 0) + links
    return found


def _content(soup: BeautifulSoup) -> HtmlElement | None:
    body = soup.body
    if body is None:
        return None
    article = _article(soup)
    if article is not None and _length(article) >= CHARS_MIN:
        return article
    for selector in CONTAINERS:
        found = soup.select_one(selector)
        if found is not None:
            container = parse(_written(found))
            if container is not None and _length(container) >= CHARS_MIN:
                return container
    # The recipe goes on to look for a block with more text than the body, which none can have.
    return parse(_written(body))


def _length(root: HtmlElement) -> int:
    return sum(map(len, root.itertext()))


def _article(soup: BeautifulSoup) -> HtmlElement | None:
    """Return what readability takes for the article, if it may see the page."""
    html = _written(soup)
    return None if _is_too_much(soup, len(html)) else article_of(html)


def _written(tag: Tag) -> str:
    """Return what ``str(tag)`` does; that asks Python for each sign that is written as another."""
    from bs4.formatter import HTMLFormatter

    return tag.decode(formatter=HTMLFormatter(entity_substitution=_escaped))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _is_too_much(soup: BeautifulSoup, chars: int) -> bool:
    if chars > CHARS_MAX:
        return True
    depths = {id(soup): 0}
    for count, tag in enumerate(soup.find_all(True), start=1):
        depths[id(tag)] = depth = depths[id(tag.parent)] + 1
        if depth > DEPTH_MAX or count * chars > WORK_MAX:
            return True
    return False
